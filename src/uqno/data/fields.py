"""Variables of a file as the inputs and outputs of functions: `FieldSamples`.

A name may choose steps in time: "u[0]" is the first, "u[-1]" the last, "u[:10]" the first ten,
which become channels. Of a variable whose dimensions have names, one counts the functions
(`functions=`, or one called function, sample, trajectory, …, or the first), `channel` and
`component` are channels and the others are the grid. Of one without names the first dimension
counts the functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.conformal import checks
from uqno.data.labels import Coordinate, Labels
from uqno.data.variables import Content, Variable
from uqno.memory import check_memory
from uqno.types import Array

if TYPE_CHECKING:
    from torch import Tensor

Names = str | Sequence[str] | None
CHANNELS = ("channel", "channels", "component", "components", "variable", "feature")
FUNCTIONS = (
    *("function", "functions", "sample", "samples", "trajectory", "simulation", "case", "member"),
    *("realization", "realisation", "batch", "run"),
)  # fmt: skip
TIMES = ("time", "t", "step")
# (inputs, outputs) as published sets and this library call them.
PAIRS = (("a", "u"), ("x", "y"), ("coeff", "sol"), ("input", "output"), ("inputs", "outputs"))
MOST_DIMENSIONS = 3

_STEPS = re.compile(r"(.+)\[(-?\d+|-?\d*:-?\d*)\]")


@dataclass(frozen=True, eq=False)
class Field:
    """A variable as it is read, function by function.

    Args:
        variable: what is read.
        function: the axis that counts the functions; None where all share one.
        time: the axis that `steps` chooses from; None for none.
        steps: a step or a slice of them.
        order: the axes that are left, channels first, then the grid; None to leave them.
        channels: how many of these are channels.
        grid: the names of the grid's dimensions; None where they have none.
    """

    variable: Variable
    function: int | None
    time: int | None
    steps: int | slice
    order: tuple[int, ...] | None
    channels: int
    grid: tuple[str, ...] | None

    def read(self, i: int) -> Array:
        """Function i, (channel, *grid), or as the file has it where dimensions have no names."""
        index: list[int | slice] = [slice(None)] * len(self.variable.shape)
        if self.function is not None:
            index[self.function] = i
        if self.time is not None:
            index[self.time] = self.steps
        sizes = (
            len(range(*at.indices(n))) if isinstance(at, slice) else 1
            for n, at in zip(self.variable.shape, index, strict=True)
        )
        what = f"one function of {self.variable.name}"
        check_memory(what, prod(sizes) * self.variable.dtype.itemsize, "store it at fewer points")
        try:
            values = np.asarray(self.variable.values[tuple(index)])
        except Exception as why:  # a damaged chunk, whatever the store calls it
            raise ValueError(
                f"function {i} of {self.variable.name} cannot be read: {type(why).__name__}: {why}"
            ) from why
        if self.order is None:
            return values
        values = values.transpose(self.order)
        return values.reshape(-1, *values.shape[self.channels :])


def check_names(role: str, names: Any) -> None:
    """Refuse what is neither None, a name, nor several."""
    several = list(names) if isinstance(names, tuple | list) else [names]
    if names is not None and not (several and all(isinstance(one, str) for one in several)):
        raise ValueError(
            f"{role} = {checks.shown(names)} must be the name of a variable, or a list of names"
        )


def chosen(names: Names, content: Content, role: str, others: bool = False) -> tuple[str, ...]:
    """The names of a role: as given, by the file's layout, or by what such variables are called.

    Args:
        names: one, several, or None.
        content: where they are looked up.
        role: "inputs" or "outputs".
        others: whether the other role has a file of its own, so that a lone variable is clear.
    """
    if names is not None:
        return (names,) if isinstance(names, str) else tuple(names)
    by_layout: tuple[str, ...] = getattr(content, role)
    if by_layout:
        return by_layout
    here = 0 if role == "inputs" else 1
    for pair in PAIRS:
        if pair[here] in content.variables and (others or pair[1 - here] in content.variables):
            return (pair[here],)
    if len(content.variables) == 1 and (others or role == "inputs"):
        return tuple(content.variables)
    raise ValueError(
        f"which variables of {content.source} are the {role}? It has {content.names()}: name them "
        f'with {role}="…"'
    )


def field_of(
    content: Content, name: str, functions: str | None = None, dimensions: int | None = None
) -> Field:
    """How a variable is read.

    Args:
        content: where it is.
        name: of the variable, with its steps in brackets.
        functions: the dimension that counts the functions.
        dimensions: of the grid, where they are known; a variable may then be one function.
    """
    match = _STEPS.fullmatch(name) if name not in content.variables else None
    variable = content[match[1] if match else name]
    if not variable.shape:
        raise ValueError(f"{content.source}: {name} is a single number, expected functions")
    if variable.dims is None:
        time, steps = _steps(match, 1, variable, content)
        if functions is not None:
            raise ValueError(
                f"functions={functions!r}: the dimensions of {variable} have no names, its first "
                "one counts the functions"
            )
        return Field(variable, 0, time, steps, None, 0, None)
    dims = variable.dims
    when = next((d for d in dims if d in TIMES), None) if match else None
    if match and when is None:
        raise ValueError(f"{content.source}: {name} chooses steps, but {variable} has no time")
    time, steps = _steps(match, dims.index(when) if when else 0, variable, content)
    left = [d for d in dims if not (d == when and isinstance(steps, int))]
    channels = [d for d in left if d in CHANNELS or d == when]
    grid = [d for d in left if d not in channels]
    function = _function_dim(content, variable, grid, functions, dimensions)
    grid = [d for d in grid if d != function]
    if len(grid) > MOST_DIMENSIONS or (dimensions is not None and len(grid) != dimensions):
        wanted = MOST_DIMENSIONS if dimensions is None else dimensions
        raise ValueError(
            f"{content.source}: {variable} leaves a grid of {len(grid)} dimensions "
            f"({', '.join(grid) or 'none'}), expected {wanted}: choose a step with "
            f'"{variable.name}[0]", say functions="…", or call channels "channel"'
        )
    read = [d for d in left if d != function]
    order = tuple(read.index(d) for d in (*channels, *grid))
    axis = None if function is None else dims.index(function)
    return Field(variable, axis, time, steps, order, len(channels), tuple(grid))


def _steps(
    match: re.Match[str] | None, axis: int, variable: Variable, content: Content
) -> tuple[int | None, int | slice]:
    """The axis of time and what is taken of it."""
    if match is None:
        return None, 0
    if axis >= len(variable.shape):
        raise ValueError(f"{content.source}: {variable} has no dimension of time to choose from")
    size, text = variable.shape[axis], match[2]
    if ":" in text:
        start, stop = (int(part) if part else None for part in text.split(":"))
        first, last, _ = slice(start, stop).indices(size)
        if first >= last:
            raise ValueError(f"{content.source}: [{text}] of {variable} is empty, it has {size}")
        return axis, slice(first, last)
    step = int(text)
    if not -size <= step < size:
        raise ValueError(f"{content.source}: {variable} has {size} steps in time, not step {step}")
    return axis, step % size


def _function_dim(
    content: Content,
    variable: Variable,
    dims: Sequence[str],
    functions: str | None,
    dimensions: int | None,
) -> str | None:
    if functions is not None:
        if functions not in (variable.dims or ()):
            return None  # the same for all functions
        return functions
    named = [d for d in dims if d in FUNCTIONS]
    if named:
        return named[0]
    if dimensions is not None and len(dims) <= dimensions:
        return None
    if not dims:
        raise ValueError(f"{content.source}: {variable} has no dimension that counts functions")
    return dims[0]


class FieldSamples:
    """Functions of one or two files as a sequence of samples, each read when it is asked for.

    Args:
        inputs: the fields of a, whose channels stand one after the other.
        outputs: the fields of u; none where only the inputs are known.
        labels: of the grid and the functions, where dimensions have names.
    """

    def __init__(
        self,
        inputs: Sequence[Field],
        outputs: Sequence[Field] = (),
        labels: Labels | None = None,
    ) -> None:
        self.inputs, self.outputs, self.labels = tuple(inputs), tuple(outputs), labels
        sizes = {
            f.variable.name: f.variable.shape[f.function]
            for f in (*self.inputs, *self.outputs)
            if f.function is not None
        }
        if len(set(sizes.values())) > 1:
            raise ValueError(
                "inputs and outputs must have equally many functions, got "
                + ", ".join(f"{n} of {name}" for name, n in sizes.items())
            )
        self.single = not sizes
        self._size = next(iter(sizes.values()), 1)

    @property
    def name(self) -> str:
        """Of the outputs; "u" where it is unknown."""
        return self.outputs[0].variable.name if len(self.outputs) == 1 else "u"

    @property
    def units(self) -> str:
        """Of the outputs; empty where they differ or are unknown."""
        every = {str(f.variable.attributes.get("units", "")) for f in self.outputs}
        return every.pop() if len(every) == 1 else ""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        import torch

        return {name: torch.tensor(x) for name, x in self.read(i).items()}

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        return (self[i] for i in range(len(self)))

    def read(self, i: int) -> dict[str, Array]:
        """Function i as arrays: a, and u where there are outputs."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"function {i} is not among the {len(self)}")
        i %= len(self)
        sample = {"a": _together([f.read(i) for f in self.inputs])}
        if self.outputs:
            sample["u"] = _together([f.read(i) for f in self.outputs])
        return sample


