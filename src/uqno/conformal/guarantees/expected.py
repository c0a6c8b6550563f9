"""The mean missed share: E[ share of a new function outside the band ] ≤ α, without a δ.

Conformal risk control: λ̂ is the least λ with (Σ_i L_i(λ) + 1) / (n + 1) ≤ α, where L_i(λ) is the
share of calibration function i that a band of scale λ misses.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from uqno.conformal import checks, words
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees import settings as ask
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    Solution,
    share_in_json,
)
from uqno.conformal.guarantees.pool import ROUNDING, Pool, Pooled
from uqno.conformal.guarantees.pooling import KEPT_VALUES, AllRatios, WindowOfRatios
from uqno.conformal.planning import Plan, require
from uqno.types import Integers, Reals, Sampling, Share

if TYPE_CHECKING:
    from uqno.conformal.record import Calibration


@dataclass(frozen=True)
class Expected(Guarantee):
    """In the mean over new functions, at most α of a function lies outside the band.

    Args:
        alpha: the mean share of the domain that may be missed, in (0, 1).
        sampling: "grid", the points are the domain, measured by weights where there are any; or
            "iid", each point is drawn from the domain, and the share is that of the domain. λ̂ is
            the same.

    Up to 4 million values, and for NumPy arrays of any size as a rule, λ̂ is exact. Of longer
    streams counts in bins are kept, λ̂ is rounded up by at most 1e-4 relative, and the sentence
    says so. With weights, and in bins with different numbers of points, shares add up in floats,
    and 1e-9 of what may be missed is kept back for that.

    References:
        A. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster: Conformal Risk Control (2022).
    """

    alpha: Share
    sampling: Sampling = "grid"

    name: ClassVar[str] = "expected"
    shares: ClassVar[tuple[str, ...]] = ("alpha",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checks.share("alpha", self.alpha))
        object.__setattr__(self, "sampling", ask.grid_or_iid(self.name, self.sampling))

    @property
    def settings(self) -> dict[str, Any]:
        return {"alpha": share_in_json(Fraction(self.alpha)), "sampling": self.sampling}

    @property
    def needs_independent_points(self) -> bool:
        return self.sampling != "grid"

    # --- the rule -------------------------------------------------------------------------------

    def budget(self, functions: int) -> Fraction:
        """(n + 1) α − 1, what n functions may miss together."""
        return (functions + 1) * Fraction(self.alpha) - 1

    def feasible(self, functions: int, points: int) -> bool:
        return functions > 1 and self.budget(functions) >= 0

    def collector(self, facts: Facts) -> Collector:
        if facts.weighted:
            checks.weights_design(self.sampling)
        if facts.number is not None and facts.sizes:
            require(self, facts.number, min(facts.sizes))
            alike = len(set(facts.sizes)) == 1 and not facts.weighted
            if facts.repeatable and alike and sum(facts.sizes) > KEPT_VALUES:
                return WindowOfRatios(facts.number, facts.sizes[0], self.budget(facts.number))
        return AllRatios(weighted=facts.weighted)

    def solve(self, evidence: Evidence) -> Solution:
        assert isinstance(evidence, Pooled)
        n = checks.functions(len(evidence))
        require(self, n, int(evidence.sizes.min()))
        scale = evidence.least_scale(self.budget(n))
        if not isfinite(scale):
            raise InfeasibleError(
                f"the points with zero uncertainty where the error is not zero are more than "
                f"alpha = {float(self.alpha):g} allows over {n} functions: no finite scale is "
                "valid; give the uncertainty a positive floor"
            )
        details = {"rounded up by": np.array(ROUNDING)} if evidence.rounded else {}
        return Solution(scale, None, details=details)

    def scales(self, evidence: Evidence, splits: Integers) -> Reals:
        alike = len(np.unique(evidence.sizes)) == 1
        if not isinstance(evidence, Pool) or evidence.shares is not None or not alike:
            return super().scales(evidence, splits)
        n, m = splits.shape[1], int(evidence.sizes[0])
        missed = int(self.budget(n) * m)
        if not self.feasible(n, m):
            return np.full(len(splits), np.inf)
        order = np.argsort(-evidence.scores)
        function = order // m
        found = np.empty(len(splits))
        for i, index in enumerate(splits):
            taken = np.bincount(index, minlength=len(evidence))[function]
            found[i] = evidence.scores[order[np.searchsorted(np.cumsum(taken), missed, "right")]]
        return found

    # --- words ----------------------------------------------------------------------------------

    def sentence(self, calibration: Calibration) -> str:
        c = calibration
        drawn, others = "", "about other points than those functions are calibrated at, "
        if self.sampling == "iid":
            drawn, others = ", that each point is drawn from the domain", ""
        finely = words.about_points("grid", "own", False, c.points, c.points_max)
        rounded = ""
        if "rounded up by" in c.details:
            rounded = " (the factor is rounded up, by at most 0.01 % of it)"
        return (
            f"The share of {words.domain(self.sampling, c.weighted)} that lies outside the band of "
            f"{words.rounded_up(c.scale, 6)} × uncertainty around the prediction{rounded} is at "
            f"most {words.percent(self.alpha)} in the mean, over the draw of the n = {c.functions} "
            "calibration functions and of a new function exchangeable with them, given that "
            f"prediction and uncertainty were made without these functions{drawn}{finely}, "
            "whatever the law and however good the model; nothing is promised about this "
            "calibration set alone, about how likely a function is to miss more than that, "
            f"{others}about which points are missed, about functions picked for their input, or "
            "about data of another kind."
        )

    def promise(self, calibration: Calibration) -> str:
        domain = words.domain(self.sampling, calibration.weighted)
        return f"misses ≤ {words.percent(self.alpha)} of {domain} in the mean over new functions"

    def plan_sentence(self, plan: Plan) -> str:
        given = f"alpha = {float(self.alpha):g} in the mean, sampling = '{self.sampling}'"
        domain = words.domain(self.sampling, weighted=False)
        most = float(self.budget(plan.functions))
        done = (
            f"the scale is the least at which the shares that they miss add up to at most "
            f"{most:.6g}; then, in the mean over new functions, the band misses at most "
            f"{words.percent(self.alpha)} of {domain}"
        )
        return words.plan(plan, given, done)

    def check(self, calibration: Calibration) -> None:
        if calibration.weighted:
            checks.weights_design(self.sampling)
        require(self, calibration.functions, calibration.points)
