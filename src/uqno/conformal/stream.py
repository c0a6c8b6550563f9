"""Errors and uncertainties of many functions, handed on a few at a time, whatever they come in.

Arrays (NumPy, zarr, h5py, xarray, a torch tensor on the CPU), lists of arrays of different
lengths, or iterators: each becomes a stream of blocks, and only one block is looked at at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat, zip_longest
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.conformal import checks
from uqno.types import Floats

# Values a block: small functions of an array go together, so that NumPy's overhead is shared.
BLOCK_VALUES = 2**16
_MISSING = object()


@dataclass(frozen=True)
class Block:
    """A few functions with the same number of points."""

    first: int
    """Index of the first function."""
    error: Floats
    """2-norms of the errors, or signed scalar errors, (functions, points)."""
    uncertainty: Floats
    """(functions, points)."""
    weights: tuple[NDArray[np.float64], ...] | None
    """One (points,) array a function."""

    @property
    def points(self) -> int:
        return int(self.uncertainty.shape[1])

    def names(self) -> Iterator[str]:
        return (f"function {self.first + i}" for i in range(len(self.uncertainty)))


@dataclass(frozen=True)
class Functions:
    """Errors (n, *points[, d]), uncertainties (n, *points), weights (*points) or (n, *points)."""

    error: Any
    uncertainty: Any
    weights: Any = None
    count: int | None = None
    """n as the caller knows it, where iterators cannot tell."""

    def __post_init__(self) -> None:
        for name in ("error", "uncertainty"):
            values = getattr(self, name)
            checks.holds_functions(name, values, tuple(values.shape) if is_array(values) else None)
        known = {name: length(getattr(self, name)) for name in ("error", "uncertainty")}
        known["functions"] = self.count
        checks.same_number(**{name: n for name, n in known.items() if n is not None})
        if is_array(self.error) and is_array(self.uncertainty) and known["uncertainty"]:
            checks.shapes(
                "each function", tuple(self.error.shape[1:]), tuple(self.uncertainty.shape[1:])
            )

    @property
    def number(self) -> int | None:
        """n, where it is known without reading."""
        known = (self.count, length(self.error), length(self.uncertainty))
        return next((n for n in known if n is not None), None)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """Points of each function, where that is known without reading: not for iterators."""
        if is_array(self.uncertainty):
            return (prod(self.uncertainty.shape[1:]),) * int(self.uncertainty.shape[0])
        if isinstance(self.uncertainty, Sequence):
            return tuple(prod(np.shape(r)) for r in self.uncertainty)
        return None

    def blocks(self) -> Iterator[Block]:
        arrays = is_array(self.error) and is_array(self.uncertainty)
        yield from self._array_blocks() if arrays else self._single_blocks()

    def _array_blocks(self) -> Iterator[Block]:
        n = self.uncertainty.shape[0]
        rows = max(1, BLOCK_VALUES // max(1, prod(self.uncertainty.shape[1:])))
        weights = self._each_weights()
        for first in range(0, n, rows):
            where = f"functions {first} to {min(first + rows, n) - 1}"
            uncertainty = checks.real("uncertainty", where, self.uncertainty[first : first + rows])
            error = checks.real("error", where, self.error[first : first + rows])
            yield _block(first, error, uncertainty, weights)
        _exhausted(weights, n)

    def _single_blocks(self) -> Iterator[Block]:
        weights = self._each_weights()
        i = -1
        for i, (e, r) in enumerate(zip_longest(self.error, self.uncertainty, fillvalue=_MISSING)):
            checks.goes_on("error", i, e is not _MISSING)
            checks.goes_on("uncertainty", i, r is not _MISSING)
            where = f"function {i}"
            uncertainty, error = (
                checks.real("uncertainty", where, r),
                checks.real("error", where, e),
            )
            yield _block(i, error[np.newaxis], uncertainty[np.newaxis], weights)
        _exhausted(weights, i + 1)

    def _each_weights(self) -> Iterator[Any] | None:
        """Weights function by function; one set of them may serve all."""
        if self.weights is None:
            return None
        checks.holds_weights(self.weights, np.shape(self.weights) if self._shared() else None)
        each: Iterator[Any] = repeat(self.weights) if self._shared() else iter(self.weights)
        return each

    def _shared(self) -> bool:
        """Whether the weights are of the shape of one function, rather than one set for each."""
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


def is_array(values: Any) -> bool:
    """An array over all functions, in memory or on disk; not an array of Python objects."""
    return hasattr(values, "shape") and getattr(values, "dtype", None) != np.dtype(object)


def length(values: Any) -> int | None:
    """How many functions, where that is known without reading."""
    if is_array(values):
        return int(values.shape[0])
    return len(values) if hasattr(values, "__len__") else None


def _exhausted(weights: Iterator[Any] | None, n: int) -> None:
    if weights is not None and not isinstance(weights, repeat):
        checks.same_number(weights=n + sum(1 for _ in weights), uncertainty=n)


def _block(first: int, error: Floats, uncertainty: Floats, weights: Iterator[Any] | None) -> Block:
    """Check the shapes, flatten the points, take the norm of vectors."""
    vector = checks.shapes(f"function {first}", error.shape[1:], uncertainty.shape[1:])
    n, points = uncertainty.shape[0], prod(uncertainty.shape[1:])
    if vector:
        flat = error.reshape(n, points, error.shape[-1])
        if not np.isfinite(flat).all():
            for i, one in enumerate(flat):
                checks.finite_error(f"function {first + i}", one)
        # hypot neither overflows nor underflows where squares would.
        error = np.hypot.reduce(flat, axis=-1, initial=0.0, dtype=np.float64)
    else:
        error = error.reshape(n, points)
    taken = None
    if weights is not None:
        own = [next(weights, _MISSING) for _ in range(n)]
        for i, w in enumerate(own, first):
            checks.goes_on("weights", i, w is not _MISSING)
        taken = tuple(checks.weights(f"function {first + i}", w, points) for i, w in enumerate(own))
    return Block(first, error, uncertainty.reshape(n, points), taken)
