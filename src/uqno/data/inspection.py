"""What a data set holds and what it can carry, before anything is trained on it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from uqno.conformal import plan
from uqno.data.fields import Field, FieldSamples, Names, field_of, select
from uqno.data.labels import as_numbers, is_monotone
from uqno.data.opening import contents_of
from uqno.data.variables import Content, Variable
from uqno.types import Array

# Shares of the functions for calibration and for tests; the others train.
CALIBRATION, TEST, MOST_CALIBRATION = 0.2, 0.2, 0.5
# Promises that are looked at besides the one asked for.
DELTAS = (0.02, 0.05, 0.1, 0.2)
CONFIDENCE = 0.9
MOST_LISTED = 5


@dataclass
class VariableSummary:
    """A variable: what its head says, and its values where they were read."""

    name: str
    role: str
    dims: tuple[str, ...] | None
    shape: tuple[int, ...]
    dtype: str
    units: str
    missing: int | None = None
    smallest: float | None = None
    largest: float | None = None


@dataclass(frozen=True)
class CoordinateSummary:
    """A coordinate along one dimension, first and last value as text."""

    name: str
    points: int
    first: str
    last: str
    units: str
    order: str


@dataclass(frozen=True)
class PromiseSummary:
    """Whether the calibration functions carry a promise, and how many would."""

    alpha: float
    delta: float
    confidence: float | None
    feasible: bool
    needed: int | None


@dataclass
class Inspection:
    """The answer of `inspect`.

    Attributes:
        source, layout: the file and what it is.
        inputs, outputs: the variables that it would learn from; empty where that is unclear.
        grid: points along each dimension of the functions, by name where there are names.
        kind: "grid" or "mesh".
        functions: how many.
        duplicates: pairs of numbers of functions with the same input and output.
        split: functions for training, calibration and test.
        promises: what the calibration functions carry.
        problems: each with its remedy.
    """

    source: str
    layout: str
    variables: list[VariableSummary]
    coordinates: list[CoordinateSummary]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    grid: dict[str, int] = field(default_factory=dict)
    kind: str = "grid"
    functions: int = 0
    duplicates: list[tuple[int, int]] = field(default_factory=list)
    split: dict[str, int] = field(default_factory=dict)
    promises: list[PromiseSummary] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """All of it as values that JSON holds."""
        return asdict(self)


def inspect(
    path: str | Path | tuple[str | Path, str | Path],
    inputs: Names = None,
    outputs: Names = None,
    *,
    functions: str | None = None,
    alpha: float = 0.1,
    delta: float = 0.02,
    progress: Callable[[int, int], None] | None = None,
) -> Inspection:
    """What a file holds, and what its numbers of functions and points can promise.

    Args:
        path, inputs, outputs, functions: as in `uqno.data.open`.
        alpha, delta: the promise that is wanted.
        progress: is called with the functions read and all of them.

    Raises:
        ValueError: the file cannot be opened, or a variable that is named is not in it.
    """
    content, other = contents_of(path)
    both = [content] if other is None else [content, other]
    seen = Inspection(
        " and ".join(one.source for one in both),
        ", ".join(dict.fromkeys(one.layout for one in both if one.layout)),
        [_variable(v) for one in both for v in one.variables.values()],
        _coordinates(both),
    )
    if "points" in content.variables:
        _look_at_mesh(seen, content)
        return seen
    try:
        samples = select(content, inputs, outputs, other=other, functions=functions)
    except ValueError as why:
        if inputs is not None and outputs is not None:
            raise
        seen.problems.append(str(why))
        _read(seen, _alone(content), None, progress)
        return seen
    seen.inputs, seen.outputs = _names(samples.inputs), _names(samples.outputs)
    seen.functions = len(samples)
    seen.grid = _grid(samples)
    for one in seen.variables:
        roles = (("input", seen.inputs), ("output", seen.outputs))
        one.role = ", ".join(role for role, names in roles if one.name in names)
    _read(seen, (*samples.inputs, *samples.outputs), samples, progress)
    _plan(seen, alpha, delta)
    return seen


def _variable(one: Variable) -> VariableSummary:
    units = str(one.attributes.get("units", ""))
    return VariableSummary(one.name, "", one.dims, one.shape, str(one.dtype), units)


def _names(fields: Sequence[Field]) -> tuple[str, ...]:
    return tuple(f.variable.name for f in fields)


def _coordinates(contents: Sequence[Content]) -> list[CoordinateSummary]:
    summaries = {}
    for content in contents:
        for name, one in content.coordinates.items():
            if len(one.dims) != 1 or not one.values.size:
                continue
            numbers = as_numbers(one.values)
            order = "no order"
            if numbers is not None and is_monotone(numbers):
                steps = np.abs(np.diff(numbers))
                even = len(steps) == 0 or np.ptp(steps) <= 1e-3 * steps.max()
                falls = len(numbers) > 1 and numbers[1] < numbers[0]
                order = ("descends" if falls else "ascends") + ("" if even else ", uneven")
            ends = (_text(one.values[0]), _text(one.values[-1]))
            units = str(one.attributes.get("units", ""))
            summaries[name] = CoordinateSummary(name, one.values.size, *ends, units, order)
    return list(summaries.values())


def _text(value: Any) -> str:
    if np.asarray(value).dtype.kind == "M":
        return str(np.datetime_as_string(value, unit="auto"))
    return f"{value:g}" if np.asarray(value).dtype.kind in "fiu" else str(value)


def _alone(content: Content) -> tuple[Field, ...]:
    """Variables one by one, where it is not known which belong together."""
    fields = []
    for name, one in content.variables.items():
        if one.shape and one.dtype.kind in "fiub":
            fields.append(
                field_of(Content(content.source, {name: Variable(name, one.values)}), name)
            )
    return tuple(fields)


def _grid(samples: FieldSamples) -> dict[str, int]:
    """Points along each dimension, by name; without names, as they are in the first function."""
    first = samples.read(0)["a"]
    if samples.labels is not None:
        return dict(zip(samples.labels.points, first.shape[1:], strict=True))
    shape = first.shape[1:] if first.ndim > 1 and first.shape[0] == 1 else first.shape
    return {f"axis {j}": n for j, n in enumerate(shape)}


def _read(
    seen: Inspection,
    fields: Sequence[Field],
    samples: FieldSamples | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Read every function once: missing values, ranges, duplicates, outputs that never change."""
    by_name = {one.name: one for one in seen.variables}
    sizes = [1 if f.function is None else f.variable.shape[f.function] for f in fields]
    hashes: dict[bytes, int] = {}
    for i in range(max(sizes, default=0)):
        digest = hashlib.blake2b(digest_size=16)
        for one, size in zip(fields, sizes, strict=True):
            if i < size:
                values = one.read(i)
                _count(by_name[one.variable.name], values)
                digest.update(np.ascontiguousarray(values).tobytes())
        if samples is not None:
            first = hashes.setdefault(digest.digest(), i)
            if first != i:
                seen.duplicates.append((first, i))
        if progress is not None:
            progress(i + 1, max(sizes))
    for summary in seen.variables:
        name, low = summary.name, summary.smallest
        if summary.missing:
            seen.problems.append(
                f"{name} has values that are NaN or infinite, {summary.missing} in all: repair "
                "them, or leave these functions out"
            )
        if "output" in summary.role and low is not None and low == summary.largest:
            seen.problems.append(f"{name} is {low:g} everywhere: there is nothing to learn")
    if seen.duplicates:
        listed = ", ".join(f"{a} and {b}" for a, b in seen.duplicates[:MOST_LISTED])
        more = " …" if len(seen.duplicates) > MOST_LISTED else ""
        seen.problems.append(
            f"functions occur twice, {len(seen.duplicates)} in all ({listed}{more}): leave one of "
            "each out, for a function must not serve both to train and to calibrate"
        )


