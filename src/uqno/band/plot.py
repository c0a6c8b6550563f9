"""Figures of a band: lines with a shaded area, maps of a plane, views of a surface.

No pyplot, so no global state and no display; colours that colour-blind readers tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter
from numpy.typing import NDArray

from uqno.band.formats import content
from uqno.conformal import words
from uqno.types import Array

if TYPE_CHECKING:
    from uqno.band import Band


ROWS = 3
"""How many functions of a batch are shown, a row each."""
LINE, INSIDE, OUTSIDE = "#0072b2", "#9ecae9", "#d55e00"
"""Colours of the center, of what is in the band and of what is not."""
LARGE, SMALL = 15, 13
"""Sizes of titles and of the numbers along axes, in points."""
LONGEST = 5
"""Beyond this ratio of its sides a plane is stretched: a metre of x is then not a metre of y."""


class BandFigure(Figure):
    """A figure that a notebook shows as it is returned, with or without pyplot."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png")
        return out.getvalue()


@dataclass(frozen=True)
class Panel:
    """One map: values over the points and how to colour them.

    Args:
        title: above it.
        values: (*points).
        label: of its colour bar.
        colours: of small to large values.
        norm: which values the first and the last colour stand for.
        ticks: the text at each value of the colour bar that has one; None for numbers.
    """

    title: str
    values: Array
    label: str
    colours: Colormap | str
    norm: Normalize
    ticks: dict[float, str] | None = None

    @property
    def mappable(self) -> ScalarMappable:
        """Values to colours."""
        return ScalarMappable(self.norm, self.colours)


def figure(
    band: Band, truth: Any, component: int | None, view: tuple[float, float], up: str
) -> Figure:
    """What `Band.plot` returns, with the same arguments.

    Args:
        band: of one function or of several, of which the first are drawn.
        truth: u, in the shape of the center; None leaves it out.
        component: the channel that is shown; None for the magnitude of a vector.
        view: elevation and azimuth from which a surface is seen, in degrees.
        up: "x", "y" or "z", the vertical axis of a surface.

    Raises:
        ValueError: the band cannot be drawn, or an argument is out of its bounds.
    """
    _check(band, component, up)
    rows = [band[i] for i in range(min(ROWS, len(band)))] if band.is_batch else [band]
    truths = [None] * len(rows) if truth is None else _truths(band, truth)
    if _dimensions(band) == 1:
        drawn = _lines(rows, truths, component)
    else:
        drawn = _maps(rows, truths, component, view, up)
    promise = f"The band {band.promise}"
    if band.is_batch and len(band) > ROWS:
        promise += f"\nfunctions 0 to {ROWS - 1} of {len(band)}"
    drawn.suptitle(promise, fontsize=LARGE)
    return drawn


def _check(band: Band, component: int | None, up: str) -> None:
    if band.is_grid and len(band.points) == 3:
        raise ValueError(
            "plot shows lines, planes and surfaces, not a 3-D grid: export it with to_vtk for "
            "ParaView, or slice to_xarray()"
        )
    if component is not None and not 0 <= component < band.channels:
        raise ValueError(f"component = {component} must lie in 0 … {band.channels - 1}")
    if up not in ("x", "y", "z"):
        raise ValueError(f"up = {up!r} must be x, y or z, the vertical axis")


def _truths(band: Band, truth: Any) -> list[Array]:
    """One (channel, *points) array a row; refused if it does not have the band's shape."""
    u = band.truth(truth)
    return list(u[:ROWS]) if band.is_batch else [u]


def _dimensions(band: Band) -> int:
    return len(band.points) if band.is_grid else int(np.shape(band.coordinates)[-1])


def _shown(values: Array, component: int | None) -> Array:
    """(channel, *points) → (*points): a scalar, a component, or the length of a vector."""
    if component is not None or len(values) == 1:
        return np.asarray(values[component or 0])
    return np.asarray(np.linalg.norm(values, axis=0))


def _label(band: Band, component: int | None) -> str:
    if band.channels == 1:
        symbol = band.name
    elif component is None:
        symbol = f"|{band.name}|"
    elif band.component_names is not None:
        symbol = band.component_names[component]
    else:
        symbol = f"{band.name}[{component}]"
    return symbol + (f" [{band.units}]" if band.units else "")


def _covered(band: Band, truth: Array) -> str:
    share = float(band.coverage(truth))
    return f"{words.percent(1.0 if share == 1 else min(round(share, 4), 0.9999))} covered"


# --- lines -----------------------------------------------------------------------------------


