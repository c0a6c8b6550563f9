"""`report.html`: one file that opens without a network or a server.

The page is made of the plain files in `template`; the data are JSON in it, and every string of
them reaches the screen as text, never as markup.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any, Final

from matplotlib import colormaps

from uqno.band.plot import INSIDE, OUTSIDE
from uqno.conformal import words
from uqno.experiments import results as records
from uqno.experiments.explorer import FILE as EXPLORER_FILE
from uqno.experiments.explorer import Explorer, read_explorer
from uqno.experiments.results import Quoted, Results, Row
from uqno.experiments.table import (
    RELATIVE,
    columns_of,
    has_areas,
    notes,
    ordered,
    promised,
    unit_column,
    unit_notes,
    verdict,
)
from uqno.report import figures, planner
from uqno.report.summary import summary
from uqno.storage import DamagedError, set_aside, write_text
from uqno.types import Progress

PAGE_FILE: Final = "report.html"
# One script, each part after those that it needs.
SCRIPTS: Final = (
    "elements", "arrays", "conformal", "charts", "table", "explorer", "maps", "section", "surface",
    "tradeoff", "planner", "downloads", "start",
)  # fmt: skip
SHADES: Final = 32  # of a colour map; the page interpolates
CAPTIONS: Final = {
    "comparison": "One test function, all methods: radius above, covered points below",
    "bandwidth": "Bandwidth against calibration percentage; the shaded region is calibrated",
    "tradeoff": "What a smaller δ costs, for several α",
    "targets": "Functions covered against the promise, on the recorded split; the bars say where "
    "they lie with probability 95 % if the promise holds",
    "band": "A cut through one test function: band, prediction and truth",
    "ablation": "What each ingredient contributes",
}
# Columns of the page's table: title, the column of `table.COLUMNS`, what it is sorted by, and help.
Key = Callable[[Row, Quoted | None], Any]
SORTED: Final[tuple[tuple[str, str, Key, str], ...]] = (
    ("Method", "method", lambda r, p: r["label"], "How the uncertainty is estimated"),
    ("Scale by", "ranks", lambda r, p: r["sampling"], "The rule for λ̂; raw: λ = 1"),
    ("Bandwidth", "bandwidth", lambda r, p: r["bandwidth"], "Mean radius of the band"),
    ("± sd", "± sd", lambda r, p: r["bandwidth_sd"], "Standard deviation over random splits"),
    ("Of RMS(u)", RELATIVE, lambda r, p: r["relative_bandwidth"],
     "The bandwidth divided by the root mean square of the training functions"),
    ("Functions covered", "covered", lambda r, p: r["calibration_percentage"],
     "Calibration percentage: the share of the recorded split’s test functions that are covered at "
     "1 − α or more of their points. ✓ agrees with the promise, ≈ doubtful, ✗ does not"),
    ("p-value", "p", lambda r, p: r["p_value"],
     "The probability of so few covered functions or fewer, if the promise holds"),
    ("Usual", "usual", lambda r, p: r["usual"] and r["usual"][0],
     "Where the share lies with probability 95 %, if the promise holds"),
    ("Target", "target", lambda r, p: r["target"], "1 − δ"),
    ("Paper: bandwidth", "paper", lambda r, p: p and p["bandwidth"], "The paper’s own number"),
    ("Paper: covered", "paper %", lambda r, p: p and p["calibration_percentage"],
     "The paper’s own number"),
    ("Relative error", "error", lambda r, p: r["relative_error"], "‖u − Ĝ(a)‖ / ‖u‖"),
    ("Train [s]", "train [s]", lambda r, p: r["train_seconds"], "On this machine"),
    ("Predict [s]", "predict [s]", lambda r, p: r["predict_seconds"], "One function"),
)  # fmt: skip

SORTED_AREA: Final[tuple[tuple[str, str, Key, str], ...]] = (
    ("Area covered", "area", lambda r, p: r["area_coverage"],
     "By the same band: the mean share of the area instead of the points"),
    ("Functions covered by area", "by area", lambda r, p: r["area_percentage"],
     "The share of test functions covered at 1 − α or more of their area"),
    ("Bandwidth by area", "area width", lambda r, p: r["area_bandwidth"],
     "Of the band whose scale is chosen by area instead of by points"),
)  # fmt: skip


def make_report(
    folder: str | Path,
    *,
    figures_to: str | Path | None = None,
    data: str | Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> list[Path]:
    """RUN/report.html of a finished run, first of all the paths written; figures if asked for.

    RUN/explorer.json is made where it is missing or damaged, and models and data are still there.
    """
    folder = Path(folder)
    record = records.read(folder / "results.json")
    path = folder / PAGE_FILE
    write_page(record, _explorer(folder, data, progress), path, folder.resolve().name)
    return [path, *(figures.draw_all(record, figures_to) if figures_to is not None else [])]


def _explorer(folder: Path, data: str | Path | None, progress: Progress) -> Explorer | None:
    """What the page explores, made if it has to be; None where it cannot be."""
    file = folder / EXPLORER_FILE
    try:
        there = read_explorer(file)
    except DamagedError:
        set_aside(file)
        there = None
    if there is None:
        from uqno.experiments.exploring import write_explorer  # they need torch
        from uqno.experiments.runs import reopen

        run = reopen(folder, data)
        if run is not None:
            write_explorer(run, progress)
            there = read_explorer(file)
    return there


def write_page(results: Results, explorer: Explorer | None, path: str | Path, name: str) -> None:
    """The page of a record; without `explorer` it has all but the part that explores."""
    content = html(results, explorer, name)
    write_text(path, content)


def html(results: Results, explorer: Explorer | None, name: str) -> str:
    """The whole page as text."""
    template, style = _part("page.html"), _part("page.css")
    script = "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    content = {"page": page_data(results, name), "results": results, "explorer": explorer}
    data = "".join(
        f'<script type="application/json" id="{key}-data">{embedded(value)}</script>\n'
        for key, value in content.items()
    )
    parts = {
        "<!-- policy -->": _policy(script),
        "<!-- style -->": f"<style>\n{style}</style>",
        "<!-- data -->": data,
        "<!-- script -->": f"<script>{script}</script>",
    }
    # Part after part, each mark once: nothing that was put in is looked at again.
    page = ""
    for mark, part in parts.items():
        before, there, template = template.partition(mark)
        if not there:
            raise ValueError(f"page.html lacks the mark {mark}")
        page += before + part
    return page + template


def _part(name: str) -> str:
    return files("uqno.report").joinpath("template", name).read_text(encoding="utf8")


def _policy(script: str) -> str:
    """No request to anywhere, and no script but this one, even if an escape were forgotten."""
    digest = b64encode(sha256(script.encode("utf8")).digest()).decode("ascii")
    rules = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src blob: data:; "
        f"script-src 'sha256-{digest}'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


def embedded(value: Any) -> str:
    """JSON that cannot end the script element it stands in.

    >>> embedded({"name": "</script>&"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u0026"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


# --- what the page shows ----------------------------------------------------------------------


def page_data(results: Results, name: str) -> dict[str, Any]:
    """All but the record and the explorer."""
    levels = list(dict.fromkeys((r["alpha"], r["delta"]) for r in results["rows"]))
    return {
        "name": name,
        "summary": summary(results),
        "columns": [
            {"title": title, "help": text, "left": key in ("method", "ranks")}
            for title, key, _, text in sorted_columns(results)
        ],
        "tables": [_table(results, *level) for level in levels],
        "looks": {look["name"]: look["colour"] for look in results["methods"]},
        "labels": {look["name"]: look["label"] for look in results["methods"]},
        "inside": INSIDE,
        "outside": OUTSIDE,
        "maps": {name: _shades(name) for name in ("viridis", "cividis", "bone")},
        "planner": planner.chart(
            tuple(alpha for alpha, _ in levels), tuple(delta for _, delta in levels)
        ),
        "figures": drawn(results),
    }


def _table(results: Results, alpha: float, delta: float) -> dict[str, Any]:
    """One table: every cell as [text, what it is sorted by]."""
    lines = ordered(results, alpha, delta)
    return {
        "alpha": alpha,
        "delta": delta,
        "title": f"α = {alpha:g}, δ = {delta:g}",
        "words": (
            f"Calibrated for {promised(alpha, delta)}. Bandwidths are means over random splits, "
            "functions covered are those of one recorded split."
        ),
        "rows": [
            {
                "method": row["method"],
                "calibrated": row["calibrated"],
                "verdict": verdict(row),
                "cells": [
                    [_cell(results, key, row, paper), by(row, paper)]
                    for _, key, by, _ in sorted_columns(results)
                ],
            }
            for row, paper in lines
        ],
        "notes": [*notes(row for row, _ in lines), *unit_notes(results)],
    }


def sorted_columns(results: Results) -> tuple[tuple[str, str, Key, str], ...]:
    """The columns of the page's tables: those of every record, and those that this one has."""
    further: list[tuple[str, str, Key, str]] = []
    if results["unit"] is not None:
        title = f"Bandwidth [{results['unit']['symbol']}]"
        words_of_unit = "Mean radius of the band, in the unit of the functions"
        key: Key = lambda r, p: r["bandwidth_in_unit"]  # noqa: E731
        further.append((title, unit_column(results), key, words_of_unit))
    if has_areas(results):
        further += SORTED_AREA
    there = columns_of(results)
    return tuple(c for c in (*SORTED, *further) if c[1] in there or c[1] == "target")


def _cell(results: Results, key: str, row: Row, paper: Quoted | None) -> str:
    if key == "target":
        return words.percent(row["target"])
    return columns_of(results)[key](row, paper)


def _shades(name: str) -> list[list[int]]:
    """A colour map as a few colours [red, green, blue], 0 … 255."""
    colours = colormaps[name]([i / (SHADES - 1) for i in range(SHADES)], bytes=True)
    return [[int(c) for c in colour[:3]] for colour in colours]


def drawn(results: Results) -> list[dict[str, str]]:
    """Every figure of the record as SVG text; a browser makes the PNG."""
    drawings = []
    for name, draw in figures.FIGURES.items():
        figure = draw(results)
        if figure is None:
            continue
        text = StringIO()
        figures.render(figure, text, "svg")
        drawings.append({"name": name, "caption": CAPTIONS.get(name, name), "svg": text.getvalue()})
    return drawings
