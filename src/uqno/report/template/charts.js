// Charts in SVG: scales, ticks, lines.

const linear = (x) => x;
// 98 … 100 % gets as much room as 0 … 90 %.
const stretched = (p) => -Math.log10(1.005 - Math.min(p, 1.0049));

function scaleOf(low, high, from, to, bend = linear) {
  const a = bend(low),
    b = bend(high);
  const map = (x) => from + ((bend(x) - a) / (b - a || 1)) * (to - from);
  return Object.assign(map, { low, high });
}

function linearTicks(low, high, count = 5) {
  const rough = (high - low) / count || 1,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((s) => s * power >= rough);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

// As many as have room: every digit, or 1, 2 and 5, or powers of ten alone.
function logTicks(low, high, most = 7) {
  const powers = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) powers.push(10 ** power);
  const ladders = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1]].map((digits) =>
    powers
      .flatMap((power) => digits.map((digit) => digit * power))
      .filter((x) => x >= low * 0.999 && x <= high * 1.001),
  );
  return ladders.find((ticks) => ticks.length <= most) ?? ladders[2];
}

const MARGIN = { left: 62, right: 14, top: 22, bottom: 42 };

// An empty chart in a host as wide as it is, with axes; `x` and `y`: {low, high, bend, ticks, text,
// label}. Returns the drawing, its scales and its edges.
function chart(host, height, told, x, y) {
  const width = Math.max(280, host.clientWidth);
  const edges = {
    left: MARGIN.left,
    right: width - MARGIN.right,
    top: MARGIN.top,
    bottom: height - MARGIN.bottom,
  };
  const toX = scaleOf(x.low, x.high, edges.left, edges.right, x.bend);
  const toY = scaleOf(y.low, y.high, edges.bottom, edges.top, y.bend);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": told });
  for (const tick of x.ticks) {
    picture.append(
      draw(
        "text",
        { x: toX(tick), y: edges.bottom + 17, "text-anchor": "middle" },
        (x.text ?? tickText)(tick),
      ),
    );
  }
  for (const tick of y.ticks) {
    const at = toY(tick);
    picture.append(
      draw("line", { class: "axis", x1: edges.left, x2: edges.right, y1: at, y2: at }),
      draw("text", { x: edges.left - 8, y: at + 4, "text-anchor": "end" }, (y.text ?? tickText)(tick)),
    );
  }
  picture.append(
    draw("text", { x: edges.right, y: height - 6, "text-anchor": "end" }, x.label),
    draw("text", { x: 2, y: 12 }, y.label),
  );
  host.replaceChildren(picture);
  return { picture, toX, toY, edges };
}

function path(points, toX, toY) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${toX(x).toFixed(2)} ${toY(y).toFixed(2)}`).join("");
}

const line = (points, { toX, toY }, attributes) =>
  draw("path", {
    d: path(points, toX, toY),
    fill: "none",
    "stroke-width": 2,
    "stroke-linejoin": "round",
    ...attributes,
  });

function keyItem(colour, text, dash) {
  const stroke = { stroke: colour, "stroke-width": 3, "stroke-dasharray": dash };
  const sample = draw("line", { x1: 0, x2: 22, y1: 5, y2: 5, ...stroke });
  return make("span", {}, draw("svg", { width: 22, height: 10, "aria-hidden": "true" }, sample), " ", text);
}