def _count(summary: VariableSummary, values: Array) -> None:
    finite = np.isfinite(values)
    bad = int(values.size - np.count_nonzero(finite))
    summary.missing = (summary.missing or 0) + bad
    good = values[finite] if bad else values
    if good.size:
        low, high = float(good.min()), float(good.max())
        summary.smallest = low if summary.smallest is None else min(low, summary.smallest)
        summary.largest = high if summary.largest is None else max(high, summary.largest)


def _plan(seen: Inspection, alpha: float, delta: float) -> None:
    """The split that suits the numbers, and what its calibration functions carry."""
    points = prod(seen.grid.values())
    needed = plan(alpha, delta, 1, points).smallest["functions"]
    n = seen.functions
    wanted = max(round(CALIBRATION * n), int(needed or 0))
    calibration = min(wanted, int(MOST_CALIBRATION * n))
    test = round(TEST * n)
    seen.split = {"training": n - calibration - test, "calibration": calibration, "test": test}
    for one in sorted({delta, *DELTAS}):
        for confidence in (None, CONFIDENCE):
            seen.promises.append(_promise(alpha, one, calibration, points, confidence))
    asked = next(p for p in seen.promises if p.delta == delta and p.confidence is None)
    if not asked.feasible:
        seen.problems.append(
            f"{calibration} calibration functions cannot carry alpha = {alpha:g}, delta = "
            f"{delta:g}, which needs {asked.needed}: make more functions, or ask for a larger delta"
        )


def _promise(
    alpha: float, delta: float, functions: int, points: int, confidence: float | None
) -> PromiseSummary:
    least = plan(alpha, delta, max(functions, 1), points, "grid", confidence)
    needed = least.smallest["functions"]
    feasible = least.feasible and functions > 0
    return PromiseSummary(
        alpha, delta, confidence, feasible, None if needed is None else int(needed)
    )


def _look_at_mesh(seen: Inspection, content: Content) -> None:
    """One geometry: points, and triangles where it is a surface."""
    seen.kind, seen.functions = "mesh", 1
    seen.grid = {"points": content.variables["points"].shape[0]}
    if "triangles" in content.variables:
        seen.grid["triangles"] = content.variables["triangles"].shape[0]
    _read(seen, _alone(content), None, None)