def _together(parts: list[Array]) -> Array:
    """Channels one after the other; parts without a channel axis are a channel each."""
    floats = [x if x.dtype in (np.float32, np.float64) else x.astype(np.float32) for x in parts]
    if len(floats) == 1:
        return np.ascontiguousarray(floats[0]).astype(floats[0].dtype.newbyteorder("="), copy=False)
    shapes = {x.shape[1:] for x in floats}
    has_channels = all(x.shape[0] == 1 for x in floats) or len({x.shape for x in floats}) > 1
    if len(shapes) > 1:
        raise ValueError(
            f"variables of one function have the shapes {[x.shape for x in floats]}: expected the "
            "same grid"
        )
    return np.concatenate(floats) if has_channels else np.stack(floats)


def select(
    content: Content,
    inputs: Names = None,
    outputs: Names = None,
    *,
    other: Content | None = None,
    functions: str | None = None,
    dimensions: int | None = None,
    truth: bool = True,
) -> FieldSamples:
    """Variables of one file, or inputs of one and outputs of another, as samples.

    Args:
        content: of the file with the inputs, and with the outputs unless there is another.
        inputs, outputs: names of variables.
        other: the content of the file with the outputs.
        functions: the dimension that counts the functions.
        dimensions: of the grid, where they are known.
        truth: whether outputs are needed.
    """
    there = content if other is None else other
    a_names = chosen(inputs, content, "inputs", other is not None or not truth)
    u_names: tuple[str, ...] = ()
    if truth or outputs is not None:
        u_names = chosen(outputs, there, "outputs", other is not None)
    if other is None:
        both = _fields(content, (*a_names, *u_names), functions, dimensions)
        a, u = both[: len(a_names)], both[len(a_names) :]
    else:
        a = _fields(content, a_names, functions, dimensions)
        u = _fields(other, u_names, functions, dimensions)
    first = a[0].grid
    ordered = [_in_order(f, first, content) for f in (*a, *u)]
    labels = None if first is None else _labels(content, ordered[: len(a)])
    return FieldSamples(ordered[: len(a)], ordered[len(a) :], labels)


