"""The paper's figures, each drawn from `results.json` alone, as PNG and SVG.

A figure whose part of the record is missing is not drawn; an infeasible row has no point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from uqno.band.plot import INSIDE, LARGE, LINE, OUTSIDE, SMALL
from uqno.conformal import words
from uqno.experiments.results import Ablated, Look, Quoted, Results, Row
from uqno.experiments.table import bandwidth_unit, number
from uqno.report.comparison import comparison
from uqno.report.style import (
    EDGE,
    PALE,
    TOP,
    beside,
    look,
    plain,
    scientific,
    shades,
    sheet,
    stretch,
    verbatim,
)
from uqno.storage import write_bytes

DPI: Final = 110
# Without versions and dates, so that the same figure is the same file.
METADATA: Final[dict[str, dict[str, Any]]] = {"png": {"Software": None}, "svg": {"Date": None}}


def draw_all(results: Results, folder: str | Path) -> list[Path]:
    """Write every figure that the record has the numbers for, as .png and .svg.

    Args:
        results: the record of a run.
        folder: where the figures are written.

    Returns:
        The paths of the files.
    """
    paths = []
    for name, draw in FIGURES.items():
        figure = draw(results)
        if figure is not None:
            paths += save(figure, Path(folder) / name)
    return paths


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as .png and .svg; the same figure gives the same bytes.

    Args:
        figure: to be written.
        stem: the path without the suffix.

    Returns:
        The paths of the files.
    """
    paths = []
    for kind in METADATA:
        path = stem.with_name(f"{stem.name}.{kind}")
        content = BytesIO()
        render(figure, content, kind)
        write_bytes(path, content.getbuffer())
        paths.append(path)
    return paths


def render(figure: Figure, to: Any, kind: str) -> None:
    """Draw a figure into a file or stream.

    Args:
        figure: to be drawn.
        to: a path, or a stream of bytes.
        kind: "png" or "svg".
    """
    with rc_context({"svg.hashsalt": "uqno"}):
        figure.savefig(to, format=kind, dpi=DPI, metadata=METADATA[kind], facecolor="white")


# --- bandwidth against calibration percentage -----------------------------------------------


def bandwidths(results: Results) -> Figure | None:
    """Bandwidth (log) against calibration percentage, the promised region shaded, for each α."""
    rows = [
        r
        for r in results["rows"]
        if r["calibration_percentage"] is not None and not look(results, r["method"])["aided"]
    ]
    levels = list(dict.fromkeys((r["alpha"], r["delta"]) for r in rows))
    if not levels:
        return None
    figure = sheet(max(1.2 + 6.4 * len(levels), 9), 8)
    axes = figure.subplots(1, len(levels), sharey=True, squeeze=False)[0]
    for ax, (alpha, delta) in zip(axes, levels, strict=True):
        here = [r for r in rows if (r["alpha"], r["delta"]) == (alpha, delta)]
        quoted = [q for q in results["paper"] if q["alpha"] == alpha]
        _shade(ax, 1 - delta, min((r["usual"][0] for r in here if r["usual"]), default=1 - delta))
        _bandwidth_points(ax, results, here, quoted)
        _without_bandwidth(ax, results, here)
        ax.set_title(f"α = {alpha:g}: {words.rest(alpha)} of the points")
        ax.set_xlabel("calibration percentage [%]")
        plain(ax)
    axes[0].set_ylabel(_bandwidth_label(results))
    figure.legend(
        handles=_bandwidth_keys(
            results, rows, [q for q in results["paper"] if q["bandwidth"] is not None]
        ),
        loc="outside lower center",
        ncols=4 if len(levels) > 1 else 3,
        fontsize=SMALL,
        frameon=False,
    )
    return figure


def _bandwidth_label(results: Results) -> str:
    unit = bandwidth_unit(results)
    return f"bandwidth (1 = {unit})" if unit else "bandwidth"


