"""Batches of functions with different numbers of points: padded, and cut again.

A padded batch carries how many points each function has, `point_count` (batch,), and how many
queries, `query_count` (batch,), so that nothing is guessed from the values.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from uqno.types import Batch, Sample

POINT_COUNT, QUERY_COUNT = "point_count", "query_count"

# Fields with one entry a point of the geometry, or one a place where an answer is wanted, and the
# axis of the points.
OF_GEOMETRY = {"points": 0, "normals": 0, "features": 0, "surface_weights": 0}
OF_ANSWER = {
    "weights": 0,
    "u": -1,
    "queries": 0,
    "query_normals": 0,
    "query_features": 0,
    "query_neighbours": 0,
}
POINT_AXIS = OF_GEOMETRY | OF_ANSWER


def pad(samples: Sequence[Sample]) -> dict[str, Tensor]:
    """Stack samples with different numbers of points, padded with 0 to the largest.

    Args:
        samples: geometries with the same fields, `points` (n, d) among them.

    Returns:
        The fields with a leading batch axis, and the numbers of points (and queries) of each.
        `weights` is 0 on the padding, so that every weighted loss ignores it.

    Raises:
        ValueError: They differ in more than the number of points, or differ in it and have no
            `weights`.
    """
    batch = {}
    for field in samples[0]:
        axis = _axis(field)
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
    batch[POINT_COUNT] = torch.tensor([len(sample["points"]) for sample in samples])
    if "queries" in samples[0]:
        batch[QUERY_COUNT] = torch.tensor([len(sample["queries"]) for sample in samples])
    return batch


def unpad(batch: Batch) -> list[dict[str, Tensor]]:
    """The samples of a padded batch without their padding: what `pad` was given."""
    points, wanted = batch[POINT_COUNT].tolist(), _answers(batch)
    samples: list[dict[str, Tensor]] = []
    for i, (n, q) in enumerate(zip(points, wanted, strict=True)):
        samples.append({})
        for field, values in batch.items():
            if field in (POINT_COUNT, QUERY_COUNT):
                continue
            axis, length = _axis(field), n if field in OF_GEOMETRY else q
            value = values[i]
            samples[i][field] = value if axis is None else value.narrow(axis, 0, length)
    return samples


def unpadded(values: Tensor, batch: Batch) -> list[Tensor]:
    """Each function's part (..., *points) of answers (batch, ..., *points), without padding."""
    if POINT_COUNT not in batch:
        return list(values)
    return [
        value.narrow(-1, 0, length) for value, length in zip(values, _answers(batch), strict=True)
    ]


def _answers(batch: Batch) -> list[int]:
    """At how many places each function of a padded batch is answered."""
    counts: list[int] = batch[QUERY_COUNT if QUERY_COUNT in batch else POINT_COUNT].tolist()
    return counts


def _axis(field: str) -> int | None:
    """The axis of the points; a field `name@symmetry` is laid out like `name`."""
    return POINT_AXIS.get(field.partition("@")[0])


def _pad(value: Tensor, axis: int, length: int) -> Tensor:
    shape = list(value.shape)
    shape[axis] = length - shape[axis]
    return torch.cat((value, value.new_zeros(shape)), axis)


def _alike(shapes: Sequence[tuple[int, ...]], axis: int) -> bool:
    """Whether shapes are equal but for the axis of the points."""
    return len({tuple(np.delete(np.array(shape), axis)) for shape in shapes}) == 1
