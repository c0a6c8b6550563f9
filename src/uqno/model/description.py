"""A short description of a function's input, by which a copy of it is known again.

Each channel of the input is described by values at a few points and by sums over all points with
factors drawn once; both are the same for the mirrored copies of a model with symmetries: of the
values that g a has at a point over all symmetries g, the smallest and the largest are taken.
Coordinates of geometries are sorted first, so that the order of points does not matter. Nothing is
divided by the function's own size: a and 2 a are two functions, see `uqno.model.copies`.

A channel that is told in a few bytes (constant, layered, a few pieces of a few values) is *plain*:
two functions may well share it by chance.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import torch
from torch import Tensor

from uqno.operators.symmetry import Reflection, Symmetry
from uqno.types import Array, Floats, Integers, Sample

VALUES: Final = 64
"""Values of a channel in its description."""
SUMS: Final = 16
"""Sums over all of its points."""
LOOKED_AT: Final = 1024
DISTINCT: Final = 32
BYTES: Final = 64
"""A channel of fewer than `DISTINCT` values that compresses to fewer `BYTES` is plain."""
# What is no input, follows from it, or says where an answer is wanted.
LEFT_OUT: Final = {
    "u", "weights", "surface_weights", "normals", "sdf", "triangles", "queries", "query_normals",
    "query_features", "a_queries", "grid_neighbours", "grid_shares", "query_neighbours",
}  # fmt: skip
SETS: Final = ("points", "features")


@dataclass(frozen=True)
class Channel:
    """One channel of an input.

    Args:
        field: the field that it belongs to.
        values: at a few points, or at all, float32.
        sums: (SUMS,), float32; None where the values are all.
        plain: whether it is told in a few bytes.
    """

    field: str
    values: Floats
    sums: Floats | None
    plain: bool


def describe(
    sample: Sample,
    symmetries: Sequence[Symmetry],
    taken: Sequence[str] = (),
    *,
    whole: bool = False,
) -> list[Channel]:
    """The description of a function's input, channel by channel.

    Args:
        sample: the fields of the function.
        symmetries: of the model.
        taken: the names of further fields that the operator is given.
        whole: whether all values are given instead of a few and the sums.
    """
    channels = []
    for field, orbit, plain in _channels(sample, symmetries, taken):
        flat = np.concatenate([x.ravel() for x in orbit])
        if whole:
            channels.append(Channel(field, flat.astype(np.float32), None, plain))
            continue
        count = VALUES // len(orbit)
        values = np.concatenate([x.ravel()[_places(x.size, count)] for x in orbit])
        middle = sum(x.ravel().astype(np.float64) for x in orbit) / len(orbit)
        channels.append(Channel(field, values.astype(np.float32), _sums(middle), plain))
    return channels


def _channels(
    sample: Sample, symmetries: Sequence[Symmetry], taken: Sequence[str]
) -> Iterator[tuple[str, list[Array], bool]]:
    """(field, [values] or [smallest, largest] over the symmetries, whether it is plain)."""
    fields = {n: x for n, x in sample.items() if isinstance(x, Tensor) and x.numel()}
    wanted = ({"a", *SETS} | set(taken)) - LEFT_OUT
    own = [n for n in fields if n in wanted] or [n for n in fields if n not in LEFT_OUT | {"a"}]
    for name in own:
        field = fields[name].detach().cpu()
        if name in SETS:
            mirrored = {g.axis for g in symmetries if isinstance(g, Reflection) and g.mirrored}
            for k, column in enumerate(_numbers(field.flatten(1)).T):
                at = np.abs(column) if name == "points" and k in mirrored else column
                yield name, [np.sort(at)], is_plain(column)
        elif name == "a" and "points" not in fields:
            both = [_numbers(x) for x in _extremes(field, sample, symmetries)]
            for k, channel in enumerate(_numbers(field)):
                yield name, [x[k] for x in both], is_plain(channel)
        else:
            yield name, [_numbers(field)], is_plain(_numbers(field.reshape(-1)))


def _extremes(a: Tensor, sample: Sample, symmetries: Sequence[Symmetry]) -> list[Tensor]:
    """The smallest and the largest of g a over the symmetries g, or a alone without any."""
    if not symmetries:
        return [a]
    fields = {name: x for name, x in sample.items() if name != "u"}
    low = high = a
    for g in symmetries:
        moved = g.apply(fields)["a"].detach().cpu()
        low, high = torch.minimum(low, moved), torch.maximum(high, moved)
    return [low, high]


def _numbers(field: Tensor) -> Array:
    """As NumPy has them, in float32 or float64."""
    kept = field if field.dtype == torch.float64 else field.to(torch.float32)
    return kept.numpy()


def is_plain(values: Array) -> bool:
    """Whether a channel (*points) is told in a few bytes, as a constant or a few layers are."""
    most = max(1, int(LOOKED_AT ** (1 / max(1, values.ndim)) + 1e-9))
    looked_at = values[tuple(slice(None, None, -(-n // most)) for n in values.shape)]
    found, which = np.unique(looked_at, return_inverse=True)
    if np.count_nonzero(found) >= DISTINCT:
        return False
    return len(zlib.compress(which.astype(np.uint8).tobytes(), 9)) < BYTES


@lru_cache(maxsize=16)
def _places(points: int, count: int) -> Integers:
    """Which points are looked at: drawn once at random, for rows of a grid are alike."""
    if points <= count:
        return np.arange(count) % points
    return np.sort(np.random.default_rng(points).choice(points, count, replace=False))


def _sums(values: Array) -> Floats:
    """Sums of what is left of the values without their mean, times the factors, (SUMS,)."""
    weighed = (values - values.mean()) * _factors(len(values))
    padded = np.pad(weighed, (0, -len(weighed) % SUMS)).reshape(-1, SUMS)
    return (padded.sum(axis=0) / np.sqrt(len(padded))).astype(np.float32)


@lru_cache(maxsize=4)
def _factors(points: int) -> Floats:
    """Normal numbers: sums of few differences would often agree with signs alone."""
    return np.random.default_rng(points).standard_normal(points, dtype=np.float32)