def _shade(ax: Any, target: float, usual: float) -> None:
    """The promised region, 1 − δ and more, on an axis of percentages; paler what is usual below."""
    stretch(ax.xaxis)
    ax.set_xlim(-0.15, TOP)
    ax.axvspan(target, TOP, color=PALE, zorder=0)
    ax.axvspan(usual, target, color=PALE, alpha=0.5, lw=0, zorder=0)
    ax.axvline(target, color=EDGE, lw=1, ls=":")
    ax.set_yscale("log")
    ax.margins(y=0.09)


def _bandwidth_points(
    ax: Any, results: Results, rows: Sequence[Row], quoted: Sequence[Quoted]
) -> None:
    """Raw small and pale, calibrated large, a thin line between them; the paper's hollow."""
    unscaled = {r["method"]: r for r in rows if not r["calibrated"]}
    for row in rows:
        if row["bandwidth"] is None:
            continue
        start = unscaled.get(row["method"], row)
        if start["bandwidth"] is not None:
            ends = [(r["calibration_percentage"], r["bandwidth"]) for r in (start, row)]
            ax.plot(*zip(*ends, strict=True), color="#aaaaaa", lw=1, zorder=2)
        kind = "calibrated" if row["calibrated"] else "raw"
        _point(ax, results, row, kind)
    for theirs in quoted:
        _point(ax, results, theirs, "paper")


def _point(ax: Any, results: Results, row: Row | Quoted, kind: str) -> None:
    x, y = row["calibration_percentage"], row["bandwidth"]
    if y is not None:
        ax.plot(x, y, **_mark(look(results, row["method"]), kind), zorder=4, clip_on=False)


def _mark(style: Look, kind: str) -> dict[str, Any]:
    """Marker of a method: calibrated, raw, or the paper's own number."""
    big = 4 if style["marker"] == "*" else 0
    if kind == "paper":
        return dict(
            marker=style["marker"], ms=12 + big, mfc="none", mec=style["colour"], mew=2, ls=""
        )
    size = 12 if kind == "calibrated" else 8
    return dict(
        marker=style["marker"], ms=size + big, color=style["colour"], mec=EDGE, mew=0.8, ls="",
        alpha=1.0 if kind == "calibrated" else 0.55,
    )  # fmt: skip


def _without_bandwidth(ax: Any, results: Results, rows: Sequence[Row]) -> None:
    """A band without a width, a subspace, stands at the upper edge, with a word."""
    at = ax.get_xaxis_transform()
    for row in rows:
        x = row["calibration_percentage"]
        if row["bandwidth"] is not None or x is None:
            continue
        ax.plot(x, 0.97, **_mark(look(results, row["method"]), "raw"), transform=at)
        side, text = ("left", "   no bandwidth") if x < 0.9 else ("right", "no bandwidth   ")
        ax.text(x, 0.97, text, transform=at, fontsize=SMALL, va="center", ha=side, color=EDGE)


def _bandwidth_keys(results: Results, rows: Sequence[Row], quoted: Sequence[Quoted]) -> list[Any]:
    """Every method once, then what the three kinds of marker and the shade mean."""
    labels = {r["method"]: verbatim(r["label"]) for r in reversed(rows)}
    methods = dict.fromkeys(r["method"] for r in rows)
    keys = [
        Line2D([], [], label=labels[m], **_mark(look(results, m), "calibrated")) for m in methods
    ]
    for m in dict.fromkeys(q["method"] for q in quoted if q["method"] not in labels):
        style = look(results, m)
        keys.append(Line2D([], [], label=verbatim(style["label"]), **_mark(style, "paper")))
    kinds = {"calibrated": "calibrated", "raw": "raw"}
    kinds |= {"paper": "paper's table"} if quoted else {}
    grey = Look(name="", label="", colour="#999999", marker="o", reference="", aided=False)
    keys += [Line2D([], [], label=text, **_mark(grey, kind)) for kind, text in kinds.items()]
    usual = Patch(color=PALE, alpha=0.5, lw=0, label="usual on a test set")
    return [*keys, Patch(color=PALE, label="at least 1 − δ"), usual]


