// What δ costs, and whether promises were kept.

const PERCENT_TICKS = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1];

// [1 − δ, what is measured] for every feasible δ.
const swept = remembered((method, alpha) =>
  explorer.deltas
    .map((millionths) => [1 - millionths / MILLION, measured(method, alpha, millionths)])
    .filter(([, found]) => found.feasible),
);

const percentAxis = (low, label) => ({
  low,
  high: 1,
  bend: stretched,
  ticks: PERCENT_TICKS.filter((p) => p >= low),
  text: (p) => `${tidy(100 * p)}`,
  label,
});

function drawTradeoff(found) {
  const curves = explorer.methods.map((_, i) =>
    swept(i, state.alpha).map(([target, m]) => [target, m.bandwidth]),
  );
  const widths = curves
    .flat()
    .map((p) => p[1])
    .filter((w) => w > 0);
  if (!widths.length) return $("tradeoff").replaceChildren("No δ is feasible.");
  const [low, high] = [Math.min(...widths), Math.max(...widths)];
  const made = chart(
    $("tradeoff"),
    320,
    "Bandwidth of each method against the promised share of functions",
    percentAxis(0.5, "promised share of functions, 1 − δ [%]"),
    { low, high, bend: Math.log10, ticks: logTicks(low, high), label: "bandwidth" },
  );
  // The chosen methods, thick, over the others.
  const weight = (i) => (i === state.method ? 4 : i === state.second ? 3 : 1.5);
  const order = [...curves.keys()].sort((a, b) => weight(a) - weight(b));
  made.picture.append(
    ...order
      .filter((i) => curves[i].length)
      .map((i) =>
        line(curves[i], made, {
          stroke: colourOf(methodName(i)),
          "stroke-width": weight(i),
          opacity: weight(i) > 2 ? 1 : 0.75,
        }),
      ),
  );
  mark(made, 1 - explorer.deltas[state.delta] / MILLION, found.feasible ? found.bandwidth : null);
  $("tradeoff-words").textContent = `at α = ${tidyPercent(explorer.alphas[state.alpha])}; lower is better`;
  $("tradeoff-key").replaceChildren(
    ...explorer.methods.map((one, i) =>
      keyItem(colourOf(one.method), weight(i) > 2 ? make("b", {}, one.label) : one.label),
    ),
  );
  return undefined;
}

// Where the sliders stand.
function mark({ picture, toX, toY, edges }, x, y) {
  const at = Math.max(toX(x), edges.left);
  picture.append(draw("line", { class: "reader", x1: at, x2: at, y1: edges.top, y2: edges.bottom }));
  if (y !== null)
    picture.append(
      draw("circle", {
        cx: at,
        cy: toY(y),
        r: 6,
        fill: "var(--card)",
        stroke: colourOf(methodName()),
        "stroke-width": 3,
      }),
    );
}

// The share of test functions that was covered, in the range that 95 of 100 splits give.
function drawPromises(found) {
  const curve = swept(state.method, state.alpha);
  const usualShare = (end) => curve.map(([target, m]) => [target, m.usual[end] / explorer.test]);
  const [least, most] = [usualShare(0), usualShare(1)];
  const low = Math.min(0.5, ...least.map((p) => p[1]), ...curve.map(([, m]) => m.share));
  const made = chart(
    $("promises"),
    320,
    "Covered test functions against the promised share",
    percentAxis(0.5, "promised share of functions, 1 − δ [%]"),
    percentAxis(low, "test functions covered [%]"),
  );
  const band = `${path([...most, ...least.reverse()], made.toX, made.toY)}Z`;
  if (curve.length) made.picture.prepend(draw("path", { class: "promise", d: band }));
  const diagonal = [[0.5, 0.5], [1, 1]]; // prettier-ignore
  made.picture.append(
    line(diagonal, made, { stroke: "var(--quiet)", "stroke-dasharray": "2 4", "stroke-width": 1.5 }),
    line(
      curve.map(([target, m]) => [target, m.share]),
      made,
      { stroke: colourOf(methodName()), "stroke-width": 3 },
    ),
  );
  mark(made, 1 - explorer.deltas[state.delta] / MILLION, found.feasible ? found.share : null);
  $("promises-words").textContent =
    `${explorer.methods[state.method].label}; on average on or above the diagonal; ` +
    "95 of 100 splits stay in the shade";
}
