"""Values of grid functions between the grid points."""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor


def multilinear(a: Tensor, axes: Sequence[Tensor], queries: Tensor) -> Tensor:
    """Σ over the 2^d corners of a cell of ∏ (1 − |x_j − corner_j| / side_j) · a(corner).

    Args:
        a: (batch, channel, *grid).
        axes: the coordinates of the grid, one increasing 1-D tensor a dimension.
        queries: (q, d) or (batch, q, d), clamped to the grid.

    Returns:
        (batch, channel, q).
    """
    queries = queries.expand(a.shape[0], *queries.shape[-2:])
    flat, left, right, part = a.flatten(2), [], [], []
    for x, axis in zip(queries.unbind(-1), axes, strict=True):
        axis = axis.to(x)
        upper = torch.searchsorted(axis, x.contiguous()).clamp(1, len(axis) - 1)
        start, end = axis[upper - 1], axis[upper]
        left.append(upper - 1)
        right.append(upper)
        part.append(((x - start) / (end - start)).clamp(0, 1))
    value = a.new_zeros(*a.shape[:2], queries.shape[1])
    for corner in product((0, 1), repeat=len(axes)):
        index = torch.zeros_like(left[0])
        weight = torch.ones_like(part[0])
        for j, side in enumerate(corner):
            index = index * len(axes[j]) + (right[j] if side else left[j])
            weight = weight * (part[j] if side else 1 - part[j])
        picked = flat.gather(2, index.unsqueeze(1).expand(-1, a.shape[1], -1))
        value = value + picked * weight.unsqueeze(1)
    return value
