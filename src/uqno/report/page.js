"use strict";
// All of the page: reads the JSON in the page, computes ranks and scales, draws. No library, no
// network. Strings from the data become text nodes or attributes, never markup.
(() => {
const MILLION = 1000000;
const $ = (id) => document.getElementById(id);
const { page, results, explorer } = Object.fromEntries(
  ["page", "results", "explorer"].map((key) => [key, JSON.parse($(`${key}-data`).textContent)]));

// --- elements -------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}
const make = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

// What a person reads, and beside it the number that a machine reads.
function show(id, text, value) {
  $(id).textContent = text;
  if (value === undefined || value === null) delete $(id).dataset.value;
  else $(id).dataset.value = value;
}

// Black lines would vanish on a dark page.
const colourOf = (method) =>
  ({ "#000000": "var(--ink)", undefined: "var(--quiet)" }[page.looks[method]] ?? page.looks[method]);
const dot = (method) => make("span", { class: "dot", style: `background:${colourOf(method)}` });

// --- numbers as text: the same as uqno.evaluation.table ------------------------------------------

function number(x, digits = 3) {
  if (x === null || x === undefined) return "–";
  if (!Number.isFinite(x)) return "∞";
  if (x !== 0 && Math.abs(x) < 1e-2) return x.toExponential(digits - 1);
  return Math.abs(x) >= 1000 ? x.toFixed(0) : x.toPrecision(digits);
}

const percent = (share) =>
  share === 1 ? "100 %" : `${Math.min(100 * share, 99.9).toFixed(1)} %`;
const tidy = (x, digits = 6) => String(Number(x.toPrecision(digits)));
const ordinal = (i) =>
  `${i}${[11, 12, 13].includes(i % 100) ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[i % 10] ?? "th")}`;
const tidyPercent = (share) => `${tidy(100 * share)} %`;

function tickText(x) {
  if (x === 0) return "0";
  const small = Math.abs(x) < 1e-2 || Math.abs(x) >= 1e5;
  return small ? x.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e") : tidy(x, 4);
}

// --- arrays ---------------------------------------------------------------------------------

const KINDS = { float32: [Float32Array, 1], uint16: [Uint16Array, 65535], uint8: [Uint8Array, 255] };
const seen = new Map();

// The values of a packed array, flat; each is read once.
function unpacked(held) {
  if (!seen.has(held)) seen.set(held, decoded(held));
  return seen.get(held);
}

function decoded(held) {
  const size = held.shape.reduce((a, b) => a * b, 1);
  if (held.kind === "constant") return new Float64Array(size).fill(held.low);
  const text = atob(held.data);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const [Kind, top] = KINDS[held.kind];
  const raw = new Kind(bytes.buffer);  // little-endian, as all machines with a browser are
  if (held.kind === "float32") return raw;
  const step = (held.high - held.low) / top;
  return Float64Array.from(raw, (q) => held.low + q * step);
}

const fieldOf = (place) => explorer.fields[place];

// How many of a sorted array are at most x.
function atMost(sorted, x) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle + 1; else high = middle;
  }
  return low;
}

// --- conformal ------------------------------------------------------------------------------

// j = n + 1 − ⌊(n + 1) δ⌋ with δ in millionths: whole numbers throughout, so no rank is off by one.
function functionRank(n, millionths) {
  const product = (n + 1) * millionths;
  return n + 1 - (product - (product % MILLION)) / MILLION;
}

const smallestFunctions = (millionths) => Math.max(2, Math.ceil(MILLION / millionths) - 1);
// Rounded up, so that it works if it is typed in.
const smallestDelta = (n) => Math.ceil(1e4 / (n + 1)) / 1e4;

const columns = new Map();

// The scores of one method at one α, calibration and test apart, each sorted.
function sortedScores(method, alpha) {
  const key = `${method}/${alpha}`;
  if (!columns.has(key)) {
    const scores = unpacked(explorer.methods[method].scores);
    const wide = explorer.alphas.length;
    const column = Float32Array.from({ length: scores.length / wide }, (_, i) => scores[i * wide + alpha]);
    const n = explorer.calibration;
    columns.set(key, { calibration: column.slice(0, n).sort(), test: column.slice(n).sort() });
  }
  return columns.get(key);
}

function meanTestRadius(method) {
  const radius = unpacked(explorer.methods[method].mean_radius).subarray(explorer.calibration);
  return radius.reduce((sum, x) => sum + x, 0) / radius.length;
}

