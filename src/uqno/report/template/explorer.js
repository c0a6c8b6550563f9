// The explorer: what is chosen, and what follows from it.

const state = { function: 0, method: 0, alpha: 0, delta: 0, x: 0, y: 0, along: "x" };
let shape = [1, 1];

const chosen = () => explorer.functions[state.function];
const methodName = (i = state.method) => explorer.methods[i].method;
const viewOf = () => chosen().views[methodName()];
const now = () => measured(state.method, state.alpha, explorer.deltas[state.delta]);

// The fields of the chosen function under the chosen method, flat, x slowest.
function fields() {
  const view = viewOf(),
    found = now();
  const truth = unpacked(fieldOf(chosen().truth)),
    error = unpacked(fieldOf(view.error));
  const radius = unpacked(fieldOf(view.radius));
  return {
    input: unpacked(fieldOf(chosen().input)),
    truth,
    error,
    prediction: truth.map((u, i) => u - error[i]),
    radius: found.feasible ? radius.map((E) => E * found.scale) : null,
  };
}

const place = (x, y) => x * shape[1] + y;
const position = (i, side) => i / (shape[side] - 1);

function startExplorer() {
  if (!explorer) return;
  if (explorer.domain.kind !== "grid") return; // surfaces: drawn by a later version of this page
  shape = fieldOf(explorer.functions[0].truth).shape;
  Object.assign(state, {
    alpha: explorer.alphas.indexOf(explorer.alpha),
    delta: explorer.deltas.indexOf(explorer.delta),
    x: shape[0] >> 1,
    y: shape[1] >> 1,
  });
  $("explorer").hidden = false;
  explainExplorer();
  fillChoices();
  makeMaps();
  explore();
}

function explainExplorer() {
  const [rows, wide] = explorer.domain.nodes;
  const thinned =
    rows > shape[0]
      ? ` Maps show every ${ordinal((rows - 1) / (shape[0] - 1))} of ${rows} × ${wide} nodes.`
      : "";
  $("explorer-words").textContent =
    `λ̂ comes from the ${explorer.calibration} calibration functions of the run’s recorded split, by the grid ` +
    `rule for every method; percentages count its ${explorer.test} test functions. One split, so numbers ` +
    `differ a little from the table’s means.${thinned}`;
}

function fillChoices() {
  $("function").replaceChildren(
    ...explorer.functions.map((one, i) => make("option", { value: i }, `${one.place} · no. ${one.held}`)),
  );
  $("method").replaceChildren(...explorer.methods.map((one, i) => make("option", { value: i }, one.label)));
  $("alpha").max = explorer.alphas.length - 1;
  $("delta").max = explorer.deltas.length - 1;
  for (const id of ["function", "method", "alpha", "delta"]) {
    $(id).addEventListener("input", () => {
      state[id] = Number($(id).value);
      explore();
    });
  }
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("reset").addEventListener("click", () => {
    state.alpha = explorer.alphas.indexOf(explorer.alpha);
    state.delta = explorer.deltas.indexOf(explorer.delta);
    explore();
  });
  for (const way of ["x", "y"])
    $(`along-${way}`).addEventListener("click", () => {
      state.along = way;
      probeMoved();
    });
  $("cut").addEventListener("input", () => {
    state[state.along === "x" ? "y" : "x"] = Number($("cut").value);
    probeMoved();
  });
}

function step(by) {
  const n = explorer.functions.length;
  state.function = (state.function + by + n) % n;
  explore();
}

// Everything that depends on function, method, α or δ.
function explore() {
  for (const id of ["function", "method", "alpha", "delta"]) $(id).value = state[id];
  const alpha = explorer.alphas[state.alpha],
    delta = explorer.deltas[state.delta] / MILLION;
  $("alpha-value").textContent = tidyPercent(alpha);
  $("delta-value").textContent = tidyPercent(delta);
  $("alpha").setAttribute("aria-valuetext", tidyPercent(alpha));
  $("delta").setAttribute("aria-valuetext", tidyPercent(delta));
  const found = now();
  showReadout(found, alpha, delta);
  drawMaps();
  drawTradeoff(found);
  drawPromises(found);
  probeMoved();
}

function showReadout(found, alpha, delta) {
  $("infeasible").hidden = found.feasible;
  const [k, m, n] = [explorer.ranks[state.alpha], explorer.points, explorer.calibration];
  const cautious = explorer.exact[state.alpha] ? "" : " (the nearest stored rank above, so on the safe side)";
  $("ranks").textContent =
    `Score: the ${ordinal(k)} smallest of ${m} ratios${cautious}. ` +
    (found.feasible ? `λ̂: the ${ordinal(found.rank)} smallest of ${n} scores.` : "");
  if (!found.feasible) {
    showInfeasible(found, delta);
    return;
  }
  show("lambda", number(found.scale), found.scale);
  show("bandwidth", number(found.bandwidth), found.bandwidth);
  show("percentage", percent(found.share), found.share);
  const [least, most] = found.usual;
  const agrees = found.hits < least ? "unusually few" : found.hits > most ? "unusually many" : "as usual";
  $("percentage-words").textContent =
    `promised ${tidyPercent(1 - delta)} on average; 95 of 100 splits give ` +
    `${percent(least / explorer.test)} to ${percent(most / explorer.test)}: ${agrees}`;
  const covered = coveredPoints(viewOf(), found.scale);
  show("coverage", percent(covered / m), covered / m);
  $("coverage-words").textContent =
    `wanted ${tidyPercent(1 - alpha)}: ${covered >= k ? "reached" : "missed"}`;
}

function showInfeasible(found, delta) {
  const n = explorer.calibration;
  for (const id of ["lambda", "bandwidth", "percentage", "coverage"]) show(id, "–");
  $("percentage-words").textContent = $("coverage-words").textContent = "";
  $("infeasible").textContent = found.zero
    ? "Not feasible: the radius of this method is zero where the error is not, at more than α of the points " +
      "of too many functions, so no finite λ covers them. Take a larger α or δ, or give the radius a floor."
    : `Not feasible: δ = ${tidyPercent(delta)} needs at least ` +
      `${smallestFunctions(explorer.deltas[state.delta])} calibration functions, and there are ${n}. ` +
      `With ${n}, δ of at least ${tidyPercent(smallestDelta(n))} works.`;
}