def _lines(rows: list[Band], truths: list[Any], component: int | None) -> Figure:
    drawn = BandFigure(figsize=(9, 1 + 3.6 * len(rows)), layout="constrained")
    axes = drawn.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    for i, (ax, band, truth) in enumerate(zip(axes, rows, truths, strict=True)):
        _line(ax, band, truth, component)
        titles = [f"function {i}"] if len(rows) > 1 else []
        titles += [_covered(band, truth)] if truth is not None else []
        ax.set_title(": ".join(titles), fontsize=LARGE)
        ax.tick_params(labelsize=SMALL)
        ax.set_ylabel(_label(band, component), fontsize=LARGE)
        ax.margins(x=0.01)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[-1].set_xlabel(_axis_label(band, 0), fontsize=LARGE)
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(
        handles, labels, loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False
    )
    return drawn


def _line(ax: Any, band: Band, truth: Any, component: int | None) -> None:
    x = np.asarray(band.coordinates).reshape(-1)
    order = np.argsort(x)
    x, center = x[order], _shown(band.center, component)[order]
    radius = band.radius[order]
    ax.fill_between(x, center - radius, center + radius, color=INSIDE, lw=0, label="band")
    ax.plot(x, center, color=LINE, lw=2, label="prediction")
    if truth is None:
        return
    u = _shown(truth, component)[order]
    outside = ~band.contains(truth)[order]
    ax.plot(x, u, color="black", lw=1.5, ls="--", label="truth")
    ax.plot(x[outside], u[outside], "o", color=OUTSIDE, ms=6, label="truth outside the band")


# --- maps ------------------------------------------------------------------------------------


def _maps(
    rows: list[Band],
    truths: list[Any],
    component: int | None,
    view: tuple[float, float],
    up: str,
) -> Figure:
    table = [_panels(b, u, component) for b, u in zip(rows, truths, strict=True)]
    titles = [f"function {i}: " if len(rows) > 1 else "" for i in range(len(rows))]
    # Four panels of one function stand in a square: in a row they would be small on a screen.
    if len(table) == 1 and len(table[0]) == 4:
        table, rows, titles = [table[0][:2], table[0][2:]], rows * 2, titles * 2
    high, wide = len(table), len(table[0])
    space = _dimensions(rows[0]) == 3
    drawn = BandFigure(figsize=(4.8 * wide, 0.9 + 3.8 * high), layout="compressed")
    axes = drawn.subplots(
        high,
        wide,
        squeeze=False,
        subplot_kw={"projection": "3d", "proj_type": "ortho"} if space else None,
    )
    for i, (band, panels) in enumerate(zip(rows, table, strict=True)):
        for j, (ax, panel) in enumerate(zip(axes[i], panels, strict=True)):
            if space:
                _surface(ax, band, panel, view, up)
            else:
                _plane(ax, band, panel)
            _bar(drawn, ax, panel, 0.8 if space else 1)
            ax.set_title((titles[i] if j == 0 else "") + panel.title, fontsize=LARGE)
    return drawn


