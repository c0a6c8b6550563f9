"""The base of all networks: registered by being defined, built again from its `config`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from uqno.operators.latent import LatentGrid
from uqno.types import Reals, Sample

OPERATORS: dict[str, type[NeuralOperator]] = {}
"""Every network that can be built again from its `config`, by the name of its class."""


class NeuralOperator(nn.Module):
    """A network that maps functions to functions, and can be saved and built again by its name.

    A subclass needs no more than `__init__` and `forward`. `forward` takes fields of a batch, by
    the names of its arguments, and answers (batch, channel, *points); `uqno.operators.Operator`
    calls it so. Where an argument is called `queries`, the network can answer there too.

    Being defined, a subclass is entered in `OPERATORS` under the name of its class: a saved model
    finds it there. Arguments of the constructor are numbers, text, None, or lists and dicts of
    such; they are recorded in `config` without a line of code.

    For last-layer Laplace a subclass also has `features`, with the arguments of `forward` and the
    answer (batch, hidden, *points), and `last`, the `nn.Linear` that makes the answer of it.

    Attributes:
        config: the arguments of the constructor, defaults included, as JSON holds them.
        latent: the grid that a network on geometries works on; None for functions on grids.
        answers_depend_on_points: whether the answer at one point of a sample without `queries`
            depends on where its other points are; None for "if it takes the field `points`". Such
            a network cannot be calibrated with sampling="iid" at these points.
        keeps_zero: whether an answer of 0 means 0 in the units of the data: what it answers is then
            scaled by the size of the truths, and not moved by their mean.

    Example:
        >>> class Pointwise(NeuralOperator):
        ...     def __init__(self, in_channels: int, out_channels: int) -> None:
        ...         super().__init__()
        ...         self.layer = nn.Linear(in_channels, out_channels)
        ...
        ...     def forward(self, a: Tensor) -> Tensor:
        ...         return self.layer(a.movedim(1, -1)).movedim(-1, 1)
        >>> Pointwise(1, 2).like(3, 4).config
        {'in_channels': 3, 'out_channels': 4}
    """

    config: dict[str, Any]
    latent: LatentGrid | None = None
    answers_depend_on_points: bool | None = None
    keeps_zero: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = _recording(cls.__init__)  # type: ignore[method-assign]
        register(OPERATORS, cls.__name__, cls)

    def like(self, inputs: int, outputs: int) -> NeuralOperator:
        """An untrained network of the same kind for other channels, without dropout.

        Args:
            inputs: channels of what it takes.
            outputs: channels of its answer.

        Returns:
            A network with the same `config` but for `in_channels`, `out_channels` and `dropout`.

        Raises:
            ValueError: The constructor has no `in_channels` and `out_channels`.
        """
        return self._with(in_channels=inputs, out_channels=outputs)

    def axes(self, shape: Sequence[int]) -> tuple[Reals, ...]:
        """The coordinates of a grid of that shape, in each dimension; the unit box by default."""
        return unit_axes(shape)

    @property
    def dimensions(self) -> int | None:
        """Of the grids that it takes; None where any will do, and for geometries."""
        return None

    def prepare(self, sample: Sample) -> dict[str, Tensor]:
        """The sample with what is computed once and then belongs to it, such as neighbours."""
        return dict(sample)

    def collate(self, samples: Sequence[Sample]) -> dict[str, Tensor]:
        """Prepared samples as a batch; stacked by default, so all of one shape."""
        return stack(samples)

    def _with(self, **channels: int) -> NeuralOperator:
        missing = sorted(channels.keys() - self.config.keys())
        if missing:
            raise ValueError(
                f"the constructor of {type(self).__name__} has no {' and '.join(missing)}, so "
                "another one with other channels cannot be built: define its method "
                "like(inputs, outputs)"
            )
        without_dropout = {"dropout": 0.0} if "dropout" in self.config else {}
        return type(self)(**{**self.config, **channels, **without_dropout})


def unit_axes(shape: Sequence[int]) -> tuple[Reals, ...]:
    """Equally spaced coordinates in [0, 1] of each dimension, both ends included."""
    return tuple(np.linspace(0.0, 1.0, n) for n in shape)


def register(registry: MutableMapping[str, Any], name: str, kind: type) -> None:
    """Enter a class under a name; a class that is defined anew replaces itself.

    Raises:
        ValueError: Another class has the name.
    """
    there = registry.get(name)
    if there is not None and _full_name(there) != _full_name(kind):
        raise ValueError(
            f"{name!r} is the name of {_full_name(there)}, so {_full_name(kind)} needs another: "
            "saved models find a class by its name"
        )
    registry[name] = kind


def stack(samples: Sequence[Sample]) -> dict[str, Tensor]:
    """Samples of one shape as a batch with a leading axis.

    Raises:
        ValueError: They differ in channels or resolution.
    """
    batch = {}
    for field, first in samples[0].items():
        for i, sample in enumerate(samples):
            shape, expected = tuple(sample[field].shape), tuple(first.shape)
            if shape == expected:
                continue
            if shape[0] != expected[0]:
                problem, remedy = "channels", "give every sample the same channels"
            else:
                problem = "resolutions"
                remedy = "train with batch_size=1, or bring the samples to one resolution"
            raise ValueError(
                f"mixed {problem} in one batch: '{field}' is {expected} in sample 0 and {shape} "
                f"in sample {i}; {remedy}"
            )
        batch[field] = torch.stack([sample[field] for sample in samples])
    return batch


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _recording(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that first records its arguments; that of a parent class finds them there."""

    signature = inspect.signature(init)

    @wraps(init)
    def recorded(self: NeuralOperator, *arguments: Any, **named: Any) -> None:
        if "config" not in self.__dict__:
            try:
                bound = signature.bind(self, *arguments, **named)
            except TypeError:
                init(self, *arguments, **named)  # it says best what is wrong
                raise
            bound.apply_defaults()
            object.__setattr__(self, "config", _as_json(type(self), bound))
        init(self, *arguments, **named)

    return recorded


def _as_json(cls: type, bound: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments of a constructor by name, without `self`, as JSON holds them."""
    config: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL and value:
            raise TypeError(
                f"{cls.__name__}(*{name}) has arguments without a name, which cannot be saved: "
                "give each a name"
            )
        if kind is inspect.Parameter.VAR_KEYWORD:
            config |= {key: _plain(cls, key, each) for key, each in value.items()}
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            config[name] = _plain(cls, name, value)
    return config


def _plain(cls: type, name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy and torch
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(cls, name, each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_plain(cls, name, each) for each in value]
    raise TypeError(
        f"the argument {name} of {cls.__name__} is a {type(value).__name__}, which JSON cannot "
        "hold: take numbers, text, None, lists or dicts, or derive from torch.nn.Module instead"
    )
