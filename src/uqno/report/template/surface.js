// One function on a surface in space. All views share a camera, so which triangle a pixel shows is
// found once, with a depth buffer, and a view only colours it: exact colours, no seams between
// triangles, the same picture in every browser, and a probe that reads its vertex off the buffer.

const FIELDS = ["truth", "prediction", "error", "radius", "covered"];
// The camera's place in degrees: azimuth around z, 0 before the nose; elevation over the ground. The
// body is long, so its ends are shown nearer.
const PRESETS = {
  Front: { azimuth: 0, elevation: 0, zoom: 1.75 },
  Side: { azimuth: 90, elevation: 0 },
  Rear: { azimuth: 180, elevation: 0, zoom: 1.75 },
  Above: { azimuth: 90, elevation: 90 },
};
const START = { azimuth: 52, elevation: 22, zoom: 1, x: 0, y: 0 }; // x, y: the middle of the view, m
const TURNS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const SHADES = 256; // of a palette
const LIGHTS = 32; // from the darkest that shading makes a colour to the colour itself
const DARKEST = 0.75;
const LAMP = [-0.3, 0.5, 0.81]; // to the right, up, and towards the viewer: it moves with the camera
const FINE = 2; // pixels of a picture at rest per pixel of the page, against jagged edges

const camera = { ...START };
const big = {}; // what the large views show: buffers of `seenBy`
const small = {}; // what the buttons of the fields show
const painted = new Map(); // the values and the palette of each canvas
let resting = 0;
let frame = 0;

const onSurface = {
  help:
    "Drag to turn (with Shift: to move), pinch or click and turn the wheel to zoom; point or tap to probe. " +
    "By keyboard: arrows turn, Shift and arrows move the probe from vertex to vertex, + and − zoom, 0 " +
    "resets. " +
    `Shading darkens colours by up to ${100 - 100 * DARKEST} %; without it they are those of the scale.`,
  start() {
    $("surface").hidden = false;
    state.vertex = frontmost(meshOf(state.function));
    makeSurface();
  },
  words: () =>
    `The domain of a function is the ${explorer.points} vertices of its surface; between them, colours are ` +
    "interpolated, and each vertex is covered or missed.",
  draw: showSurface,
  probed: () => state.vertex,
  told() {
    const at = [0, 1, 2].map((d) => unpacked(fieldOf(chosen().points))[3 * state.vertex + d].toFixed(2));
    return [
      ["vertex", "probe-vertex", String(state.vertex), state.vertex],
      ["at (x, y, z) m", "probe-place", at.join(", ")],
    ];
  },
  moved: placePins,
};

// --- the surface ------------------------------------------------------------------------------

// Points around the middle of the body, triangles, unit normals of the vertices, and the size.
const meshOf = remembered((which) => {
  const one = explorer.functions[which];
  const points = Float64Array.from(unpacked(fieldOf(one.points)));
  const triangles = unpacked(fieldOf(one.triangles));
  let squared = 0;
  for (let d = 0; d < 3; d++) {
    let low = Infinity,
      high = -Infinity;
    for (let i = d; i < points.length; i += 3) {
      low = Math.min(low, points[i]);
      high = Math.max(high, points[i]);
    }
    for (let i = d; i < points.length; i += 3) points[i] -= (low + high) / 2;
    squared += (high - low) ** 2;
  }
  return { points, triangles, normals: normalsOf(points, triangles), size: Math.sqrt(squared) };
});

function normalsOf(points, triangles) {
  const normals = new Float64Array(points.length);
  for (let t = 0; t < triangles.length; t += 3) {
    const [a, b, c] = [0, 1, 2].map((k) => 3 * triangles[t + k]);
    const u = [0, 1, 2].map((d) => points[b + d] - points[a + d]);
    const v = [0, 1, 2].map((d) => points[c + d] - points[a + d]);
    for (let d = 0; d < 3; d++) {
      const [e, f] = [(d + 1) % 3, (d + 2) % 3];
      for (const corner of [a, b, c]) normals[corner + d] += u[e] * v[f] - u[f] * v[e];
    }
  }
  for (let i = 0; i < normals.length; i += 3) {
    const length = Math.hypot(normals[i], normals[i + 1], normals[i + 2]) || 1;
    for (let d = 0; d < 3; d++) normals[i + d] /= length;
  }
  return normals;
}

