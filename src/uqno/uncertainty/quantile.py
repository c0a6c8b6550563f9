"""The paper's residual operator: E minimises the generalised quantile loss of ‖u − Ĝ(a)‖."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from uqno.operators import Operator
from uqno.operators.symmetry import averaged
from uqno.training import QuantileLoss
from uqno.types import Batch
from uqno.uncertainty.contract import Base, Options, Prediction, Residuals
from uqno.uncertainty.inputs import mean_error, network_inputs
from uqno.uncertainty.network import ErrorOperator, NetworkUncertainty


class PositiveOperator(ErrorOperator):
    """E = floor + scale · softplus(network): positive by construction, of the size of errors."""

    def forward(self, batch: Batch) -> Tensor:
        return self.floor + self.scale * F.softplus(Operator.forward(self, batch))


class Quantile(NetworkUncertainty):
    """E(a)(x) = scale · (Q(a)(x) / scale)^power, Q the (1 − level)-quantile of the error.

    Q = floor + scale · softplus(network(a, Ĝ(a), features)), where scale is the mean training
    error; the network is trained by the quantile loss, point by point.

    Args:
        level: α of the quantile loss; one E serves every α of a calibration, this one best.
        network: (input channels) → a module with one output channel; by default the same kind as
            the base, and an FNO for a base on a grid that is no `NeuralOperator`.
        floor: the smallest Q, as a share of the mean training error: a ratio to an uncertainty near
            zero would let a few points of no interest decide the scale of the whole band.
        averaged: average Q over the symmetries too.
        power: in (0, 1]. An estimated quantile varies more than the quantile itself, so a little
            less of its variation makes the tighter band; 1 is the paper's E. The default was chosen
            on Darcy functions that served nothing else.

    Reference:
        Ma et al., Calibrated uncertainty quantification for operator learning via conformal
        prediction, TMLR 2024.
    """

    name = "quantile"
    kind = PositiveOperator

    def __init__(
        self,
        level: float = 0.1,
        network: Callable[[int], nn.Module] | None = None,
        floor: float = 0.05,
        averaged: bool = True,
        power: float = 0.8,
    ) -> None:
        if not 0 < power <= 1:
            raise ValueError(f"power = {power} must lie in (0, 1]: 1 leaves the quantile as it is")
        super().__init__(None if network is None else lambda inputs, _: network(inputs), floor)
        self.loss = QuantileLoss(float(level))
        self.averaged, self.power = averaged, power

    def saved(self) -> dict[str, Any]:
        config = {"level": self.loss.alpha, "floor": self.floor_share, "averaged": self.averaged}
        return {"config": {**config, "power": self.power}, **self.saved_network()}

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        mean = mean_error(residuals)
        self.train_network(
            base,
            residuals,
            options,
            outputs=1,
            loss=self.loss,
            scale=mean,
            floor=self.floor_share * mean,
        )

    def predict(self, base: Base, batch: Batch) -> Prediction:
        operator = self.fitted()
        center, inputs = network_inputs(base, batch)
        symmetries = base.symmetries if self.averaged else ()
        quantile, _ = averaged(operator, inputs, symmetries)
        scale = operator.scale.to(quantile)
        return Prediction(center, scale * (quantile[:, 0] / scale) ** self.power)
