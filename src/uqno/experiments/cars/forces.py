"""Drag and lift of a car: from pressures on its surface, and as the solver reported them.

The two differ. The solver's coefficients hold the friction, and the pressure on its own, finer
surface; the sum here is over 3586 vertices. Where the solver's are the truth, the difference
belongs to the interval: `uqno.Functional(drag, truth="drag")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from uqno.experiments.cars.shipped import CarSet
from uqno.geometry.forces import pressure_force, projected_area
from uqno.types import Array, Reals

DYNAMIC_PRESSURE: Final = 245.0
"""½ ρ U² of the shipped cars, in Pa."""


def drag(field: Array, sample: Mapping[str, Array]) -> float:
    """The drag coefficient by pressure alone, over the frontal area.

    Args:
        field: the pressure in Pa, (1, n).
        sample: with `normals` (n, 3) and `surface_weights` (n,), the areas of the vertices.
    """
    return _coefficient(field, sample, 0)


def lift(field: Array, sample: Mapping[str, Array]) -> float:
    """The lift coefficient by pressure alone, over the frontal area; arguments as of `drag`."""
    return _coefficient(field, sample, 2)


def _coefficient(field: Array, sample: Mapping[str, Array], axis: int) -> float:
    normals, areas = sample["normals"], sample["surface_weights"]
    force = pressure_force(field[0], normals, areas)[axis]
    return float(force / (DYNAMIC_PRESSURE * projected_area(normals, areas)))


def solver_coefficients(cars: CarSet) -> dict[str, Reals]:
    """What the solver reported of each car: `drag` and `lift`, (cars,).

    Raises:
        ValueError: the file of the cars has no such reports.
    """
    reports = cars.provenance.get("reports", {})
    try:
        rows = [reports[str(i)] for i in cars.indices]
        return {name: np.array([row[name] for row in rows]) for name in ("drag", "lift")}
    except KeyError as why:
        raise ValueError(
            f"the solver's report of a car lacks {why}: use the shipped cars, or a set of `uqno "
            "data cars`"
        ) from None