// The vertices that share an edge with each.
const neighboursOf = remembered((which) => {
  const { points, triangles } = meshOf(which);
  const found = Array.from({ length: points.length / 3 }, () => new Set());
  for (let t = 0; t < triangles.length; t++) {
    const corner = t - (t % 3);
    for (let k = 0; k < 3; k++) found[triangles[t]].add(triangles[corner + k]);
  }
  return found;
});

// --- the camera -------------------------------------------------------------------------------

// Unit vectors to the right, up, and towards the viewer. Views are parallel: true to scale.
function axes() {
  const [a, e] = [camera.azimuth, camera.elevation].map((degrees) => (degrees * Math.PI) / 180);
  return [
    [Math.sin(a), -Math.cos(a), 0],
    [Math.sin(e) * Math.cos(a), Math.sin(e) * Math.sin(a), Math.cos(e)],
    [-Math.cos(e) * Math.cos(a), -Math.cos(e) * Math.sin(a), Math.sin(e)],
  ];
}

// Pixels a metre: the same from all sides, so that turning does not seem to zoom.
const scaleFor = (mesh, width, height) =>
  (camera.zoom / mesh.size) * Math.min(width / 1.04, height / 0.64);

const along = (values, i, axis) => values[i] * axis[0] + values[i + 1] * axis[1] + values[i + 2] * axis[2];

// Where a vertex is in a picture, and how near.
function projected(mesh, [right, up, back], width, height) {
  const scale = scaleFor(mesh, width, height);
  return (vertex) => [
    width / 2 + scale * (along(mesh.points, 3 * vertex, right) - camera.x),
    height / 2 - scale * (along(mesh.points, 3 * vertex, up) - camera.y),
    along(mesh.points, 3 * vertex, back),
  ];
}

// The vertex nearest to the viewer: where the probe starts.
function frontmost(mesh) {
  const back = axes()[2];
  let best = 0;
  for (let i = 0; i < mesh.points.length; i += 3)
    if (along(mesh.points, i, back) > along(mesh.points, 3 * best, back)) best = i / 3;
  return best;
}

// For each pixel: the triangle it shows (−1: none), the weights of its second and third corner, how
// near it is and how light. Into `into`, whose arrays are used again as long as they are large enough;
// sliders and fields move nothing, so then it is as it was.
function seenBy(mesh, width, height, into) {
  const size = width * height,
    key = [state.function, width, height, $("shading").checked, ...Object.values(camera)].join("/");
  if (into.key === key) return;
  if (!(into.triangle?.length >= size))
    Object.assign(into, {
      triangle: new Int32Array(size),
      near: new Float32Array(size),
      second: new Float32Array(size),
      third: new Float32Array(size),
      light: new Uint8Array(size),
    });
  const { triangle, near, second, third, light } = Object.assign(into, { key, width, height });
  triangle.fill(-1, 0, size);
  near.fill(-Infinity, 0, size);
  const corners = lit(mesh, width, height);
  for (let t = 0; t < mesh.triangles.length; t += 3) {
    const a = 4 * mesh.triangles[t],
      b = 4 * mesh.triangles[t + 1],
      c = 4 * mesh.triangles[t + 2];
    const ax = corners[a],
      ay = corners[a + 1],
      bx = corners[b] - ax,
      by = corners[b + 1] - ay,
      cx = corners[c] - ax,
      cy = corners[c + 1] - ay;
    const area = bx * cy - cx * by;
    if (area === 0) continue; // seen edge on
    const left = Math.max(0, Math.ceil(ax + Math.min(0, bx, cx) - 0.5)),
      last = Math.min(width - 1, Math.floor(ax + Math.max(0, bx, cx) - 0.5)),
      top = Math.max(0, Math.ceil(ay + Math.min(0, by, cy) - 0.5)),
      bottom = Math.min(height - 1, Math.floor(ay + Math.max(0, by, cy) - 0.5));
    for (let y = top; y <= bottom; y++) {
      const dy = y + 0.5 - ay;
      for (let x = left; x <= last; x++) {
        const dx = x + 0.5 - ax;
        const q = (dx * cy - cx * dy) / area,
          r = (bx * dy - dx * by) / area,
          p = 1 - q - r;
        if (p < -1e-9 || q < -1e-9 || r < -1e-9) continue;
        const depth = p * corners[a + 2] + q * corners[b + 2] + r * corners[c + 2],
          pixel = y * width + x;
        if (depth <= near[pixel]) continue;
        near[pixel] = depth;
        triangle[pixel] = t;
        second[pixel] = q;
        third[pixel] = r;
        light[pixel] = p * corners[a + 3] + q * corners[b + 3] + r * corners[c + 3] + 0.5;
      }
    }
  }
}

