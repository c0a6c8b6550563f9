"""What an explorer page has to say, computed in Python."""

from fractions import Fraction

import numpy as np

import uqno


def places(explorer, method, alpha, delta):
    """Where the choices stand in the lists of the page."""
    return {
        "method": [m["method"] for m in explorer["methods"]].index(method),
        "alpha": explorer["alphas"].index(alpha),
        "delta": explorer["deltas"].index(round(delta * 1e6)),
    }


def measured(explorer, error, uncertainty, alpha, delta):
    """λ̂, bandwidth and calibration percentage of the recorded split, from the fields themselves."""
    error, uncertainty = (f.reshape(len(f), -1) for f in (error, uncertainty))
    n = explorer["calibration"]
    # The page takes the nearest stored rank above the one that α asks for.
    rank = explorer["ranks"][explorer["alphas"].index(alpha)]
    cal = uqno.calibrate(error[:n], uncertainty[:n], 1 - Fraction(rank, explorer["points"]), delta)
    inside = (np.abs(error[n:]) <= cal.scale * uncertainty[n:]).sum(axis=1)
    return cal.scale, cal.scale * uncertainty[n:].mean(), float((inside >= rank).mean())
