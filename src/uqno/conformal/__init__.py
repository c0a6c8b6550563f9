"""The mathematics of calibration: arrays in, λ̂ out. NumPy and SciPy only, no files.

`ranks` says which ratio and which score to take, `scores` takes them from the functions of a
`stream`, `guarantees` are what may be promised, `calibration` finds λ̂ for one and gives a `record`
of it, and `planning` says beforehand what is feasible. A `profile` is what is kept of functions
that are calibrated again and again.
"""

from uqno.conformal import guarantees
from uqno.conformal.calibration import calibrate, calibrate_all, calibrate_splits, plan
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.planning import Plan
from uqno.conformal.profile import Profile
from uqno.conformal.ranks import Ranks, frontier, tightest
from uqno.conformal.record import Calibration
from uqno.conformal.scores import coverage, function_scores, ratios, weighted_scores
from uqno.conformal.stream import FunctionStream

__all__ = [
    "Calibration",
    "FunctionStream",
    "InfeasibleError",
    "Plan",
    "Profile",
    "Ranks",
    "calibrate",
    "calibrate_all",
    "calibrate_splits",
    "coverage",
    "frontier",
    "function_scores",
    "guarantees",
    "plan",
    "ratios",
    "tightest",
    "weighted_scores",
]
