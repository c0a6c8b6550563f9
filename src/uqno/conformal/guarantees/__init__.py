"""Guarantees: what a calibrated band promises, one file each.

`contract` says what a guarantee must answer. `fraction` is the paper's; `expected` is for the mean
missed share, `everywhere` for all points, `curve` for all α at once, `chosen` for (α, δ) chosen
after looking, `quantity` for a number that follows from a function; `continuum` and `drawn` are
about the whole domain, from a grid and from points of other designs; `shifted` is another one under
another law of the inputs, `nothing` promises nothing.
"""

from uqno.conformal.guarantees.chosen import Chosen
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
    guarantee_of,
    require_guarantee,
)
from uqno.conformal.guarantees.curve import Curve
from uqno.conformal.guarantees.drawn import Strata, WithoutReplacement
from uqno.conformal.guarantees.everywhere import Everywhere
from uqno.conformal.guarantees.expected import Expected
from uqno.conformal.guarantees.fraction import Fraction
from uqno.conformal.guarantees.nothing import Nothing
from uqno.conformal.guarantees.quantity import Quantity
from uqno.conformal.guarantees.shape import Shape
from uqno.conformal.guarantees.shifted import Shifted

__all__ = [
    "GUARANTEES",
    "Chosen",
    "Collector",
    "Continuum",
    "Curve",
    "Everywhere",
    "Evidence",
    "Expected",
    "Facts",
    "Fraction",
    "Guarantee",
    "Nothing",
    "Quantity",
    "ScoreCollector",
    "Shape",
    "Shifted",
    "Solution",
    "Strata",
    "WithoutReplacement",
    "change_between_nodes",
    "finite_scale",
    "guarantee_of",
    "require_guarantee",
]
