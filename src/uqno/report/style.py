"""One colour and one marker a method, in every figure; colours that all readers tell apart.

Okabe and Ito's colours, and markers of different shapes for print in grey.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from uqno.band.plot import LARGE, SMALL
from uqno.types import Reals

EDGE, PALE, GRID = "#222222", "#e3f1e6", "#dddddd"
# An axis of percentages p runs as −log(1 + LEAST − p): 98 … 100 % gets as much room as 0 … 90 %.
LEAST: Final = 0.005
TOP: Final = 1.0012
PERCENTAGES: Final = (0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1)


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    marker: str


LOOKS: Final = {
    "uqno": Look("#0072b2", "o"),
    "uqno-paper": Look("#56b4e9", "s"),
    "mc-dropout": Look("#d55e00", "^"),
    "laplace": Look("#009e73", "D"),
    "nppc": Look("#cc79a7", "v"),
    "ensemble": Look("#e69f00", "P"),
    "perturbed-pair": Look("#f0e442", "X"),
    "constant": Look("#000000", "p"),
    "mean-field": Look("#888888", "*"),
}
OTHER: Final = Look("#bbbbbb", "h")


def look(method: str) -> Look:
    return LOOKS.get(method, OTHER)


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
    made = Figure(figsize=(width, height), layout="constrained")
    engine: Any = made.get_layout_engine()
    engine.set(w_pad=0.08, h_pad=0.08)
    return made


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
