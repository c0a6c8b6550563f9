"""Estimators of E(a)(x): how far the truth may be from the prediction, before calibration."""

from uqno.radius.contract import Estimate, Radius, Residuals
from uqno.radius.ensemble import Disagreement
from uqno.radius.quantile import QuantileRadius

__all__ = ["Disagreement", "Estimate", "QuantileRadius", "Radius", "Residuals"]
