"""Monte Carlo dropout: where answers under other masks differ, the network is unsure."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from uqno.operators import Operator
from uqno.operators.symmetry import averaged
from uqno.training.devices import preserved_random_state, seed_global
from uqno.training.samples import derived_seed
from uqno.types import Batch
from uqno.uncertainty.contract import Base, Options, Residuals
from uqno.uncertainty.deviation import DeviationUncertainty, checked_count
from uqno.uncertainty.inputs import one_by_one


class Dropout(DeviationUncertainty):
    """E = max(floor, multiplier · deviation over passes of Ĝ under random masks); centre the mean.

    The base must be trained with dropout, as `FNO(..., dropout=0.1)`; nothing else is trained.
    The masks of a pass follow from the seed and are the same for every function of one shape, so
    an answer depends on the function alone, not on its batch. They are drawn for each point, so
    they differ between resolutions; at queries, and on grids that an FNO works through in tiles, a
    layer's integral has masks of its own. A pass is averaged over the symmetries, with the same
    masks for each of them.

    Args:
        passes: how many, at least 2.
        multiplier: deviations that make the uncertainty.
        seed: of the masks.
        floor: the smallest uncertainty, as a share of the mean training error.

    Reference:
        Gal and Ghahramani, Dropout as a Bayesian approximation: representing model uncertainty in
        deep learning, ICML 2016.
    """

    name = "mc-dropout"

    def __init__(
        self, passes: int = 10, multiplier: float = 2.0, seed: int = 0, floor: float = 0.001
    ) -> None:
        super().__init__(multiplier, floor)
        self.passes = checked_count("passes", passes, 2)
        self.seed = checked_count("seed", seed, 0)

    def saved(self) -> dict[str, Any]:
        config = {"passes": self.passes, "multiplier": self.multiplier, "seed": self.seed}
        return {"config": {**config, "floor": self.floor_share}}

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        dropouts(base.only_operator("MC dropout"))
        self.measure(residuals)

    def answers(self, base: Base, batch: Batch) -> Iterator[Tensor]:
        layers = dropouts(base.operator)
        device = base.operator.device
        for k in range(self.passes):
            seed, parts = derived_seed(self.seed, "pass", k), []

            def masked(one: Batch, seed: int = seed) -> Tensor:
                seed_global(seed, device)
                answer: Tensor = base.operator(one)
                return answer

            with preserved_random_state(device), active(layers):
                for one in one_by_one(batch):
                    parts.append(averaged(masked, one, base.symmetries)[0])
            yield torch.cat(parts)


def dropouts(operator: Operator) -> list[nn.Module]:
    """The layers of an operator that drop something."""
    layers: list[nn.Module] = [
        m for m in operator.modules() if isinstance(m, _DropoutNd) and m.p > 0
    ]
    if not layers:
        raise ValueError(
            f"{type(operator.module).__name__} has 0 layers with dropout > 0, MC dropout needs 1: "
            "train a base with it, such as FNO(..., dropout=0.1)"
        )
    return layers


@contextmanager
def active(layers: Sequence[nn.Module]) -> Iterator[None]:
    """These layers as in training, all others as they are."""
    before = [layer.training for layer in layers]
    try:
        for layer in layers:
            layer.train()
        yield
    finally:
        for layer, training in zip(layers, before, strict=True):
            layer.train(training)
