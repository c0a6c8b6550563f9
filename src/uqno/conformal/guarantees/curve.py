"""All levels at once: λ(α) = κ g(α) covers 1 − α of a new function for every α simultaneously.

The score of a function is max_α s(α) / g(α), where s(α) is the least λ that covers 1 − α of it, and
κ the j-th smallest of the n scores. A reader may choose α afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from uqno.conformal import words
from uqno.conformal.guarantees import settings as ask
from uqno.conformal.guarantees.contract import (
    Collector,
    Facts,
    ScoreCollector,
    share_in_json,
)
from uqno.conformal.guarantees.ranked import Ranked
from uqno.conformal.guarantees.shape import Shape
from uqno.conformal.planning import require
from uqno.conformal.scores import Functions
from uqno.types import Integers, Reals, Sampling, Share

if TYPE_CHECKING:
    from uqno.conformal.record import Calibration

# κ g is a product of rounded numbers: so much more covers what the exact one does.
ROUNDED: Final = 1 + 2.0**-50
WHY_GRID = "at random points no one point rank serves all levels"


@dataclass
class CurveScore(ScoreCollector):
    """max over the levels of (the least λ that covers 1 − α) / g(α)."""

    curve: Shape = field(default_factory=Shape.half_normal)

    def ranks(self, points: int) -> Integers | None:
        return None if self.weighted else self.curve.point_ranks(points)

    def score(self, functions: Functions) -> Reals:
        if self.weighted:
            shares = [1 - Fraction(x) for x in self.curve.levels]
            scores = functions.weighted_scores(shares) / self.curve.sizes
            return np.asarray(scores.max(axis=1))
        return functions.largest(self.curve.point_ranks(functions.points), self.curve.sizes)


@dataclass(frozen=True)
class Curve(Ranked):
    """With probability at least 1 − δ, for all α at once at least 1 − α lies in the band of α.

    Args:
        delta: the probability that the promise fails for some α, in (0, 1).
        shape: g, a `Shape` that was fixed on residuals of training functions; by default that of
            normal errors. Between its levels the smaller one serves; below all there is no band.
        alpha: the level of the band that is shown; `calibration.at(alpha=…)` shows another.
        confidence: for a promise that holds for this very calibration set, with this probability.
        sampling: "grid".
    """

    delta: Share
    shape: Any = None
    alpha: Share = 0.1
    confidence: Share | None = None
    sampling: Sampling = "grid"

    name: ClassVar[str] = "curve"
    shares: ClassVar[tuple[str, ...]] = ("delta",)

    def __post_init__(self) -> None:
        self.set_shares("delta", "alpha", "confidence")
        object.__setattr__(self, "sampling", ask.grid_only(self.name, self.sampling, WHY_GRID))
        object.__setattr__(self, "shape", Shape.given(self.shape))
        self.shape.at(self.alpha)

    @property
    def settings(self) -> dict[str, Any]:
        alpha = share_in_json(Fraction(self.alpha))
        shape = None if self.shape == Shape.half_normal() else self.shape.settings
        return {"alpha": alpha, **self.shares_in_json, "shape": shape, "sampling": self.sampling}

    @property
    def factor(self) -> float:
        return float(self.shape.at(self.alpha)) * ROUNDED

    def inside(self, *, weighted: bool) -> str:
        domain = words.domain("grid", weighted)
        return (
            f"covers at least {words.rest(self.alpha)} of {domain}, and at once for every alpha "
            f"from {words.percent(self.shape.levels[0])} on the band of that alpha covers at least "
            "1 − alpha of them"
        )

    def collector(self, facts: Facts) -> Collector:
        if facts.number is not None and facts.sizes:
            require(self, facts.number, min(facts.sizes))
        return CurveScore(weighted=facts.weighted, curve=self.shape)

    def at(self, calibration: Calibration, **levels: Share) -> Calibration:
        ask.only_levels(self.name, levels, ("alpha",))
        rule = self.of_settings({**self.settings, **levels})
        kappa = float(calibration.details["kappa"])
        return replace(calibration, rule=rule, scale=kappa * rule.factor)
