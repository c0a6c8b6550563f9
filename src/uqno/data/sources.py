"""What people have as samples: arrays, data sets and loaders of torch, xarray, lists of samples.

`as_samples` is the one way in. Nothing is copied as a whole: every function is converted when it is
asked for, to tensors with a channel axis and of the operator's precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from os import PathLike
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, IterableDataset, default_collate

from uqno.conformal import checks
from uqno.data.conversion import Channels, Converter, Form, is_array
from uqno.data.fields import FieldSamples, Names, select
from uqno.data.variables import from_dataset
from uqno.types import Sample, Samples


def as_samples(
    data: Any,
    inputs: Names = None,
    outputs: Names = None,
    *,
    channels: Channels = "first",
    functions: str | None = None,
    form: Form = Form(),  # noqa: B008  frozen
    truth: bool = True,
) -> Samples:
    """Data of any kind as a sequence of samples, dicts of tensors with `a` and `u`.

    Args:
        data: a pair of arrays (a, u), each (functions, channel, *grid), of NumPy or torch, or both
            in a dict; a sequence or a `torch.utils.data.Dataset` of dicts or of pairs (a, u); a
            `DataLoader` of such; an xarray Dataset; a file or a pair of files as `uqno.data.open`
            reads them.
        inputs, outputs: names of variables of a Dataset or a file, or of the fields of dicts.
        channels: whether the channels of arrays stand before the grid ("first") or after it
            ("last").
        functions: the dimension of a Dataset that counts the functions.
        form: what the operator takes.
        truth: whether every sample needs `u`.

    Returns:
        Samples that are converted when they are asked for. A channel axis that is missing is
        added where that is clear; floats get the precision of the operator.

    Raises:
        ValueError: what does not fit, and what to do.
    """
    if not isinstance(channels, str) or channels not in ("first", "last"):
        raise ValueError(f'channels = {checks.shown(channels)}, expected "first" or "last"')
    convert = Converter(form, channels, inputs, outputs, truth)
    if is_labelled(data):
        content = from_dataset(data)
        data = select(
            content, inputs, outputs, functions=functions, dimensions=form.dimensions, truth=truth
        )
    elif is_file(data):
        from uqno.data.opening import open as open_file

        data = open_file(data, inputs, outputs, functions=functions)
    if isinstance(data, FieldSamples):
        labelled = data.labels is not None  # then channels stand first, whatever the file has
        names = Converter(form, "first" if labelled else channels, None, None, truth)
        return Converted(data, names)
    if isinstance(data, DataLoader):
        return Converted(_map_style(data), convert)
    if isinstance(data, Mapping):
        return Converted(
            _pair_of(data, inputs, outputs), replace(convert, inputs=None, outputs=None)
        )
    if _is_pair(data):
        return Converted(ArrayPair(*data), convert)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not is_array(data):
        return Converted(data, convert)
    raise ValueError(
        f"data of type {type(data).__name__} cannot be read as functions: give a pair of arrays "
        "(a, u), a sequence of samples {'a': …, 'u': …} or of pairs (a, u), a Dataset or "
        "DataLoader of torch, or an xarray Dataset with inputs= and outputs="
    )


def as_stream(data: Any, *names: Names, **options: Any) -> Iterable[Sample] | Samples:
    """`as_samples` to be read once and in order: a `DataLoader` is iterated as it is.

    Args:
        data: as in `as_samples`.
        names, options: its other arguments.
    """
    if isinstance(data, DataLoader):
        options.pop("functions", None)
        channels, form = options.get("channels", "first"), options.get("form", Form())
        inputs, outputs = (*names, None, None)[:2]
        convert = Converter(form, channels, inputs, outputs, options.get("truth", True))
        return Streamed(data, convert)
    return as_samples(data, *names, **options)


def each(data: Any) -> Iterator[Sample]:
    """The samples in order: of a sequence by their numbers, of a stream as they come."""
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return (data[i] for i in range(len(data)))
    return iter(data)


def size_of(data: Any) -> int | None:
    """How many samples there are; None for a stream."""
    return len(data) if hasattr(data, "__len__") else None


class ArrayPair:
    """A pair of arrays (functions, …) as a sequence of pairs; a view, nothing is copied.

    Args:
        a: the inputs.
        u: the truths, of as many functions.
    """

    def __init__(self, a: Any, u: Any) -> None:
        if len(a) != len(u):
            raise ValueError(
                f"a pair of arrays must have equally many functions, got a of shape "
                f"{tuple(a.shape)} and u of shape {tuple(u.shape)}: the first axis counts them"
            )
        self.a, self.u = a, u

    def __len__(self) -> int:
        return len(self.a)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.a[i], self.u[i]


class Converted:
    """Samples converted when they are asked for.

    Args:
        data: what is converted.
        convert: (number, item) → sample.
    """

    def __init__(self, data: Any, convert: Converter) -> None:
        self.data, self.convert = data, convert

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> Sample:
        return self.convert(i, self.data[i])


class Streamed:
    """The functions of a `DataLoader`, read once, batch by batch.

    Args:
        loader: of batches of dicts or of pairs (a, u).
        convert: (number, item) → sample.
    """

    def __init__(self, loader: Iterable[Any], convert: Converter) -> None:
        self.loader, self.convert = loader, convert

    def __iter__(self) -> Iterator[Sample]:
        numbers = count()
        unbatched = getattr(self.loader, "batch_size", 1) is None
        unbatched = unbatched and getattr(self.loader, "batch_sampler", None) is None
        for batch in self.loader:
            for item in [batch] if unbatched else _items(batch):
                yield self.convert(next(numbers), item)


def _items(batch: Any) -> Iterator[Any]:
    """The functions of a batch."""
    take: Callable[[int], Any]
    if isinstance(batch, Mapping):
        parts = list(batch.values())
        take = partial(_take_fields, batch)
    elif isinstance(batch, tuple | list) and all(is_array(x) for x in batch):
        parts = list(batch)
        take = partial(_take_parts, batch)
    elif isinstance(batch, tuple | list):  # a list of samples, by a collate_fn of one's own
        yield from batch
        return
    else:
        parts, take = [batch], partial(_take_parts, [batch])
    sizes = {len(x) for x in parts if len(np.shape(x))}
    if len(sizes) != 1:
        raise ValueError(
            f"a batch of the DataLoader has fields of {sorted(sizes)} functions: expected a "
            "leading batch axis of one length in all of them"
        )
    yield from map(take, range(sizes.pop()))


def _take_fields(batch: Mapping[str, Any], i: int) -> dict[str, Any]:
    return {name: x[i] for name, x in batch.items()}


def _take_parts(batch: Sequence[Any], i: int) -> tuple[Any, ...]:
    return tuple(x[i] for x in batch)


def _map_style(loader: DataLoader[Any]) -> Any:
    """The data set behind a loader; what cannot be read by number is read once, into memory."""
    own_collate = loader.collate_fn not in (default_collate, None) and loader.batch_size is not None
    plain = not isinstance(loader.dataset, IterableDataset) and hasattr(loader.dataset, "__len__")
    if plain and not own_collate and not loader.drop_last:
        return loader.dataset
    return [item for batch in loader for item in _items(batch)]


def _pair_of(data: Mapping[str, Any], inputs: Names, outputs: Names) -> ArrayPair:
    """The arrays of all functions in a dict, or in an .npz file of NumPy."""
    wanted = ("a" if inputs is None else inputs, "u" if outputs is None else outputs)
    names = [name if isinstance(name, str) else next(iter(name), "") for name in wanted]
    missing = [name for name in names if name not in data]
    if missing:
        raise ValueError(
            f"a dict of arrays needs {names[0]!r} and {names[1]!r}, it has "
            f"{', '.join(map(str, data)) or 'none'}: name them with inputs= and outputs="
        )
    return ArrayPair(*(data[name] for name in names))


def _is_pair(data: Any) -> bool:
    return isinstance(data, tuple | list) and len(data) == 2 and all(map(is_array, data))


def is_labelled(data: Any) -> bool:
    """Whether it is an xarray Dataset, without importing xarray."""
    return hasattr(data, "data_vars") and hasattr(data, "coords")


def is_file(data: Any) -> bool:
    """Whether it is the name of a file, or two of them."""
    one = (str, PathLike)
    both = isinstance(data, tuple | list) and len(data) == 2
    return isinstance(data, one) or (both and all(isinstance(part, one) for part in data))
