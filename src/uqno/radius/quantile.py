"""The paper's residual operator: E minimises the generalised quantile loss of ‖u − Ĝ(a)‖."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from uqno.operators import Operator
from uqno.operators.symmetry import augmentation, averaged
from uqno.radius.contract import Base, Estimate, Options, Radius, Residuals
from uqno.radius.inputs import RadiusSamples, network_like, seen
from uqno.training import QuantileLoss, fit


class PositiveOperator(Operator):
    """E = floor + scale · softplus(network): positive by construction, of the size of errors."""

    floor: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module) -> None:
        super().__init__(network, normalise=("a", "features"), output=None)
        self.register_buffer("floor", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return self.floor + self.scale * F.softplus(super().forward(batch))


class QuantileRadius(Radius):
    """E(a)(x) = floor + scale · softplus(network(a, Ĝ(a), features)(x)), the (1 − level)-quantile.

    level: α of the quantile loss; one E serves every α of a calibration, this one best.
    network: (input channels) → a module with one output channel; by default the same kind as
        the base, and an FNO for a grid base that is not uqno's own.
    floor: the smallest radius, as a share of the mean training error: a ratio to a radius near
        zero would let a few points of no interest decide the scale of the whole band.
    averaged: average E over the symmetries too.
    """

    name = "quantile"

    def __init__(
        self,
        level: float = 0.1,
        network: Callable[[int], nn.Module] | None = None,
        floor: float = 0.05,
        averaged: bool = True,
    ) -> None:
        super().__init__()
        if not 0 < floor < 1:
            raise ValueError(f"floor = {floor} must lie in (0, 1): a share of the mean error")
        self.loss = QuantileLoss(level)
        self.floor_share, self.make_network, self.averaged = floor, network, averaged
        self.operator: PositiveOperator | None = None
        self.shape: dict[str, int | None] = {}

    def saved(self) -> dict[str, Any]:
        config = {"level": self.loss.alpha, "floor": self.floor_share, "averaged": self.averaged}
        return {"config": config, "own": self.make_network is None, **self.shape}

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        if not saved["own"] and self.make_network is None:
            raise ValueError(
                "the saved radius has a network of your own: pass "
                "radius=QuantileRadius(network=...) to load"
            )
        self.build(base, saved["inputs"], saved["dimensions"])
        self.load_state_dict(state)

    def build(self, base: Operator, inputs: int, dimensions: int | None) -> PositiveOperator:
        """The untrained E for `inputs` channels; `load` fills it with weights."""
        if self.make_network is not None:
            network = self.make_network(inputs)
        else:
            network = network_like(base, inputs, 1, dimensions)
        self.shape = {"inputs": inputs, "dimensions": dimensions}
        self.operator = PositiveOperator(network)
        return self.operator

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        data = RadiusSamples(residuals)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            operator = self.build(base.operator, data.inputs(), data.dimensions())
        mean = data.mean_error()
        operator.scale.fill_(mean)
        operator.floor.fill_(self.floor_share * mean)
        settings = {"augment": augmentation(base.symmetries), **options.training}
        fit(operator, data, loss=self.loss, seed=options.seed, **settings)

    def estimate(self, base: Base, batch: Mapping[str, Tensor]) -> Estimate:
        if self.operator is None:
            raise ValueError("the radius is not fitted: call fit first")
        center, inputs = seen(base, batch)
        symmetries = base.symmetries if self.averaged else ()
        radius, _ = averaged(self.operator, inputs, symmetries)
        return Estimate(center, radius[:, 0])
