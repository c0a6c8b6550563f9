"""What every estimator of E answers: fit on training residuals, then a centre and an uncertainty.

The calibrator takes any of them, so every method comes raw and calibrated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from uqno.conformal import checks
from uqno.operators import Operator, Symmetry
from uqno.operators.base import register
from uqno.operators.symmetry import averaged
from uqno.types import Batch, Sample, Samples

Feature = Callable[[Batch, Tensor], Tensor]
"""(batch, centre (batch, channel, *points)) → (batch, features, *points)."""

ESTIMATORS: dict[str, type[Uncertainty]] = {}
"""Every estimator by its `name`, under which a saved model finds it."""


@dataclass(frozen=True)
class Prediction:
    """The centre (batch, channel, *points) and E (batch, *points) around it."""

    center: Tensor
    uncertainty: Tensor


@dataclass(frozen=True)
class Base:
    """Ĝ as an estimator of E sees it.

    Attributes:
        operator: the operator; the whole base lies on its device.
        symmetries: Ĝ is the mean over them.
        features: callables that give further fields for E to see.
        deviation: whether E sees the deviation over the symmetries and the operators.
        others: operators trained like the first; Ĝ is then the mean of all.
    """

    operator: Operator
    symmetries: Sequence[Symmetry] = ()
    features: Sequence[Feature] = ()
    deviation: bool = True
    others: tuple[Operator, ...] = ()

    def __post_init__(self) -> None:
        symmetries = checks.elements("symmetries", self.symmetries, "a sequence of symmetries")
        features = checks.elements("features", self.features, "a sequence of callables")
        if not all(isinstance(one, Symmetry) for one in symmetries):
            raise ValueError(
                f"symmetries = {checks.shown(symmetries)} must be such as uqno.operators.square()"
            )
        if not all(callable(one) for one in features):
            raise ValueError(f"features = {checks.shown(features)} must be callables")
        checks.yes_or_no("deviation", self.deviation)
        object.__setattr__(self, "symmetries", tuple(symmetries))  # frozen for everyone else
        object.__setattr__(self, "features", tuple(features))

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All operators whose mean Ĝ is."""
        return (self.operator, *self.others)

    def batch(self, samples: Sequence[Sample]) -> dict[str, Tensor]:
        """Samples as a batch on the base's device, prepared for its symmetries."""
        return self.operator.batch(samples, self.symmetries)

    def ready(self) -> Base:
        """The base itself, all of it on the device of its operator and in evaluation mode."""
        features = (f for f in self.features if isinstance(f, nn.Module))
        for module in (*self.operators, *features):
            make_ready(module, self.operator.device)
        return self

    def center(self, batch: Batch) -> Tensor:
        """Ĝ(a) (batch, channel, *points) alone, for an estimator that sees no features."""
        return averaged(self.operator, batch, self.symmetries, self.others)[0]

    def view(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Ĝ(a) (batch, channel, *points) and the features (batch, f, *points), f ≥ 0."""
        center, deviation = averaged(self.operator, batch, self.symmetries, self.others)
        features = [deviation] if deviation is not None and self.deviation else []
        features += [feature(batch, center) for feature in self.features]
        return center, torch.cat(features, dim=1) if features else center[:, :0]

    def only_operator(self, estimator: str) -> Operator:
        """The operator of a base of one, for an estimator that looks inside it.

        Raises:
            ValueError: The base has several.
        """
        if self.others:
            raise ValueError(
                f"{estimator} is made of the inside of one operator, and the base has "
                f"{len(self.operators)}: give it a base of one"
            )
        return self.operator


def make_ready(module: nn.Module, device: torch.device) -> None:
    """Put a module on a device and in evaluation mode; one that is ready is not touched."""
    if any(part.training for part in module.modules()):
        module.eval()
    if any(tensor.device != device for tensor in chain(module.parameters(), module.buffers())):
        module.to(device)


@dataclass(frozen=True)
class Residuals:
    """Training functions with predictions by an operator that has not seen them, on the CPU.

    Attributes:
        data: data[i] is the sample.
        centers: centers[i] is Ĝ(a) (channel, *points).
        features: features[i] is what else E sees, (f, *points).
    """

    data: Samples
    centers: Sequence[Tensor]
    features: Sequence[Tensor]

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True)
class Options:
    """How networks are trained.

    Attributes:
        training: goes to `uqno.training.fit` as it is.
        seed: of the initial weights and of the training.
    """

    training: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


class Uncertainty(nn.Module, ABC):
    """An estimator of E. Its tensors are its state dict, the rest of it `saved`.

    `predict` is asked by several threads at once: it changes no attribute, no mode (training or
    evaluation) and no global state, and draws from a generator of its own if it draws at all.

    A subclass with a `name` of its own is entered in `ESTIMATORS` by being defined, and a saved
    model finds it there.

    Attributes:
        name: short, in lower case with hyphens.
        bounded: whether the method itself promises a band, so that its raw uncertainty (λ = 1, its
            own multiplier included) has a width to compare; a subspace of errors, say, has none.
    """

    name: ClassVar[str]
    bounded: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            register(ESTIMATORS, cls.name, cls)

    @abstractmethod
    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        """Learn from training residuals.

        Args:
            base: Ĝ, trained.
            residuals: of functions that Ĝ has not seen.
            options: how to train networks, and where to store them.
        """

    @abstractmethod
    def predict(self, base: Base, batch: Batch) -> Prediction:
        """Centre and uncertainty > 0 of a batch, on the base's device; of any thread."""

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels α for which it was trained apart; none for one that serves every α alike."""
        return ()

    def for_level(self, alpha: float) -> Uncertainty:
        """What predicts where a band for α is wanted: itself, or the copy trained nearest to α."""
        return self

    def saved(self) -> dict[str, Any]:
        """JSON beside the tensors: `config` goes to the constructor, the rest to `restore`."""
        return {"config": {}}

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        """Take on the state of a saved estimator.

        Args:
            base: the operator, for networks that are like it.
            saved: what `saved` said.
            state: the tensors.
        """
        self.load_state_dict(state)
