// How many functions and points a guarantee needs; the numbers are uqno.report.planner’s.

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
  const own = [results.split.calibration, results.points];
  const all = [...plan.iid, ...plan.hoeffding, ...(own[0] && own[1] ? [own] : [])];
  const [nLow, nHigh] = [
    Math.min(plan.grid, ...all.map((p) => p[0])) * 0.8,
    Math.max(...all.map((p) => p[0])) * 1.1,
  ];
  const mHigh = Math.max(...all.map((p) => p[1])) * 1.5;
  const made = chart(
    $("plan"),
    340,
    "Points needed against functions needed",
    {
      low: nLow,
      high: nHigh,
      bend: Math.log10,
      ticks: logTicks(nLow, nHigh),
      label: "calibration functions n",
    },
    { low: 0.8, high: mHigh, bend: Math.log10, ticks: logTicks(1, mHigh), label: "points of a function m" },
  );
  const { toX, edges } = made,
    grid = toX(plan.grid);
  made.picture.prepend(
    draw("rect", {
      class: "promise",
      x: grid,
      y: edges.top,
      width: edges.right - grid,
      height: edges.bottom - edges.top,
    }),
  );
  made.picture.append(
    draw("line", {
      x1: grid,
      x2: grid,
      y1: edges.top,
      y2: edges.bottom,
      stroke: "var(--accent)",
      "stroke-width": 3,
    }),
    line(plan.iid, made, { stroke: "var(--good)", "stroke-width": 3 }),
    line(plan.hoeffding, made, { stroke: "var(--bad)", "stroke-width": 3, "stroke-dasharray": "7 4" }),
  );
  if (own[0] && own[1]) {
    const x = toX(own[0]),
      y = made.toY(own[1]),
      left = x > edges.right - 80;
    made.picture.append(
      draw("circle", { cx: x, cy: y, r: 6, fill: "var(--ink)" }),
      draw("text", { x: x + (left ? -12 : 12), y: y + 4, "text-anchor": left ? "end" : "start" }, "this run"),
    );
  }
  planWords(plan, own);
}

function planWords(plan, [n]) {
  const some = plan.iid[0],
    many = plan.iid.find(([functions]) => functions >= 2 * plan.grid);
  const enough = n >= plan.grid ? "enough" : "too few";
  const [known, name] =
    results.domain.kind === "surface" ? ["vertices that are", "vertices"] : ["a grid that is", "grid"];
  $("plan-words").textContent =
    `On ${known} the domain: at least ${plan.grid} calibration functions, with any number of points. ` +
    (some ? `At independent random points: ${some[0]} functions of at least ${some[1]} points` : "") +
    (many ? `, or ${many[0]} of at least ${many[1]}. ` : ". ") +
    (n ? `This run has ${n}: ${enough} on its ${name}. ` : "") +
    "More functions and points than needed make the band narrower.";
  $("plan-key").replaceChildren(
    keyItem("var(--accent)", `${name}: fewest functions`),
    keyItem("var(--good)", "random points: fewest points"),
    keyItem("var(--bad)", "the paper’s rule: fewest points", "7 4"),
  );
}
