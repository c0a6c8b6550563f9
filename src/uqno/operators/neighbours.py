"""Who is near whom between a surface and a latent grid: found once, kept with the sample."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from uqno.types import Sample

# Fields with one entry a point, and the axis of the points: padded in a batch.
POINT_AXIS = {
    "points": 0,
    "normals": 0,
    "features": 0,
    "weights": 0,
    "surface_weights": 0,
    "u": -1,
    "queries": 0,
    "query_normals": 0,
    "query_features": 0,
    "query_neighbours": 0,
}


def nearest(points: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Indices (q, k), int32, of the k nearest of points (n, d) to queries (q, d), and distances."""
    if k > len(points):
        raise ValueError(
            f"{k} neighbours are asked for, of {len(points)} points: give fewer neighbours, or "
            "more points or grid nodes"
        )
    tree = cKDTree(_array(points))
    distance, index = tree.query(_array(queries), k=np.arange(1, k + 1), workers=-1)
    return torch.from_numpy(index.astype(np.int32)), torch.from_numpy(distance).to(points.dtype)


def shares(near: Tensor, weights: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Of the surface points near each node (L, k) in a mean over them (L, k), sum 1.

    weights (n): areas; a mean over neighbours is then an integral over their patch.
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


def signed_distance(points: Tensor, normals: Tensor, nodes: Tensor, near: Tensor) -> Tensor:
    """sign((x − p)·n) |x − p| (L) at the nodes x (L, d), p the nearest point and n its normal.

    near (L, k): of the surface points near each node, the nearest first.
    """
    index = near[:, 0].long()
    offset = nodes - points[index]
    distance = offset.square().sum(-1).sqrt()
    return torch.where((offset * normals[index]).sum(-1) >= 0, distance, -distance)


def pad(samples: Sequence[Sample]) -> dict[str, Tensor]:
    """Stack samples with different numbers of points, padded with 0 to the largest.

    `weights` is 0 on the padding, so that every weighted loss ignores it.
    """
    batch = {}
    for field in samples[0]:
        axis = POINT_AXIS.get(field)
        values = [sample[field] for sample in samples]
        shapes = [tuple(value.shape) for value in values]
        if len(set(shapes)) > 1 and (axis is None or not _alike(shapes, axis)):
            i = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
            raise ValueError(
                f"'{field}' is {shapes[0]} in sample 0 and {shapes[i]} in sample {i}; only the "
                "number of points may differ in a batch"
            )
        if len(set(shapes)) > 1 and "weights" not in samples[0]:
            raise ValueError(
                f"samples with {sorted({s[axis or 0] for s in shapes})} points need the field "
                "'weights' (n), such as areas, to tell points from padding"
            )
        if axis is None or len(set(shapes)) == 1:
            batch[field] = torch.stack(values)
            continue
        length = max(shape[axis] for shape in shapes)
        batch[field] = torch.stack([_pad(value, axis, length) for value in values])
    return batch


def unpad(sample: Sample) -> dict[str, Tensor]:
    """One sample of a padded batch without its padding: last points at 0 whose normals are 0."""
    surface = _points(sample["points"], sample["normals"])
    wanted = surface
    if "queries" in sample:
        wanted = _points(sample["queries"], sample["query_normals"])
    cut = {}
    for field, value in sample.items():
        axis = POINT_AXIS.get(field)
        of_surface = field in ("points", "normals", "features", "surface_weights")
        length = surface if of_surface else wanted
        cut[field] = value if axis is None else value.narrow(axis, 0, length)
    return cut


def _points(points: Tensor, normals: Tensor) -> int:
    """How many of the points (n, d) are no padding at the end."""
    is_point = (points.ne(0) | normals.ne(0)).any(-1).nonzero()
    return int(is_point.max()) + 1 if len(is_point) else len(points)


def _pad(value: Tensor, axis: int, length: int) -> Tensor:
    shape = list(value.shape)
    shape[axis] = length - shape[axis]
    return torch.cat((value, value.new_zeros(shape)), axis)


def _alike(shapes: Sequence[tuple[int, ...]], axis: int) -> bool:
    """Equal but for the axis of the points."""
    rest = {tuple(np.delete(np.array(shape), axis)) for shape in shapes}
    return len(rest) == 1


def _array(points: Tensor) -> NDArray[np.float64]:
    return np.asarray(points.detach().cpu().numpy(), dtype=np.float64)
