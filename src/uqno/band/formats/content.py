"""What a file of a band holds: the same names and quantities in every format.

`center`, `uncertainty` and `radius`, and `lower` and `upper` of a scalar function, mean what they
mean in a `Band`; `uncertainty` and `weights` also mean what they do in files for calibration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from uqno.types import Array

if TYPE_CHECKING:
    from uqno.band.band import Band

AXES = ("x", "y", "z")
CONVENTIONS = "CF-1.11"
MESH_CONVENTIONS = "UGRID-1.0"


class Variable(NamedTuple):
    """A named array of a band file."""

    dims: tuple[str, ...]
    """Among function, component, x, y, z and point, one for each axis of `values`."""
    values: Array
    long_name: str


def variables(band: Band) -> dict[str, Variable]:
    """Every field over the points by its name; a scalar function has no dimension `component`."""
    functions = ("function",) if band.is_batch else ()
    points = AXES[: len(band.points)] if band.is_grid else ("point",)
    over, scalar = (*functions, *points), band.channels == 1
    center = band.center.squeeze(len(functions)) if scalar else band.center
    name = band.name
    content = {
        "center": Variable(
            over if scalar else (*functions, "component", *points), center, f"prediction of {name}"
        ),
        "radius": Variable(over, band.radius, f"radius of the calibrated band around {name}"),
        "uncertainty": Variable(
            over, band.uncertainty, f"uncertainty of {name} before calibration"
        ),
    }
    if scalar:
        ends = {"lower": band.lower, "upper": band.upper}
        for end, values in ends.items():
            content[end] = Variable(over, values, f"{end} end of the calibrated band of {name}")
    if band.weights is not None:
        dims = over if band.weights.ndim == len(over) else points
        content["weights"] = Variable(dims, band.weights, "measure of each point")
    return content


def axes(band: Band) -> dict[str, Variable]:
    """The coordinates x, y, z, as many as there are: axes of a grid, or columns of points."""
    columns: dict[str, tuple[tuple[str, ...], Array]]
    if isinstance(band.coordinates, tuple):
        columns = {name: ((name,), x) for name, x in zip(AXES, band.coordinates, strict=False)}
    else:
        dims = ("function", "point") if band.coordinates.ndim == 3 else ("point",)
        each = np.moveaxis(band.coordinates, -1, 0)
        columns = {name: (dims, x) for name, x in zip(AXES, each, strict=False)}
    return {name: Variable(*column, f"{name} coordinate") for name, column in columns.items()}


def attributes(band: Band) -> dict[str, Any]:
    """What else a file says, by name: numbers and texts; `scale` may be one for each function."""
    from uqno import __version__

    mesh = "" if band.triangles is None else f" {MESH_CONVENTIONS}"
    return {
        "Conventions": CONVENTIONS + mesh,
        "title": f"Calibrated band around the prediction of {band.name}",
        "source": f"uqno {__version__}",
        "guarantee": band.guarantee,
        **{name: value for name, value in band.levels.items() if value is not None},
        "scale": band.applied_scale,
        "calibration": band.calibration.to_json(scores=False),
        "uqno_version": __version__,
    }