def _fields(
    content: Content, names: Sequence[str], functions: str | None, dimensions: int | None
) -> list[Field]:
    """Fields of one file; a dimension that counts functions in one of them does so in all."""
    fields = [field_of(content, name, functions, dimensions) for name in names]
    dims = [
        f.variable.dims[f.function] for f in fields if f.variable.dims and f.function is not None
    ]
    counted = next((d for d in dims if d in FUNCTIONS), dims[0] if dims else None)
    if functions is not None or counted is None:
        return fields
    return [
        one if one.variable.dims is None else field_of(content, name, counted, dimensions)
        for name, one in zip(names, fields, strict=True)
    ]


def _in_order(one: Field, grid: tuple[str, ...] | None, content: Content) -> Field:
    """The field with the dimensions of its grid in the order of another's."""
    if grid is None or one.grid is None or one.grid == grid or one.order is None:
        return one
    if sorted(one.grid) != sorted(grid):
        raise ValueError(
            f"{content.source}: {one.variable} is on the grid ({', '.join(one.grid)}), the input "
            f"on ({', '.join(grid)}): expected the same grid; choose steps or interpolate first"
        )
    axes = one.order[one.channels :]
    order = (*one.order[: one.channels], *(axes[one.grid.index(d)] for d in grid))
    return replace(one, order=order, grid=grid)


def _labels(content: Content, inputs: Sequence[Field]) -> Labels:
    first = inputs[0]
    dims: Any = first.variable.dims
    function = None if first.function is None else dims[first.function]
    own = {*(first.grid or ()), *([] if function is None else [function])}
    coordinates = {}
    for name, one in content.coordinates.items():
        if first.time is not None and one.dims == (dims[first.time],):
            if isinstance(first.steps, int):  # the time that was chosen
                coordinates[name] = Coordinate((), one.values[first.steps], one.attributes)
        elif set(one.dims) <= own:
            coordinates[name] = one
    return Labels(first.grid or (), function, coordinates, content.attributes)
