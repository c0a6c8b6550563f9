// The explorer: what is chosen, and what follows from it.

const NONE = -1;
const CHOICES = ["function", "method", "second", "alpha", "delta"];
// The two readings of a number under the sliders.
const FIXED = "α and δ as the run fixed them beforehand: λ̂ carries their promise, on average over calibration sets.";
const AFTER =
  "α or δ chosen after looking: λ̂ is what this pair would have had, and promised only if it was fixed beforehand. " +
  "For a promise that holds for every choice at once, calibrate with guarantees.Chosen; its λ̂ is larger.";
const state = {
  function: 0,
  method: 0,
  second: NONE, // the method beside it
  alpha: 0,
  delta: 0,
  x: 0,
  y: 0,
  along: "x",
  vertex: 0,
  field: "radius",
};
let compared = []; // the fields under each chosen method

const chosen = () => explorer.functions[state.function];
const methodName = (i = state.method) => explorer.methods[i].method;
const viewOf = (i = state.method) => chosen().views[methodName(i)];
const now = (i = state.method) => measured(i, state.alpha, explorer.deltas[state.delta]);
const unit = () => (explorer.domain.unit ? ` ${explorer.domain.unit}` : "");
// How functions on each kind of domain are shown and probed.
const domain = () => ({ grid: onGrid, surface: onSurface })[explorer.domain.kind];

// The fields of the chosen function under a method, flat (on a grid x slowest).
function fieldsOf(method) {
  const found = now(method),
    truth = unpacked(fieldOf(chosen().truth)),
    view = viewOf(method),
    stored = unpacked(fieldOf(view.residual)),
    E = unpacked(fieldOf(view.uncertainty));
  const error = stored.map(Math.abs);
  // Of vector-valued functions the magnitudes are shown, and the norm of their difference is stored.
  const prediction =
    view.magnitude === null ? truth.map((u, i) => u - stored[i]) : unpacked(fieldOf(view.magnitude));
  const residual = view.magnitude === null ? stored : truth.map((u, i) => u - prediction[i]);
  const radius = found.feasible ? E.map((x) => x * found.scale) : null;
  return {
    method,
    truth,
    residual,
    error,
    radius,
    prediction,
    covered: radius && error.map((e, i) => Number(e <= radius[i])),
  };
}

function startExplorer() {
  if (!explorer || !domain()) return;
  Object.assign(state, {
    alpha: explorer.alphas.indexOf(explorer.alpha),
    delta: explorer.deltas.indexOf(explorer.delta),
  });
  $("explorer").hidden = false;
  domain().start();
  explainExplorer();
  fillChoices();
  explore();
}

function explainExplorer() {
  $("explorer-words").textContent =
    `λ̂ comes from the ${explorer.calibration} calibration functions of the run’s recorded split, by the grid ` +
    `rule for every method; percentages count its ${explorer.test} test functions. One split, so numbers ` +
    `differ a little from the table’s means. ${domain().words()}`;
  $("explorer-help").textContent = domain().help;
}

