"""Which functions are copies of others, by the descriptions of their inputs.

Two inputs are the same where all channels of the one that has fewer are, each in the coarser of
two precisions: a channel rounded to half precision equals its copy in half precision exactly, and
two neighbours of a smooth family, closer than half precision tells apart, do not equal each other.

They are copies in other units where one rescaling, c a + d with c > 0, takes every one of them to
its copy, but for rounding. Were each pair free to have a rescaling of its own, all functions s f of
one shape f would be copies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import torch

from uqno.model.description import Channel
from uqno.types import Array, Reals

# A precision, and the largest share of a value that rounding to it changes.
PRECISIONS: Final = (
    (torch.float32, 2.0**-24),
    (torch.float16, 2.0**-11),
    (torch.bfloat16, 2.0**-9),
)
# Sums of what two channels differ by, as a multiple of their largest value and the rounding.
SIGMAS: Final = 5.0
LEAST_ROUNDING: Final = 2.0**-20
"""Of sums and of rescaled values, in float32."""
# Rescalings nearer to 1 are the neighbours of a smooth family.
OTHER_UNITS: Final = 1e-3
AGREE: Final = 0.9
"""The share of pairs of one shape that must agree on one rescaling."""
NEAR: Final = 1e-3
"""Shapes farther from each other, as a share of their size, are not compared."""
BLOCK: Final = 1024
MOST_PAIRS: Final = 4
"""Of one shape, for each function; of more, no rescaling could be agreed on."""
MOST_ALIKE: Final = 64
"""So many functions of one description are compared with a new one, at the most."""

Description = Sequence[Channel]


class Pair(NamedTuple):
    """Function `later` has the input of function `earlier`."""

    earlier: int
    later: int


class _Entry(NamedTuple):
    """A channel that tells functions apart."""

    function: int
    channel: Channel


def copies(
    known: Sequence[Description],
    new: Sequence[Description],
    confirm: Callable[[Pair], bool] = lambda pair: True,
) -> list[Pair]:
    """The new functions that are copies, each with the first function that it is a copy of.

    Args:
        known: descriptions of functions; empty to look for copies among the new ones.
        new: descriptions of others.
        confirm: compares the two functions of a pair as a whole, where they can be read again.

    Returns:
        Pairs (earlier, later), `earlier` an index into `known`, or into `new` if that is empty.
    """
    functions, first = [*known, *new], len(known)
    found: dict[int, int] = {}

    def accept(earlier: int, later: int) -> None:
        if later not in found and confirm(Pair(earlier, later - first)):
            found[later] = earlier

    entries = _telling(functions)
    for earlier, later in _equal(entries, functions, first, found):
        accept(earlier, later)
    others = [e for e in entries if e.function < first or e.function not in found]
    for earlier, later in _rescaled(others, functions, first):
        accept(earlier, later)
    return [Pair(earlier, later - first) for later, earlier in sorted(found.items())]


def alike(one: Description, other: Description, *, rescaled: bool = False) -> bool:
    """Whether all channels of the input that has fewer are channels of the other.

    Args:
        one, other: of two functions.
        rescaled: whether they may be in other units.
    """
    fields = {c.field for c in one} & {c.field for c in other}
    for field in fields:
        both = ([c for c in x if c.field == field] for x in (one, other))
        fewer, more = sorted(both, key=len)
        for channel in fewer:
            if not any(same(channel, x) or (rescaled and _is_rescaled(channel, x)) for x in more):
                return False
    return bool(fields)


def same(one: Channel, other: Channel) -> bool:
    """Whether two channels are equal in the coarser of their precisions."""
    if one.values.shape != other.values.shape:
        return False
    if np.array_equal(one.values, other.values):
        return _sums_agree(one, other, 1.0, LEAST_ROUNDING)
    for precision, rounding in PRECISIONS[1:]:
        values = (_rounded(x.values, precision) for x in (one, other))
        coarse, others = values
        if np.array_equal(coarse, others) and (
            np.array_equal(coarse, one.values) or np.array_equal(others, other.values)
        ):
            return _sums_agree(one, other, 1.0, rounding)
    return False


def _telling(functions: Sequence[Description]) -> list[_Entry]:
    """The channels by which functions are told apart, one function after the other.

    Neither plain ones nor those that all functions have (coordinates, a forcing), unless nothing
    else differs either: then all are copies.
    """
    having: defaultdict[tuple[str, bytes], set[int]] = defaultdict(set)
    for i, description in enumerate(functions):
        for channel in description:
            having[_key(channel)].add(i)
    varying = {key for key, those in having.items() if len(those) < len(functions)}
    return [
        _Entry(i, channel)
        for i, description in enumerate(functions)
        for channel in description
        if not channel.plain and (not varying or _key(channel) in varying)
    ]


def _key(channel: Channel) -> tuple[str, bytes]:
    return channel.field, channel.values.tobytes()


# --- in the same units ----------------------------------------------------------------------------


def _equal(
    entries: Sequence[_Entry],
    functions: Sequence[Description],
    first: int,
    found: Container[int],
) -> Iterator[tuple[int, int]]:
    """(earlier, later) of functions that are the same; no more of one that is in `found`."""
    for precision, _ in PRECISIONS:
        groups: defaultdict[tuple[str, bytes], set[int]] = defaultdict(set)
        for function, channel in entries:
            key = (channel.field, _rounded(channel.values, precision).tobytes())
            groups[key].add(function)
        for group in groups.values():
            members = sorted(group)
            for later in (i for i in members if i >= first):
                those = [i for i in members if i < (first or later)][:MOST_ALIKE]
                for earlier in those:
                    if later not in found and alike(functions[earlier], functions[later]):
                        yield earlier, later


def _rounded(values: Array, precision: torch.dtype) -> Array:
    """Values in a precision, as float32."""
    if precision is torch.float32:
        return np.asarray(values, dtype=np.float32)
    return torch.from_numpy(np.asarray(values, dtype=np.float32)).to(precision).float().numpy()


def _sums_agree(one: Channel, other: Channel, factor: float, rounding: float) -> bool:
    """Whether sums over all points differ by rounding alone; true of channels without sums."""
    if one.sums is None or other.sums is None:
        return True
    largest = float(np.abs(other.values).max(initial=0))
    most = SIGMAS * max(rounding, LEAST_ROUNDING) * max(largest, float(np.abs(other.sums).max()))
    return bool((np.abs(factor * one.sums - other.sums) <= most).all())


# --- in other units -------------------------------------------------------------------------------


def _rescaled(
    entries: Sequence[_Entry], functions: Sequence[Description], first: int
) -> list[tuple[int, int]]:
    """(earlier, later) of functions that one rescaling takes to each other."""
    pairs, rescalings = [], []
    for earlier, later in _of_one_shape(entries, first):
        values = (np.array([entry.channel.values for entry in x]) for x in (earlier, later))
        c, d, widths, fits = _rescaling(*values)
        for i in np.flatnonzero(fits):
            if _sums_agree(earlier[i].channel, later[i].channel, float(c[i]), LEAST_ROUNDING * 4):
                pairs.append((earlier[i].function, later[i].function))
                rescalings.append((c[i], d[i], widths[i]))
    if not pairs:
        return []
    c, d, widths = np.array(rescalings).T
    agreeing = np.abs(c / np.median(c) - 1) <= OTHER_UNITS
    agreeing &= np.abs(d - np.median(d)) <= OTHER_UNITS * np.maximum(widths, np.abs(np.median(d)))
    if agreeing.mean() < AGREE:
        return []
    return [
        pair
        for pair, agrees in zip(pairs, agreeing, strict=True)
        if agrees and alike(functions[pair[0]], functions[pair[1]], rescaled=True)
    ]


def _of_one_shape(
    entries: Sequence[_Entry], first: int
) -> Iterator[tuple[list[_Entry], list[_Entry]]]:
    """Channels of two functions each whose values, but for scale and offset, lie near each other.

    None where there are more than `MOST_PAIRS` for each function: then it is one shape for many.
    """
    for field in sorted({entry.channel.field for entry in entries}):
        of_field = [entry for entry in entries if entry.channel.field == field]
        earlier = [entry for entry in of_field if entry.function < first or not first]
        later = [entry for entry in of_field if entry.function >= first]
        if not earlier or not later:
            continue
        shapes = _shapes(later)
        pairs: tuple[list[_Entry], list[_Entry]] = ([], [])
        most = MOST_PAIRS * len(of_field)
        for start in range(0, len(earlier), BLOCK):
            # |x − y|² = 2 − 2 x·y of unit vectors.
            products = _shapes(earlier[start : start + BLOCK]) @ shapes.T
            near = np.argwhere(products >= 1 - NEAR**2 / 2)
            if len(pairs[0]) + len(near) > 2 * most + len(of_field):  # one with itself, twice each
                break
            for i, j in near.tolist():
                if earlier[start + i].function < later[j].function:
                    pairs[0].append(earlier[start + i])
                    pairs[1].append(later[j])
        else:
            if 0 < len(pairs[0]) <= most:
                yield pairs


def _shapes(entries: Sequence[_Entry]) -> Reals:
    """Their values without mean and size, (entries, VALUES)."""
    values = np.array([entry.channel.values for entry in entries], dtype=np.float64)
    centred = values - values.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(centred, axis=1, keepdims=True)
    shapes: Reals = np.divide(centred, sizes, out=np.zeros_like(centred), where=sizes > 0)
    return shapes


def _rescaling(one: Array, other: Array) -> tuple[Reals, Reals, Reals, Array]:
    """c and d with c · one + d = other, the deviation of other, and whether that is so.

    Args:
        one, other: (pairs, values).

    Returns:
        (pairs,) each; it is not so of (1, 0) and of what is near it.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (one, other))
    centred = [values - values.mean(axis=1, keepdims=True) for values in (x, y)]
    size, width = (centred[0] ** 2).sum(axis=1), centred[1].std(axis=1)
    c = (centred[0] * centred[1]).sum(axis=1) / np.where(size > 0, size, 1)
    d = y.mean(axis=1) - c * x.mean(axis=1)
    largest = np.maximum(np.abs(y).max(axis=1), c * np.abs(x).max(axis=1))
    rounding = 4 * 2.0**-24 * np.maximum(largest, np.abs(d))
    left = np.abs(c[:, None] * x + d[:, None] - y).max(axis=1)
    usual = (np.abs(c - 1) <= OTHER_UNITS) & (np.abs(d) <= OTHER_UNITS * width)
    return c, d, width, (size > 0) & (c > 0) & ~usual & (left <= rounding)


def _is_rescaled(one: Channel, other: Channel) -> bool:
    if one.values.shape != other.values.shape:
        return False
    c, _, _, fits = _rescaling(one.values[None], other.values[None])
    return bool(fits[0]) and _sums_agree(one, other, float(c[0]), LEAST_ROUNDING * 4)
