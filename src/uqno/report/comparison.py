"""One test function as every method sees it: maps of a plane, or views of a surface.

True error at the left; each method's radius above, what it covers below; one scale of colours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from textwrap import fill
from typing import Any, Final

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from uqno.band.plot import INSIDE, LARGE, OUTSIDE, SMALL, light, vertex_cells
from uqno.conformal import words
from uqno.experiments.results import Panel, PanelMethod, Results
from uqno.experiments.table import percent
from uqno.report.style import scientific, sheet, verbatim
from uqno.types import Array

Draw = Callable[[Any, Array, Any, Normalize], ScalarMappable]
"""(axes, field, colour map, its scale) → the key of the colours."""

# More methods than this stand in two rows of the comparison.
ONE_ROW: Final = 5
# Inches of a plane and of a surface in its frame, with its title.
PLANE, SURFACE = (2.6, 2.85), (3.0, 2.25)
VIEW: Final = (22.0, 215.0)  # elevation and azimuth of the eye: before the body, to its side, above


def comparison(results: Results) -> Figure | None:
    """Draw the whole figure.

    Args:
        results: the record of a run.

    Returns:
        The figure, or None where the record has no function to show.
    """
    panel = results["panel"]
    if panel is None or not panel["methods"]:
        return None
    methods = panel["methods"]
    draw, (width, height) = _canvas(panel)
    blocks = 1 if len(methods) <= ONE_ROW else 2
    wide = ceil(len(methods) / blocks)
    figure = sheet(width * (wide + 1) + 1.4, 2 * height * blocks + 0.7)
    axes = figure.subplots(2 * blocks, wide + 1, squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    norm = _error_scale(methods[0])
    shown = draw(axes[0, 0], np.asarray(methods[0]["error"]), "cividis", norm)
    axes[0, 0].set_title(_error_title(methods), fontsize=SMALL + 1)
    for i, one in enumerate(methods):
        row, column = 2 * (i // wide), 1 + i % wide
        _method_maps(draw, axes[row, column], axes[row + 1, column], one, norm)
    largest = float(np.max([m["radius"] for m in methods]))
    unit = results["unit"]
    _comparison_keys(figure, axes, shown, largest, "" if unit is None else f" [{unit['symbol']}]")
    figure.suptitle(
        "One test function: radius above, covered points below "
        f"(at least {words.rest(panel['alpha'])} wanted)",
        fontsize=LARGE + 1,
    )
    return figure


def _error_scale(first: PanelMethod) -> Normalize:
    """One scale for all, up to what the first method's error and radius reach.

    A method that overestimates a hundredfold saturates, instead of making all others black.
    """
    top = float(np.max([first["error"], first["radius"]]))
    return Normalize(0, max(top, float(np.finfo(np.float32).tiny)))


def _error_title(methods: Sequence[PanelMethod]) -> str:
    """Whose error it is, where predictions differ."""
    same = all(np.array_equal(m["error"], methods[0]["error"]) for m in methods)
    return "true error" if same else f"true error of\n{verbatim(methods[0]['label'])}"


def _method_maps(draw: Draw, above: Any, below: Any, one: PanelMethod, norm: Normalize) -> None:
    error, radius = np.asarray(one["error"]), np.asarray(one["radius"])
    draw(above, radius, "cividis", norm)
    label = verbatim(one["label"]) + ("" if one["calibrated"] else ", raw")
    above.set_title(fill(label, 18), fontsize=SMALL + 1)
    inside = (error <= radius).astype(float)
    draw(below, inside, ListedColormap([OUTSIDE, INSIDE]), BoundaryNorm([-0.5, 0.5, 1.5], 2))
    below.set_title(f"{percent(one['coverage'])} covered", fontsize=SMALL)


def _comparison_keys(figure: Figure, axes: Array, shown: Any, largest: float, unit: str) -> None:
    """One colour bar for all errors and radii, one legend for inside and outside."""
    extend = "max" if largest > shown.norm.vmax else "neither"
    bar = figure.colorbar(shown, ax=axes[:, -1], extend=extend, aspect=30, pad=0.04, shrink=0.9)
    bar.set_label(f"error and radius{unit}, one scale", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    scientific(bar.ax.yaxis)
    bar.ax.yaxis.get_offset_text().set_horizontalalignment("left")
    keys = [Patch(color=INSIDE, label="covered"), Patch(color=OUTSIDE, label="missed")]
    axes[1, 0].legend(handles=keys, loc="center", fontsize=SMALL, frameon=False)


# --- a field in its frame ---------------------------------------------------------------------


def _canvas(panel: Panel) -> tuple[Draw, tuple[float, float]]:
    """What draws a field of the panel, and the size of its frame."""
    if panel["points"] is None or panel["triangles"] is None:
        return _image, PLANE
    return SurfaceView(np.asarray(panel["points"]), np.asarray(panel["triangles"])), SURFACE


def _image(ax: Any, values: Array, colours: Any, norm: Normalize) -> ScalarMappable:
    """A field over the unit square: x to the right, y up."""
    ax.set_axis_on()
    ax.set(xticks=[], yticks=[])
    shown: ScalarMappable = ax.imshow(
        values.T, origin="lower", cmap=colours, norm=norm, interpolation="nearest", rasterized=True
    )
    return shown


class SurfaceView:
    """Draws fields on a surface, seen from before and above: far faces first, near ones over them.

    Every vertex keeps its own colour around it, so that one missed point is seen.

    Args:
        points: the vertices, (n, 3).
        triangles: (faces, 3) indices of the vertices.
    """

    def __init__(self, points: Array, triangles: Array) -> None:
        elevation, azimuth = np.deg2rad(VIEW)
        sine, cosine = np.sin(azimuth), np.cos(azimuth)
        across = np.array([-sine, cosine, 0.0])
        eye = np.array([np.cos(elevation) * cosine, np.cos(elevation) * sine, np.sin(elevation)])
        seen = points @ np.stack([across, np.cross(eye, across), eye], axis=1)
        corners = seen[triangles]
        a, b, c = np.moveaxis(corners, 1, 0)
        faces_us = np.cross(b - a, c - a)[:, 2] > 0
        near_last = np.argsort(corners[:, :, 2].mean(axis=1))
        drawn = triangles[near_last[faces_us[near_last]]]
        # Three cells a triangle, all of one triangle before those of the next.
        cells, self.vertex = vertex_cells(seen[:, :2], drawn)
        order = np.arange(len(cells)).reshape(3, -1).T.ravel()
        self.cells, self.vertex = cells[order], self.vertex[order]
        self.light = np.repeat(light(points[drawn], VIEW, "z"), 3)[:, np.newaxis]

    def __call__(self, ax: Any, values: Array, colours: Any, norm: Normalize) -> ScalarMappable:
        scale = ScalarMappable(norm, colours)
        rgba = scale.to_rgba(values[self.vertex])
        rgba[:, :3] *= self.light
        ax.add_collection(
            PolyCollection(
                list(self.cells), facecolors=rgba, edgecolors=rgba, lw=0.3, rasterized=True
            )
        )
        ax.margins(0.01)
        ax.autoscale_view()
        ax.set_aspect("equal")
        return scale
