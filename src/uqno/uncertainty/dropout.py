"""Monte Carlo dropout: where answers under other masks differ, the network is unsure."""

from collections.abc import Iterator
from math import sqrt
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import (
    AlphaDropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
    _DropoutNd,
)

from uqno.operators import Operator
from uqno.operators.symmetry import averaged
from uqno.training.samples import derived_seed
from uqno.types import Batch
from uqno.uncertainty.contract import Base, Options, Residuals
from uqno.uncertainty.deviation import DeviationUncertainty, checked_count
from uqno.uncertainty.inputs import one_by_one

# Of the SELU activation, which alpha dropout goes with.
SELU = 1.7580993408473766


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
        dropouts(base.operator)
        device = base.operator.device
        masks = torch.Generator("cpu" if device.type == "meta" else device)  # meta draws nothing
        operator = with_masks(base.operator, masks)
        for k in range(self.passes):
            seed, parts = derived_seed(self.seed, "pass", k), []

            def masked(one: Batch, seed: int = seed) -> Tensor:
                masks.manual_seed(seed)
                answer: Tensor = operator(one)
                return answer

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


def with_masks(module: nn.Module, masks: torch.Generator) -> nn.Module:
    """The module with every dropout active, its masks drawn from `masks`.

    A copy of its tree that shares weights, buffers and all else with it: the module itself stays in
    its mode, and no global random state is drawn from, so several threads may do it at once.
    """
    copies: dict[int, nn.Module] = {}

    def copied(part: nn.Module) -> nn.Module:
        part = getattr(part, "_orig_mod", part)  # of a compiled module, the one that was compiled
        if id(part) in copies:
            return copies[id(part)]
        if isinstance(part, _DropoutNd) and part.p > 0:
            copies[id(part)] = Masked(part, masks)
            return copies[id(part)]
        copy = cast(nn.Module, object.__new__(type(part)))
        copies[id(part)] = copy
        children = {n: None if c is None else copied(c) for n, c in part._modules.items()}
        copy.__dict__.update({**part.__dict__, "_modules": children})
        return copy

    return copied(module)


class Masked(nn.Module):
    """A dropout layer that is active and draws from a generator of its own.

    Args:
        layer: any of torch's; on the CPU the masks are those that it draws from the global
            generator in the same state.
        masks: what they are drawn from.
    """

    def __init__(self, layer: _DropoutNd, masks: torch.Generator) -> None:
        super().__init__()
        self.p, self.masks = layer.p, masks
        self.by_channel = isinstance(layer, Dropout1d | Dropout2d | Dropout3d | FeatureAlphaDropout)
        self.alpha = isinstance(layer, AlphaDropout | FeatureAlphaDropout)
        # Of these, an input with one dimension less is one function without a batch axis.
        self.batched = {Dropout1d: 3, Dropout3d: 5}.get(type(layer))

    def forward(self, x: Tensor) -> Tensor:
        if self.batched is not None and x.ndim == self.batched - 1:
            return cast(Tensor, self(x[None])[0])
        if self.p == 1:
            return torch.zeros_like(x)
        shape = (*x.shape[:2], *(1 for _ in x.shape[2:]))
        mask = x.new_empty(shape) if self.by_channel else torch.empty_like(x)
        mask.bernoulli_(1 - self.p, generator=self.masks)
        if not self.alpha:
            return x * mask.div_(1 - self.p)
        a = 1 / sqrt((SELU**2 * self.p + 1) * (1 - self.p))
        shift = mask.add(-1).mul_(SELU * a).add_(SELU * a * self.p)
        return x * mask.mul_(a) + shift