// λ̂, bandwidth and the covered test functions at (α, δ), by the recorded split.
function measured(method, alpha, millionths) {
  const n = explorer.calibration, rank = functionRank(n, millionths);
  if (rank > n) return { feasible: false, rank };
  const { calibration, test } = sortedScores(method, alpha);
  const scale = calibration[rank - 1];
  if (!Number.isFinite(scale)) return { feasible: false, rank, zero: true };
  const hits = atMost(test, scale);
  const [low, high] = unpacked(explorer.intervals).subarray(2 * hits, 2 * hits + 2);
  return {
    feasible: true, rank, scale, hits, low, high,
    share: hits / test.length, bandwidth: scale * meanTestRadius(method),
  };
}

// The share of all m points with ratio ≤ λ, as uqno.evaluation.profile has it: exact at the rungs,
// between two of them off by less than their distance.
function coverage(view, scale) {
  const ratios = unpacked(view.ratios), rungs = explorer.rungs, m = explorer.points;
  const step = atMost(ratios, scale);
  const below = step ? rungs[step - 1] : 0, above = step < rungs.length ? rungs[step] : m + 1;
  const low = step ? ratios[step - 1] : 0, high = step < rungs.length ? ratios[step] : Infinity;
  const part = Number.isFinite(high) ? (scale - low) / (high - low) : 0;
  return Math.min(Math.floor(below + part * (above - below)), above - 1) / m;
}

// --- charts ---------------------------------------------------------------------------------

const linear = (x) => x;
// 98 … 100 % gets as much room as 0 … 90 %.
const stretched = (p) => -Math.log10(1.005 - Math.min(p, 1.0049));

function scaleOf(low, high, from, to, bend = linear) {
  const a = bend(low), b = bend(high);
  const map = (x) => from + ((bend(x) - a) / (b - a || 1)) * (to - from);
  return Object.assign(map, { low, high });
}

function linearTicks(low, high, count = 5) {
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
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
    powers.flatMap((power) => digits.map((digit) => digit * power)).filter((x) => x >= low * 0.999 && x <= high * 1.001));
  return ladders.find((ticks) => ticks.length <= most) ?? ladders[2];
}

const MARGIN = { left: 62, right: 14, top: 22, bottom: 42 };

// An empty chart in a host as wide as it is, with axes; `x` and `y`: {low, high, bend, ticks, text,
// label}. Returns the drawing, its scales and its edges.
function chart(host, height, told, x, y) {
  const width = Math.max(280, host.clientWidth);
  const edges = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const toX = scaleOf(x.low, x.high, edges.left, edges.right, x.bend);
  const toY = scaleOf(y.low, y.high, edges.bottom, edges.top, y.bend);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": told });
  for (const tick of x.ticks) {
    picture.append(draw("text", { x: toX(tick), y: edges.bottom + 17, "text-anchor": "middle" }, (x.text ?? tickText)(tick)));
  }
  for (const tick of y.ticks) {
    const at = toY(tick);
    picture.append(
      draw("line", { class: "axis", x1: edges.left, x2: edges.right, y1: at, y2: at }),
      draw("text", { x: edges.left - 8, y: at + 4, "text-anchor": "end" }, (y.text ?? tickText)(tick)));
  }
  picture.append(
    draw("text", { x: edges.right, y: height - 6, "text-anchor": "end" }, x.label),
    draw("text", { x: 2, y: 12 }, y.label));
  host.replaceChildren(picture);
  return { picture, toX, toY, edges };
}

