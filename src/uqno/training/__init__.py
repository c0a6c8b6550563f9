"""Training: losses, the one loop, out-of-fold predictions."""

from uqno.training.checkpoint import CheckpointError
from uqno.training.crossfit import CrossFit, crossfit
from uqno.training.fit import fit
from uqno.training.loss import (
    BandLoss,
    QuantileLoss,
    RelativeH1,
    RelativeL2,
    pointwise_error,
    quantile_loss,
)
from uqno.training.record import Epoch, Fit

__all__ = [
    "BandLoss",
    "CheckpointError",
    "CrossFit",
    "Epoch",
    "Fit",
    "QuantileLoss",
    "RelativeH1",
    "RelativeL2",
    "crossfit",
    "fit",
    "pointwise_error",
    "quantile_loss",
]
