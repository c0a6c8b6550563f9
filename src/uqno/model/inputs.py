"""What a model is given: functions as batches, and the places where an answer is wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uqno.conformal import Calibration, checks
from uqno.data.conversion import as_tensors
from uqno.data.sources import each
from uqno.operators import Operator
from uqno.storage import DamagedError, read_json, set_aside, write_json
from uqno.types import Array, Reals, Sample, Samples
from uqno.uncertainty import Base

Places = int | Sequence[int] | Tensor | Array | None
"""None for the points of the function, a resolution (421 or (421, 421)), or points (q, d)."""


def fingerprint(sample: Sample) -> str:
    """A hash of a function's input and truth, by which it is recognised again.

    Args:
        sample: its fields `a`, `u` and `points` count, those of them that it has.
    """
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(sample):
        if name in ("a", "u", "points"):
            field = sample[name].detach().cpu().contiguous()
            digest.update(f"{name}{tuple(field.shape)}".encode())
            digest.update(field.to(torch.float32).numpy().tobytes())
    return digest.hexdigest()


def refuse_other_functions(folder: Path, seen: Sequence[str], resume: bool) -> None:
    """A fit goes on with its own functions, for these are the ones refused in calibration.

    Where the record of them came back damaged, what was trained is set aside with it, by name:
    nobody knows what it was trained on.
    """
    file = folder / "functions.json"
    content = {"sha256": hashlib.sha256("".join(seen).encode()).hexdigest()}
    begun = any(folder.rglob("last.safetensors"))
    if begun and file.is_file():
        try:
            there = read_json(file, "")
        except DamagedError:
            for path in (file, folder / "base", folder / "uncertainty"):
                if path.exists():
                    set_aside(path)
            begun = False
        else:
            if there != content:
                raise ValueError(
                    f"{folder} was trained on other functions: go on with the same ones, or give "
                    "another folder"
                )
    if not begun or (resume and not file.is_file()):
        write_json(file, content)


def batches(
    base: Base, data: Iterable[Sample] | Samples, size: int = 16
) -> Iterator[tuple[list[Sample], dict[str, Tensor]]]:
    """Samples in order, several at a time; a new batch begins where the resolution changes.

    Args:
        base: Ĝ, which knows how samples are put together.
        data: samples with their truth `u`.
        size: the largest number of samples in a batch.

    Yields:
        The samples of a batch, and their fields with a leading batch axis.
    """
    size = checks.count("batch_size", size)
    held: list[Sample] = []
    for sample in each(data):
        if held and (len(held) == size or sample["u"].shape != held[0]["u"].shape):
            yield held, base.batch(held)
            held = []
        held.append(sample)
    if held:
        yield held, base.batch(held)


def as_batch(
    base: Base, a: Tensor | Array | Sample, dimensions: int | None
) -> tuple[dict[str, Tensor], bool]:
    """What a user gives to `predict` as a batch.

    Args:
        base: Ĝ, on whose device the batch is put.
        a: (channel, *grid) or (batch, channel, *grid), or a sample (a dict of fields).
        dimensions: those of the grids that the model was fitted on; None for geometries.

    Returns:
        The fields with a leading batch axis, and whether `a` was one function without that axis.

    Raises:
        ValueError: a field is missing, or the shape is not that of functions on such grids.
    """
    if isinstance(a, Mapping):
        if "a" not in a and dimensions is not None:
            raise ValueError(
                f"this model is of functions on grids of {dimensions} dimensions: the sample needs "
                f"the field a, it has {', '.join(sorted(a)) or 'none'}"
            )
        if "a" not in a and "points" not in a:
            raise ValueError(
                f"the sample needs the field points, it has {', '.join(sorted(a)) or 'none'}"
            )
        inputs = as_tensors({n: x for n, x in a.items() if n != "u"}, base.operator.form.dtype)
        if "a" in inputs and inputs["a"].ndim == dimensions:
            inputs = {**inputs, "a": inputs["a"][None]}
        if "a" not in a or inputs["a"].ndim == _of_grids(dimensions) + 1:
            return base.batch([inputs]), True
        leading = {tuple(field.shape[:1]) for field in inputs.values()}
        if len(leading) != 1 or () in leading:
            sizes = {name: tuple(field.shape) for name, field in inputs.items()}
            raise ValueError(
                f"the fields of several functions have the shapes {sizes}: expected one leading "
                "axis of functions in all of them"
            )
        return {name: field.to(base.operator.device) for name, field in inputs.items()}, False
    if isinstance(a, Tensor) and a.is_complex():
        a = a.numpy(force=True)  # to be refused like an array
    tensor = a if isinstance(a, Tensor) else torch.from_numpy(checks.real("a", "the function", a))
    form = base.operator.form
    tensor = tensor.to(base.operator.device, form.dtype or torch.get_default_dtype())
    d = _of_grids(dimensions)
    if tensor.ndim == d:
        tensor = tensor[None]
    elif tensor.ndim == d + 1 and form.channels == 1 < tensor.shape[0]:
        tensor = tensor[:, None]  # several functions without a channel axis
    if tensor.ndim not in (d + 1, d + 2):
        raise ValueError(
            f"a has shape {tuple(tensor.shape)}, expected (channel, *grid) or (batch, channel, "
            f"*grid) with {d} grid dimensions"
        )
    if 0 in tensor.shape:
        raise ValueError(f"a has shape {tuple(tensor.shape)}: expected at least one function")
    is_one = tensor.ndim == d + 1
    return {"a": tensor[None] if is_one else tensor}, is_one


def is_surface(operator: Operator, sample: Sample) -> bool:
    """Whether a geometry has the signed distance of a surface, not that to its nearest points.

    Args:
        operator: the base; one without a latent grid has no geometries.
        sample: a function as it is trained on.
    """
    if operator.latent is None or "a" in sample:
        return False
    return not operator.latent.is_of_points(operator.prepare(sample))


def as_calibrated(sample: Sample, surfaces: bool) -> Sample:
    """A geometry with what the functions of the training had, so that E means the same.

    Args:
        sample: the fields of the geometry.
        surfaces: whether the training functions had the signed distance of a surface. Then the
            sample must have it, or the triangles that it follows from; if not, its triangles are
            for the band alone.

    Raises:
        ValueError: the sample has neither triangles nor a signed distance, and needs one.
    """
    if not surfaces:
        return {name: field for name, field in sample.items() if name != "triangles"}
    if "triangles" not in sample and "sdf" not in sample:
        raise ValueError(
            "the model was fitted on surfaces with their exact signed distance, and the sample "
            f"has {', '.join(sorted(sample))}: add the triangles (t, 3) of the surface, or sdf"
        )
    return sample


def _of_grids(dimensions: int | None) -> int:
    if dimensions is None:
        raise ValueError("this model is of geometries: predict from a sample, a dict of fields")
    return dimensions


def places(
    operator: Operator, fields: Mapping[str, Tensor], at: Places
) -> tuple[dict[str, Tensor], Any]:
    """Where the answer is wanted.

    Args:
        operator: the base, which must take queries for anything but its own points.
        fields: a batch, with `a` (batch, channel, *grid) or with `points` (batch, n, d).
        at: None for the points of the function, a resolution, or points (q, d).

    Returns:
        Fields to add to the batch (`queries` (q, d), or none), and the coordinates of the answer:
        one array for each axis of a grid, or an array (q, d).

    Raises:
        ValueError: the operator answers on its own points only, or `at` has another dimension.
    """
    if "a" not in fields:
        if at is not None:
            raise ValueError("at= is for functions on a grid: a geometry is answered at its points")
        return {}, fields.get("queries", fields["points"])[0].cpu().numpy()
    a = fields["a"]
    if at is None:
        return {}, operator.axes(a.shape[2:])
    if not operator.takes_queries:
        raise ValueError(
            f"{type(operator.module).__name__} answers on the grid of a only: use "
            "uqno.operators.FNO as base to predict at other points, or a module whose forward "
            "takes queries"
        )
    if isinstance(at, int | np.integer) or _is_shape(at):
        shape = (int(at),) * (a.ndim - 2) if isinstance(at, int | np.integer) else tuple(at)
        if len(shape) != a.ndim - 2 or min(shape) < 1:
            raise ValueError(
                f"at = {at} is no resolution of {a.ndim - 2} dimensions: give one number for all, "
                "or one a dimension, at least 1"
            )
        axes = operator.axes(tuple(int(n) for n in shape))
        mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        return {"queries": torch.from_numpy(mesh).to(a)}, axes
    points = torch.as_tensor(checks.real("at", "the points", at)).to(a)
    if points.ndim != 2 or points.shape[1] != a.ndim - 2 or not len(points):
        raise ValueError(
            f"at has shape {tuple(points.shape)}: expected (points, {a.ndim - 2}), and points"
        )
    return {"queries": points}, points.cpu().numpy()


def _is_shape(at: Any) -> bool:
    return isinstance(at, Sequence) and all(isinstance(n, int) for n in at)


def own_scales(calibration: Calibration, fields: Mapping[str, Tensor]) -> Reals | None:
    """λ̂ of each function of a batch.

    Args:
        calibration: has one scale for all, or one for each function.
        fields: a batch, by name.

    Returns:
        (functions,), or None where all have the scale of the calibration.
    """
    number = len(next(iter(fields.values())))
    each = ({name: field[i] for name, field in fields.items()} for i in range(number))
    scales = np.array([calibration.scale_for(function) for function in each])
    return None if (scales == calibration.scale).all() else scales
