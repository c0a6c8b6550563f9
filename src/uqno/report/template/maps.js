// Linked maps of one function on a grid.

const MAPS = {
  input: { title: "Input", colours: "bone" },
  prediction: { title: "Prediction", note: "scale as truth", colours: "viridis" },
  truth: { title: "Truth", note: "scale as prediction", colours: "viridis" },
  covered: { title: "Covered points" },
  error: { title: "Error", note: "scale as radius", colours: "cividis" },
  radius: { title: "Radius λ̂E", note: "scale as error", colours: "cividis" },
};
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const BESIDE = ["covered", "error", "radius"]; // what a second method is compared by
let shape = [1, 1];

const place = (x, y) => x * shape[1] + y;
const position = (i, side) => i / (shape[side] - 1);

const onGrid = {
  help: "Point at a map, touch it, or focus it and use the arrow keys (with Shift: five nodes).",
  start() {
    shape = fieldOf(explorer.functions[0].truth).shape;
    Object.assign(state, { x: shape[0] >> 1, y: shape[1] >> 1 });
    $("maps").hidden = $("cross-section").hidden = false;
    makeMaps();
    startSection();
  },
  words() {
    const [rows, wide] = explorer.domain.nodes;
    const step = ordinal((rows - 1) / (shape[0] - 1));
    return rows > shape[0] ? `Maps show every ${step} of ${rows} × ${wide} nodes.` : "";
  },
  draw: drawMaps,
  probed: () => place(state.x, state.y),
  told(i) {
    const input = unpacked(fieldOf(chosen().input))[i];
    const at = `${position(state.x, 0).toFixed(3)}, ${position(state.y, 1).toFixed(3)}`;
    return [
      ["at (x, y)", "probe-place", at],
      ["input a", "probe-input", number(input), input],
    ];
  },
  moved() {
    for (const square of $("maps").querySelectorAll(".square")) {
      const [, up, over] = square.children;
      up.style.left = `${(100 * (state.x + 0.5)) / shape[0]}%`;
      over.style.bottom = `${(100 * (state.y + 0.5)) / shape[1]}%`;
      up.classList.toggle("cut", state.along === "y");
      over.classList.toggle("cut", state.along === "x");
    }
    drawSection(compared[0]);
  },
};

function makeMaps() {
  $("maps").replaceChildren(
    ...Object.keys(MAPS).map((name) => makeMap(name, 0)),
    ...BESIDE.map((name) => makeMap(name, 1)),
  );
}

// The map of a field under the first (0) or second (1) method.
function makeMap(name, which) {
  const map = MAPS[name],
    own = which ? `second-${name}` : name;
  const square = make(
    "div",
    {
      class: "square",
      tabindex: 0,
      role: "application",
      "data-map": own,
      "aria-label": `Map: ${map.title}${which ? ", second method" : ""}. Arrow keys move the probe.`,
      onpointermove: pointed,
      onpointerdown: pointed,
      onkeydown: keyed,
    },
    make("canvas", { width: shape[0], height: shape[1] }),
    make("i", { class: "up" }),
    make("i", { class: "over" }),
  );
  const title = make("h3", {}, map.title, make("small", {}));
  return make(
    "div",
    { class: "map", "data-field": name, "data-which": which },
    title,
    square,
    make("div", { class: "legend" }),
  );
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
  const at = Math.min(1, Math.max(0, share)) * (colours.length - 1),
    i = Math.min(colours.length - 2, Math.floor(at));
  return colours[i].map((c, k) => Math.round(c + (at - i) * (colours[i + 1][k] - c)));
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

function drawMaps() {
  const range = limits(),
    input = fieldOf(chosen().input),
    two = [page.outside, page.inside].map(rgb);
  range.input = [input.low, input.high];
  $("maps").classList.toggle("two", compared.length > 1);
  for (const map of $("maps").children) {
    const { field, which } = map.dataset,
      held = compared[which],
      [title, square, key] = map.children;
    map.hidden = !held;
    if (!held) continue;
    const values = field === "input" ? unpacked(input) : held[field],
      [low, high] = range[field];
    const colour =
      field === "covered"
        ? (x) => two[x]
        : (x) => shade(MAPS[field].colours, (x - low) / (high - low || 1));
    const sided = compared.length > 1 && BESIDE.includes(field);
    const note = sided ? explorer.methods[held.method].label : MAPS[field].note;
    title.lastChild.textContent = note ? ` · ${note}` : "";
    paint(square.firstChild, values, colour);
    legend(key, field, values, low, high);
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
    const item = (colour, text) =>
      make("span", {}, make("span", { class: "dot", style: `background:${colour}` }), text);
    return host.replaceChildren(
      ...(values ? [item(page.inside, "covered"), item(page.outside, "missed")] : ["no band"]),
    );
  }
  const stops = page.maps[MAPS[name].colours].map((c) => `rgb(${c.join(",")})`);
  const over = values && values.some((x) => x > high * (1 + 1e-9)) ? "≥ " : "";
  return host.replaceChildren(
    low === 0 ? "0" : number(low, 2),
    make("span", { class: "shade", style: `background:linear-gradient(90deg,${stops.join(",")})` }),
    over + number(high, 2) + unit(),
  );
}
