// Figures, downloads, and where the numbers come from.

function download(name, kind, content) {
  const address = URL.createObjectURL(
    content instanceof Blob ? content : new Blob([content], { type: kind }),
  );
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function showFigures() {
  $("figures").hidden = page.figures.length === 0;
  $("drawn").replaceChildren(
    ...page.figures.map(({ name, caption, svg }) => {
      // As a picture, an SVG runs no script, whatever is in it.
      const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
      const image = make("img", { src: address, alt: caption, decoding: "async" });
      const button = (kind, get) =>
        make(
          "button",
          {
            type: "button",
            "data-figure": `${name}.${kind}`,
            "aria-label": `${name} as ${kind.toUpperCase()}`,
            onclick: get,
          },
          kind.toUpperCase(),
        );
      return make(
        "figure",
        { class: name === "comparison" ? "wide" : null },
        make("div", { class: "paper" }, image),
        make(
          "figcaption",
          {},
          make("b", {}, caption),
          make(
            "span",
            { class: "tabs" },
            button("svg", () => download(`${name}.svg`, "image/svg+xml", svg)),
            button("png", () => asPng(image, name)),
          ),
        ),
      );
    }),
  );
}

function asPng(image, name) {
  const canvas = make("canvas", { width: 2 * image.naturalWidth, height: 2 * image.naturalHeight });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(`${name}.png`, "image/png", blob));
}

// RFC 4180; a cell that a spreadsheet would take for a formula is kept as text.
function csvCell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csv(rows) {
  const keys = Object.keys(rows[0] ?? {});
  return [keys, ...rows.map((row) => keys.map((key) => row[key]))]
    .map((cells) => `${cells.map(csvCell).join(",")}\r\n`)
    .join("");
}

function showDownloads() {
  $("get-results").addEventListener("click", () =>
    download("results.json", "application/json", `${JSON.stringify(results)}\n`),
  );
  $("get-table").addEventListener("click", () => download("table.csv", "text/csv", csv(results.rows)));
  const versions = Object.entries(results.versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
  const settings = Object.entries(results.settings)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
  const told = {
    "Made by": results.command,
    Preset: results.preset,
    Finished: results.finished,
    Machine: results.machine,
    Versions: versions,
    Settings: settings,
  };
  $("origin").replaceChildren(
    ...Object.entries(told)
      .filter(([, text]) => text)
      .flatMap(([title, text]) => [make("dt", {}, title), make("dd", {}, text)]),
  );
}
