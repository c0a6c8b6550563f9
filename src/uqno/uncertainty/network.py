"""Uncertainties that are networks themselves: built like the base, trained on residuals, saved whole."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from uqno.operators import Operator
from uqno.operators.symmetry import augmentation
from uqno.training import fit
from uqno.training.settings import Loss
from uqno.uncertainty.contract import Base, Options, Residuals, Uncertainty
from uqno.uncertainty.inputs import ErrorSamples, network_like

MakeNetwork = Callable[[int, int], nn.Module]
"""(input channels, output channels) → an untrained module."""


class ErrorOperator(Operator):
    """scale · network: an operator whose answers are of the size of training errors."""

    floor: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module) -> None:
        super().__init__(network, normalise=("a", "features"), output=None)
        self.register_buffer("floor", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return self.scale * super().forward(batch)


class NetworkUncertainty(Uncertainty):
    """E from one network that sees (a, Ĝ(a), features).

    make_network: by default the same kind as the base, an FNO for a foreign base on a grid.
    floor: the smallest uncertainty, as a share of the mean training error.
    """

    kind: type[ErrorOperator] = ErrorOperator

    def __init__(self, make_network: MakeNetwork | None, floor: float) -> None:
        super().__init__()
        check_share("floor", floor)
        self.make_network, self.floor_share = make_network, floor
        self.operator: ErrorOperator | None = None
        self.shape: dict[str, int | None] = {}

    def saved_network(self) -> dict[str, Any]:
        """What `restore` needs to build the network again."""
        return {"own": self.make_network is None, **self.shape}

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        if not saved["own"] and self.make_network is None:
            raise ValueError(
                "the saved uncertainty has a network of your own: pass "
                f"uncertainty={type(self).__name__}(network=...) to load"
            )
        self.build(base, saved["inputs"], saved["outputs"], saved["dimensions"])
        self.load_state_dict(state)

    def build(
        self, base: Operator, inputs: int, outputs: int, dimensions: int | None
    ) -> ErrorOperator:
        """The untrained operator; `restore` fills it with weights."""
        if self.make_network is not None:
            network = self.make_network(inputs, outputs)
        else:
            network = network_like(base, inputs, outputs, dimensions)
        self.shape = {"inputs": inputs, "outputs": outputs, "dimensions": dimensions}
        self.operator = self.kind(network)
        return self.operator

    def train_network(
        self,
        base: Base,
        residuals: Residuals,
        options: Options,
        *,
        outputs: int,
        loss: Loss,
        scale: float,
        floor: float,
    ) -> None:
        """Build and train it; scale, floor: of its answers, in the units of u."""
        data = ErrorSamples(residuals)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            operator = self.build(base.operator, data.inputs(), outputs, data.dimensions())
        operator.scale.fill_(scale)
        operator.floor.fill_(floor)
        settings = {"augment": augmentation(base.symmetries), **options.training}
        fit(operator, data, loss=loss, seed=options.seed, **settings)

    def fitted(self) -> ErrorOperator:
        if self.operator is None:
            raise ValueError("the uncertainty is not fitted: call fit first")
        return self.operator


def check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} = {value} must lie in (0, 1): a share of the mean error")
