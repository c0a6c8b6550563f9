// A cut through a function on a grid, where the probe stands.

function startSection() {
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

// Two pictures of one cut: the functions, and their distance from the prediction, since a good band
// is too thin to be seen on the scale of the functions.
function drawSection(held) {
  const acrossX = state.along === "x",
    side = acrossX ? 0 : 1;
  const nodes = Array.from({ length: shape[side] }, (_, i) =>
    acrossX ? place(i, state.y) : place(state.x, i),
  );
  const half = (node) => (held.radius ? held.radius[node] : 0);
  const missed = nodes.map((node) => held.radius !== null && !held.covered[node]);
  const cut = { side, nodes, half, missed, banded: held.radius !== null };
  drawCut(
    $("section"),
    250,
    cut,
    "u",
    (node) => held.prediction[node],
    (node) => held.residual[node],
  );
  drawCut(
    $("residual"),
    250,
    cut,
    "u − prediction",
    () => 0,
    (node) => held.residual[node],
  );
  sectionWords(acrossX, missed.filter(Boolean).length, nodes.length);
}

// The band around a center with the truth in it; what lies outside is marked.
function drawCut(host, height, { side, nodes, half, missed, banded }, label, center, error) {
  const curve = (value) => nodes.map((node, i) => [position(i, side), value(node)]);
  const truth = curve((node) => center(node) + error(node));
  const upper = curve((node) => center(node) + half(node)),
    lower = curve((node) => center(node) - half(node));
  const values = [truth, upper, lower].flat().map((p) => p[1]);
  const [least, most] = [Math.min(...values), Math.max(...values)],
    room = 0.05 * (most - least) || 1;
  const [low, high] = [least - room, most + room];
  const made = chart(
    host,
    height,
    `${label} along the cut: prediction, band and truth`,
    { low: 0, high: 1, ticks: linearTicks(0, 1), label: state.along },
    { low, high, ticks: linearTicks(low, high, 6), label },
  );
  if (banded)
    made.picture.append(
      draw("path", {
        d: `${path([...upper, ...lower.reverse()], made.toX, made.toY)}Z`,
        fill: "var(--band)",
      }),
    );
  made.picture.append(
    line(curve(center), made, { stroke: "var(--accent)" }),
    line(truth, made, { stroke: "var(--ink)", "stroke-dasharray": "6 4" }),
    ...truth
      .filter((_, i) => missed[i])
      .map(([x, y]) => draw("circle", { cx: made.toX(x), cy: made.toY(y), r: 3.5, fill: page.outside })),
  );
  const at = made.toX(position(side === 0 ? state.x : state.y, side));
  made.picture.append(
    draw("line", { class: "reader", x1: at, x2: at, y1: made.edges.top, y2: made.edges.bottom }),
  );
}

function sectionWords(acrossX, missed, nodes) {
  const [across, at] = acrossX ? ["y", state.y] : ["x", state.x],
    side = acrossX ? 1 : 0;
  $("along-x").setAttribute("aria-pressed", acrossX);
  $("along-y").setAttribute("aria-pressed", !acrossX);
  $("cut").max = shape[side] - 1;
  $("cut").value = at;
  $("cut-label").textContent = `cut at ${across} = ${position(at, side).toFixed(3)}`;
  $("cut").setAttribute("aria-valuetext", position(at, side).toFixed(3));
  $("section-words").textContent =
    `prediction with its band; truth, dashed, outside at ${missed} of ${nodes} nodes`;
}