// x, y, nearness and light of every vertex, in a row.
function lit(mesh, width, height) {
  const frameOf = axes(),
    at = projected(mesh, frameOf, width, height),
    shaded = $("shading").checked;
  const lamp = [0, 1, 2].map((d) => frameOf.reduce((sum, axis, i) => sum + LAMP[i] * axis[d], 0));
  const found = new Float64Array((mesh.points.length / 3) * 4);
  for (let i = 0; i < mesh.points.length / 3; i++) {
    const light = shaded ? Math.max(0, along(mesh.normals, 3 * i, lamp)) : 1;
    found.set(at(i), 4 * i);
    found[4 * i + 3] = Math.min(1, light) * (LIGHTS - 1);
  }
  return found;
}

// --- colours ----------------------------------------------------------------------------------

// Every shade of a field in every light, as pixels; grey where there are no values.
function paletteOf(field, values, [low, high]) {
  const two = [page.outside, page.inside].map(rgb);
  const colour = (i) => {
    if (!values) return [150, 150, 150];
    return field === "covered" ? two[Number(i > 0)] : shade(MAPS[field].colours, i / (SHADES - 1));
  };
  const table = new Uint32Array(SHADES * LIGHTS);
  for (let i = 0; i < SHADES; i++) {
    const [r, g, b] = colour(i);
    for (let j = 0; j < LIGHTS; j++) {
      const light = DARKEST + ((1 - DARKEST) * j) / (LIGHTS - 1);
      table[i * LIGHTS + j] = (255 << 24) | ((b * light) << 16) | ((g * light) << 8) | (r * light);
    }
  }
  return { table, low, step: (SHADES - 1) / (high - low || 1), nearest: field === "covered" };
}

// The corner of its triangle that a pixel is nearest to.
function vertexAt({ triangle, second, third }, triangles, pixel) {
  const q = second[pixel],
    r = third[pixel],
    p = 1 - q - r;
  return triangles[triangle[pixel] + (p >= q && p >= r ? 0 : q >= r ? 1 : 2)];
}

function paintSurface(canvas, seen, { triangles }, { values, palette }) {
  const { width, height, triangle, second, third, light } = seen,
    { table, low, step, nearest } = palette;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d"),
    image = context.createImageData(width, height),
    pixels = new Uint32Array(image.data.buffer);
  for (let pixel = 0; pixel < pixels.length; pixel++) {
    const t = triangle[pixel];
    if (t < 0) continue;
    let x = low;
    if (values && nearest) x = values[vertexAt(seen, triangles, pixel)];
    else if (values) {
      const q = second[pixel],
        r = third[pixel];
      x = (1 - q - r) * values[triangles[t]] + q * values[triangles[t + 1]] + r * values[triangles[t + 2]];
    }
    const i = Math.min(SHADES - 1, Math.max(0, Math.round((x - low) * step)));
    pixels[pixel] = table[i * LIGHTS + light[pixel]];
  }
  context.putImageData(image, 0, 0);
}

// --- on the page ------------------------------------------------------------------------------

function makeSurface() {
  const choose = (field) => () => {
    state.field = field;
    showSurface();
  };
  $("surface-fields").replaceChildren(
    ...FIELDS.map((field) =>
      make(
        "button",
        { type: "button", "data-field": field, onclick: choose(field) },
        make("canvas", { "aria-hidden": "true" }),
        MAPS[field].title,
      ),
    ),
  );
  $("stages").replaceChildren(makeStage(0), makeStage(1));
  $("presets").replaceChildren(
    ...Object.entries(PRESETS).map(([name, side]) =>
      make("button", { type: "button", onclick: () => turned({ ...START, ...side }) }, name),
    ),
  );
  $("zoom-in").addEventListener("click", () => zoomed(1.25));
  $("zoom-out").addEventListener("click", () => zoomed(0.8));
  $("camera-reset").addEventListener("click", () => turned(START));
  $("shading").addEventListener("change", () => drawSurface(FINE));
}

