"""What a file of fields holds: variables by name, their dimensions and coordinates, not read yet.

Every reader of a file answers with a `Content`; so does `from_dataset` for xarray.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.data.labels import Coordinate
from uqno.memory import check_memory
from uqno.types import Array

if TYPE_CHECKING:
    import xarray

MOST_NAMES = 12


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable that is read when it is sliced.

    Args:
        name: as one asks for it.
        values: has `shape`, `dtype` and can be indexed with a tuple of numbers and slices: NumPy,
            an HDF5 data set, a variable of xarray.
        dims: the names of its dimensions, where the file has them.
        attributes: such as units.
    """

    name: str
    values: Any
    dims: tuple[str, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return tuple(int(n) for n in self.values.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its values."""
        dtype: np.dtype[Any] = np.dtype(self.values.dtype)
        return dtype

    def __str__(self) -> str:
        if self.dims is None:
            return f"{self.name} {self.shape}"
        sizes = (f"{name}: {size}" for name, size in zip(self.dims, self.shape, strict=True))
        return f"{self.name} ({', '.join(sizes)})"


@dataclass(frozen=True, eq=False)
class Content:
    """The variables and coordinates of a file.

    Args:
        source: the file, to name in messages.
        variables: fields by name.
        coordinates: by name.
        attributes: of the file as a whole.
        inputs, outputs: the variables that the layout of the file gives these roles.
        layout: what the file is, in words.
    """

    source: str
    variables: Mapping[str, Variable]
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    layout: str = ""

    def __getitem__(self, name: str) -> Variable:
        """The variable of that name.

        Raises:
            ValueError: there is none, or it holds no real numbers.
        """
        if name not in self.variables:
            raise ValueError(f"{self.source} has no variable {name!r}: it has {self.names()}")
        variable = self.variables[name]
        if variable.dtype.kind not in "fiub":
            complex_ = "; store real and imaginary part as two variables"
            raise ValueError(
                f"{self.source}: {name} is of {variable.dtype}, expected real numbers"
                + (complex_ if variable.dtype.kind == "c" else "")
            )
        return variable

    def names(self) -> str:
        """Its variables with their shapes, to list in a message."""
        listed = [str(v) for v in list(self.variables.values())[:MOST_NAMES]]
        more = len(self.variables) - len(listed)
        return (", ".join(listed) or "none") + (f" and {more} more" if more > 0 else "")


def from_dataset(dataset: xarray.Dataset, source: str = "the Dataset") -> Content:
    """An xarray Dataset as content; nothing of its variables is read."""
    coordinates = {
        str(name): Coordinate(_names(one.dims), np.asarray(one.values), dict(one.attrs))
        for name, one in dataset.coords.items()
    }
    variables = {
        str(name): Variable(str(name), one.variable, _names(one.dims), dict(one.attrs))
        for name, one in dataset.data_vars.items()
    }
    return Content(source, variables, coordinates, dict(dataset.attrs))


def read_whole(values: Any, what: str) -> Array:
    """A variable that is needed as a whole, such as a coordinate.

    Raises:
        ValueError: it declares more than the memory budget.
    """
    check_memory(what, np.dtype(values.dtype).itemsize * prod(values.shape))
    return np.asarray(values[...])


def _names(dims: Any) -> tuple[str, ...]:
    return tuple(str(d) for d in dims)
