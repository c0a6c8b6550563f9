"""Guarantees with one score a function: λ̂, or a factor of it, is the j-th smallest of n scores."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.conformal import checks, words
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees import settings as ask
from uqno.conformal.guarantees.contract import (
    Evidence,
    Guarantee,
    Solution,
    finite_scale,
    share_in_json,
)
from uqno.conformal.planning import Plan, plan_for
from uqno.conformal.ranks import Ranks, function_rank
from uqno.types import Integers, Reals, Share

if TYPE_CHECKING:
    from uqno.conformal.record import Calibration


class Ranked(Guarantee):
    """λ̂ is κ, the j-th smallest score, times `factor`; j is a matter of n and δ alone.

    Promised for a new function, on average over calibration sets, or with `confidence` for the
    very set.
    """

    delta: Share
    confidence: Share | None

    @property
    def factor(self) -> float:
        """What the j-th smallest score is multiplied by."""
        return 1.0

    @abstractmethod
    def inside(self, *, weighted: bool) -> str:
        """What the band of a new function does, as the end of a sentence: "covers …"."""

    @property
    def shares_in_json(self) -> dict[str, Any]:
        """δ and the confidence, as settings."""
        confidence = self.confidence
        return {
            "delta": share_in_json(Fraction(self.delta)),
            "confidence": None if confidence is None else share_in_json(Fraction(confidence)),
        }

    def set_shares(self, *names: str) -> None:
        """Check these of the shares and keep them as exact numbers."""
        for name in names:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, checks.share(name, value))  # frozen for others

    # --- the rule -------------------------------------------------------------------------------

    def function_rank(self, functions: int) -> int | None:
        """j, or None where n functions are too few."""
        confidence = None if self.confidence is None else Fraction(self.confidence)
        return function_rank(functions, Fraction(self.delta), confidence)

    def feasible(self, functions: int, points: int) -> bool:
        return functions > 1 and self.function_rank(functions) is not None

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        j = self.function_rank(functions)
        return None if j is None else Ranks(None, j)

    def solve(self, evidence: Evidence) -> Solution:
        n = checks.functions(len(evidence))
        j = self.function_rank(n)
        if j is None:
            raise InfeasibleError(str(plan_for(self, n, int(evidence.sizes.min()))))
        kappa = finite_scale(evidence.scores, j)
        details = {} if self.factor == 1 else {"kappa": np.array(kappa)}
        return Solution(kappa * self.factor, evidence.scores, Ranks(None, j), details)

    def scales(self, evidence: Evidence, splits: Integers) -> Reals:
        n = splits.shape[1]
        j = self.function_rank(n)
        if n < 2 or j is None:
            return np.full(len(splits), np.inf)
        scores = evidence.scores[splits]
        return np.asarray(np.partition(scores, j - 1, axis=1)[:, j - 1] * self.factor)

    # --- words ----------------------------------------------------------------------------------

    def sentence(self, calibration: Calibration) -> str:
        c = calibration
        n, inside = f"n = {c.functions} calibration functions", self.inside(weighted=c.weighted)
        band = f"the band of {words.rounded_up(c.scale, 6)} × uncertainty around the prediction"
        if self.confidence is None:
            said = (
                f"With probability at least {words.rest(self.delta)} over the draw of the {n} and "
                f"of a new function exchangeable with them, {band} {inside}"
            )
            unsaid = "about this calibration set alone, "
        else:
            said = (
                f"With confidence {words.percent(self.confidence)} in the draw of the {n}, for at "
                f"least {words.rest(self.delta)} of new functions drawn independently from the "
                f"same law {band} {inside}"
            )
            unsaid = ""
        finely = words.about_points("grid", "own", False, c.points, c.points_max)
        return (
            f"{said}, given that prediction and uncertainty were made without these functions"
            f"{finely}, whatever the law and however good the model; nothing is promised {unsaid}"
            "about other points than those functions are calibrated at, about functions picked "
            "for their input, or about data of another kind."
        )

    def promise(self, calibration: Calibration) -> str:
        inside = self.inside(weighted=calibration.weighted)
        if self.confidence is None:
            return f"{inside} with probability ≥ {words.rest(self.delta)}"
        return (
            f"{inside} for ≥ {words.rest(self.delta)} of new functions, "
            f"confidence {words.percent(self.confidence)}"
        )

    def plan_sentence(self, plan: Plan) -> str:
        given, inside = f"delta = {float(self.delta):g}", self.inside(weighted=False)
        held = f"with probability at least {words.rest(self.delta)}, the band {inside}"
        if self.confidence is not None:
            given += f", confidence = {float(self.confidence):g}"
            held = (
                f"with confidence {words.percent(self.confidence)} in the draw of the calibration "
                f"functions, the band {inside} for at least {words.rest(self.delta)} of new "
                "functions"
            )
        done = ""
        if plan.ranks is not None:
            rank = words.ordinal(plan.ranks.function)
            done = f"the scale is from the {rank} smallest score of {plan.functions}; then, {held}"
        return words.plan(plan, given, done)

    # --- files ----------------------------------------------------------------------------------

    def check(self, calibration: Calibration) -> None:
        c, pair = calibration, calibration.ranks
        least = self.function_rank(c.functions)
        if pair is None or pair.point is not None:
            raise ValueError(f"ranks = {pair} do not fit guarantee {self.name!r}: (None, j) would")
        j = checks.count("ranks.function", pair.function)
        if least is None or not least <= j <= c.functions:
            raise ValueError(
                f"ranks.function = {j} of {c.functions} functions does not carry the guarantee "
                f"that the calibration claims: the least that does is {least}"
            )
        if self.factor == 1:
            return
        kappa = ask.detail("kappa", c.details)
        if c.scale < kappa * self.factor:
            raise ValueError(
                f"scale = {c.scale!r} lies below {kappa * self.factor!r}, kappa = {kappa!r} times "
                f"{self.factor!r}: the calibration claims more than its numbers carry"
            )
