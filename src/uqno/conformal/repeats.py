"""Functions that repeat another one: 60 copies of one function are one draw, not 60.

Rows of a calibration set are compared as they pass by. Of each, error and uncertainty at a few
hundred points drawn once are kept as one number of 64 bits; where two numbers agree, the rows are
read again and compared at every point, if they can be read again. Rows of fewer than 32 different
values may be lawful ties (a constant error, counts, a few points) and are never taken as copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from uqno.conformal.stream import Chunk, Stream, is_array
from uqno.types import Array, Integers

CHOICES: Final = ("refuse", "allow")
# Rows of fewer different values that are not zero may be equal by law.
DISTINCT: Final = 32
# Points of a row that are looked at: fewer where equal rows are compared in full afterwards.
LOOKED_AT: Final = 128
LOOKED_AT_ALONE: Final = 1024
NAMED: Final = 10


def choice(repeated: str) -> str:
    """What is asked for about repeated functions.

    Raises:
        ValueError: it is none of the choices.
    """
    if repeated not in CHOICES:
        raise ValueError(f"repeated = {repeated!r} must be one of {', '.join(CHOICES)}")
    return repeated


class Repeats:
    """Finds functions whose error and uncertainty are those of an earlier function.

    Args:
        stream: where the functions come from, to read two of them again; arrays and lists can be.
    """

    def __init__(self, stream: Any) -> None:
        self._read = _reader(stream)
        self._points = LOOKED_AT_ALONE if self._read is None else LOOKED_AT
        self._first: dict[int, int] = {}
        self._lawful: dict[int, bool] = {}
        self._alike: list[tuple[int, int]] = []

    def see(self, chunk: Chunk) -> None:
        """Look at the functions of a chunk, each once and in order."""
        for i, number in enumerate(_numbers(chunk, self._points)):
            first = self._first.setdefault(number, chunk.first + i)
            if first == chunk.first + i:
                continue
            if number not in self._lawful:
                self._lawful[number] = _distinct(chunk.error[i]) < DISTINCT
            if not self._lawful[number]:
                self._alike.append((first, chunk.first + i))

    def found(self, at_most: int | None = None) -> list[tuple[int, int]]:
        """(earlier, later) for each function that repeats an earlier one, or for so many of them.

        Args:
            at_most: how many are looked for; None for all.
        """
        pairs: list[tuple[int, int]] = []
        for pair in self._alike:
            if len(pairs) == at_most:
                break
            if self._read is None or _equal(self._read, *pair):
                pairs.append(pair)
        return pairs

    def refuse(self) -> None:
        """Raise if a function repeats another.

        Raises:
            ValueError: it names them.
        """
        if pairs := self.found(NAMED + 1):
            raise ValueError(refusal(pairs, "their error and uncertainty are equal at every point"))


def refusal(pairs: Sequence[tuple[int, int]], why: str) -> str:
    """What is said of (earlier, later) functions that repeat one another.

    Args:
        pairs: at least one; of more than ten, ten are named.
        why: what is equal, for the reader.
    """
    named = ", ".join(f"{later} repeats {earlier}" for earlier, later in pairs[:NAMED])
    more = " …" if len(pairs) > NAMED else ""
    return (
        f"calibration functions repeat others (function {named}{more}): {why}, and copies are not "
        "draws of their own, so that fewer functions than are counted carry the promise; leave "
        "the copies out, or, if each was drawn anew and may be equal by chance, say "
        "repeated='allow', which the guarantee then tells"
    )


def _reader(stream: Any) -> Callable[[int], tuple[Array, Array]] | None:
    """What reads error and uncertainty of one function again; None for iterators."""
    if not isinstance(stream, Stream):
        return None
    both = (stream.error, stream.uncertainty)
    if not all(is_array(values) or isinstance(values, Sequence) for values in both):
        return None
    return lambda i: (_function(both[0], i), _function(both[1], i))


def _function(values: Any, i: int) -> Array:
    return np.asarray(values[i : i + 1] if is_array(values) else values[i])  # files take slices


def _equal(read: Callable[[int], tuple[Array, Array]], one: int, other: int) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(read(one), read(other), strict=True))


def _distinct(values: Array) -> int:
    """How many different values there are beside zero."""
    return int(np.count_nonzero(np.unique(values)))


def _numbers(chunk: Chunk, count: int) -> Iterator[int]:
    """One number of 64 bits for each function, equal for equal functions."""
    places = _places(chunk.uncertainty.shape[1], count)
    both = (np.take(x, places, axis=1) for x in (chunk.error, chunk.uncertainty))
    for error, uncertainty in zip(*both, strict=True):
        yield hash((error.tobytes(), uncertainty.tobytes()))


@lru_cache(maxsize=16)
def _places(points: int, count: int) -> Integers:
    """Which points are looked at: all, or so many at random, for rows of a grid are alike."""
    if points <= count:
        return np.arange(points)
    return np.sort(np.random.default_rng(points).choice(points, count, replace=False))
