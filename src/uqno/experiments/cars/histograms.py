"""Drag, lift and pressures of a set of cars at a glance: are they those of cars?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from uqno.storage import write_bytes

# In the solver's report on a car, and in words.
COEFFICIENTS: Final = {
    "drag": "drag coefficient",
    "lift": "lift coefficient",
    "stagnation_cp": "stagnation pressure, Cp",
    "base_cp": "base pressure, Cp",
}
BINS: Final = 24
COLOURS: Final = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#f0e442")
# Without versions and dates, so that the same figure is the same file.
METADATA: Final[dict[str, dict[str, Any]]] = {".png": {"Software": None}, ".svg": {"Date": None}}

Reports = Sequence[Mapping[str, Any]]


def ranges(reports: Reports) -> dict[str, tuple[float, float, float]]:
    """Lowest, median and highest of each coefficient, by its words."""
    content = {}
    for name, words in COEFFICIENTS.items():
        low, middle, high = np.percentile([report[name] for report in reports], [0, 50, 100])
        content[words] = (float(low), float(middle), float(high))
    return content


def histograms(reports: Reports) -> Figure:
    """One panel a coefficient, cars of each body type stacked."""
    bodies = sorted({report["body"] for report in reports})
    extremes = ranges(reports)
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    panels = figure.subplots(2, 2)
    for axes, (name, words) in zip(panels.flat, COEFFICIENTS.items(), strict=True):
        values = [[r[name] for r in reports if r["body"] == body] for body in bodies]
        axes.hist(values, BINS, stacked=True, label=bodies, color=COLOURS[: len(bodies)])
        low, middle, high = extremes[words]
        axes.set_title(f"{words}: {low:.2f} to {high:.2f}, median {middle:.2f}", fontsize=12)
        axes.set_ylabel("cars")
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def save(reports: Reports, path: Path) -> None:
    """The histograms in a .png or .svg."""
    figure, content = histograms(reports), BytesIO()
    kind = path.suffix.removeprefix(".")
    with rc_context({"svg.hashsalt": "uqno"}):
        figure.savefig(
            content, format=kind, dpi=110, metadata=METADATA[path.suffix], facecolor="white"
        )
    write_bytes(path, content.getbuffer())
