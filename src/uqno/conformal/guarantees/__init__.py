"""Guarantees: what a calibrated band promises, one file each.

`contract` says what a guarantee must answer; `fraction` is the paper's, `quantity` is of a number
that follows from a function, `shifted` is another one under another law of the inputs, `nothing`
promises nothing.
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
from uqno.conformal.guarantees.quantity import Quantity
from uqno.conformal.guarantees.shifted import Shifted

__all__ = [
    "GUARANTEES",
    "Collector",
    "Evidence",
    "Facts",
    "Fraction",
    "Guarantee",
    "Nothing",
    "Quantity",
    "ScoreCollector",
    "Shifted",
    "Solution",
    "finite_scale",
    "require_guarantee",
]
