"""Forces on a closed surface by the pressure on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from uqno.types import Reals


def pressure_force(pressure: ArrayLike, normals: ArrayLike, areas: ArrayLike) -> Reals:
    """−Σ p n A, the force of a pressure on a surface.

    Args:
        pressure: at the vertices, (…, n).
        normals: outward unit normals, (n, 3); areas: of the vertices, (n,).

    Returns:
        (…, 3).

    >>> pressure_force([1.0, 3.0], [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], [2.0, 2.0])
    array([4., 0., 0.])
    """
    p, n, A = (np.asarray(x, dtype=np.float64) for x in (pressure, normals, areas))
    force: Reals = 0.0 - (p * A) @ n
    return force


def projected_area(normals: ArrayLike, areas: ArrayLike, along: int = 0) -> float:
    """½ Σ |n_along| A: the area that a body without hollows shows along an axis.

    Args:
        normals: outward unit normals, (n, 3); areas: of the vertices, (n,).
        along: the axis.
    """
    n, A = (np.asarray(x, dtype=np.float64) for x in (normals, areas))
    return float(0.5 * (np.abs(n[:, along]) * A).sum())
