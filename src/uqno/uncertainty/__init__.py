"""Estimators of E(a)(x): how far the truth may be from the prediction, before calibration."""

from uqno.uncertainty.components import Components
from uqno.uncertainty.constant import Constant, MeanField
from uqno.uncertainty.contract import Prediction, Residuals, Uncertainty
from uqno.uncertainty.dropout import Dropout
from uqno.uncertainty.ensemble import Disagreement, Ensemble, PerturbedPair
from uqno.uncertainty.laplace import Laplace
from uqno.uncertainty.quantile import Quantile

__all__ = [
    "ESTIMATORS",
    "Components",
    "Constant",
    "Disagreement",
    "Dropout",
    "Ensemble",
    "Laplace",
    "MeanField",
    "PerturbedPair",
    "Prediction",
    "Quantile",
    "Residuals",
    "Uncertainty",
]

ESTIMATORS: dict[str, type[Uncertainty]] = {
    kind.name: kind
    for kind in (
        Components,
        Constant,
        Dropout,
        Ensemble,
        Laplace,
        MeanField,
        PerturbedPair,
        Quantile,
    )
}
"""By the name that a saved model has them under."""
