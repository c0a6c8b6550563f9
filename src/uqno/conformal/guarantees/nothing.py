"""No promise: the band as the method gives it, λ = 1, to look at beside calibrated ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    Solution,
)
from uqno.conformal.guarantees.designs import FixedRank

if TYPE_CHECKING:
    from uqno.conformal.planning import Plan
    from uqno.conformal.record import Calibration


@dataclass(frozen=True)
class Nothing(Guarantee):
    """The uncertainty as it is: the scale is 1, whatever the calibration functions say."""

    name: ClassVar[str] = "nothing"

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def feasible(self, functions: int, points: int) -> bool:
        return True

    def collector(self, facts: Facts) -> Collector:
        return FixedRank(weighted=facts.weighted, point=1)

    def solve(self, evidence: Evidence) -> Solution:
        return Solution(1.0, evidence.scores)

    def sentence(self, calibration: Calibration) -> str:
        return "Nothing is promised: the band is the uncertainty as the method gives it."

    def promise(self, calibration: Calibration) -> str:
        return "nothing is promised"

    def plan_sentence(self, plan: Plan) -> str:
        return "Nothing is promised, whatever the functions."
