"""What a model is given: functions as batches, and the places where an answer is wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uqno.conformal import checks
from uqno.operators import FNO, GINO, Operator
from uqno.types import Array, Sample, Samples

Places = int | Sequence[int] | Tensor | Array | None
"""None for the points of the function, a resolution (421 or (421, 421)), or points (q, d)."""


def fingerprint(sample: Sample) -> str:
    """A hash of a function's input and truth, by which it is recognised again."""
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(sample):
        if name in ("a", "u", "points"):
            field = sample[name].detach().cpu().contiguous()
            digest.update(f"{name}{tuple(field.shape)}".encode())
            digest.update(field.to(torch.float32).numpy().tobytes())
    return digest.hexdigest()


def batches(
    operator: Operator, data: Samples, size: int = 16
) -> Iterator[tuple[list[Sample], dict[str, Tensor]]]:
    """Samples and their batch; a new batch begins where the resolution changes."""
    device = operator.device
    held: list[Sample] = []
    for i in range(len(data) + 1):
        sample = data[i] if i < len(data) else None
        full = len(held) == size
        if held and (sample is None or full or sample["u"].shape != held[0]["u"].shape):
            yield held, {n: f.to(device) for n, f in operator.collate(held).items()}
            held = []
        if sample is not None:
            held.append(sample)


def as_batch(
    operator: Operator, a: Tensor | Array | Sample, dimensions: int | None
) -> tuple[dict[str, Tensor], bool]:
    """Fields with a leading batch axis, and whether there was none.

    dimensions: of the grids that the model was fitted on; None for geometries.
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
        if isinstance(operator.module, GINO) and "grid_neighbours" not in a:
            a = operator.module.prepare_geometry(a)
        if "a" not in a or a["a"].ndim == _of_grids(dimensions) + 1:
            batch = operator.collate([a])
            return {n: f for n, f in batch.items() if n != "u"}, True
        return {n: f for n, f in a.items() if n != "u"}, False
    if isinstance(a, Tensor) and a.is_complex():
        a = a.numpy(force=True)  # to be refused like an array
    tensor = a if isinstance(a, Tensor) else torch.from_numpy(checks.real("a", "the function", a))
    parameter = next(operator.parameters(), torch.empty(0))
    tensor = tensor.to(parameter.device, parameter.dtype)
    d = _of_grids(dimensions)
    if tensor.ndim not in (d + 1, d + 2):
        raise ValueError(
            f"a has shape {tuple(tensor.shape)}, expected (channel, *grid) or (batch, channel, "
            f"*grid) with {d} grid dimensions"
        )
    if 0 in tensor.shape:
        raise ValueError(f"a has shape {tuple(tensor.shape)}: expected at least one function")
    single = tensor.ndim == d + 1
    return {"a": tensor[None] if single else tensor}, single


def _of_grids(dimensions: int | None) -> int:
    if dimensions is None:
        raise ValueError("this model is of geometries: predict from a sample, a dict of fields")
    return dimensions


def places(
    operator: Operator, fields: Mapping[str, Tensor], at: Places
) -> tuple[dict[str, Tensor], Any]:
    """Fields that say where the answer is wanted, and its coordinates."""
    if "a" not in fields:
        if at is not None:
            raise ValueError("at= is for functions on a grid: a geometry is answered at its points")
        return {}, fields.get("queries", fields["points"])[0].cpu().numpy()
    a, module = fields["a"], operator.module
    box = module.fourier if isinstance(module, FNO) else None

    def axis(j: int, n: int) -> Array:
        return np.linspace(0.0, 1.0, n) if box is None else box.axis(j, n)

    if at is None:
        return {}, tuple(axis(j, n) for j, n in enumerate(a.shape[2:]))
    if box is None:
        raise ValueError(
            f"{type(module).__name__} answers on the grid of a only: use uqno.operators.FNO as "
            "base to predict at other points"
        )
    if isinstance(at, int | np.integer) or _is_shape(at):
        shape = (int(at),) * (a.ndim - 2) if isinstance(at, int | np.integer) else tuple(at)
        if len(shape) != a.ndim - 2 or min(shape) < 1:
            raise ValueError(
                f"at = {at} is no resolution of {a.ndim - 2} dimensions: give one number for all, "
                "or one a dimension, at least 1"
            )
        axes = tuple(axis(j, int(n)) for j, n in enumerate(shape))
        mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        return {"points": torch.from_numpy(mesh).to(a)}, axes
    points = torch.as_tensor(checks.real("at", "the points", at)).to(a)
    if points.ndim != 2 or points.shape[1] != a.ndim - 2 or not len(points):
        raise ValueError(
            f"at has shape {tuple(points.shape)}: expected (points, {a.ndim - 2}), and points"
        )
    return {"points": points}, points.cpu().numpy()


def _is_shape(at: Any) -> bool:
    return isinstance(at, Sequence) and all(isinstance(n, int) for n in at)
