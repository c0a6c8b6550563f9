// The words at the top, and the table of methods.

function showSummary() {
  const { headline, figure, caption, points } = page.summary;
  document.title = `${page.name} · uqno report`;
  $("run-name").textContent = page.name;
  $("headline").textContent = headline;
  $("remember").textContent = figure;
  $("remember-caption").textContent = caption;
  $("points").replaceChildren(
    ...points.map((point) =>
      make("div", { class: `point ${point.state}` }, make("h3", {}, point.title), make("p", {}, point.text)),
    ),
  );
}

const table = { level: 0, by: null, down: false };
const STATES = { "✓": "good-text", "≈": "near-text", "✗": "bad-text" };

function showTable() {
  const shown = page.tables[table.level];
  $("table-words").textContent = shown ? shown.words : "This record has no rows.";
  if (!shown) return;
  $("levels").replaceChildren(
    ...page.tables.map((one, i) =>
      make(
        "button",
        {
          type: "button",
          "aria-pressed": i === table.level,
          onclick: () => {
            table.level = i;
            showTable();
            $("levels").children[i].focus();
          },
        },
        one.title,
      ),
    ),
  );
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
  return make(
    "th",
    { scope: "col", class: kind, "aria-sort": sorted },
    make("button", { type: "button", title: column.help, onclick: sort }, column.title),
  );
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
  const kind = row.calibrated ? (row.method === "uqno" ? "recipe" : "") : "raw";
  return make(
    "tr",
    { class: kind, "data-method": row.method },
    ...row.cells.map(([text], i) => {
      const left = page.columns[i].left ? "left" : "";
      if (i === 0) return make("th", { scope: "row", class: left }, dot(row.method), text);
      const verdict = page.columns[i].title === "Functions covered" && row.calibrated && STATES[row.verdict];
      return make("td", { class: verdict || left }, text);
    }),
  );
}