# --- curves over δ --------------------------------------------------------------------------


def tradeoff(results: Results) -> Figure | None:
    """Bandwidth against the promise 1 − δ, one curve an α, one panel a method."""
    curves = results["curves"]
    if not curves:
        return None
    figure, panels = _method_panels([c["method"] for c in curves])
    for method, ax in panels.items():
        own = [c for c in curves if c["method"] == method]
        for curve, (colour, line, marker) in zip(own, shades(len(own)), strict=True):
            pairs = zip([1 - d for d in curve["delta"]], curve["bandwidth"], strict=True)
            known = np.array([p for p in pairs if None not in p], dtype=float).reshape(-1, 2)
            ax.plot(*known.T, color=colour, ls=line, marker=marker, ms=7, lw=2,
                    label=f"α = {curve['alpha']:g}")  # fmt: skip
        _finish_curves(ax, verbatim(look(results, method)["label"]), "promised 1 − δ [%]")
        ax.set_yscale("log")  # the widest bands are ten times the others
    shares = [1 - d for c in curves for d in c["delta"]]
    first = next(iter(panels.values()))
    first.set_ylabel(_bandwidth_label(results))
    first.set_xlim(min(shares, default=0) - 0.03, TOP)
    _shared_legend(figure, panels)
    return figure


def actual_against_target(results: Results) -> Figure | None:
    """Functions covered on the recorded split against the promise, and where they usually lie.

    The bars are the range in which the percentage lies with probability 95 % if the promise holds:
    a point below its bar speaks against it.
    """
    known = [t for t in results["targets"] if t["target"]]
    if not known:
        return None
    figure, panels = _method_panels([t["method"] for t in known])
    lowest = min(min(t["target"] + t["low"] + t["actual"]) for t in known) - 0.01
    for method, ax in panels.items():
        own = [t for t in known if t["method"] == method]
        ax.fill_between([lowest, TOP], [lowest, TOP], lowest, color="#f0f0f0", lw=0, zorder=0)
        ax.plot([lowest, TOP], [lowest, TOP], color=EDGE, lw=1.2, ls=":", label="as promised")
        for i, (one, (colour, _, marker)) in enumerate(zip(own, shades(len(own)), strict=True)):
            # Side by side, since all α share their targets.
            x = beside(np.array(one["target"]), 0.02 * (i - (len(own) - 1) / 2))
            ax.vlines(x, one["low"], one["high"], color=colour, lw=5, alpha=0.3)
            label = f"α = {one['alpha']:g}"
            ax.plot(x, one["actual"], color=colour, ls="", marker=marker, ms=7, label=label)
        stretch(ax.yaxis)
        _finish_curves(ax, verbatim(look(results, method)["label"]), "promised 1 − δ [%]")
        ax.set(xlim=(lowest, TOP), ylim=(lowest, TOP))
    next(iter(panels.values())).set_ylabel("test functions covered [%]")
    _shared_legend(figure, panels)
    return figure


def _method_panels(methods: Sequence[str]) -> tuple[Figure, dict[str, Any]]:
    """One panel a method, up to three side by side, with the same axes."""
    names = list(dict.fromkeys(methods))
    wide = min(len(names), 3)
    high = ceil(len(names) / wide)
    figure = sheet(max(1.6 + 5.6 * wide, 8.5), 1.0 + 5.0 * high)
    axes = figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False).ravel()
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    return figure, dict(zip(names, axes, strict=False))


def _finish_curves(ax: Any, title: str, label: str) -> None:
    ax.set_title(title)
    ax.set_xlabel(label)
    stretch(ax.xaxis)
    plain(ax)
    ax.tick_params(labelbottom=True)  # there may be no panel below


