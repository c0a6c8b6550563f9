"""Guarantees: what a calibrated band promises, one file each.

`contract` says what a guarantee must answer; `fraction` is the paper's.
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
)
from uqno.conformal.guarantees.fraction import Fraction

__all__ = [
    "GUARANTEES",
    "Collector",
    "Evidence",
    "Facts",
    "Fraction",
    "Guarantee",
    "ScoreCollector",
    "Solution",
    "finite_scale",
]
