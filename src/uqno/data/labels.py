"""What a file says of its axes: names, coordinates, units; they go with a function to its band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from uqno.types import Array, Floats


class Coordinate(NamedTuple):
    """A coordinate of any kind: along one dimension, over several, or a single value."""

    dims: tuple[str, ...]
    values: Array
    attributes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Labels:
    """The names and coordinates of a function on a grid, or of several on one grid.

    Args:
        points: the names of the grid's dimensions, in the order of its axes, such as ("y", "x").
        function: the name of the dimension that counts the functions, such as "time"; None for
            one function.
        coordinates: by name, those of the grid and of the functions, as they were given: any
            order, any type.
        attributes: of the file as a whole.

    >>> y = Coordinate(("y",), np.array([20.0, 10.0, 0.0]), {"units": "m"})
    >>> Labels(("y", "x"), None, {"y": y}).axes(([0, 0.5, 1], [0, 1]))
    (array([20., 10.,  0.]), [0, 1])
    """

    points: tuple[str, ...]
    function: str | None = None
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def axes(self, otherwise: tuple[Any, ...]) -> tuple[Any, ...]:
        """The coordinates along each dimension of the grid, as numbers.

        Args:
            otherwise: taken for a dimension whose coordinates are absent, or neither increase nor
                decrease.
        """
        pairs = zip(self.points, otherwise, strict=True)
        return tuple(self._numbers(name, axis) for name, axis in pairs)

    def _numbers(self, name: str, otherwise: Any) -> Any:
        given = self.coordinates.get(name)
        if given is None or given.dims != (name,):
            return otherwise
        numbers = as_numbers(given.values)
        if numbers is None or len(numbers) != len(otherwise) or not is_monotone(numbers):
            return otherwise
        return numbers

    def of(self, which: int | slice) -> Labels:
        """The labels of one function of several, or of a slice of them."""
        if self.function is None:
            return self
        chosen = {}
        for name, one in self.coordinates.items():
            if self.function not in one.dims:
                chosen[name] = one
                continue
            axis = one.dims.index(self.function)
            index = (*(slice(None) for _ in range(axis)), which)
            left = one.dims if isinstance(which, slice) else _without(one.dims, self.function)
            chosen[name] = Coordinate(left, np.asarray(one.values[index]), one.attributes)
        function = self.function if isinstance(which, slice) else None
        return replace(self, coordinates=chosen, function=function)

    def scattered(self) -> Labels:
        """The labels of points anywhere: the names of their coordinates, and what is not of the
        grid."""
        left = {n: one for n, one in self.coordinates.items() if not set(one.dims) & {*self.points}}
        return replace(self, coordinates=left)

    def at_resolution(self, shape: tuple[int, ...]) -> Labels:
        """The labels on a grid with the same ends and other numbers of points."""
        chosen = dict(self.scattered().coordinates)
        for name, size in zip(self.points, shape, strict=True):
            one = self.coordinates.get(name)
            numbers = None if one is None or one.dims != (name,) else as_numbers(one.values)
            if one is None or numbers is None:
                continue
            places = np.linspace(0, len(numbers) - 1, size)
            between = np.interp(places, np.arange(len(numbers)), numbers)
            values = between if one.values.dtype.kind in "fiu" else _as_times(between, one.values)
            chosen[name] = Coordinate((name,), values, one.attributes)
        return replace(self, coordinates=chosen)


def as_numbers(values: Array) -> Floats | None:
    """Coordinates as floats: times in seconds from the first; None for what is not ordered."""
    if values.ndim != 1 or not len(values):
        return None
    if values.dtype.kind in "mM":
        return np.asarray((values - values[0]) / np.timedelta64(1, "s"), dtype=np.float64)
    return np.asarray(values, dtype=np.float64) if values.dtype.kind in "fiu" else None


def is_monotone(numbers: Floats) -> bool:
    """Whether they strictly increase or strictly decrease."""
    steps = np.diff(numbers)
    return bool((steps > 0).all() or (steps < 0).all())


def _as_times(seconds: Floats, like: Array) -> Array:
    return np.asarray(like[0] + np.rint(seconds * 1e9).astype("timedelta64[ns]"))


def _without(dims: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(d for d in dims if d != name)
