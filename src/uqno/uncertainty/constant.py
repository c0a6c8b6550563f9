"""Estimators that do not look at the function: what any other must beat."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from uqno.operators import Operator
from uqno.operators.interpolate import multilinear
from uqno.types import Batch
from uqno.uncertainty.contract import Base, Options, Prediction, Residuals
from uqno.uncertainty.deviation import FlooredUncertainty
from uqno.uncertainty.inputs import errors, grid_axes


class Constant(FlooredUncertainty):
    """E(a)(x) = mean over training functions and points of ‖u − Ĝ(a)‖.

    Calibrated, it is split conformal prediction with an order statistic of the pointwise error as
    the score of a function.

    Reference:
        Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, Distribution-free predictive inference for
        regression, arXiv:1604.04173 (2016), for split conformal prediction of numbers.
    """

    name = "constant"

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        self.mean = torch.tensor(self.measure(residuals))

    def predict(self, base: Base, batch: Batch) -> Prediction:
        center = base.center(batch)
        return Prediction(center, self.floored(self.mean.to(center).expand(center[:, 0].shape)))


class MeanField(FlooredUncertainty):
    """E(a)(x) = max(floor, mean over training functions of ‖u − Ĝ(a)‖(x)).

    On a grid it is stored at the resolution of the first function and multilinear in between, in
    the operator's coordinates. Geometries must share one topology: it is a mean for each vertex.
    Calibrated, it is a band whose width is modulated by the mean error at each place.

    Args:
        floor: the smallest uncertainty, as a share of the mean training error.

    Reference:
        Diquigiovanni, Fontana and Vantini, Conformal prediction bands for multivariate functional
        data, arXiv:2106.01792 (2021), for bands that are modulated over the domain; the mean error
        as modulation is chosen here.
    """

    name = "mean-field"

    field: Tensor

    def __init__(self, floor: float = 0.001) -> None:
        super().__init__(floor)
        self.register_buffer("field", torch.zeros(0))

    def saved(self) -> dict[str, Any]:
        return {"config": {"floor": self.floor_share}}

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        self.field = torch.zeros_like(state["field"])  # its shape is known from data alone
        self.load_state_dict(state)

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        self.measure(residuals)
        on_grid, total = "a" in residuals.data[0], torch.zeros(())
        for i, (error, _) in enumerate(errors(residuals)):
            if i and error.shape != total.shape:
                if not on_grid:
                    raise ValueError(different_vertices(len(error), len(total)))
                error = resampled(base.operator, error, total.shape)
            total = total + error.double()
        self.field = (total / len(residuals)).float()

    def predict(self, base: Base, batch: Batch) -> Prediction:
        self.need_fit()
        center = base.center(batch)
        field, shape = self.field.to(center), center.shape[2:]
        if "a" in batch and "queries" in batch:
            axes = grid_axes(base.operator, field.shape, field)
            queries = batch["queries"].expand(len(center), -1, -1)
            raw = multilinear(field.expand(len(center), 1, *field.shape), axes, queries)[:, 0]
        elif "a" in batch and field.shape != shape:
            raw = resampled(base.operator, field, shape).expand(len(center), *shape)
        elif "queries" in batch or field.shape != shape:
            raise ValueError(different_vertices(shape[0], len(field)))
        else:
            raw = field.expand(len(center), *shape)
        return Prediction(center, self.floored(raw))


def resampled(operator: Operator, field: Tensor, shape: torch.Size) -> Tensor:
    """A grid function (*grid) on the operator's grid of another shape, multilinear."""
    axes = grid_axes(operator, shape, field)
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)
    known = grid_axes(operator, field.shape, field)
    return multilinear(field[None, None], known, points)[0, 0].view(shape)


def different_vertices(count: int, expected: int) -> str:
    """The message that a mean over vertices has no value here."""
    return (
        f"a geometry with {count} vertices (or queries), the mean field has {expected}: it needs "
        "one topology; use Constant or Quantile for others"
    )
