// What δ costs, and whether promises were kept.

const PERCENT_TICKS = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1];

// [1 − δ, what is measured] for every feasible δ.
const swept = (method, alpha) =>
  explorer.deltas
    .map((millionths) => [1 - millionths / MILLION, measured(method, alpha, millionths)])
    .filter(([, found]) => found.feasible);

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
  const order = [...curves.keys()].sort((a, b) => (a === state.method) - (b === state.method));
  made.picture.append(
    ...order
      .filter((i) => curves[i].length)
      .map((i) =>
        line(curves[i], made, {
          stroke: colourOf(methodName(i)),
          "stroke-width": i === state.method ? 4 : 1.5,
          opacity: i === state.method ? 1 : 0.75,
        }),
      ),
  );
  mark(made, 1 - explorer.deltas[state.delta] / MILLION, found.feasible ? found.bandwidth : null);
  $("tradeoff-words").textContent = `at α = ${tidyPercent(explorer.alphas[state.alpha])}; lower is better`;
  $("tradeoff-key").replaceChildren(
    ...explorer.methods.map((one, i) =>
      keyItem(colourOf(one.method), i === state.method ? make("b", {}, one.label) : one.label),
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

function drawPromises(found) {
  const curve = swept(state.method, state.alpha);
  const low = Math.min(0.5, ...curve.map(([, m]) => m.low));
  const made = chart(
    $("promises"),
    320,
    "Covered test functions against the promised share",
    percentAxis(0.5, "promised share of functions, 1 − δ [%]"),
    percentAxis(low, "test functions covered [%]"),
  );
  const { toX, toY } = made;
  made.picture.prepend(
    draw("path", {
      class: "promise",
      d: `${path(
        [
          [0.5, 0.5],
          [1, 1],
          [0.5, 1],
        ],
        toX,
        toY,
      )}Z`,
    }),
  );
  if (curve.length) {
    const ends = [...curve.map(([t, m]) => [t, m.high]), ...curve.map(([t, m]) => [t, m.low]).reverse()];
    made.picture.append(
      draw("path", { d: `${path(ends, toX, toY)}Z`, fill: colourOf(methodName()), opacity: 0.25 }),
      line(
        curve.map(([t, m]) => [t, m.share]),
        made,
        { stroke: colourOf(methodName()), "stroke-width": 3 },
      ),
    );
  }
  made.picture.append(
    line(
      [
        [0.5, 0.5],
        [1, 1],
      ],
      made,
      { stroke: "var(--quiet)", "stroke-dasharray": "2 4", "stroke-width": 1.5 },
    ),
  );
  mark(made, 1 - explorer.deltas[state.delta] / MILLION, found.feasible ? found.share : null);
  $("promises-words").textContent =
    `${explorer.methods[state.method].label}; above the diagonal the promise is kept; ` +
    "the pale band is the exact 95 % interval";
}
