"""E trained for the band that it will make, one copy for each level α."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from uqno.operators import Operator
from uqno.operators.symmetry import augmentation
from uqno.training import BandLoss, fit
from uqno.types import Batch
from uqno.uncertainty.contract import Base, Options, Prediction, Residuals, Uncertainty
from uqno.uncertainty.inputs import ErrorSamples
from uqno.uncertainty.quantile import Quantile

BATCH = 2
"""Functions of a batch, relative to those of the first training: its largest scores decide."""
RATE = 0.3
"""The learning rate, relative to that of the first training."""


class Conformal(Uncertainty):
    """E = the quantile operator, trained further by the logarithm of the bandwidth it would have.

    A quantile at each point is not what makes the tightest band: λ̂ is the score of the worst
    functions, so E must be right about how bad those are. `Quantile` is trained first; then, for
    each level α, a copy of it by `uqno.training.BandLoss`: the logarithm of the bandwidth of a
    batch, as a smooth function of E.

    Args:
        levels: α of each copy, in (0, 1). A model predicts with the copy of the first level, for
            whatever α it is calibrated; `for_level` gives the others.
        network: (input channels) → a module with one output channel; by default as in `Quantile`.
        floor: the smallest E, as a share of the mean training error.
        averaged: average E over the symmetries too.
        share: epochs of a copy, as a share of those of the first training.

    Raises:
        ValueError: a level is out of its bounds or given twice, or there is none.
    """

    name = "conformal"

    def __init__(
        self,
        levels: Sequence[float] = (0.1,),
        network: Callable[[int], nn.Module] | None = None,
        floor: float = 0.05,
        averaged: bool = True,
        share: float = 1 / 3,
    ) -> None:
        super().__init__()
        values = tuple(float(level) for level in levels)
        if not values or not all(0 < x < 1 for x in values) or len(set(values)) < len(values):
            raise ValueError(f"levels = {values} must be different numbers in (0, 1), at least one")
        if not 0 < share < float("inf"):
            raise ValueError(f"share = {share} must be positive, such as 1/3 of the epochs")
        self.own_levels, self.share = values, float(share)
        first = Quantile(max(values), network, floor, averaged, power=1.0)
        self.copies = nn.ModuleList([first])

    @property
    def levels(self) -> tuple[float, ...]:
        """α of each copy."""
        return self.own_levels

    def saved(self) -> dict[str, Any]:
        first = self._copies()[0]
        config = {
            "levels": list(self.own_levels),
            "floor": first.floor_share,
            "averaged": first.averaged,
            "share": self.share,
        }
        return {"config": config, "network": first.saved()}

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        first = self._copies()[0]
        prefix = "copies.0."
        own = {n.removeprefix(prefix): x for n, x in state.items() if n.startswith(prefix)}
        first.restore(base, saved["network"], own)
        self.copies = nn.ModuleList([first, *(copy.deepcopy(first) for _ in self.levels[1:])])
        self.load_state_dict(state)

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        first = self._copies()[0]
        first.fit(base, residuals, Options(_in_folder(options.training, "quantile"), options.seed))
        tuned = []
        for level in self.levels:
            one = copy.deepcopy(first)
            training = self._tuning(base, options, len(residuals), f"band-{level:g}")
            data, loss = ErrorSamples(residuals), BandLoss(level)
            fit(one.fitted(), data, loss=loss, seed=options.seed, **training)
            one.fitted().to(base.operator.device)
            tuned.append(one)
        self.copies = nn.ModuleList(tuned)

    def _tuning(self, base: Base, options: Options, count: int, name: str) -> dict[str, Any]:
        """How a copy is trained further: shorter, more slowly, in larger batches."""
        training = _in_folder(options.training, name)
        defaults = inspect.signature(fit).parameters
        epochs, batch, rate = (
            training.get(key, defaults[key].default)
            for key in ("epochs", "batch_size", "learning_rate")
        )
        left = count - int(count * training.get("validation", defaults["validation"].default))
        return {
            "augment": augmentation(base.symmetries),
            **training,
            "epochs": max(1, round(epochs * self.share)),
            "batch_size": max(1, min(BATCH * batch, left)),
            "learning_rate": RATE * rate,
        }

    def for_level(self, alpha: float) -> Quantile:
        """The copy that was trained for the level nearest to α, by their ratio."""
        nearest = min(self.levels, key=lambda level: abs(log(level / alpha)))
        return self._copies()[self.levels.index(nearest)]

    def predict(self, base: Base, batch: Batch) -> Prediction:
        """With the copy of the first level; `for_level` gives the others."""
        return self._copies()[0].predict(base, batch)

    def _copies(self) -> list[Quantile]:
        return cast(list[Quantile], list(self.copies))


def _in_folder(training: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The same with a folder of its own inside the folder."""
    folder = training.get("folder")
    return {**training, "folder": None if folder is None else Path(folder) / name}
