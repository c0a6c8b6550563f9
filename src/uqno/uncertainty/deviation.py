"""What several estimators share: a floor under E, and the deviation of several answers."""

from abc import abstractmethod
from collections.abc import Iterable
from numbers import Integral

import torch
from torch import Tensor

from uqno.operators.symmetry import moments
from uqno.training import pointwise_error
from uqno.types import Batch
from uqno.uncertainty.contract import Base, Prediction, Residuals, Uncertainty
from uqno.uncertainty.inputs import mean_error


class FlooredUncertainty(Uncertainty):
    """E = max(floor, raw): no λ could scale an uncertainty of 0 to cover anything.

    Args:
        floor: the smallest uncertainty, as a share of the mean training error; by default so small
            that the raw uncertainty is the method's own wherever it says anything.
    """

    floor: Tensor

    def __init__(self, floor: float = 0.001) -> None:
        super().__init__()
        check_share("floor", floor)
        self.floor_share = floor
        self.register_buffer("floor", torch.zeros(()))

    def measure(self, residuals: Residuals) -> float:
        """Set the floor, and return the mean training error."""
        mean = mean_error(residuals)
        self.floor.fill_(self.floor_share * mean)
        return mean

    def need_fit(self) -> None:
        """Refuse to answer before `fit`."""
        if not self.floor.is_meta and not self.floor > 0:  # on meta there are shapes alone
            raise ValueError("the uncertainty is not fitted: call fit first")

    def floored(self, raw: Tensor) -> Tensor:
        """max(floor, raw) of the raw uncertainty (batch, *points)."""
        self.need_fit()
        return raw.clamp_min(self.floor.to(raw))


class DeviationUncertainty(FlooredUncertainty):
    """E = max(floor, multiplier · (Σ_c s_c²)^½), s the deviation of n answers; centre their mean.

    s has n − 1 in its denominator; it is taken for each component c and combined in the 2-norm.

    Args:
        multiplier: deviations that make the uncertainty.
        floor: the smallest uncertainty, as a share of the mean training error.
    """

    def __init__(self, multiplier: float, floor: float) -> None:
        super().__init__(floor)
        self.multiplier = checked_multiplier(multiplier)

    @abstractmethod
    def answers(self, base: Base, batch: Batch) -> Iterable[Tensor]:
        """At least 2, each (batch, channel, *points)."""

    @torch.no_grad()
    def predict(self, base: Base, batch: Batch) -> Prediction:
        center, deviation = moments(self.answers(base, batch), correction=1)
        return Prediction(center, self.floored(self.multiplier * pointwise_error(deviation)))


def check_share(name: str, value: float) -> None:
    """Refuse what is no share of the mean error, in (0, 1)."""
    if not 0 < value < 1:
        raise ValueError(f"{name} = {value} must lie in (0, 1): a share of the mean error")


def checked_multiplier(multiplier: float) -> float:
    """The multiplier, if it is above 0 and finite."""
    if not 0 < multiplier < float("inf"):
        raise ValueError(
            f"multiplier = {multiplier} must lie in (0, ∞): 2 deviations are usual, λ̂ does the rest"
        )
    return multiplier


def checked_count(name: str, count: object, least: int) -> int:
    """The count as an int, if it is a whole number and large enough."""
    if not isinstance(count, Integral) or int(count) < least:
        raise ValueError(f"{name} = {count!r} must be a whole number of at least {least}")
    return int(count)
