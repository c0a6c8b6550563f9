"""The methods that are compared: one record each, registered by being defined.

`contract` says what a record has, `operators` names the operators that methods share; then the
recipe of this library and the paper's (`recipes`), other methods (`baselines`), both with what the
recipe of this library has (`aided`), and those that the ablation alone shows (`ablation`).
"""

from uqno.experiments.methods import ablation, aided, baselines, recipes
from uqno.experiments.methods.contract import METHODS, Fit, Method
from uqno.experiments.methods.operators import SharedOperator

__all__ = [
    "METHODS",
    "Fit",
    "Method",
    "SharedOperator",
    "ablation",
    "aided",
    "baselines",
    "recipes",
]