// A large view of the first (0) or second (1) method.
function makeStage(which) {
  const stage = make(
    "div",
    {
      class: "stage",
      tabindex: 0,
      role: "application",
      "data-stage": which,
      "aria-label": "Surface. Arrow keys turn it, with Shift they move the probe; plus and minus zoom.",
      onpointerdown: pressed,
      onpointermove: dragged,
      onpointerup: released,
      onpointercancel: released,
      onkeydown: stageKeyed,
    },
    make("canvas"),
    draw("svg", { class: "triad", viewBox: "-32 -32 64 64", "aria-hidden": "true" }),
    make("i", { class: "pin" }),
  );
  // The page scrolls over a view until it is clicked; two fingers on a pad come as Ctrl and wheel.
  stage.addEventListener("wheel", wheeled, { passive: false });
  return make("div", { class: "map", "data-which": which }, make("h3", {}), stage);
}

// The colours of the chosen function under the chosen methods; then the picture.
function showSurface() {
  const range = limits();
  const paintWith = (canvas, values, field) =>
    painted.set(canvas, { values, palette: paletteOf(field, values, range[field]) });
  for (const button of $("surface-fields").children) {
    button.setAttribute("aria-pressed", button.dataset.field === state.field);
    paintWith(button.firstChild, compared[0][button.dataset.field], button.dataset.field);
  }
  for (const view of $("stages").children) {
    const held = compared[view.dataset.which];
    view.hidden = !held;
    if (!held) continue;
    const own = compared.length > 1 && state.field !== "truth";
    view.firstChild.replaceChildren(
      MAPS[state.field].title,
      make("small", {}, own ? ` · ${explorer.methods[held.method].label}` : ""),
    );
    paintWith(view.lastChild.firstChild, held[state.field], state.field);
  }
  $("stages").classList.toggle("two", compared.length > 1);
  const shown = compared.map((held) => held[state.field]);
  const values = shown.every(Boolean) && shown.flatMap((one) => [...one]);
  legend($("surface-legend"), state.field, values, ...range[state.field]);
  drawSurface(FINE);
}

function drawSurface(detail) {
  const mesh = meshOf(state.function);
  const shown = (canvas) => !canvas.closest("[hidden]");
  for (const [host, buffers] of [[$("stages"), big], [$("surface-fields"), small]]) {
    const canvases = [...host.querySelectorAll("canvas")].filter(shown);
    const [width, height] = [canvases[0].clientWidth, canvases[0].clientHeight].map((x) => detail * x);
    seenBy(mesh, width, height, buffers);
    for (const canvas of canvases) paintSurface(canvas, buffers, mesh, painted.get(canvas));
  }
  const { azimuth, elevation, zoom } = camera;
  $("camera").textContent =
    `azimuth ${azimuth.toFixed(0)}°, elevation ${elevation.toFixed(0)}°, zoom ${tidy(zoom, 3)}`;
  for (const triad of $("stages").querySelectorAll(".triad")) drawTriad(triad);
  placePins();
}

// The directions of x (from nose to tail), y and z, the nearest last and so on top.
function drawTriad(host) {
  const [right, up, back] = axes();
  const order = [0, 1, 2].sort((d, e) => back[d] - back[e]);
  host.replaceChildren(
    ...order.flatMap((d) => [
      draw("line", { x2: 20 * right[d], y2: -20 * up[d], stroke: "currentColor", "stroke-width": 2 }),
      draw("text", { x: 27 * right[d], y: 4 - 27 * up[d], "text-anchor": "middle" }, "xyz"[d]),
    ]),
  );
}

// The mark of the probe; hollow where the surface hides its vertex.
function placePins() {
  const mesh = meshOf(state.function);
  state.vertex = Math.min(state.vertex, mesh.points.length / 3 - 1);
  const [x, y] = projected(mesh, axes(), big.width, big.height)(state.vertex);
  for (const pin of $("stages").querySelectorAll(".pin")) {
    pin.style.left = `${(100 * x) / big.width}%`;
    pin.style.top = `${(100 * y) / big.height}%`;
    pin.classList.toggle("behind", !visible(state.vertex));
  }
}

function visible(vertex) {
  const mesh = meshOf(state.function);
  const [x, y, near] = projected(mesh, axes(), big.width, big.height)(vertex);
  if (x < 0 || y < 0 || x >= big.width || y >= big.height) return false;
  return near > big.near[Math.floor(y) * big.width + Math.floor(x)] - 0.01 * mesh.size;
}

// --- what a person does -----------------------------------------------------------------------

