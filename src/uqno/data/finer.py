"""Inputs that are known on a finer grid than the answer is wanted on: their moments near a node.

A coefficient at the nodes of a coarse grid does not say what it does between them, and where it
jumps no operator can know what the values in between would have told it. Its mean around each
node, its slope there and how much it varies say most of that, on the coarse grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """Fields on the coarse grid.

    scalars: (…, 2 · channel, *grid): the means of all channels, then their variances.
    vectors: (…, channel · d, *grid): for each channel the d components of its dipole, the mean of
        the value times the distance from the node, in coarse steps. They change their sign where
        the grid is flipped, so an operator that is to know of symmetries takes them as `vectors`
        (`uqno.operators.EquivariantFNO`); for any other they are channels like the others.
    """

    scalars: Tensor
    vectors: Tensor


def moments(a: Tensor, shape: Sequence[int]) -> Moments:
    """Mean, dipole and variance of a around the nodes of a coarser grid.

    The mean is over the fine nodes that are nearer to a coarse node than to any other along
    each dimension; those half-way count half. Beyond the ends of the grid lies its mirror image.

    Args:
        a: (…, channel, *fine grid), nodes at both ends of each dimension.
        shape: nodes of the coarse grid along each of its d dimensions, at least 2; they are among
            the fine ones.

    Raises:
        ValueError: the coarse nodes are not among the fine ones.

    Example:
        >>> a = torch.rand(7, 1, 211, 211)
        >>> near = moments(a, (43, 43))
        >>> near.scalars.shape, near.vectors.shape
        (torch.Size([7, 2, 43, 43]), torch.Size([7, 2, 43, 43]))
    """
    d = len(shape)
    if a.ndim < d + 1 or d < 1:
        raise ValueError(f"a has shape {tuple(a.shape)}: expected (…, channel, *grid) of {d} axes")
    windows = [_window(n, m) for n, m in zip(a.shape[-d:], shape, strict=True)]
    means = [mean.to(a) for mean, _ in windows]
    mean = _applied(a, means)
    variance = (_applied(a * a, means) - mean * mean).clamp(min=0)
    dipoles = [
        _applied(a, [slope.to(a) if i == j else means[i] for i, (_, slope) in enumerate(windows)])
        for j in range(d)
    ]
    vectors = torch.stack(dipoles, dim=-d - 1).flatten(-d - 2, -d - 1)
    return Moments(torch.cat((mean, variance), dim=-d - 1), vectors)


def _window(fine: int, coarse: int) -> tuple[Tensor, Tensor]:
    """(coarse, fine) matrices of one dimension: to the means, and to the dipoles."""
    if coarse < 2 or fine < coarse or (fine - 1) % (coarse - 1):
        raise ValueError(
            f"a grid of {coarse} nodes is not among the {fine} of a: {fine} - 1 must be a multiple "
            f"of {coarse} - 1, and the coarse grid has at least 2 nodes"
        )
    step = (fine - 1) // (coarse - 1)
    mean, slope = torch.zeros(2, coarse, fine, dtype=torch.float64)
    for offset in range(-(step // 2), step // 2 + 1):
        weight = (0.5 if 2 * abs(offset) == step else 1.0) / step
        for node in range(coarse):
            place = node * step + offset
            mirrored = abs(place) if place < fine else 2 * (fine - 1) - place
            mean[node, mirrored] += weight
            slope[node, mirrored] += weight * offset / step
    return mean, slope


def _applied(a: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """Each matrix along its dimension of a (…, *fine grid)."""
    for j, matrix in enumerate(matrices, start=-len(matrices)):
        a = (a.movedim(j, -1) @ matrix.T).movedim(-1, j)
    return a
