"""What a radius network sees of a function: the input a, the prediction Ĝ(a), and features.

On a grid they are channels of `a`; on a geometry, `features` of its points. At query points
both are needed: on the grid (or surface) for the integrals, at the points for the rest.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from uqno.operators import FNO, GINO, Operator
from uqno.operators.interpolate import multilinear
from uqno.radius.contract import Base, Residuals
from uqno.training import pointwise_error

Fields = Mapping[str, Tensor]
# Fields that say where an answer is wanted; without them it is wanted where a is given.
WHERE = ("points", "a_points", "queries", "query_normals", "query_features")


def seen(base: Base, batch: Fields) -> tuple[Tensor, dict[str, Tensor]]:
    """Ĝ(a) (batch, channel, *points) where it is wanted, and the batch a radius network sees."""
    center, features = base.view(batch)
    extra = torch.cat((center, features), dim=1)
    if not is_elsewhere(batch):
        return center, with_extra(batch, extra, axis=1)
    if "a" not in batch:
        raise ValueError(
            "a radius at queries off the surface is not supported: give the points of interest as "
            "points of the geometry, or leave queries out"
        )
    here = {name: field for name, field in batch.items() if name not in WHERE}
    on_grid = with_extra(here, torch.cat(base.view(here), dim=1), axis=1)
    at_points = torch.cat((a_at_points(base.operator, batch), extra), dim=1)
    return center, {**on_grid, "points": batch["points"], "a_points": at_points}


def is_elsewhere(batch: Fields) -> bool:
    return ("a" in batch and "points" in batch) or "queries" in batch


def with_extra(fields: Fields, extra: Tensor, axis: int) -> dict[str, Tensor]:
    """A sample (axis 0) or a batch (axis 1) with `extra` (…, channel, *points) added."""
    if "a" in fields:
        return {**fields, "a": torch.cat((fields["a"], extra), dim=axis)}
    added = extra.movedim(axis, -1)
    given = [fields["features"]] if "features" in fields else []
    return {**fields, "features": torch.cat((*given, added), dim=-1)}


def a_at_points(operator: Operator, batch: Fields) -> Tensor:
    """a (batch, channel, q) at the points: as given, or interpolated on the operator's grid."""
    if "a_points" in batch:
        return batch["a_points"]
    a, module = batch["a"], operator.module
    if isinstance(module, FNO):
        axes = module.fourier.grid(a.shape[2:], a)
    else:
        axes = tuple(torch.linspace(0, 1, n, dtype=a.dtype) for n in a.shape[2:])
    return multilinear(a, axes, batch["points"])


class RadiusSamples:
    """Training samples of a radius: what it sees, and as truth `u` the residual to cover."""

    def __init__(self, residuals: Residuals) -> None:
        self.residuals = residuals

    def __len__(self) -> int:
        return len(self.residuals)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        r = self.residuals
        sample, center = r.data[i], r.centers[i]
        fields = with_extra(sample, torch.cat((center, r.features[i]), dim=0), axis=0)
        return {**fields, "u": sample["u"] - center}

    def inputs(self) -> int:
        """Channels that the network sees."""
        sample = self[0]
        return sample["a"].shape[0] if "a" in sample else sample["features"].shape[-1]

    def dimensions(self) -> int | None:
        """Of the grid; None for geometries."""
        sample = self[0]
        return sample["a"].ndim - 1 if "a" in sample else None

    def mean_error(self) -> float:
        """mean over functions and points of ‖u − Ĝ(a)‖, by the weights where there are any."""
        total = 0.0
        for i in range(len(self)):
            sample = self[i]
            error, weights = pointwise_error(sample["u"][None])[0], sample.get("weights")
            mean = error.mean() if weights is None else (error * weights).sum() / weights.sum()
            total += float(mean)
        return total / len(self)


def network_like(
    operator: Operator, inputs: int, outputs: int, dimensions: int | None
) -> nn.Module:
    """An untrained network of the base's kind; an FNO for a grid base that is not uqno's own."""
    if isinstance(operator.module, FNO):
        return operator.module.like(inputs, outputs)
    if isinstance(operator.module, GINO):
        return operator.module.like(inputs, outputs)
    if dimensions is None:
        raise ValueError(
            f"no network is known for {type(operator.module).__name__} on geometries: pass "
            "radius=QuantileRadius(network=...)"
        )
    return FNO(inputs, outputs, modes=(12,) * dimensions)
