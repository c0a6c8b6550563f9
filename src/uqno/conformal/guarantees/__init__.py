"""Guarantees: what a calibrated band promises, one file each.

`contract` says what a guarantee must answer; `fraction` is the paper's, `nothing` promises nothing.
`continuum` and `drawn` are about the whole domain: from a grid, and from points of other designs.
"""

from uqno.conformal.guarantees.continuum import Continuum, change_between_nodes
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
from uqno.conformal.guarantees.drawn import Strata, WithoutReplacement
from uqno.conformal.guarantees.fraction import Fraction
from uqno.conformal.guarantees.nothing import Nothing

__all__ = [
    "GUARANTEES",
    "Collector",
    "Continuum",
    "Evidence",
    "Facts",
    "Fraction",
    "Guarantee",
    "Nothing",
    "ScoreCollector",
    "Solution",
    "Strata",
    "WithoutReplacement",
    "change_between_nodes",
    "finite_scale",
    "require_guarantee",
]