def _shared_legend(figure: Figure, panels: dict[str, Any]) -> None:
    keys: dict[str, Any] = {}
    for ax in panels.values():
        handles, labels = ax.get_legend_handles_labels()
        keys |= dict(zip(labels, handles, strict=True))
    one_line = 5 if len(panels) > 1 else 4
    figure.legend(
        keys.values(),
        keys.keys(),
        loc="outside lower center",
        ncols=len(keys) if len(keys) <= one_line else 3,
        fontsize=SMALL,
        frameon=False,
    )


# --- the schematic picture ------------------------------------------------------------------


def schematic(results: Results) -> Figure | None:
    """A cut through one test function: band, prediction, truth, and where the truth is outside."""
    cut = results["section"]
    if cut is None:
        return None
    x, truth, center, lower, upper = (
        np.array(cut[key]) for key in ("x", "truth", "center", "lower", "upper")
    )
    figure = sheet(9, 4.6)
    ax = figure.subplots()
    ax.fill_between(x, lower, upper, color=INSIDE, lw=0, label="calibrated band")
    ax.plot(x, center, color=LINE, lw=2.5, label="prediction")
    ax.plot(x, truth, color="black", lw=2, ls="--", label="truth")
    outside = (truth < lower) | (truth > upper)
    if outside.any():
        ax.plot(x[outside], truth[outside], "o", color=OUTSIDE, ms=7, label="truth outside")
    unit = results["unit"]
    ax.set(xlabel="x", ylabel="u(x)" if unit is None else f"u(x) [{unit['symbol']}]")
    ax.margins(x=0.01)
    plain(ax)
    ax.grid(visible=False)
    scientific(ax.yaxis)
    figure.legend(loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    return figure


# --- ablation -------------------------------------------------------------------------------


def ablation(results: Results) -> Figure | None:
    """Bandwidth of each recipe as a bar, and the ratio to the paper's with the same ranks."""
    rows = results["ablation"]
    if not rows:
        return None
    levels = list(dict.fromkeys((r["alpha"], r["delta"]) for r in rows))
    most = max(sum((r["alpha"], r["delta"]) == level for r in rows) for level in levels)
    figure = sheet(10.5, 0.6 + (1.2 + 0.55 * most) * len(levels))
    axes = figure.subplots(len(levels), 1, sharex=True, squeeze=False)[:, 0]
    widest = max((r["bandwidth"] for r in rows if r["bandwidth"] is not None), default=1.0)
    for ax, level in zip(axes, levels, strict=True):
        own = [r for r in rows if (r["alpha"], r["delta"]) == level]
        _bars(ax, results, own, widest)
        ax.set_title(f"α = {level[0]:g}, δ = {level[1]:g}", loc="left", fontsize=LARGE)
    axes[-1].set_xlabel("bandwidth (× tighter than the paper's, same ranks)")
    return figure


def _bars(ax: Any, results: Results, rows: Sequence[Ablated], widest: float) -> None:
    """One bar a recipe from above; the one with all ingredients in its own colour."""
    for i, row in enumerate(rows):
        width = row["bandwidth"]
        colour = look(results, "uqno" if row["name"] == "uqno" else "uqno-paper")["colour"]
        ax.barh(i, width or 0, color=colour, edgecolor=EDGE, lw=0.8, height=0.7)
        text = "infeasible" if width is None else number(width)
        text += "" if row["ratio"] is None else f"  ({row['ratio']:.2f} ×)"
        ax.text((width or 0) + 0.012 * widest, i, text, va="center", fontsize=SMALL)
    ax.set_yticks(range(len(rows)), labels=[verbatim(row["label"]) for row in rows])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.4 * widest)
    plain(ax)
    ax.grid(visible=False, axis="y")
    scientific(ax.xaxis)
    ax.tick_params(axis="y", length=0)


FIGURES: Final[dict[str, Callable[[Results], Figure | None]]] = {
    "comparison": comparison,
    "bandwidth": bandwidths,
    "tradeoff": tradeoff,
    "targets": actual_against_target,
    "band": schematic,
    "ablation": ablation,
}
"""The name of each figure's files, and what draws it."""