// Coarse while it moves, fine as soon as it rests.
function turned(change) {
  Object.assign(camera, change);
  camera.azimuth = ((camera.azimuth % 360) + 360) % 360;
  camera.elevation = Math.min(90, Math.max(-90, camera.elevation));
  camera.zoom = Math.min(20, Math.max(0.5, camera.zoom));
  cancelAnimationFrame(frame);
  clearTimeout(resting);
  frame = requestAnimationFrame(() => {
    drawSurface(1);
    resting = setTimeout(() => drawSurface(FINE), 150); // from here, or a late frame would be the last
  });
}

// By a factor, keeping what is dx and dy pixels from the middle where it is.
function zoomed(factor, dx = 0, dy = 0) {
  const stage = $("stages").querySelector(".stage"),
    mesh = meshOf(state.function);
  const scale = () => scaleFor(mesh, stage.clientWidth, stage.clientHeight);
  const before = scale();
  camera.zoom = Math.min(20, Math.max(0.5, camera.zoom * factor));
  const shift = 1 / before - 1 / scale();
  turned({ x: camera.x + dx * shift, y: camera.y - dy * shift });
}

function panned(dx, dy) {
  const { clientWidth, clientHeight } = $("stages").querySelector(".stage");
  const scale = scaleFor(meshOf(state.function), clientWidth, clientHeight);
  turned({ x: camera.x - dx / scale, y: camera.y + dy / scale });
}

const rotated = (dx, dy) =>
  turned({ azimuth: camera.azimuth - dx / 2, elevation: camera.elevation + dy / 2 });

const fingers = new Map(); // the pointers that are down, and how far each has come

function pressed(event) {
  event.currentTarget.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY, way: 0 });
}

function released(event) {
  const pointer = fingers.get(event.pointerId);
  fingers.delete(event.pointerId);
  if (event.type === "pointerup" && pointer && pointer.way < 5) probeAt(event);
}

function dragged(event) {
  const pointer = fingers.get(event.pointerId);
  if (!pointer) return probeAt(event);
  const [dx, dy] = [event.clientX - pointer.x, event.clientY - pointer.y];
  const others = [...fingers.values()].filter((one) => one !== pointer);
  const reach = () => Math.hypot(pointer.x - others[0].x, pointer.y - others[0].y) || 1;
  const before = others.length && reach();
  Object.assign(pointer, { x: event.clientX, y: event.clientY, way: pointer.way + Math.hypot(dx, dy) });
  if (others.length) {
    panned(dx / 2, dy / 2);
    zoomed(reach() / before);
  } else if (event.shiftKey) panned(dx, dy);
  else if (pointer.way >= 5) rotated(dx, dy);
  return undefined;
}

function wheeled(event) {
  if (document.activeElement !== event.currentTarget && !event.ctrlKey) return;
  event.preventDefault();
  const box = event.currentTarget.getBoundingClientRect();
  const [dx, dy] = [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
  zoomed(2 ** (-event.deltaY / 300), dx, dy);
}

function stageKeyed(event) {
  const way = TURNS[event.key];
  if (way && event.shiftKey) walked(way);
  else if (way) rotated(20 * way[0], 20 * way[1]);
  else if (event.key === "+" || event.key === "=") zoomed(1.25);
  else if (event.key === "-") zoomed(0.8);
  else if (event.key === "0" || event.key === "Home") turned(START);
  else return;
  event.preventDefault();
}

function probeAt(event) {
  const box = event.currentTarget.getBoundingClientRect();
  const x = Math.floor(((event.clientX - box.left) / box.width) * big.width),
    y = Math.floor(((event.clientY - box.top) / box.height) * big.height);
  const pixel = y * big.width + x;
  if (x < 0 || y < 0 || x >= big.width || y >= big.height || big.triangle[pixel] < 0) return;
  state.vertex = vertexAt(big, meshOf(state.function).triangles, pixel);
  probeMoved();
}

// To the neighbour that lies most in that direction, if one is seen there.
function walked([dx, dy]) {
  const at = projected(meshOf(state.function), axes(), big.width, big.height),
    [x, y] = at(state.vertex);
  const towards = (vertex) => {
    const [ex, ey] = at(vertex);
    return (dx * (ex - x) + dy * (ey - y)) / (Math.hypot(ex - x, ey - y) || 1);
  };
  const seen = [...neighboursOf(state.function)[state.vertex]].filter(visible);
  const best = seen.reduce((a, b) => (towards(b) > towards(a) ? b : a), state.vertex);
  if (towards(best) < 0.3) return;
  state.vertex = best;
  probeMoved();
}
