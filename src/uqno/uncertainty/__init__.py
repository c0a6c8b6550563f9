"""Estimators of E(a)(x): how far the truth may be from the prediction, before calibration."""

from uqno.uncertainty.components import Components
from uqno.uncertainty.conformal import Conformal
from uqno.uncertainty.constant import Constant, MeanField
from uqno.uncertainty.contract import ESTIMATORS, Base, Options, Prediction, Residuals, Uncertainty
from uqno.uncertainty.dropout import Dropout
from uqno.uncertainty.ensemble import Disagreement, Ensemble, PerturbedPair
from uqno.uncertainty.laplace import Laplace
from uqno.uncertainty.offset import Offset
from uqno.uncertainty.quantile import Quantile

__all__ = [
    "ESTIMATORS",
    "Base",
    "Components",
    "Conformal",
    "Constant",
    "Disagreement",
    "Dropout",
    "Ensemble",
    "Laplace",
    "MeanField",
    "Offset",
    "Options",
    "PerturbedPair",
    "Prediction",
    "Quantile",
    "Residuals",
    "Uncertainty",
]
