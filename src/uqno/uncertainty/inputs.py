"""What an uncertainty network sees of a function: the input a, the prediction Ĝ(a), and features.

On a grid they are channels of `a`; on a geometry, `features` of its points. At queries both are
needed: on the grid (or surface) for the integrals, at the queries for the rest.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from uqno.operators import Operator
from uqno.operators.interpolate import multilinear
from uqno.training import pointwise_error
from uqno.types import Batch, Fields
from uqno.uncertainty.contract import Base, Residuals

# Fields that say where an answer is wanted; without them it is wanted where a is given.
QUERY_FIELDS = ("queries", "a_queries", "query_normals", "query_features")


def network_inputs(base: Base, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    """Ĝ(a) (batch, channel, *points) where it is wanted, and what an uncertainty network takes."""
    center, features = base.view(batch)
    extra = torch.cat((center, features), dim=1)
    if "queries" not in batch:
        return center, with_extra(batch, extra, axis=1)
    if "a" not in batch:
        raise ValueError(
            "an uncertainty at queries off the surface is not supported: give the points of "
            "interest as points of the geometry, or leave queries out"
        )
    here = without_queries(batch)
    on_grid = with_extra(here, torch.cat(base.view(here), dim=1), axis=1)
    at_queries = torch.cat((a_at_queries(base.operator, batch), extra), dim=1)
    return center, {**on_grid, "queries": batch["queries"], "a_queries": at_queries}


def without_queries(batch: Batch) -> dict[str, Tensor]:
    """The batch, to be answered where a is given."""
    return {name: field for name, field in batch.items() if name not in QUERY_FIELDS}


def with_extra(fields: Fields, extra: Tensor, axis: int) -> dict[str, Tensor]:
    """A sample (axis 0) or a batch (axis 1) with `extra` (…, channel, *points) added."""
    if "a" in fields:
        return {**fields, "a": torch.cat((fields["a"], extra), dim=axis)}
    added = extra.movedim(axis, -1)
    given = [fields["features"]] if "features" in fields else []
    return {**fields, "features": torch.cat((*given, added), dim=-1)}


def a_at_queries(operator: Operator, batch: Batch) -> Tensor:
    """a (batch, channel, q) at the queries: as given, or interpolated on the operator's grid."""
    if "a_queries" in batch:
        return batch["a_queries"]
    a = batch["a"]
    return multilinear(a, grid_axes(operator, a.shape[2:], a), batch["queries"])


def grid_axes(operator: Operator, shape: Sequence[int], like: Tensor) -> tuple[Tensor, ...]:
    """The operator's coordinates of a grid of that shape, with the device and dtype of `like`."""
    return tuple(torch.as_tensor(axis).to(like) for axis in operator.axes(shape))


def one_by_one(batch: Batch) -> Iterator[dict[str, Tensor]]:
    """Each function of a batch as a batch of its own; queries (q, d) belong to all of them."""
    shared = {"queries"} if "queries" in batch and batch["queries"].ndim == 2 else set()
    count = len(next(field for name, field in batch.items() if name not in shared))
    for i in range(count):
        yield {name: f if name in shared else f[i : i + 1] for name, f in batch.items()}


def errors(residuals: Residuals) -> Iterator[tuple[Tensor, Tensor | None]]:
    """‖u − Ĝ(a)‖ (*points) of every training function, and its weights where it has any."""
    for i in range(len(residuals)):
        sample = residuals.data[i]
        yield (
            pointwise_error((sample["u"] - residuals.centers[i])[None])[0],
            sample.get("weights"),
        )


def mean_error(residuals: Residuals, power: int = 1) -> float:
    """(mean over functions and points of ‖u − Ĝ(a)‖^p)^(1/p) > 0, by weights if there are any."""
    total = 0.0
    for error, weights in errors(residuals):
        value = error**power
        total += float(value.mean() if weights is None else (value * weights).sum() / weights.sum())
    if not total > 0:
        raise ValueError(
            f"the mean training error is {total}, expected above 0: fit the uncertainty on "
            "functions that the base has not seen"
        )
    return float((total / len(residuals)) ** (1 / power))


class ErrorSamples:
    """Training samples of an uncertainty network: its inputs, and as truth `u` the residual."""

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

    def grid(self) -> list[int] | None:
        """The fewest points along each dimension of the functions' grids; None for geometries."""
        if "a" not in self[0]:
            return None
        sizes = [tuple(center.shape[1:]) for center in self.residuals.centers]
        return [min(along) for along in zip(*sizes, strict=True)]
