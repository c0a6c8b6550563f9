"""The mathematics of calibration: arrays in, λ̂ out. NumPy and SciPy only.

`ranks` says which ratio and which score to take, `scores` takes them from the functions,
`calibration` makes λ̂ and its guarantee of them, `planning` says beforehand what is feasible.
"""

from uqno.conformal.calibration import Calibration, calibrate, calibrate_all
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.planning import Plan, plan
from uqno.conformal.ranks import Ranks, frontier, tightest
from uqno.conformal.scores import coverage, function_scores, ratios, weighted_scores

__all__ = [
    "Calibration",
    "InfeasibleError",
    "Plan",
    "Ranks",
    "calibrate",
    "calibrate_all",
    "coverage",
    "frontier",
    "function_scores",
    "plan",
    "ratios",
    "tightest",
    "weighted_scores",
]
