"""Calibrated uncertainty over whole functions for neural operators."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqno.band import Band
    from uqno.conformal import Calibration, InfeasibleError, Plan, calibrate, plan
    from uqno.model import UQNO, Functional
    from uqno.monitor import Monitor

__version__ = "0.1.0"

_HOME = {
    "Band": "uqno.band",
    "Calibration": "uqno.conformal",
    "InfeasibleError": "uqno.conformal",
    "Monitor": "uqno.monitor",
    "Plan": "uqno.conformal",
    "calibrate": "uqno.conformal",
    "Functional": "uqno.model",
    "UQNO": "uqno.model",
    "plan": "uqno.conformal",
}
PACKAGES = {
    "conformal": "uqno.conformal",
    "data": "uqno.data",
    "experiments": "uqno.experiments",
    "geometry": "uqno.geometry",
    "guarantees": "uqno.conformal.guarantees",
    "monitor": "uqno.monitor",
    "operators": "uqno.operators",
    "training": "uqno.training",
    "uncertainty": "uqno.uncertainty",
}
__all__ = [
    "UQNO",
    "Band",
    "Calibration",
    "Functional",
    "InfeasibleError",
    "Monitor",
    "Plan",
    "calibrate",
    "plan",
]


def __getattr__(name: str) -> object:
    """Import what is used when it is used: `import uqno` itself costs nothing."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in PACKAGES:
        value = import_module(PACKAGES[name])
    else:
        raise AttributeError(f"module 'uqno' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
