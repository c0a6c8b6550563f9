"""A short description of a function's input, by which a copy of it is known again.

Each channel of the input is described by values at a few points and by sums over all points with
factors drawn once; both are the same for the mirrored copies of a model with symmetries: of the
values that g a has at a point over all symmetries g, two of the ordered ones are taken, and their
mean is summed.
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
from uqno.types import Array, Floats, Integers, Reals, Sample

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
        sums: (SUMS,), float32; None where the values are all of them.
        plain: whether it is told in a few bytes.
    """

    field: str
    values: Floats
    sums: Floats | None
    plain: bool


def describe(
    sample: Sample, symmetries: Sequence[Symmetry], taken: Sequence[str] = ()
) -> list[Channel]:
    """The description of a function's input, channel by channel.

    Args:
        sample: the fields of the function.
        symmetries: of the model.
        taken: the names of further fields that the operator is given.
    """
    channels = []
    for field, orbit, plain in _channels(sample, symmetries, taken):
        ranks = sorted({(len(orbit) - 1) // 3, len(orbit) - 1 - (len(orbit) - 1) // 3})
        places = _places(orbit[0].size, VALUES // len(ranks))
        values = np.sort([x.ravel()[places] for x in orbit], axis=0)[ranks].ravel()
        sums = _sums(np.array([x.ravel() for x in orbit]).mean(axis=0, dtype=np.float64))
        channels.append(Channel(field, values.astype(np.float32), sums, plain))
    return channels


def images(
    sample: Sample, symmetries: Sequence[Symmetry], taken: Sequence[str] = ()
) -> list[list[Channel]]:
    """All values of an input, as it is and as every symmetry of the model moves it.

    Args:
        sample, symmetries, taken: as for `describe`.
    """
    moved = []
    for those in ((), *([g] for g in symmetries)):
        channels = _channels(sample, [*those, *_mirrors(symmetries)], taken)
        moved.append(
            [
                Channel(f, orbit[0].ravel().astype(np.float32), None, plain)
                for f, orbit, plain in channels
            ]
        )
    return moved


def _channels(
    sample: Sample, symmetries: Sequence[Symmetry], taken: Sequence[str]
) -> Iterator[tuple[str, list[Array], bool]]:
    """(field, the channel as every symmetry has it, whether it is plain), channel by channel."""
    fields = {n: x for n, x in sample.items() if isinstance(x, Tensor) and x.numel()}
    wanted = ({"a", *SETS} | set(taken)) - LEFT_OUT
    own = [n for n in fields if n in wanted] or [n for n in fields if n not in LEFT_OUT | {"a"}]
    for name in own:
        field = fields[name].detach().cpu()
        if name in SETS:
            mirrored = {g.axis for g in _mirrors(symmetries)}
            for k, column in enumerate(_numbers(field.flatten(1)).T):
                at = np.abs(column) if name == "points" and k in mirrored else column
                yield name, [np.sort(at)], is_plain(column)
        elif name == "a" and "points" not in fields:
            others = {name: x for name, x in sample.items() if name != "u"}
            moving = [g for g in symmetries if not isinstance(g, Reflection)]
            moved = [g.apply(others)["a"].detach().cpu() for g in moving]
            orbit = [_numbers(x) for x in moved or [field]]
            for k, channel in enumerate(_numbers(field)):
                yield name, [x[k] for x in orbit], is_plain(channel)
        else:
            yield name, [_numbers(field)], is_plain(_numbers(field.reshape(-1)))


def _mirrors(symmetries: Sequence[Symmetry]) -> list[Reflection]:
    return [g for g in symmetries if isinstance(g, Reflection) and g.mirrored]


def _numbers(field: Tensor) -> Array:
    """As NumPy has them, in float32 or float64."""
    kept = field if field.dtype == torch.float64 else field.to(torch.float32)
    return kept.numpy()


def is_plain(values: Array) -> bool:
    """Whether a channel (*points) is told in a few bytes, as a constant or a few layers are."""
    most = int(LOOKED_AT ** (1 / max(1, values.ndim)) + 1e-9)
    # Not every so many-th: what has that period would look plain.
    looked_at = values[np.ix_(*(_places(n, min(n, most)) for n in values.shape))]
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


def _sums(values: Reals) -> Floats:
    """Sums of what is left of the values without their mean, times the factors, (SUMS,)."""
    weighed = (values - values.mean()) * _factors(len(values))
    padded = np.pad(weighed, (0, -len(weighed) % SUMS)).reshape(-1, SUMS)
    sums: Floats = (padded.sum(axis=0) / np.sqrt(len(padded))).astype(np.float32)
    return sums


@lru_cache(maxsize=4)
def _factors(points: int) -> Floats:
    """Normal numbers: sums of few differences would often agree with signs alone."""
    drawn: Floats = np.random.default_rng(points).standard_normal(points, dtype=np.float32)
    return drawn