def _bar(drawn: Figure, ax: Any, panel: Panel, length: float) -> None:
    digits = ScalarFormatter()
    digits.set_powerlimits((-2, 4))
    shrink = length if panel.ticks is None else 0.4
    bar = drawn.colorbar(panel.mappable, ax=ax, shrink=shrink, pad=0.02, format=digits)
    bar.set_label(panel.label, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.ax.yaxis.get_offset_text().set(size=SMALL, ha="left")
    if panel.ticks is not None:
        bar.set_ticks(list(panel.ticks), labels=list(panel.ticks.values()))
        bar.ax.tick_params(length=0)


def _panels(band: Band, truth: Any, component: int | None) -> list[Panel]:
    center, radius = _shown(band.center, component), band.radius
    units = f" [{band.units}]" if band.units else ""
    size = (f"± {band.name}" if band.channels == 1 else "radius of the ball") + units
    prediction = Panel("prediction", center, _label(band, component), "viridis", _norm(center))
    if truth is None:
        return [prediction, Panel("radius", radius, size, "cividis", _norm(radius, 0))]
    error = band.error(truth)
    # One scale for both, so that they compare by eye.
    both = Normalize(0, max(radius.max(), error.max(), np.finfo(np.float32).tiny))
    covered = Panel(
        _covered(band, truth),
        band.contains(truth).astype(float),
        "",
        ListedColormap([OUTSIDE, INSIDE]),
        BoundaryNorm([-0.5, 0.5, 1.5], 2),
        {0: "outside", 1: "inside"},
    )
    return [
        prediction,
        Panel("radius", radius, size, "cividis", both),
        Panel("error", error, f"|error|{units}", "cividis", both),
        covered,
    ]


def _norm(values: Array, least: float | None = None) -> Normalize:
    low = float(values.min()) if least is None else least
    high = float(values.max())
    return Normalize(low, high if high > low else low + 1)


def _sides(band: Band) -> tuple[int, int]:
    """The dimensions to draw from left to right and upwards; rows of labelled data run upwards."""
    rows_first = band.labels is not None and band.labels.points[0] != "x" and band.triangles is None
    return (1, 0) if rows_first else (0, 1)


def _axis_label(band: Band, j: int) -> str:
    """The name of a dimension, with its units where it has any."""
    name, axis = list(content.axes(band).items())[j]
    units = (axis.attributes or {}).get("units", "")
    return f"{name} [{units}]" if units else name


def _plane(ax: Any, band: Band, panel: Panel) -> None:
    across, up = _sides(band)
    if isinstance(band.coordinates, tuple):
        x, y = band.coordinates[across], band.coordinates[up]
        ax.pcolormesh(
            x,
            y,
            panel.values.transpose(up, across),
            shading="nearest",
            cmap=panel.colours,
            norm=panel.norm,
            rasterized=True,
        )
    else:
        x, y = band.coordinates[:, across], band.coordinates[:, up]
        if band.triangles is None:
            rgba = panel.mappable.to_rgba(panel.values)
            ax.scatter(x, y, c=rgba, s=_dot(x.size), lw=0, rasterized=True)
        else:
            cells, point = vertex_cells(band.coordinates, band.triangles)
            rgba = panel.mappable.to_rgba(panel.values[point])
            ax.add_collection(
                PolyCollection(
                    list(cells), facecolors=rgba, edgecolors=rgba, lw=0.3, rasterized=True
                )
            )
            ax.autoscale_view()
    sides = sorted([np.ptp(x), np.ptp(y)])
    if sides[1] <= LONGEST * sides[0]:
        ax.set_aspect("equal")
    ax.set_xlabel(_axis_label(band, across), fontsize=SMALL)
    ax.set_ylabel(_axis_label(band, up), fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.locator_params(nbins=4)


def _surface(ax: Any, band: Band, panel: Panel, view: tuple[float, float], up: str) -> None:
    points = np.asarray(band.coordinates)
    if band.triangles is None:
        rgba = panel.mappable.to_rgba(panel.values)
        dot = _dot(len(points))
        ax.scatter(*points.T, c=rgba, s=dot, lw=0, depthshade=False, rasterized=True)
    else:
        art3d = import_module("mpl_toolkits.mplot3d.art3d")
        cells, point = vertex_cells(points, band.triangles)
        rgba = panel.mappable.to_rgba(panel.values[point])
        rgba[:, :3] *= np.tile(light(points[band.triangles], view, up), 3)[:, np.newaxis]
        ax.add_collection3d(
            art3d.Poly3DCollection(cells, facecolors=rgba, edgecolors=rgba, lw=0.3, rasterized=True)
        )
    low, high = points.min(axis=0), points.max(axis=0)
    for axis, a, b in zip("xyz", low, high, strict=True):
        ax.set(**{f"{axis}lim": (a, b if b > a else a + 1)})
    ax.view_init(elev=view[0], azim=view[1], vertical_axis=up)  # before the box, which it turns
    ax.set_box_aspect(np.maximum(high - low, 1e-3 * (high - low).max()), zoom=1.15)
    ax.set_axis_off()


def light(corners: Array, view: tuple[float, float], up: str) -> Array:
    """How bright each triangle is: a lamp at the eye shows the shape and leaves the colours.

    Args:
        corners: of triangles, (faces, 3, 3).
        view: elevation and azimuth of the eye, in degrees.
        up: the vertical axis, x, y or z.

    Returns:
        Factors for the colours, 0.75 to 1, (faces,).
    """
    elevation, azimuth = np.deg2rad(view)
    flat = np.cos(elevation)
    eye = np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
    eye = np.roll(eye, "xyz".index(up) - 2)
    a, b, c = np.moveaxis(corners, 1, 0)
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1)
    return np.asarray(0.75 + 0.25 * np.abs(normal @ eye) / np.where(length > 0, length, 1))


def vertex_cells(points: Array, triangles: Array) -> tuple[Array, NDArray[np.integer[Any]]]:
    """Triangles cut into the parts that are nearest to each corner.

    So each point has its own colour: an average over corners would hide a point that is missed.

    Args:
        points: (n, d).
        triangles: indices of points, (faces, 3).

    Returns:
        The corners of the parts, (3 · faces, 4, d), and the point that each part belongs to,
        (3 · faces,).
    """
    corner = points[triangles]
    centre = corner.mean(axis=1)
    parts = [
        np.stack([a, (a + b) / 2, centre, (a + c) / 2], axis=1)
        for a, b, c in (np.moveaxis(np.roll(corner, -j, axis=1), 1, 0) for j in range(3))
    ]
    return np.concatenate(parts), np.concatenate([triangles[:, j] for j in range(3)])


def _dot(points: int) -> float:
    """Marker area in points² so that the markers fill about a third of a panel."""
    return float(np.clip(2e4 / points, 1, 60))
