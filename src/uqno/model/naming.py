"""Inputs of a prediction in any form, and the names and coordinates that go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uqno.band import Band
from uqno.data.conversion import Form
from uqno.data.fields import FieldSamples, Names, select
from uqno.data.labels import Labels
from uqno.data.sources import as_stream, each, is_file, is_labelled
from uqno.data.variables import from_dataset, read_whole
from uqno.operators import Operator
from uqno.types import Array, Sample


@dataclass(frozen=True)
class Naming:
    """What the source of an input says of it.

    Args:
        labels: of the grid and the functions.
        name, units: of the output, where the source has it.
    """

    labels: Labels | None = None
    name: str = "u"
    units: str = ""

    def at(self, at: Any, fields: Mapping[str, Tensor], operator: Operator) -> Any:
        """Places as the operator counts them: points (q, d) from the coordinates of the labels."""
        if self.labels is None or _is_resolution(at) or "a" not in fields:
            return at
        points = np.asarray(at, dtype=np.float64)
        own = operator.axes(fields["a"].shape[2:])
        if points.ndim != 2 or points.shape[1] != len(own):
            return at  # refused where places are looked up
        columns = []
        axes = zip(self.labels.points, self.labels.axes(own), own, points.T, strict=True)
        for name, given, axis, x in axes:
            low, high = float(np.min(given)), float(np.max(given))
            if len(x) and not low <= x.min() <= x.max() <= high:
                raise ValueError(
                    f"at reaches from {x.min():g} to {x.max():g} in {name}, outside the "
                    f"coordinates {low:g} to {high:g} of the input: give points among them"
                )
            order = np.argsort(given)
            columns.append(np.interp(x, np.asarray(given)[order], np.asarray(axis)[order]))
        return np.stack(columns, axis=1)

    def named(self, band: Band, at: Any) -> Band:
        """The band with its names, on the coordinates of the input.

        Args:
            band: on the coordinates of the operator.
            at: where it was asked for.
        """
        band = replace(band, name=self.name, units=self.units)
        labels = self.labels
        if labels is None:
            return band
        if not isinstance(band.coordinates, tuple):
            points = np.asarray(at, dtype=np.float64)
            return replace(band, labels=labels.scattered(), coordinates=points)
        labels = labels if at is None else labels.at_resolution(band.points)
        return replace(band, labels=labels, coordinates=labels.axes(band.coordinates))


def as_inputs(
    a: Any, inputs: Names, outputs: Names, form: Form
) -> tuple[Tensor | Array | Sample, Naming]:
    """The input of a prediction as an array or a sample, and its names.

    Args:
        a: an array, a sample, or functions in any form that `uqno.data.as_samples` takes.
        inputs, outputs: names of variables.
        form: what the model takes.
    """
    dimensions = form.dimensions
    if hasattr(a, "to_dataset") and hasattr(a, "dims"):  # an xarray DataArray
        inputs = str(a.name) if a.name is not None else "a"
        a = a.to_dataset(name=inputs)
    if is_labelled(a):
        a = select(from_dataset(a), inputs, outputs, dimensions=dimensions, truth=False)
    elif is_file(a):
        from uqno.data.opening import open as open_file

        a = open_file(a, inputs, outputs, dimensions=dimensions, truth=False)
    if isinstance(a, FieldSamples):
        return _values(a), Naming(a.labels, a.name, a.units)
    if _is_functions(a):
        samples = list(each(as_stream(a, inputs, outputs, form=form, truth=False)))
        if not samples or any("a" not in sample for sample in samples):
            raise ValueError(
                f"{len(samples)} functions to predict: expected at least one, each with the field "
                "a; predict geometries one by one"
            )
        return torch.stack([sample["a"] for sample in samples]), Naming()
    return a, Naming()


def _values(functions: FieldSamples) -> Array:
    """The inputs of all functions in one array; of a variable without names as the file has it."""
    if functions.labels is None and len(functions.inputs) == 1:
        only = functions.inputs[0]
        if only.time is None:
            return read_whole(only.variable.values, only.variable.name)
    if functions.single:
        return functions.read(0)["a"]
    return np.stack([functions.read(i)["a"] for i in range(len(functions))])


def _is_functions(a: Any) -> bool:
    """Whether it is a set of functions rather than one array or sample."""
    if isinstance(a, torch.utils.data.DataLoader | torch.utils.data.Dataset):
        return True
    if not isinstance(a, tuple | list) or not a:
        return False
    return all(isinstance(x, Mapping | tuple) or hasattr(x, "shape") for x in a) and not all(
        hasattr(x, "shape") and np.ndim(x) == 0 for x in a
    )


def _is_resolution(at: Any) -> bool:
    if at is None or isinstance(at, int | np.integer):
        return True
    return isinstance(at, Sequence) and all(isinstance(n, int | np.integer) for n in at)
