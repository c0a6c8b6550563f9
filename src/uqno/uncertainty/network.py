"""Estimators of E that are networks: built like the base, trained on residuals, saved whole."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from uqno.operators import Operator
from uqno.operators.adapter import MODES
from uqno.operators.symmetry import augmentation
from uqno.training import fit
from uqno.training.settings import Loss
from uqno.types import Batch
from uqno.uncertainty.contract import Base, Options, Residuals, Uncertainty
from uqno.uncertainty.deviation import check_share
from uqno.uncertainty.inputs import ErrorSamples

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

    def forward(self, batch: Batch) -> Tensor:
        return self.scale * super().forward(batch)


class NetworkUncertainty(Uncertainty):
    """E from one network that sees (a, Ĝ(a), features).

    Args:
        make_network: by default the same kind as the base, an FNO for a base on a grid that is no
            `NeuralOperator`.
        floor: the smallest uncertainty, as a share of the mean training error.
    """

    kind: type[ErrorOperator] = ErrorOperator

    def __init__(self, make_network: MakeNetwork | None, floor: float) -> None:
        super().__init__()
        check_share("floor", floor)
        self.make_network, self.floor_share = make_network, floor
        self.operator: ErrorOperator | None = None
        self.shape: dict[str, Any] = {}

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
        # Models saved before have the number of dimensions, and grids that carry all modes.
        grid = saved.get("grid", [MODES + 1] * (saved.get("dimensions") or 0) or None)
        self.build(base, saved["inputs"], saved["outputs"], grid)
        self.load_state_dict(state)

    def build(
        self, base: Operator, inputs: int, outputs: int, grid: Sequence[int] | None
    ) -> ErrorOperator:
        """The untrained operator, on the CPU; `restore` fills it with weights."""
        if self.make_network is not None:
            network = self.make_network(inputs, outputs)
        else:
            network = base.network_like(inputs, outputs, grid)
        self.shape = {"inputs": inputs, "outputs": outputs, "grid": grid}
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
        """Build the network and train it; it ends on the device of the base.

        Args:
            base: Ĝ.
            residuals: what it learns from.
            options: how it is trained.
            outputs: channels of its answer.
            loss: of its answer, with the residual as `u`.
            scale: the size of its answers, in the units of u.
            floor: the smallest of its answers, in the units of u.
        """
        data = ErrorSamples(residuals)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            operator = self.build(base.operator, data.inputs(), outputs, data.grid())
        operator.scale.fill_(scale)
        operator.floor.fill_(floor)
        settings = {"augment": augmentation(base.symmetries), **options.training}
        fit(operator, data, loss=loss, seed=options.seed, **settings)
        operator.to(base.operator.device)

    def fitted(self) -> ErrorOperator:
        """The trained operator.

        Raises:
            ValueError: There is none yet.
        """
        if self.operator is None:
            raise ValueError("the uncertainty is not fitted: call fit first")
        return self.operator
