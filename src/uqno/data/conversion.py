"""One function as a sample: tensors with a channel axis, of the operator's precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from uqno.data.fields import Names, check_names
from uqno.types import Sample

Channels = Literal["first", "last"]
# Fields that are numbers to compute with even where they are stored as whole numbers.
ALWAYS_FLOATS = ("a", "u", "weights")


@dataclass(frozen=True)
class Form:
    """What an operator on grids takes, as far as it is known; None for what is not.

    Args:
        channels: of its input.
        dimensions: of its grid.
        dtype: of its weights.
    """

    channels: int | None = None
    dimensions: int | None = None
    dtype: torch.dtype | None = None


@dataclass(frozen=True)
class Converter:
    """Turns what a data set holds of one function into a sample of tensors.

    Args:
        form: what the operator takes.
        channels: where the channels of `a` and `u` stand.
        inputs, outputs: the names that `a` and `u` have in dicts.
        truth: whether `u` is needed.
    """

    form: Form
    channels: Channels
    inputs: Names
    outputs: Names
    truth: bool

    def __post_init__(self) -> None:
        for role, names in (("inputs", self.inputs), ("outputs", self.outputs)):
            check_names(role, names)

    def __call__(self, i: int, item: Any) -> Sample:
        """Function i as a sample."""
        fields = self._named(i, item)
        sample = as_tensors(fields, self.form.dtype, i)
        if "a" in sample:
            sample = {**sample, **self._shaped(i, sample)}
        return sample

    def _named(self, i: int, item: Any) -> Mapping[str, Any]:
        """The fields of one function by their names."""
        if not isinstance(item, Mapping):
            if isinstance(item, tuple | list) and len(item) in (1, 2):
                item = dict(zip(("a", "u"), item, strict=False))
            elif is_array(item):
                item = {"a": item}
            else:
                what = f"{len(item)} parts" if isinstance(item, tuple | list) else type(item)
                raise ValueError(f"sample {i} has {what}: expected a dict, or a pair (a, u)")
        fields: dict[str, Any] = dict(item)
        for role, names in (("a", self.inputs), ("u", self.outputs)):
            if names is None:
                continue
            wanted = [names] if isinstance(names, str) else list(names)
            missing = [name for name in wanted if name not in fields]
            if missing:
                raise ValueError(
                    f"sample {i} has no field {missing[0]!r}: it has {', '.join(sorted(fields))}"
                )
            if len(wanted) > 1:
                raise ValueError(f"a dict has one field for {role}, got {wanted}: stack them first")
            fields[role] = fields.pop(wanted[0])
        unknown = "a" not in fields and "points" not in fields
        if unknown or (self.truth and "u" not in fields):
            raise ValueError(
                f"sample {i} has the fields {', '.join(sorted(map(str, fields))) or 'none'}: "
                f"expected {'the input a (or points)' if unknown else 'the truth u'}; name them "
                'with inputs="…" and outputs="…", or call them a and u'
            )
        return fields

    def _shaped(self, i: int, sample: Sample) -> dict[str, Tensor]:
        """`a` and `u` as (channel, *grid)."""
        both = {name: sample[name] for name in ("a", "u") if name in sample}
        if "points" in sample:
            return both
        if self.channels == "last":
            both = {name: x.movedim(-1, 0) for name, x in both.items() if x.ndim}
        a, d = both["a"], self.form.dimensions
        if a.ndim == (1 if d is None else d):
            a = a[None]
        if a.ndim < 2 or (d is not None and a.ndim != d + 1):
            raise ValueError(
                f"a of sample {i} has shape {tuple(a.shape)}, expected (channel, *grid) with "
                f"{1 if d is None else d} grid dimensions: give arrays (functions, channel, *grid)"
            )
        self._check_channels(i, a)
        both["a"] = a
        if "u" in both:
            both["u"] = self._truth(i, a, both["u"])
        return both

    def _check_channels(self, i: int, a: Tensor) -> None:
        expected = self.form.channels
        if expected is None or a.shape[0] == expected:
            return
        last = a.shape[-1] == expected and self.channels == "first"
        remedy = (
            'where channels stand after the grid, pass uqno.data.as_samples(data, channels="last")'
            if last
            else f"give {expected} channels, or an operator with in_channels={a.shape[0]}"
        )
        raise ValueError(
            f"a of sample {i} has shape {tuple(a.shape)}, that is {a.shape[0]} channels, but the "
            f"operator takes {expected}: {remedy}"
        )

    def _truth(self, i: int, a: Tensor, u: Tensor) -> Tensor:
        grid = tuple(a.shape[1:])
        if tuple(u.shape) == grid:
            return u[None]
        if tuple(u.shape[1:]) == grid:
            return u
        swapped = tuple(u.shape[1:]) == grid[::-1] or tuple(u.shape) == grid[::-1]
        last = tuple(u.shape[:-1]) == grid
        if swapped or last:
            remedy = (
                "transpose one of them, its axes are swapped"
                if swapped
                else "where the channels of both stand after the grid, pass "
                'uqno.data.as_samples(data, channels="last")'
            )
            raise ValueError(
                f"u of sample {i} has shape {tuple(u.shape)}, a {tuple(a.shape)}: expected "
                f"(channel, *grid) on the grid {grid} of a; {remedy}"
            )
        return u


def as_tensors(fields: Mapping[str, Any], dtype: torch.dtype | None, i: int = 0) -> Sample:
    """The fields of a sample, or of a batch, as tensors.

    Args:
        fields: arrays by name, of NumPy or torch; None is left out.
        dtype: of floats; None leaves them. Points of a surface stay as they are, for what follows
            from its triangles is computed from them.
        i: the number of the sample, for messages.
    """
    given = {name: x for name, x in fields.items() if x is not None}
    exact = ("points",) if "triangles" in given else ()
    return {
        name: _tensor(name, i, x, None if name in exact else dtype) for name, x in given.items()
    }


def _tensor(name: str, i: int, value: Any, dtype: torch.dtype | None) -> Tensor:
    """A field as a tensor; floats, and what is always one, of the precision asked for."""
    field: Tensor = value if isinstance(value, Tensor) else _from_numpy(name, i, value)
    if field.is_complex():
        raise ValueError(
            f"field {name!r} of sample {i} is complex: give real and imaginary part as two channels"
        )
    if field.is_floating_point():
        half = field.dtype in (torch.float16, torch.bfloat16)
        return field if dtype is None and not half else field.to(dtype or torch.float32)
    return field.to(dtype or torch.float32) if name in ALWAYS_FLOATS else field


def _from_numpy(name: str, i: int, value: Any) -> Tensor:
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"field {name!r} of sample {i} has masked values: fill or leave them out")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError, LookupError) as why:
        raise ValueError(f"field {name!r} of sample {i} is no array: {why}") from None
    if array.dtype.kind not in "fiubc":
        raise ValueError(
            f"field {name!r} of sample {i} has dtype {array.dtype}, expected real numbers"
        )
    # torch knows no numbers of more than 64 bits, nor C's "long long" beside NumPy's int64.
    kind, size = array.dtype.kind, min(array.dtype.itemsize, 16 if array.dtype.kind == "c" else 8)
    native = array.astype(np.dtype(f"={kind}{size}"), copy=False)
    as_is = native.flags.writeable and all(step >= 0 for step in native.strides)
    return torch.from_numpy(native if as_is else native.copy())


def is_array(data: Any) -> bool:
    """Whether it is an array of NumPy, torch, xarray or alike."""
    return hasattr(data, "shape") and hasattr(data, "dtype") and hasattr(data, "__getitem__")
