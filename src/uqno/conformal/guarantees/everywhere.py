"""The whole function: every grid point of a new function lies in the band, with probability 1 − δ.

The score of a function is its largest ratio, λ̂ the j-th smallest of the n scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from uqno.conformal.guarantees import settings as ask
from uqno.conformal.guarantees.contract import Collector, Facts, ScoreCollector
from uqno.conformal.guarantees.designs import RankCollector
from uqno.conformal.guarantees.ranked import Ranked
from uqno.conformal.planning import require
from uqno.conformal.scores import Functions
from uqno.types import Reals, Sampling, Share


@dataclass
class LargestRatio(RankCollector):
    """Keeps the largest ratio of each function, whatever the weights of its points."""

    def point_rank(self, points: int) -> int:
        return points


class LargestByWeights(ScoreCollector):
    """The same of functions whose points have no ranks but weights."""

    def score(self, functions: Functions) -> Reals:
        return np.asarray(functions.all_ratios().max(axis=1))


@dataclass(frozen=True)
class Everywhere(Ranked):
    """With probability at least 1 − δ, every grid point of a new function lies in the band.

    Args:
        delta: the probability that some point lies outside, in (0, 1).
        confidence: for a promise that holds for this very calibration set, with this probability.
        sampling: "grid"; of the points between random points nothing can be promised.

    Weights change nothing: a point counts however small its weight. It is `Fraction` with any
    alpha below 1 / m.
    """

    delta: Share
    confidence: Share | None = None
    sampling: Sampling = "grid"

    name: ClassVar[str] = "everywhere"
    shares: ClassVar[tuple[str, ...]] = ("delta",)

    def __post_init__(self) -> None:
        self.set_shares("delta", "confidence")
        why = "values at random points do not bound the error between them, however many they are"
        object.__setattr__(self, "sampling", ask.grid_only(self.name, self.sampling, why))

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.shares_in_json, "sampling": self.sampling}

    def inside(self, *, weighted: bool) -> str:
        return "covers every one of the function's grid points"

    def collector(self, facts: Facts) -> Collector:
        if facts.number is not None and facts.sizes:
            require(self, facts.number, min(facts.sizes))
        return LargestByWeights(weighted=True) if facts.weighted else LargestRatio()
