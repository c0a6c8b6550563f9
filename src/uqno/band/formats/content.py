"""What a file of a band holds: the same names and quantities in every format.

`center`, `uncertainty` and `radius`, and `lower` and `upper` of a scalar function, mean what they
mean in a `Band`; `uncertainty` and `weights` also mean what they do in files for calibration.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """Among function, component, x, y, z and point, or the names of the band's labels, one for each
    axis of `values`."""
    values: Array
    long_name: str
    attributes: Mapping[str, Any] | None = None
    """What the input said of a coordinate; None where it said nothing."""


def variables(band: Band) -> dict[str, Variable]:
    """Every field over the points by its name; a scalar function has no dimension `component`."""
    functions = (_function(band),) if band.is_batch else ()
    points = names(band) if band.is_grid else ("point",)
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


def names(band: Band) -> tuple[str, ...]:
    """The names of the coordinates: those of the labels, else x, y, z, as many as there are."""
    if band.labels is not None:
        return band.labels.points
    d = len(band.points) if band.is_grid else np.shape(band.coordinates)[-1]
    return AXES[:d]


def _function(band: Band) -> str:
    labels = band.labels
    return "function" if labels is None or labels.function is None else labels.function


def axes(band: Band) -> dict[str, Variable]:
    """The coordinates of the points, as many as there are: axes of a grid, or columns of points."""
    given = {} if band.labels is None else band.labels.coordinates
    content = {}
    for j, name in enumerate(names(band)):
        said = given.get(name)
        attributes = None if said is None else said.attributes
        if isinstance(band.coordinates, tuple):
            x: Array = band.coordinates[j]
            if said is not None and said.dims == (name,) and said.values.shape == x.shape:
                x = said.values  # times as times
            content[name] = Variable((name,), x, f"{name} coordinate", attributes)
            continue
        dims = (_function(band), "point") if band.coordinates.ndim == 3 else ("point",)
        content[name] = Variable(dims, band.coordinates[..., j], f"{name} coordinate")
    return content


def others(band: Band) -> dict[str, Variable]:
    """Other coordinates of the labels: of the functions, over several dimensions, single ones."""
    if band.labels is None:
        return {}
    return {
        name: Variable(one.dims, one.values, name, one.attributes)
        for name, one in band.labels.coordinates.items()
        if name not in names(band)
    }


def attributes(band: Band) -> dict[str, Any]:
    """What else a file says, by name: numbers and texts; `scale` may be one for each function."""
    from uqno import __version__

    mesh = "" if band.triangles is None else f" {MESH_CONVENTIONS}"
    return {
        **({} if band.labels is None else band.labels.attributes),
        "Conventions": CONVENTIONS + mesh,
        "title": f"Calibrated band around the prediction of {band.name}",
        "source": f"uqno {__version__}",
        "guarantee": band.guarantee,
        **{name: x for name, x in band.levels.items() if isinstance(x, int | float | str)},
        "scale": band.applied_scale,
        "calibration": band.calibration.to_json(scores=False),
        "uqno_version": __version__,
    }
