"""What an uncertainty lacks where it is nearly zero: a constant, chosen on training functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uqno.conformal import function_scores
from uqno.operators import Operator
from uqno.training import pointwise_error
from uqno.types import Batch, Reals
from uqno.uncertainty.contract import (
    ESTIMATORS,
    Base,
    Options,
    Prediction,
    Residuals,
    Uncertainty,
)

CHOICES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# Training functions, and points of each, that the choice looks at.
FUNCTIONS, POINTS = 200, 4096


class Offset(Uncertainty):
    """E(a)(x) = D(a)(x) + c · mean D, D the uncertainty of another estimator.

    Answers that happen to agree at a point say little about the error there: a ratio to a
    deviation near zero lets a few points decide the scale of the whole band. c is the choice with
    the smallest bandwidth, λ · mean E with the λ that covers 1 − α of the points of 1 − δ of the
    training functions; where several α are given, with the smallest product of bandwidths. The
    mean is over training functions and points.

    The estimator may have been trained on these functions, as the members of an ensemble are:
    then both errors and deviations are those of functions that it has seen.

    Args:
        inner: the estimator of D, or {"name": ..., **saved} of one, as `saved` writes it.
        alphas: the shares of the domain that may be missed.
        delta: the share of functions of which more may be missed.
        choices: the c to choose from, each at least 0.

    Reference:
        Papadopoulos, Gammerman and Vovk, Normalized nonconformity measures for regression conformal
        prediction, AIA 2008: a constant is added to the estimated difficulty of an example.
    """

    name = "offset"

    offset: Tensor

    def __init__(
        self,
        inner: Uncertainty | Mapping[str, Any],
        alphas: Sequence[float] = (0.1, 0.02),
        delta: float = 0.02,
        choices: Sequence[float] = CHOICES,
    ) -> None:
        super().__init__()
        if isinstance(inner, Mapping):
            inner = ESTIMATORS[inner["name"]](**inner["config"])
        for name, values in (("alphas", alphas), ("delta", (delta,))):
            if not values or not all(0 < value < 1 for value in values):
                raise ValueError(f"{name} = {values} must lie in (0, 1): shares that may be missed")
        if not choices or not all(0 <= c < float("inf") for c in choices):
            raise ValueError(f"choices = {choices} must be one or more numbers in [0, ∞)")
        self.inner = inner
        self.alphas, self.delta, self.choices = tuple(alphas), delta, tuple(choices)
        self.register_buffer("offset", torch.full((), -1.0))

    def saved(self) -> dict[str, Any]:
        inner = {"name": self.inner.name, **self.inner.saved()}
        config = {"inner": inner, "alphas": list(self.alphas), "delta": self.delta}
        return {"config": {**config, "choices": list(self.choices)}}

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        own = {name.removeprefix("inner."): x for name, x in state.items() if name != "offset"}
        self.inner.restore(base, saved["config"]["inner"], own)
        self.load_state_dict(state)

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        self.inner.fit(base, residuals, options)
        error, deviation = self._looked_at(base.ready(), residuals)
        mean = float(deviation.mean())
        widths = [self._bandwidth(error, deviation + c * mean) for c in self.choices]
        self.offset.fill_(self.choices[int(np.argmin(widths))] * mean)
        self.to(base.operator.device)

    @torch.no_grad()
    def _looked_at(self, base: Base, residuals: Residuals) -> tuple[Reals, Reals]:
        """Error and D at some points of some training functions, each (functions, points)."""
        self.inner.eval()
        count = min(FUNCTIONS, len(residuals))
        chosen = np.linspace(0, len(residuals) - 1, count).round().astype(int)
        errors, deviations = [], []
        for i in chosen.tolist():
            batch = base.batch([residuals.data[i]])  # a function of its own, so without padding
            answer = self.inner.predict(base, {n: x for n, x in batch.items() if n != "u"})
            error = pointwise_error(batch["u"] - answer.center).flatten()
            some = np.linspace(0, len(error) - 1, min(POINTS, len(error))).round().astype(int)
            errors.append(error.double().cpu().numpy()[some])
            deviations.append(answer.uncertainty.flatten().double().cpu().numpy()[some])
        least = min(len(error) for error in errors)
        return (
            np.stack([error[:least] for error in errors]),
            np.stack([deviation[:least] for deviation in deviations]),
        )

    def _bandwidth(self, error: Reals, uncertainty: Reals) -> float:
        """Σ_α of the logarithm of the bandwidth that these functions would have."""
        total, points = 0.0, error.shape[1]
        for alpha in self.alphas:
            scores = function_scores(error, uncertainty, ceil(points * (1 - alpha)))
            scale = np.quantile(scores, 1 - self.delta, method="higher")
            total += float(np.log(max(scale * uncertainty.mean(), np.finfo(float).tiny)))
        return total

    @torch.no_grad()
    def predict(self, base: Base, batch: Batch) -> Prediction:
        if not self.offset.is_meta and not self.offset >= 0:  # on meta there are shapes alone
            raise ValueError("the uncertainty is not fitted: call fit first")
        answer = self.inner.predict(base, batch)
        raised = answer.uncertainty + self.offset.to(answer.uncertainty)
        return Prediction(answer.center, raised)