function fillChoices() {
  $("function").replaceChildren(
    ...explorer.functions.map((one, i) => make("option", { value: i }, `${one.place} · no. ${one.held}`)),
  );
  const methods = () => explorer.methods.map((one, i) => make("option", { value: i }, one.label));
  $("method").replaceChildren(...methods());
  $("second").replaceChildren(make("option", { value: NONE }, "none"), ...methods());
  $("alpha").max = explorer.alphas.length - 1;
  $("delta").max = explorer.deltas.length - 1;
  for (const id of CHOICES) {
    $(id).addEventListener("input", () => {
      const before = state.method;
      state[id] = Number($(id).value);
      if (state.method === state.second) state.second = before; // they change places
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
}

function step(by) {
  const n = explorer.functions.length;
  state.function = (state.function + by + n) % n;
  explore();
}

// Everything that depends on function, methods, α or δ.
function explore() {
  for (const id of CHOICES) $(id).value = state[id];
  for (const option of $("second").options) option.disabled = Number(option.value) === state.method;
  const alpha = explorer.alphas[state.alpha],
    delta = explorer.deltas[state.delta] / MILLION;
  $("alpha-value").textContent = tidyPercent(alpha);
  $("delta-value").textContent = tidyPercent(delta);
  $("alpha").setAttribute("aria-valuetext", tidyPercent(alpha));
  $("delta").setAttribute("aria-valuetext", tidyPercent(delta));
  const fixed = alpha === explorer.alpha && explorer.deltas[state.delta] === explorer.delta;
  $("reading").textContent = fixed ? FIXED : AFTER;
  const found = now();
  compared = [state.method, state.second].filter((i) => i !== NONE).map(fieldsOf);
  showReadout(found, alpha, delta);
  showSecond();
  domain().draw();
  drawTradeoff(found);
  drawPromises(found);
  probeMoved();
}

// Scales that no slider moves, so that a change of colour is a change of the values: all of truth
// and prediction; up to the largest error, and the largest radius at the run's own α and δ. Methods
// side by side have one scale.
function limits() {
  const own = ({ method }) => measured(method, explorer.alphas.indexOf(explorer.alpha), explorer.delta);
  const radii = compared.map((one) =>
    own(one).feasible ? own(one).scale * fieldOf(viewOf(one.method).uncertainty).high : 0,
  );
  const e = [0, Math.max(...radii, ends(compared.map((one) => one.error))[1]) || 1];
  const u = ends(compared.flatMap((one) => [one.truth, one.prediction]));
  return { truth: u, prediction: u, error: e, radius: e, covered: [0, 1] };
}

// Everything that depends on where the probe is.
function probeMoved() {
  domain().moved();
  showProbe(domain().probed());
}

function showProbe(i) {
  const lines = compared.map(({ method, prediction, radius, error, covered }, second) => {
    const told = [
      ["prediction", "prediction", number(prediction[i], 4) + unit(), prediction[i]],
      ["± radius λ̂E", "radius", radius ? number(radius[i]) + unit() : "–", radius && radius[i]],
      ["error", "error", number(error[i]) + unit(), error[i]],
      ["covered", "covered", covered ? (covered[i] ? "yes" : "no") : "–"],
    ].map(([title, id, ...rest]) => [title, `${second ? "second" : "probe"}-${id}`, ...rest]);
    return compared.length > 1 ? [["method", null, explorer.methods[method].label], ...told] : told;
  });
  const truth = compared[0].truth[i];
  const common = [...domain().told(i), ["truth", "probe-truth", number(truth, 4) + unit(), truth]];
  const all = lines.length > 1 ? [common, ...lines] : [[...common, ...lines[0]]];
  $("probe").replaceChildren(
    ...all.map((line) =>
      make(
        "dl",
        {},
        ...line.map(([title, id, text, value]) =>
          make("div", {}, make("dt", {}, title), make("dd", { id, "data-value": value }, text)),
        ),
      ),
    ),
  );
}

// The numbers of the method beside the first one.
function showSecond() {
  $("second-words").hidden = state.second === NONE;
  if (state.second === NONE) return;
  const found = now(state.second);
  const covered = found.feasible && coveredPoints(viewOf(state.second), found.scale) / explorer.points;
  const told = found.feasible
    ? [
        ["λ̂", "lambda", number(found.scale), found.scale],
        ["bandwidth", "bandwidth", number(found.bandwidth) + unit(), found.bandwidth],
        ["test functions covered", "percentage", percent(found.share), found.share],
        ["of this function", "coverage", percent(covered), covered],
      ]
    : [["no band at this α and δ", "lambda", "–"]];
  $("second-words").replaceChildren(
    ...told.flatMap(([title, id, text, value], i) => [
      `${i ? ", " : ""}${title} `,
      make("b", { id: `second-${id}`, "data-value": value }, text),
    ]),
  );
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
  show("bandwidth", number(found.bandwidth) + unit(), found.bandwidth);
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
    ? "Not feasible: the uncertainty of this method is zero where the error is not, at more than α of the points " +
      "of too many functions, so no finite λ covers them. Take a larger α or δ, or give the uncertainty a floor."
    : `Not feasible: δ = ${tidyPercent(delta)} needs at least ` +
      `${smallestFunctions(explorer.deltas[state.delta])} calibration functions, and there are ${n}. ` +
      `With ${n}, δ of at least ${tidyPercent(smallestDelta(n))} works.`;
}
