"""A number that follows from a function: P[ q(u) in its interval ] ≥ 1 − δ.

The interval of a quantity q of interest, such as a drag, is

    q(Ĝ(a)) ± λ̂ R(a),

R > 0 being its uncertainty, fixed before the calibration functions are seen. The score of a
function is |q(u) − q(Ĝ(a))| / R(a), the largest of these for a quantity of several numbers, and λ̂
is the j-th smallest score: the paper's rule at one point, so nothing is lost on the way.
"""

from __future__ import annotations

import fractions
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from uqno.conformal import checks, words
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    Solution,
    finite_scale,
    share_in_json,
)
from uqno.conformal.guarantees.designs import RankCollector
from uqno.conformal.planning import plan_for
from uqno.conformal.ranks import Ranks, function_rank
from uqno.types import Share

if TYPE_CHECKING:
    from uqno.conformal.planning import Plan
    from uqno.conformal.record import Calibration


class LargestRatio(RankCollector):
    """k = m: every number of the quantity counts."""

    def point_rank(self, points: int) -> int:
        return points


@dataclass(frozen=True)
class Quantity(Guarantee):
    """With probability at least 1 − δ, the quantity of a new function lies in its interval.

    Args:
        delta: the probability that it does not, in (0, 1).
        quantity: what it is called.
        confidence: for a promise that holds for this very calibration set, with this probability.
    """

    delta: Share
    quantity: str = "the quantity"
    confidence: Share | None = None

    name: ClassVar[str] = "quantity"
    shares: ClassVar[tuple[str, ...]] = ("delta",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checks.share("delta", self.delta))
        if self.confidence is not None:
            confidence = checks.share("confidence", self.confidence)
            object.__setattr__(self, "confidence", confidence)
        if not isinstance(self.quantity, str) or not self.quantity:
            raise ValueError(f"quantity = {self.quantity!r} must be a name")

    @property
    def settings(self) -> dict[str, Any]:
        shares = {"delta": self.delta, "confidence": self.confidence}
        return {
            "quantity": self.quantity,
            **{n: None if x is None else share_in_json(_exact(x)) for n, x in shares.items()},
        }

    def feasible(self, functions: int, points: int) -> bool:
        return functions > 1 and self.ranks_for(functions, points) is not None

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        confidence = None if self.confidence is None else _exact(self.confidence)
        j = function_rank(functions, _exact(self.delta), confidence)
        return None if j is None else Ranks(points, j)

    def collector(self, facts: Facts) -> Collector:
        if facts.weighted:
            raise ValueError("the numbers of a quantity have no weights: leave weights out")
        if facts.number is not None and facts.number > 1:
            self._ranks(facts.number, 1)
        return LargestRatio()

    def solve(self, evidence: Evidence) -> Solution:
        n = checks.functions(len(evidence))
        ranks = self._ranks(n, int(evidence.sizes.min()))
        return Solution(finite_scale(evidence.scores, ranks.function), evidence.scores, ranks)

    def _ranks(self, n: int, m: int) -> Ranks:
        ranks = self.ranks_for(n, m)
        if ranks is None:
            raise InfeasibleError(str(plan_for(self, n, m)))
        return ranks

    # --- words and files --------------------------------------------------------------------------

    def sentence(self, calibration: Calibration) -> str:
        c = calibration
        inside = (
            f"the interval of {words.rounded_up(c.scale, 6)} × its uncertainty around the "
            f"predicted {self.quantity} contains the true {self.quantity}"
        )
        said = f"With probability at least {words.rest(self.delta)} over the draw of the n = "
        said += f"{c.functions} calibration functions and of a new function exchangeable with them"
        unsaid = "about this calibration set alone, "
        if self.confidence is not None:
            said = f"With confidence {words.percent(self.confidence)} in the draw of the n = "
            said += f"{c.functions} calibration functions, for at least {words.rest(self.delta)} of"
            said += " new functions drawn independently from the same law"
            unsaid = ""
        return (
            f"{said}, {inside}, given that the prediction and its uncertainty were made without "
            f"these functions; nothing is promised {unsaid}about functions picked for their input, "
            "or about data of another kind."
        )

    def promise(self, calibration: Calibration) -> str:
        if self.confidence is None:
            return f"contains {self.quantity} with probability ≥ {words.rest(self.delta)}"
        return (
            f"contains {self.quantity} for ≥ {words.rest(self.delta)} of new functions, "
            f"confidence {words.percent(self.confidence)}"
        )

    def plan_sentence(self, plan: Plan) -> str:
        given = f"{plan.functions} calibration functions, delta = {float(self.delta):g}"
        if self.confidence is not None:
            given += f", confidence = {float(self.confidence):g}"
        if plan.ranks is not None:
            return (
                f"Feasible with {given}: the scale of the interval is the "
                f"{words.ordinal(plan.ranks.function)} smallest score of {plan.functions}."
            )
        least, share = plan.smallest["functions"], plan.smallest["delta"]
        remedies = [f"at least {least} functions"] if least else []
        remedies += [f"delta of at least {words.rounded_up(share)}"] if share else []
        return f"Not feasible with {given}. What would be: {', or '.join(remedies)}."

    def check(self, calibration: Calibration) -> None:
        pair, least = calibration.ranks, self.ranks_for(calibration.functions, calibration.points)
        if pair is None or least is None or pair.point != calibration.points:
            raise ValueError(f"ranks = {pair} do not fit the interval of a quantity")
        if (
            not least.function
            <= checks.count("ranks.function", pair.function)
            <= (calibration.functions)
        ):
            raise ValueError(f"{pair} do not carry the guarantee that the calibration claims")


def _exact(share: Share) -> fractions.Fraction:
    return fractions.Fraction(str(share))
