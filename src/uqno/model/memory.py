"""What a model keeps of its functions beside the weights: where its inputs lie, how it errs.

memory.safetensors: both, small whatever the number of functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from uqno.band import Band
from uqno.band.residuals import Learner, ResidualLaw, points_of
from uqno.model.naming import Naming
from uqno.model.novelty import InputDistance
from uqno.model.scoring import Scored, predicted
from uqno.operators import Operator
from uqno.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from uqno.types import Reals, Sample
from uqno.uncertainty import Base, Residuals, Uncertainty

MOST_FUNCTIONS: Final = 48
"""Training functions from whose residuals a law is learned."""


@dataclass
class Memory:
    """What is kept; None of what could not be learned."""

    inputs: InputDistance | None = None
    residuals: ResidualLaw | None = None

    @classmethod
    @torch.no_grad()
    def of(cls, base: Base, uncertainty: Uncertainty, residuals: Residuals) -> Memory:
        """From training functions, once E is fitted."""
        learner = Learner()
        step = max(1, len(residuals) // MOST_FUNCTIONS)
        for i in range(0, len(residuals), step):
            sample = residuals.data[i]
            E = predicted(base, uncertainty, base.batch([sample])).uncertainty[0].cpu().double()
            truth, center = sample["u"].double(), residuals.centers[i].double()
            if E.shape != truth.shape[1:] or center.shape != truth.shape:
                continue  # padded, or at points of its own
            ratio = ((truth - center) / E).numpy().reshape(len(truth), -1)
            learner.add(ratio, _points(base.operator, sample, tuple(truth.shape[1:])))
        return cls(InputDistance.of(residuals.data), learner.law())

    def watch(self, functions: Iterable[Scored]) -> Iterator[Scored]:
        """The calibration functions as they are, while their inputs are kept in mind."""
        if self.inputs is None:
            return iter(functions)
        self.inputs = self.inputs.without_calibration()
        return self.inputs.watch(functions)

    def add_to(
        self, band: Band, fields: Mapping[str, Tensor], operator: Operator, naming: Naming
    ) -> Band:
        """The band with the novelty of its inputs, and the law of residuals in its coordinates.

        Args:
            band: with its final coordinates.
            fields: the inputs of the batch.
            operator, naming: what the coordinates follow from.
        """
        number = len(next(iter(fields.values())))
        samples = ({name: x[i] for name, x in fields.items()} for i in range(number))
        novelty = None if self.inputs is None else self.inputs.novelty(samples)
        law = self.residuals
        if law is not None and "a" in fields:
            axes = operator.axes(fields["a"].shape[2:])
            named = axes if naming.labels is None else naming.labels.axes(axes)
            law = replace(law, unit=extents(named))
        return replace(band, novelty=novelty, residuals=law)

    # --- files -----------------------------------------------------------------------------------

    def write(self, file: Path) -> None:
        """As safetensors."""
        tensors: dict[str, Tensor] = {}
        state: dict[str, Any] = {"inputs": None, "residuals": self.residuals is not None}
        if self.inputs is not None:
            state["inputs"] = list(self.inputs.fields)
            for name in ("mean", "scale", "inverse", "calibrated"):
                tensors[f"inputs.{name}"] = torch.from_numpy(getattr(self.inputs, name).copy())
        if self.residuals is not None:
            for name in ("lengths", "weights", "sizes"):
                tensors[f"residuals.{name}"] = torch.from_numpy(
                    getattr(self.residuals, name).copy()
                )
        write_checkpoint(file, Checkpoint(tensors, state))

    @classmethod
    def read(cls, file: Path) -> Memory:
        """What `write` wrote."""
        checkpoint = read_checkpoint(file)
        state = checkpoint.state
        arrays = {name: t.numpy() for name, t in checkpoint.tensors.items()}
        inputs = law = None
        if state["inputs"] is not None:
            own = (arrays[f"inputs.{name}"] for name in ("mean", "scale", "inverse", "calibrated"))
            inputs = InputDistance(tuple(state["inputs"]), *own)
        if state["residuals"]:
            law = ResidualLaw(*(arrays[f"residuals.{n}"] for n in ("lengths", "weights", "sizes")))
        return cls(inputs, law)


def extents(axes: Iterable[Any]) -> Reals:
    """The length of each axis, (d,); 1 for an axis of one node."""
    lengths = np.array([float(np.max(x)) - float(np.min(x)) for x in axes])
    return np.where(lengths > 0, lengths, 1.0)


def _points(operator: Operator, sample: Sample, shape: tuple[int, ...]) -> Reals:
    """Where a sample has its truth, (m, d): on a grid as a share of the length of each axis."""
    if "queries" not in sample and "points" not in sample:
        axes = operator.axes(shape)
        return points_of(tuple(axes)) / extents(axes)
    return np.asarray(sample.get("queries", sample.get("points")), dtype=np.float64)
