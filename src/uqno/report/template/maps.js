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

function makeMaps() {
  $("maps").replaceChildren(
    ...Object.entries(MAPS).map(([name, map]) => {
      const square = make(
        "div",
        {
          class: "square",
          tabindex: 0,
          role: "application",
          "data-map": name,
          "aria-label": `Map: ${map.title}. Arrow keys move the probe.`,
          onpointermove: pointed,
          onpointerdown: pointed,
          onkeydown: keyed,
        },
        make("canvas", { width: shape[0], height: shape[1] }),
        make("i", { class: "up" }),
        make("i", { class: "over" }),
      );
      const title = make("h3", {}, map.title, ...(map.note ? [make("small", {}, ` · ${map.note}`)] : []));
      return make("div", { class: "map" }, title, square, make("div", { class: "legend" }));
    }),
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

// Scales that no slider moves, so that a change on the map is a change of the values: all of truth
// and prediction; up to the largest error, and the largest radius at the run's own α and δ.
function limits(held) {
  const input = fieldOf(chosen().input);
  const own = measured(state.method, explorer.alphas.indexOf(explorer.alpha), explorer.delta);
  const radius = own.feasible ? own.scale * fieldOf(viewOf().radius).high : 0;
  const e = [0, Math.max(radius, ...held.error.map(Math.abs)) || 1];
  const u = [Math.min(...held.truth, ...held.prediction), Math.max(...held.truth, ...held.prediction)];
  return { input: [input.low, input.high], truth: u, prediction: u, error: e, radius: e };
}

function drawMaps() {
  const held = fields();
  const range = limits(held);
  held.error = held.error.map(Math.abs);
  held.covered = held.radius && held.error.map((e, i) => Number(e <= held.radius[i]));
  const two = [page.outside, page.inside].map(rgb);
  for (const square of $("maps").querySelectorAll(".square")) {
    const name = square.dataset.map,
      values = held[name],
      [low, high] = range[name] ?? [0, 1];
    const colour =
      name === "covered" ? (x) => two[x] : (x) => shade(MAPS[name].colours, (x - low) / (high - low || 1));
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
    over + number(high, 2),
  );
}
