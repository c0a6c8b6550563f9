"""Errors, uncertainties and weights of many functions, handed on a few at a time.

Arrays (NumPy, zarr, h5py, xarray, a torch tensor on the CPU), lists of arrays of different
lengths, iterators, or one iterator of (error, uncertainty, weights): each becomes a stream of
chunks, of which one is held at a time. A chunked array is read chunk by chunk, each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat, zip_longest
from math import prod
from typing import Any, Final

import numpy as np

from uqno.conformal import checks
from uqno.types import Array, Floats, Reals

# Values worked on at once: small functions of an array go together and share NumPy's overhead.
CHUNK_VALUES: Final = 2**16
# Bytes of a chunked array that are held at once, at the most, unless one function has more.
SLAB_BYTES: Final = 2**28
_MISSING: Final = object()


@dataclass(frozen=True)
class Chunk:
    """A few functions with the same number of points."""

    first: int
    """The index of the first function."""
    error: Floats
    """2-norms of the errors, or signed scalar errors, (functions, points)."""
    uncertainty: Floats
    """(functions, points)."""
    weights: tuple[Reals, ...] | None
    """One (points,) array for each function."""


class Stream:
    """The functions of a calibration set, read once and in order.

    Args:
        error: (n, *points) or (n, *points, d) for vectors; or an iterable of such arrays without
            the first axis, one for each function, of any lengths.
        uncertainty: (n, *points), or an iterable like `error`.
        weights: None, (*points) for all functions, or one set for each function.
    """

    def __init__(self, error: Any, uncertainty: Any, weights: Any = None) -> None:
        self.error, self.uncertainty, self.weights = error, uncertainty, weights
        for name, values in (("error", error), ("uncertainty", uncertainty)):
            checks.holds_functions(name, values, tuple(values.shape) if is_array(values) else None)
        known = {"error": _length(error), "uncertainty": _length(uncertainty)}
        checks.same_number(**{name: n for name, n in known.items() if n is not None})
        if is_array(error) and is_array(uncertainty) and known["uncertainty"]:
            shapes = tuple(error.shape[1:]), tuple(uncertainty.shape[1:])
            checks.shapes("each function", *shapes)

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @property
    def number(self) -> int | None:
        """n, where it is known without reading."""
        known = (_length(self.error), _length(self.uncertainty))
        return next((n for n in known if n is not None), None)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The points of each function, where they are known without reading: not for iterators."""
        if is_array(self.uncertainty):
            return (prod(self.uncertainty.shape[1:]),) * int(self.uncertainty.shape[0])
        if isinstance(self.uncertainty, Sequence):
            return tuple(prod(np.shape(one)) for one in self.uncertainty)
        return None

    def chunks(self) -> Iterator[Chunk]:
        """The functions in order, each once."""
        if is_array(self.error) and is_array(self.uncertainty):
            yield from self._of_arrays()
        else:
            yield from _one_by_one(self._triples(), self.weighted)

    def _of_arrays(self) -> Iterator[Chunk]:
        n, points = self.uncertainty.shape[0], prod(self.uncertainty.shape[1:])
        rows = max(1, CHUNK_VALUES // max(1, points))
        weights = self._each_weights()
        error, uncertainty = Slabs(self.error), Slabs(self.uncertainty)
        for first in range(0, n, rows):
            last = min(first + rows, n)
            where = f"functions {first} to {last - 1}"
            E = checks.real("uncertainty", where, uncertainty.take(first, last))
            e = checks.real("error", where, error.take(first, last))
            yield _chunk(first, e, E, _next(weights, first, last - first))
        _refuse_more(weights, n)

    def _triples(self) -> Iterator[tuple[Any, Any, Any]]:
        """(error, uncertainty, weights) of one function after the other."""
        weights = self._each_weights()
        i = -1
        both = zip_longest(self.error, self.uncertainty, fillvalue=_MISSING)
        for i, (error, uncertainty) in enumerate(both):
            checks.ends_together("error", i, error is _MISSING)
            checks.ends_together("uncertainty", i, uncertainty is _MISSING)
            (own,) = _next(weights, i, 1) or (None,)
            yield error, uncertainty, own
        _refuse_more(weights, i + 1)

    def _each_weights(self) -> Iterator[Any] | None:
        """Weights function by function; one set of them may serve all."""
        if self.weights is None:
            return None
        checks.holds_weights(self.weights, np.shape(self.weights) if self._shared() else None)
        each: Iterator[Any] = repeat(self.weights) if self._shared() else iter(self.weights)
        return each

    def _shared(self) -> bool:
        """Whether the weights have the shape of one function, rather than one set for each."""
        if is_array(self.weights):
            shape = tuple(self.weights.shape)
        elif isinstance(self.weights, Sequence):
            return len(self.weights) > 0 and np.ndim(self.weights[0]) == 0
        else:
            return isinstance(self.weights, int | float)
        if is_array(self.uncertainty):
            return shape != tuple(self.uncertainty.shape)
        if isinstance(self.uncertainty, Sequence) and len(self.uncertainty):
            return shape == np.shape(self.uncertainty[0]) or len(shape) < 2
        return len(shape) < 2


class FunctionStream:
    """One iterator of (error, uncertainty, weights), each (*points), one tuple for each function.

    Args:
        functions: the tuples; weights may be None where `weighted` is False.
        weighted: whether the weights measure coverage.
    """

    number: int | None = None
    sizes: tuple[int, ...] | None = None

    def __init__(self, functions: Iterable[tuple[Any, Any, Any]], weighted: bool = False) -> None:
        checks.holds_functions("functions", functions, None)
        self.functions, self.weighted = functions, checks.yes_or_no("weighted", weighted)

    def chunks(self) -> Iterator[Chunk]:
        """The functions in order, each once; nothing is kept of a function that has passed by."""
        return _one_by_one(iter(self.functions), self.weighted)


class Slabs:
    """Rows of an array in order, read in whole chunks where the array says how it is chunked."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.step = _rows_at_once(array)
        self.first = 0
        self.held: Array = np.empty(0)

    def take(self, first: int, last: int) -> Any:
        """Rows `first` to `last` − 1; a later call begins where this one ended."""
        if self.step is None:
            return self.array[first:last]
        parts = []
        while first < last:
            if first >= self.first + len(self.held):
                self.first = first
                end = min(self.array.shape[0], (first // self.step + 1) * self.step)
                self.held = np.asarray(self.array[first:end])
            part = self.held[first - self.first : last - self.first]
            parts.append(part)
            first += len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _rows_at_once(array: Any) -> int | None:
    """The functions of one chunk, or so many as fit; None for an array that is not chunked."""
    chunks = getattr(array, "chunks", None)
    if not chunks:
        return None
    rows = int(chunks[0] if isinstance(chunks[0], int) else max(chunks[0]))
    row_bytes = max(1, prod(array.shape[1:]) * np.dtype(array.dtype).itemsize)
    return max(1, min(rows, SLAB_BYTES // int(row_bytes)))


def is_array(values: Any) -> bool:
    """Whether this is an array over all functions, in memory or on disk, and not of objects."""
    return hasattr(values, "shape") and getattr(values, "dtype", None) != np.dtype(object)


def _length(values: Any) -> int | None:
    """How many functions there are, where that is known without reading."""
    if is_array(values):
        return int(values.shape[0])
    return len(values) if hasattr(values, "__len__") else None


def _one_by_one(triples: Iterator[Any], weighted: bool) -> Iterator[Chunk]:
    for i, one in enumerate(triples):
        where = f"function {i}"
        e, E, w = checks.triple(i, one)
        uncertainty, error = checks.real("uncertainty", where, E), checks.real("error", where, e)
        own = (w,) if weighted else None
        yield _chunk(i, error[np.newaxis], uncertainty[np.newaxis], own)


def _next(weights: Iterator[Any] | None, first: int, count: int) -> tuple[Any, ...] | None:
    """The weights of the next functions; None without weights."""
    if weights is None:
        return None
    own = tuple(next(weights, _MISSING) for _ in range(count))
    for i, one in enumerate(own, first):
        checks.ends_together("weights", i, one is _MISSING)
    return own


def _refuse_more(weights: Iterator[Any] | None, n: int) -> None:
    if weights is not None and not isinstance(weights, repeat):
        checks.same_number(weights=n + sum(1 for _ in weights), uncertainty=n)


def _chunk(
    first: int, error: Floats, uncertainty: Floats, weights: tuple[Any, ...] | None
) -> Chunk:
    """Check the shapes, flatten the points, take the norm of vectors."""
    vector = checks.shapes(f"function {first}", error.shape[1:], uncertainty.shape[1:])
    n, points = uncertainty.shape[0], prod(uncertainty.shape[1:])
    if vector:
        flat = error.reshape(n, points, error.shape[-1])
        for i in np.flatnonzero(~np.isfinite(flat).all(axis=(1, 2))):
            checks.finite_error(f"function {first + i}", flat[i])
        # hypot neither overflows nor underflows where squares would.
        error = np.hypot.reduce(flat, axis=-1, dtype=np.float64)
    else:
        error = error.reshape(n, points)
    checked = None
    if weights is not None:
        each = enumerate(weights, first)
        checked = tuple(checks.weights(f"function {i}", w, points) for i, w in each)
    return Chunk(first, error, uncertainty.reshape(n, points), checked)
