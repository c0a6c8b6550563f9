"""The mathematics of calibration: arrays in, λ̂ out. NumPy and SciPy only, no files.

`ranks` says which ratio and which score to take, `scores` takes them from the functions of a
`stream`, `guarantees` are what may be promised, `calibration` finds λ̂ for one and gives a `record`
of it, and `planning` says beforehand what is feasible. A `profile` is what is kept of functions
that are calibrated again and again.
"""

from uqno.conformal import guarantees
from uqno.conformal.calibration import (
    calibrate,
    calibrate_all,
    calibrate_groups,
    calibrate_splits,
    plan,
)
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.functionals import Interval
from uqno.conformal.groups import GroupedCalibration
from uqno.conformal.joint import calibrate_jointly
from uqno.conformal.membership import by_group
from uqno.conformal.planning import Plan
from uqno.conformal.profile import Profile
from uqno.conformal.ranks import Ranks, frontier, tightest
from uqno.conformal.record import Calibration
from uqno.conformal.scores import coverage, function_scores, ratios, weighted_scores
from uqno.conformal.shift import EstimatedShift, estimate_shift
from uqno.conformal.stream import FunctionStream

__all__ = [
    "Calibration",
    "EstimatedShift",
    "FunctionStream",
    "GroupedCalibration",
    "InfeasibleError",
    "Interval",
    "Plan",
    "Profile",
    "Ranks",
    "by_group",
    "calibrate",
    "calibrate_all",
    "calibrate_groups",
    "calibrate_jointly",
    "calibrate_splits",
    "coverage",
    "estimate_shift",
    "frontier",
    "function_scores",
    "guarantees",
    "plan",
    "ratios",
    "tightest",
    "weighted_scores",
]
