"""What every estimator of E answers: fit on training residuals, then a centre and an uncertainty.

The calibrator takes any of them, so every method comes raw and calibrated.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from uqno.operators import Operator
from uqno.operators.symmetry import Symmetry, averaged
from uqno.types import Batch, Samples

Feature = Callable[[Batch, Tensor], Tensor]
"""(batch, centre (batch, channel, *points)) → (batch, features, *points)."""


@dataclass(frozen=True)
class Prediction:
    """The centre (batch, channel, *points) and E (batch, *points) around it."""

    center: Tensor
    uncertainty: Tensor


@dataclass(frozen=True)
class Base:
    """Ĝ as the uncertainty sees it: the operator, its symmetries, and fields that hint at its error.

    others: operators trained like the first; Ĝ is then the mean of all.
    deviation: whether the deviation over the symmetries and the operators is such a field.
    """

    operator: Operator
    symmetries: tuple[Symmetry, ...] = ()
    features: tuple[Feature, ...] = ()
    deviation: bool = True
    others: tuple[Operator, ...] = ()

    def center(self, batch: Batch) -> Tensor:
        """Ĝ(a) (batch, channel, *points) alone, for an uncertainty that sees no features."""
        return averaged(self.operator, batch, self.symmetries, self.others)[0]

    def view(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Ĝ(a) (batch, channel, *points) and the features (batch, f, *points), f ≥ 0."""
        center, deviation = averaged(self.operator, batch, self.symmetries, self.others)
        hints = [deviation] if deviation is not None and self.deviation else []
        hints += [feature(batch, center) for feature in self.features]
        return center, torch.cat(hints, dim=1) if hints else center[:, :0]

    def single(self, uncertainty: str) -> Operator:
        """The one operator, for an uncertainty that looks into it."""
        if self.others:
            raise ValueError(
                f"{uncertainty} is made of the inside of one operator, and the base has "
                f"{1 + len(self.others)}: give it a base of one"
            )
        return self.operator


@dataclass(frozen=True)
class Residuals:
    """Training functions with predictions by an operator that has not seen them.

    data[i]: the sample; centers[i]: Ĝ(a) (channel, *points); features[i]: (f, *points).
    """

    data: Samples
    centers: Sequence[Tensor]
    features: Sequence[Tensor]

    def __len__(self) -> int:
        return len(self.data)


class Uncertainty(nn.Module, ABC):
    """An estimator of E. Its tensors are its state dict, the rest of it `config`.

    bounded: whether the method itself promises a band, so that its raw uncertainty (λ = 1, its own
        multiplier included) has a width to compare; a subspace of errors, say, has none.
    """

    name = "uncertainty"
    bounded = True

    @abstractmethod
    def fit(self, base: Base, residuals: Residuals, options: "Options") -> None:
        """Learn from training residuals; `options` say how to train and where to keep it."""

    @abstractmethod
    def predict(self, base: Base, batch: Batch) -> Prediction:
        """Centre and uncertainty > 0 of a batch."""

    def saved(self) -> dict[str, Any]:
        """JSON beside the tensors: `config` goes to the constructor, the rest to `restore`."""
        return {"config": {}}

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        """Take on the state of a saved uncertainty."""
        self.load_state_dict(state)


@dataclass(frozen=True)
class Options:
    """How networks are trained: `training` goes to `uqno.training.fit` as it is."""

    training: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
