"""The common style of figures: each method in its colour and with its marker, as the record says.

The methods of this library have Okabe and Ito's colours, which all readers tell apart, and markers
of different shapes for print in grey.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from uqno.band.plot import LARGE, SMALL
from uqno.experiments.results import Look, Results
from uqno.types import Reals

EDGE, PALE, GRID = "#222222", "#e3f1e6", "#dddddd"
# An axis of percentages p runs as −log(1 + LEAST − p): 98 … 100 % gets as much room as 0 … 90 %.
LEAST: Final = 0.005
TOP: Final = 1.0012
PERCENTAGES: Final = (0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1)


OTHER: Final = Look(name="", label="", colour="#bbbbbb", marker="h", reference="", aided=False)


def look(results: Results, method: str) -> Look:
    """How a method is called and drawn, as the record says."""
    looks = {one["name"]: one for one in results["methods"]}
    return looks.get(method) or Look(**{**OTHER, "name": method, "label": method})


def verbatim(words: str) -> str:
    """Words of a record as they are: between two dollar signs matplotlib would see a formula."""
    return words.replace("$", r"\$")


def shades(count: int) -> list[tuple[Any, str, str]]:
    """(colour, line style, marker) for each of several α, dark to light; not yet too light."""
    levels = np.linspace(0.0, 0.82, max(count, 2))[:count]
    styles = ["-", "--", "-.", ":"]
    markers = ["o", "s", "^", "D", "v", "P"]
    return [
        (colormaps["viridis"](x), styles[i % len(styles)], markers[i % len(markers)])
        for i, x in enumerate(levels)
    ]


def sheet(width: float, height: float) -> Figure:
    """An empty figure, in inches; no pyplot, so no global state and no display."""
    figure = Figure(figsize=(width, height), layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.08, h_pad=0.08)
    return figure


def plain(ax: Any) -> None:
    """Letters that are read at half size, two sides of the frame, a quiet grid."""
    ax.tick_params(labelsize=SMALL)
    ax.xaxis.label.set_size(LARGE)
    ax.yaxis.label.set_size(LARGE)
    ax.title.set_size(LARGE)
    ax.grid(color=GRID, lw=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def scientific(axis: Any) -> None:
    """Small numbers with one power of ten for the whole axis."""
    digits = ScalarFormatter(useMathText=True)
    digits.set_powerlimits((-2, 3))
    axis.set_major_formatter(digits)
    axis.get_offset_text().set_fontsize(SMALL)


def stretch(axis: Any) -> None:
    """An axis of shares, 0 … 1, shown as percentages with room where bands are compared."""
    scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    scale("function", functions=(_stretched, _shrunk))
    axis.set_ticks(PERCENTAGES, labels=[f"{100 * p:g}" for p in PERCENTAGES])
    axis.set_minor_locator(NullLocator())


def beside(shares: Reals, distance: float) -> Reals:
    """Shares moved along a stretched axis by a distance that looks the same everywhere."""
    return _shrunk(_stretched(shares) + distance)


def _stretched(p: Any) -> Reals:
    return np.asarray(-np.log10(np.maximum(1 + LEAST - np.asarray(p), 1e-9)))


def _shrunk(v: Any) -> Reals:
    return np.asarray(1 + LEAST - 10.0 ** -np.asarray(v))