function path(points, toX, toY) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${toX(x).toFixed(2)} ${toY(y).toFixed(2)}`).join("");
}

const line = (points, { toX, toY }, attributes) =>
  draw("path", { d: path(points, toX, toY), fill: "none", "stroke-width": 2, "stroke-linejoin": "round", ...attributes });

const keyItem = (colour, text, dash) => make("span", {},
  ((s) => { s.append(draw("line", { x1: 0, x2: 22, y1: 5, y2: 5, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash })); return s; })(
    draw("svg", { width: 22, height: 10, "aria-hidden": "true" })), " ", text);

// --- summary --------------------------------------------------------------------------------

function showSummary() {
  const { headline, figure, caption, points } = page.summary;
  document.title = `${page.name} · uqno report`;
  $("run-name").textContent = page.name;
  $("headline").textContent = headline;
  $("remember").textContent = figure;
  $("remember-caption").textContent = caption;
  $("points").replaceChildren(...points.map((point) =>
    make("div", { class: `point ${point.state}` }, make("h3", {}, point.title), make("p", {}, point.text))));
}

// --- table ----------------------------------------------------------------------------------

const table = { level: 0, by: null, down: false };
const STATES = { "✓": "good-text", "≈": "near-text", "✗": "bad-text" };

function showTable() {
  const shown = page.tables[table.level];
  $("table-words").textContent = shown ? shown.words : "This record has no rows.";
  if (!shown) return;
  $("levels").replaceChildren(...page.tables.map((one, i) => make("button", {
    type: "button", "aria-pressed": i === table.level, onclick: () => { table.level = i; showTable(); $("levels").children[i].focus(); },
  }, one.title)));
  $("table").tHead.replaceChildren(make("tr", {}, ...page.columns.map(headCell)));
  $("table").tBodies[0].replaceChildren(...sortedRows(shown.rows).map(tableRow));
  $("notes").replaceChildren(...shown.notes.map((note) => make("li", {}, note)));
}

function headCell(column, i) {
  const sorted = table.by === i ? (table.down ? "descending" : "ascending") : null;
  const sort = () => {
    Object.assign(table, { by: i, down: table.by === i && !table.down });
    showTable();
    $("table").tHead.querySelectorAll("button")[i].focus();
  };
  const kind = `${column.left ? "left" : ""} ${column.title.length > 12 ? "wrap" : ""}`;
  return make("th", { scope: "col", class: kind, "aria-sort": sorted },
    make("button", { type: "button", title: column.help, onclick: sort }, column.title));
}

// What is unknown stays last, whichever way it is sorted.
function sortedRows(rows) {
  if (table.by === null) return rows;
  const sign = table.down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [one.cells[table.by][1], other.cells[table.by][1]];
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
  });
}

function tableRow(row) {
  const kind = row.calibrated ? (row.method === "uqno" ? "ours" : "") : "raw";
  return make("tr", { class: kind, "data-method": row.method }, ...row.cells.map(([text], i) => {
    const left = page.columns[i].left ? "left" : "";
    if (i === 0) return make("th", { scope: "row", class: left }, dot(row.method), text);
    const verdict = page.columns[i].title === "Functions covered" && row.calibrated && STATES[row.verdict];
    return make("td", { class: verdict || left }, text);
  }));
}

// --- explorer: what is chosen, and what follows ---------------------------------------------------

const state = { function: 0, method: 0, alpha: 0, delta: 0, x: 0, y: 0, along: "x" };
let shape = [1, 1];

const chosen = () => explorer.functions[state.function];
const methodName = (i = state.method) => explorer.methods[i].method;
const viewOf = () => chosen().views[methodName()];
const now = () => measured(state.method, state.alpha, explorer.deltas[state.delta]);

// The fields of the chosen function under the chosen method, flat, x slowest.
function fields() {
  const view = viewOf(), found = now();
  const truth = unpacked(fieldOf(chosen().truth)), error = unpacked(fieldOf(view.error));
  const radius = unpacked(fieldOf(view.radius));
  return {
    input: unpacked(fieldOf(chosen().input)), truth, error,
    prediction: truth.map((u, i) => u - error[i]),
    radius: found.feasible ? radius.map((E) => E * found.scale) : null,
  };
}

const place = (x, y) => x * shape[1] + y;
const position = (i, side) => i / (shape[side] - 1);

function startExplorer() {
  if (!explorer) return;
  if (explorer.domain.kind !== "grid") return;  // surfaces: drawn by a later version of this page
  shape = fieldOf(explorer.functions[0].truth).shape;
  Object.assign(state, {
    alpha: explorer.alphas.indexOf(explorer.alpha), delta: explorer.deltas.indexOf(explorer.delta),
    x: shape[0] >> 1, y: shape[1] >> 1,
  });
  $("explorer").hidden = false;
  explainExplorer();
  fillChoices();
  makeMaps();
  explore();
}

function explainExplorer() {
  const [rows, wide] = explorer.domain.nodes;
  const thinned = rows > shape[0] ? ` Maps show every ${ordinal((rows - 1) / (shape[0] - 1))} of ${rows} × ${wide} nodes.` : "";
  $("explorer-words").textContent =
    `λ̂ comes from the ${explorer.calibration} calibration functions of the run’s recorded split, by the grid rule for ` +
    `every method; percentages count its ${explorer.test} test functions. One split, so numbers differ a little from the ` +
    `table’s means.${thinned}`;
}

function fillChoices() {
  $("function").replaceChildren(...explorer.functions.map((one, i) =>
    make("option", { value: i }, `${one.place} · no. ${one.held}`)));
  $("method").replaceChildren(...explorer.methods.map((one, i) => make("option", { value: i }, one.label)));
  $("alpha").max = explorer.alphas.length - 1;
  $("delta").max = explorer.deltas.length - 1;
  for (const id of ["function", "method", "alpha", "delta"]) {
    $(id).addEventListener("input", () => { state[id] = Number($(id).value); explore(); });
  }
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("reset").addEventListener("click", () => {
    state.alpha = explorer.alphas.indexOf(explorer.alpha);
    state.delta = explorer.deltas.indexOf(explorer.delta);
    explore();
  });
  for (const way of ["x", "y"]) $(`along-${way}`).addEventListener("click", () => { state.along = way; probeMoved(); });
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
  const alpha = explorer.alphas[state.alpha], delta = explorer.deltas[state.delta] / MILLION;
  $("alpha-value").textContent = tidyPercent(alpha);
  $("delta-value").textContent = tidyPercent(delta);
  $("alpha").setAttribute("aria-valuetext", tidyPercent(alpha));
  $("delta").setAttribute("aria-valuetext", tidyPercent(delta));
  const found = now();
  showReadout(found, alpha, delta);
  drawMaps(found);
  drawTradeoff(found);
  drawPromises(found);
  probeMoved();
}

function showReadout(found, alpha, delta) {
  $("infeasible").hidden = found.feasible;
  const k = explorer.ranks[state.alpha], m = explorer.points, n = explorer.calibration;
  const cautious = explorer.exact[state.alpha] ? "" : " (the nearest stored rank above, so on the safe side)";
  $("ranks").textContent = `Score: the ${ordinal(k)} smallest of ${m} ratios${cautious}. ` +
    (found.feasible ? `λ̂: the ${ordinal(found.rank)} smallest of ${n} scores.` : "");
  if (!found.feasible) return showInfeasible(found, delta);
  const share = coverage(viewOf(), found.scale);
  show("lambda", number(found.scale), found.scale);
  show("bandwidth", number(found.bandwidth), found.bandwidth);
  show("percentage", percent(found.share), found.share);
  const target = 1 - delta;
  const agrees = found.share >= target ? "reached" : found.high >= target ? "missed within chance" : "missed";
  $("percentage-words").textContent =
    `promised ${tidyPercent(target)}: ${agrees}; 95 % interval ${percent(found.low)} to ${percent(found.high)}`;
  show("coverage", percent(share), share);
  $("coverage-words").textContent = `wanted ${tidyPercent(1 - alpha)}: ${share * m >= k ? "reached" : "missed"}`;
}

function showInfeasible(found, delta) {
  const n = explorer.calibration;
  for (const id of ["lambda", "bandwidth", "percentage", "coverage"]) show(id, "–");
  $("percentage-words").textContent = $("coverage-words").textContent = "";
  $("infeasible").textContent = found.zero
    ? "Not feasible: the radius of this method is zero where the error is not, at more than α of the points of too many functions, so no finite λ covers them. Take a larger α or δ, or give the radius a floor."
    : `Not feasible: δ = ${tidyPercent(delta)} needs at least ${smallestFunctions(explorer.deltas[state.delta])} calibration functions, and there are ${n}. With ${n}, δ of at least ${tidyPercent(smallestDelta(n))} works.`;
}

// --- maps -----------------------------------------------------------------------------------

const MAPS = {
  input: { title: "Input", colours: "bone" },
  prediction: { title: "Prediction", note: "scale as truth", colours: "viridis" },
  truth: { title: "Truth", note: "scale as prediction", colours: "viridis" },
  covered: { title: "Covered points" },
  error: { title: "Error", note: "scale as radius", colours: "cividis" },
  radius: { title: "Radius λ̂E", note: "scale as error", colours: "cividis" },
};
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function makeMaps() {
  $("maps").replaceChildren(...Object.entries(MAPS).map(([name, map]) => {
    const square = make("div", {
      class: "square", tabindex: 0, role: "application", "data-map": name,
      "aria-label": `Map: ${map.title}. Arrow keys move the probe.`,
      onpointermove: pointed, onpointerdown: pointed, onkeydown: keyed,
    }, make("canvas", { width: shape[0], height: shape[1] }), make("i", { class: "up" }), make("i", { class: "over" }));
    const title = make("h3", {}, map.title, ...(map.note ? [make("small", {}, ` · ${map.note}`)] : []));
    return make("div", { class: "map" }, title, square, make("div", { class: "legend" }));
  }));
}

function pointed(event) {
  if (event.type === "pointermove" && event.pointerType === "touch" && !event.isPrimary) return;
  const box = event.currentTarget.getBoundingClientRect();
  const node = (share, side) => Math.min(shape[side] - 1, Math.max(0, Math.floor(share * shape[side])));
  state.x = node((event.clientX - box.left) / box.width, 0);
  state.y = node(1 - (event.clientY - box.top) / box.height, 1);
  probeMoved();
}

function keyed(event) {
  const way = ARROWS[event.key];
  if (!way) return;
  event.preventDefault();
  const by = event.shiftKey ? 5 : 1;
  state.x = Math.min(shape[0] - 1, Math.max(0, state.x + by * way[0]));
  state.y = Math.min(shape[1] - 1, Math.max(0, state.y + by * way[1]));
  probeMoved();
}

function shade(name, share) {
  const colours = page.maps[name];
  const at = Math.min(1, Math.max(0, share)) * (colours.length - 1), i = Math.min(colours.length - 2, Math.floor(at));
  return colours[i].map((c, k) => Math.round(c + (at - i) * (colours[i + 1][k] - c)));
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

// Scales that no slider and no method moves, so that a change on the map is a change of the values.
function limits() {
  const input = fieldOf(chosen().input), truth = fieldOf(chosen().truth);
  const largest = Math.max(...Object.values(chosen().views).flatMap((view) =>
    [fieldOf(view.error).low, fieldOf(view.error).high].map(Math.abs)));
  const u = [truth.low, truth.high], e = [0, largest || 1];
  return { input: [input.low, input.high], truth: u, prediction: u, error: e, radius: e };
}

function drawMaps(found) {
  const held = fields(), range = limits();
  held.error = held.error.map(Math.abs);
  held.covered = held.radius && held.error.map((e, i) => Number(e <= held.radius[i]));
  const two = [page.outside, page.inside].map(rgb);
  for (const square of $("maps").querySelectorAll(".square")) {
    const name = square.dataset.map, values = held[name], [low, high] = range[name] ?? [0, 1];
    const colour = name === "covered" ? (x) => two[x] : (x) => shade(MAPS[name].colours, (x - low) / (high - low || 1));
    paint(square.firstChild, values, colour);
    legend(square.nextSibling, name, values, low, high);
  }
}

// x to the right, y up, as in the figures; nothing where there are no values.
function paint(canvas, values, colour) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  if (!values) return;
  const image = context.createImageData(canvas.width, canvas.height);
  for (let x = 0; x < shape[0]; x++) {
    for (let y = 0; y < shape[1]; y++) {
      image.data.set([...colour(values[place(x, y)]), 255], 4 * ((shape[1] - 1 - y) * shape[0] + x));
    }
  }
  context.putImageData(image, 0, 0);
}

function legend(host, name, values, low, high) {
  host.className = name === "covered" ? "legend two" : "legend";
  if (name === "covered") {
    const item = (colour, text) => make("span", {}, make("span", { class: "dot", style: `background:${colour}` }), text);
    return host.replaceChildren(...(values ? [item(page.inside, "covered"), item(page.outside, "missed")] : ["no band"]));
  }
  const stops = page.maps[MAPS[name].colours].map((c) => `rgb(${c.join(",")})`);
  const over = values && values.some((x) => x > high * (1 + 1e-9)) ? "≥ " : "";
  return host.replaceChildren(low === 0 ? "0" : number(low, 2), make("span", { class: "shade", style: `background:linear-gradient(90deg,${stops.join(",")})` }),
    over + number(high, 2));
}

// --- probe and section -----------------------------------------------------------------------

// Everything that depends on where the probe is.
function probeMoved() {
  const held = fields();
  for (const square of $("maps").querySelectorAll(".square")) {
    const [, up, over] = square.children;
    up.style.left = `${(100 * (state.x + 0.5)) / shape[0]}%`;
    over.style.bottom = `${(100 * (state.y + 0.5)) / shape[1]}%`;
    up.classList.toggle("cut", state.along === "y");
    over.classList.toggle("cut", state.along === "x");
  }
  showProbe(held);
  drawSection(held);
}

function showProbe(held) {
  const i = place(state.x, state.y), error = Math.abs(held.error[i]), radius = held.radius && held.radius[i];
  const covered = held.radius === null ? "–" : error <= radius ? "yes" : "no";
  const told = [
    ["at (x, y)", "place", `${position(state.x, 0).toFixed(3)}, ${position(state.y, 1).toFixed(3)}`],
    ["input a", "input", number(held.input[i]), held.input[i]],
    ["prediction", "prediction", number(held.prediction[i], 4), held.prediction[i]],
    ["± radius λ̂E", "radius", number(radius), radius],
    ["truth", "truth", number(held.truth[i], 4), held.truth[i]],
    ["error", "error", number(error), error],
    ["covered", "covered", covered],
  ];
  $("probe").replaceChildren(...told.map(([title, id, text, value]) => make("div", {},
    make("dt", {}, title), make("dd", { id: `probe-${id}`, "data-value": value }, text))));
}

function drawSection(held) {
  const acrossX = state.along === "x", side = acrossX ? 0 : 1;
  const nodes = Array.from({ length: shape[side] }, (_, i) => (acrossX ? place(i, state.y) : place(state.x, i)));
  const curve = (value) => nodes.map((node, i) => [position(i, side), value(node)]);
  const half = (node) => (held.radius ? held.radius[node] : 0);
  const truth = curve((node) => held.truth[node]), center = curve((node) => held.prediction[node]);
  const upper = curve((node) => held.prediction[node] + half(node)), lower = curve((node) => held.prediction[node] - half(node));
  const values = [truth, upper, lower].flat().map((p) => p[1]);
  const [least, most] = [Math.min(...values), Math.max(...values)], room = 0.04 * (most - least) || 1;
  const [low, high] = [least - room, most + room];
  const made = chart($("section"), 300, "Prediction, band and truth along the cut",
    { low: 0, high: 1, ticks: linearTicks(0, 1), label: state.along },
    { low, high, ticks: linearTicks(low, high), label: "u" });
  if (held.radius) {
    made.picture.append(draw("path", { d: `${path([...upper, ...lower.reverse()], made.toX, made.toY)}Z`, fill: "var(--band)" }));
  }
  made.picture.append(line(center, made, { stroke: "var(--accent)" }), line(truth, made, { stroke: "var(--ink)", "stroke-dasharray": "6 4" }));
  const missed = held.radius ? nodes.map((node, i) => [i, node]).filter(([, node]) => Math.abs(held.error[node]) > held.radius[node]) : [];
  made.picture.append(...missed.map(([i]) => draw("circle", { cx: made.toX(truth[i][0]), cy: made.toY(truth[i][1]), r: 3.5, fill: page.outside })));
  const at = made.toX(position(acrossX ? state.x : state.y, side));
  made.picture.append(draw("line", { class: "reader", x1: at, x2: at, y1: made.edges.top, y2: made.edges.bottom }));
  sectionWords(acrossX, missed.length, nodes.length);
}

function sectionWords(acrossX, missed, nodes) {
  const [across, at] = acrossX ? ["y", state.y] : ["x", state.x], side = acrossX ? 1 : 0;
  $("along-x").setAttribute("aria-pressed", acrossX);
  $("along-y").setAttribute("aria-pressed", !acrossX);
  $("cut").max = shape[side] - 1;
  $("cut").value = at;
  $("cut-label").textContent = `cut at ${across} = ${position(at, side).toFixed(3)}`;
  $("cut").setAttribute("aria-valuetext", position(at, side).toFixed(3));
  $("section-words").textContent = `prediction (line) with its band, truth (dashed); truth outside at ${missed} of ${nodes} nodes of the cut`;
}

// --- trade-offs -----------------------------------------------------------------------------

const PERCENT_TICKS = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1];

// [1 − δ, what is measured] for every feasible δ.
const swept = (method, alpha) => explorer.deltas
  .map((millionths) => [1 - millionths / MILLION, measured(method, alpha, millionths)])
  .filter(([, found]) => found.feasible);

const percentAxis = (low, label) => ({
  low, high: 1, bend: stretched, ticks: PERCENT_TICKS.filter((p) => p >= low), text: (p) => `${tidy(100 * p)}`, label,
});

function drawTradeoff(found) {
  const curves = explorer.methods.map((_, i) => swept(i, state.alpha).map(([target, m]) => [target, m.bandwidth]));
  const widths = curves.flat().map((p) => p[1]).filter((w) => w > 0);
  if (!widths.length) return $("tradeoff").replaceChildren("No δ is feasible.");
  const [low, high] = [Math.min(...widths), Math.max(...widths)];
  const made = chart($("tradeoff"), 320, "Bandwidth of each method against the promised share of functions",
    percentAxis(0.5, "promised share of functions, 1 − δ [%]"),
    { low, high, bend: Math.log10, ticks: logTicks(low, high), label: "bandwidth" });
  const order = [...curves.keys()].sort((a, b) => (a === state.method) - (b === state.method));
  made.picture.append(...order.filter((i) => curves[i].length).map((i) => line(curves[i], made, {
    stroke: colourOf(methodName(i)), "stroke-width": i === state.method ? 4 : 1.5, opacity: i === state.method ? 1 : 0.75,
  })));
  mark(made, 1 - explorer.deltas[state.delta] / MILLION, found.feasible ? found.bandwidth : null);
  $("tradeoff-words").textContent = `at α = ${tidyPercent(explorer.alphas[state.alpha])}; lower is better`;
  $("tradeoff-key").replaceChildren(...explorer.methods.map((one, i) =>
    keyItem(colourOf(one.method), i === state.method ? make("b", {}, one.label) : one.label)));
  return undefined;
}

// Where the sliders stand.
function mark({ picture, toX, toY, edges }, x, y) {
  const at = Math.max(toX(x), edges.left);
  picture.append(draw("line", { class: "reader", x1: at, x2: at, y1: edges.top, y2: edges.bottom }));
  if (y !== null) picture.append(draw("circle", { cx: at, cy: toY(y), r: 6, fill: "var(--card)", stroke: colourOf(methodName()), "stroke-width": 3 }));
}

function drawPromises(found) {
  const curve = swept(state.method, state.alpha);
  const low = Math.min(0.5, ...curve.map(([, m]) => m.low));
  const made = chart($("promises"), 320, "Covered test functions against the promised share",
    percentAxis(0.5, "promised share of functions, 1 − δ [%]"), percentAxis(low, "test functions covered [%]"));
  const { toX, toY } = made;
  made.picture.prepend(draw("path", { class: "promise", d: `${path([[0.5, 0.5], [1, 1], [0.5, 1]], toX, toY)}Z` }));
  if (curve.length) {
    const ends = [...curve.map(([t, m]) => [t, m.high]), ...curve.map(([t, m]) => [t, m.low]).reverse()];
    made.picture.append(
      draw("path", { d: `${path(ends, toX, toY)}Z`, fill: colourOf(methodName()), opacity: 0.25 }),
      line(curve.map(([t, m]) => [t, m.share]), made, { stroke: colourOf(methodName()), "stroke-width": 3 }));
  }
  made.picture.append(line([[0.5, 0.5], [1, 1]], made, { stroke: "var(--quiet)", "stroke-dasharray": "2 4", "stroke-width": 1.5 }));
  mark(made, 1 - explorer.deltas[state.delta] / MILLION, found.feasible ? found.share : null);
  $("promises-words").textContent = `${explorer.methods[state.method].label}; above the diagonal the promise is kept, shaded its exact 95 % interval`;
}

// --- planner --------------------------------------------------------------------------------

function startPlanner() {
  const first = page.tables[0] ?? page.planner[0];
  for (const key of ["alpha", "delta"]) {
    const values = [...new Set(page.planner.map((one) => one[key]))];
    $(`plan-${key}`).replaceChildren(...values.map((value) => make("option", { value }, tidyPercent(value))));
    $(`plan-${key}`).value = values.includes(first[key]) ? first[key] : values[0];
    $(`plan-${key}`).addEventListener("input", drawPlan);
  }
  drawPlan();
}

function drawPlan() {
  const [alpha, delta] = ["alpha", "delta"].map((key) => Number($(`plan-${key}`).value));
  const plan = page.planner.find((one) => one.alpha === alpha && one.delta === delta);
  const own = [results.split.calibration, (results.settings.tested_at ?? 0) ** 2];
  const all = [...plan.iid, ...plan.hoeffding, ...(own[0] && own[1] ? [own] : [])];
  const [nLow, nHigh] = [Math.min(plan.grid, ...all.map((p) => p[0])) * 0.8, Math.max(...all.map((p) => p[0])) * 1.1];
  const mHigh = Math.max(...all.map((p) => p[1])) * 1.5;
  const made = chart($("plan"), 340, "Points needed against functions needed",
    { low: nLow, high: nHigh, bend: Math.log10, ticks: logTicks(nLow, nHigh), label: "calibration functions n" },
    { low: 0.8, high: mHigh, bend: Math.log10, ticks: logTicks(1, mHigh), label: "points of a function m" });
  const { toX, edges } = made, grid = toX(plan.grid);
  made.picture.prepend(draw("rect", { class: "promise", x: grid, y: edges.top, width: edges.right - grid, height: edges.bottom - edges.top }));
  made.picture.append(
    draw("line", { x1: grid, x2: grid, y1: edges.top, y2: edges.bottom, stroke: "var(--accent)", "stroke-width": 3 }),
    line(plan.iid, made, { stroke: "var(--good)", "stroke-width": 3 }),
    line(plan.hoeffding, made, { stroke: "var(--bad)", "stroke-width": 3, "stroke-dasharray": "7 4" }));
  if (own[0] && own[1]) {
    const x = toX(own[0]), y = made.toY(own[1]), left = x > edges.right - 80;
    made.picture.append(
      draw("circle", { cx: x, cy: y, r: 6, fill: "var(--ink)" }),
      draw("text", { x: x + (left ? -12 : 12), y: y + 4, "text-anchor": left ? "end" : "start" }, "this run"));
  }
  planWords(plan, own);
}

function planWords(plan, [n]) {
  const some = plan.iid[0], many = plan.iid.find(([functions]) => functions >= 2 * plan.grid);
  const enough = n >= plan.grid ? "enough" : "too few";
  $("plan-words").textContent =
    `On a grid that is the domain: at least ${plan.grid} calibration functions, with any number of points. ` +
    (some ? `At independent random points: ${some[0]} functions of at least ${some[1]} points` : "") +
    (many ? `, or ${many[0]} of at least ${many[1]}. ` : ". ") +
    (n ? `This run has ${n}: ${enough} on its grid. ` : "") + "More functions and points than needed make the band narrower.";
  $("plan-key").replaceChildren(
    keyItem("var(--accent)", "grid: fewest functions"), keyItem("var(--good)", "random points: fewest points"),
    keyItem("var(--bad)", "the paper’s rule: fewest points", "7 4"));
}

// --- figures and downloads ----------------------------------------------------------------------

function download(name, kind, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function showFigures() {
  $("figures").hidden = page.figures.length === 0;
  $("drawn").replaceChildren(...page.figures.map(({ name, caption, svg }) => {
    // As a picture, an SVG runs no script, whatever is in it.
    const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    const image = make("img", { src: address, alt: caption, decoding: "async" });
    const button = (kind, get) => make("button", { type: "button", "data-figure": `${name}.${kind}`, "aria-label": `${name} as ${kind.toUpperCase()}`, onclick: get }, kind.toUpperCase());
    return make("figure", {}, make("div", { class: "paper" }, image), make("figcaption", {}, make("b", {}, caption),
      make("span", { class: "tabs" }, button("svg", () => download(`${name}.svg`, "image/svg+xml", svg)), button("png", () => asPng(image, name)))));
  }));
}

function asPng(image, name) {
  const canvas = make("canvas", { width: 2 * image.naturalWidth, height: 2 * image.naturalHeight });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(`${name}.png`, "image/png", blob));
}

// RFC 4180; a cell that a spreadsheet would take for a formula is kept as text.
function csvCell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@]/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csv(rows) {
  const keys = Object.keys(rows[0] ?? {});
  return [keys, ...rows.map((row) => keys.map((key) => row[key]))].map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("");
}

function showDownloads() {
  $("get-results").addEventListener("click", () => download("results.json", "application/json", `${JSON.stringify(results)}\n`));
  $("get-table").addEventListener("click", () => download("table.csv", "text/csv", csv(results.rows)));
  const versions = Object.entries(results.versions).map(([name, version]) => `${name} ${version}`).join(", ");
  const settings = Object.entries(results.settings).map(([name, value]) => `${name} = ${value}`).join(", ");
  const told = { "Made by": results.command, Preset: results.preset, Finished: results.finished, Machine: results.machine, Versions: versions, Settings: settings };
  $("origin").replaceChildren(...Object.entries(told).filter(([, text]) => text).flatMap(([title, text]) =>
    [make("dt", {}, title), make("dd", {}, text)]));
}

// --- start ------------------------------------------------------------------------------------

function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.style.colorScheme ? root.style.colorScheme === "dark" : system.matches;
    root.style.colorScheme = dark ? "light" : "dark";
  });
}

// Charts are drawn as wide as they are shown, so that letters keep their size.
function redrawOnResize() {
  let waiting = 0, width = innerWidth;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      if (innerWidth === width) return;
      width = innerWidth;
      drawPlan();
      if (!$("explorer").hidden) explore();
    });
  });
}

startTheme();
showSummary();
showTable();
startExplorer();
startPlanner();
showDownloads();
for (const link of document.querySelectorAll("[data-needs]")) link.hidden = $("explorer").hidden;
// The figures are below the first screen: let that be painted first.
requestAnimationFrame(() => setTimeout(showFigures));
redrawOnResize();
})();
