"""Guarantees: what a calibrated band promises, one file each.

`contract` says what a guarantee must answer; `fraction` is the paper's, `nothing` promises nothing.
"""

from uqno.conformal.guarantees.contract import (
    GUARANTEES,
    Collector,
    Evidence,
    Facts,
    Guarantee,
    ScoreCollector,
    Solution,
    finite_scale,
    require_guarantee,
)
from uqno.conformal.guarantees.fraction import Fraction
from uqno.conformal.guarantees.nothing import Nothing

__all__ = [
    "GUARANTEES",
    "Collector",
    "Evidence",
    "Facts",
    "Fraction",
    "Guarantee",
    "Nothing",
    "ScoreCollector",
    "Solution",
    "finite_scale",
    "require_guarantee",
]
