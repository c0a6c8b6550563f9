"""Which points of a surface are near a node of a grid, and which nodes near a point."""

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from uqno.types import Reals


def nearest(points: Tensor, queries: Tensor, k: int) -> Tensor:
    """Indices of the nearest points, by kd-tree.

    Args:
        points: (n, d).
        queries: (q, d).
        k: how many of the points, at most n.

    Returns:
        (q, k), int32, the nearest first.
    """
    if k > len(points):
        raise ValueError(
            f"{k} neighbours are asked for, of {len(points)} points: give fewer neighbours, or "
            "more points or grid nodes"
        )
    tree = cKDTree(_array(points))
    _, index = tree.query(_array(queries), k=np.arange(1, k + 1), workers=-1)
    return torch.from_numpy(index.astype(np.int32))


def shares(near: Tensor, weights: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The weights of neighbours in a mean over them.

    Args:
        near: (L, k), the surface points near each node.
        weights: (n), areas of the surface points: a mean over neighbours is then an integral over
            their patch. None counts them alike.
        dtype: of the answer.

    Returns:
        (L, k), each row with the sum 1.
    """
    if weights is None:
        return torch.full(near.shape, 1 / near.shape[1], dtype=dtype)
    share = weights[near.long()].to(dtype)
    total = share.sum(1, keepdim=True)
    if not bool((total > 0).all()):
        raise ValueError(
            "the weights of all neighbours of a latent node are 0; give positive weights to the "
            "points of the surface"
        )
    return share / total


def distance_to_points(points: Tensor, normals: Tensor, nodes: Tensor, near: Tensor) -> Tensor:
    """sign((x − p)·n) |x − p| at nodes x, p the nearest point of the surface and n its normal.

    Where the triangles of the surface are known, `uqno.geometry.signed_distance` is exact.

    Args:
        points, normals: (n, d).
        nodes: (L, d).
        near: (L, k), the surface points near each node, the nearest first.

    Returns:
        (L,), negative inside.
    """
    index = near[:, 0].long()
    offset = nodes - points[index]
    distance = offset.square().sum(-1).sqrt()
    return torch.where((offset * normals[index]).sum(-1) >= 0, distance, -distance)


def _array(points: Tensor) -> Reals:
    return np.asarray(points.detach().cpu().numpy(), dtype=np.float64)
