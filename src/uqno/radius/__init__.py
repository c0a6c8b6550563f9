"""Estimators of E(a)(x): how far the truth may be from the prediction, before calibration."""

from uqno.radius.components import ComponentsRadius
from uqno.radius.constant import ConstantRadius, MeanFieldRadius
from uqno.radius.contract import Estimate, Radius, Residuals
from uqno.radius.dropout import DropoutRadius
from uqno.radius.ensemble import Disagreement, EnsembleRadius, PerturbedPairRadius
from uqno.radius.laplace import LaplaceRadius
from uqno.radius.quantile import QuantileRadius

__all__ = [
    "RADII",
    "ComponentsRadius",
    "ConstantRadius",
    "Disagreement",
    "DropoutRadius",
    "EnsembleRadius",
    "Estimate",
    "LaplaceRadius",
    "MeanFieldRadius",
    "PerturbedPairRadius",
    "QuantileRadius",
    "Radius",
    "Residuals",
]

RADII: dict[str, type[Radius]] = {
    kind.name: kind
    for kind in (
        ComponentsRadius,
        ConstantRadius,
        DropoutRadius,
        EnsembleRadius,
        LaplaceRadius,
        MeanFieldRadius,
        PerturbedPairRadius,
        QuantileRadius,
    )
}
"""By the name that a saved model has them under."""
