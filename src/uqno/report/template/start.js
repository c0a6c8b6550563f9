// All parts, in the order in which they are seen.

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
  let waiting = 0,
    width = innerWidth;
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
