"""Functions on a grid carried to another one by cubic splines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from torch import Tensor

from uqno.operators.spectral import CACHED_GRIDS

FEWEST = 4
"""Nodes of a dimension that a cubic needs."""


def carried(fields: Tensor, axes: Sequence[Tensor], to: Sequence[Tensor]) -> Tensor:
    """Fields at the nodes of another grid, by cubic splines along each dimension in turn.

    The error for a smooth function is O(h⁴), where h is the step of the grid that it comes from.

    Args:
        fields: (…, *grid).
        axes: the coordinates of that grid, one increasing 1-D tensor a dimension, at least 4 nodes.
        to: the coordinates of the other one, within the first.

    Returns:
        (…, *other grid).

    Raises:
        ValueError: a dimension has fewer than 4 nodes, or the other grid reaches further.
    """
    for j, (x, y) in enumerate(zip(axes, to, strict=True)):
        matrix = _matrix(_key(x), _key(y), j).to(fields)
        dimension = j - len(axes)
        fields = (fields.movedim(dimension, -1) @ matrix.T).movedim(-1, dimension)
    return fields


def _key(x: Tensor) -> bytes:
    return x.detach().double().cpu().numpy().tobytes()


@lru_cache(maxsize=CACHED_GRIDS)
def _matrix(given: bytes, wanted: bytes, dimension: int) -> Tensor:
    """(wanted, given): the spline through each unit vector, at the nodes that are wanted."""
    x, y = np.frombuffer(given), np.frombuffer(wanted)
    if len(x) < FEWEST:
        raise ValueError(
            f"dimension {dimension} has {len(x)} nodes, a cubic spline needs at least {FEWEST}: "
            "use a finer grid"
        )
    slack = 1e-6 * (x[-1] - x[0])
    if y.min() < x[0] - slack or y.max() > x[-1] + slack:
        raise ValueError(
            f"the nodes wanted in dimension {dimension} reach from {y.min():g} to {y.max():g}, "
            f"outside {x[0]:g} to {x[-1]:g} of the grid: carry functions within their grid only"
        )
    with torch.inference_mode(False):
        return torch.from_numpy(CubicSpline(x, np.eye(len(x)))(y))
