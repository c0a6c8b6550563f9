"""A guarantee written outside the package: weighted scores, a scale per new function. A sketch."""

from dataclasses import dataclass, field

import numpy as np

from tests.extending.own_expected_share import ExpectedShare
from uqno.conformal.guarantees import Solution


@dataclass(frozen=True)
class KnownShift(ExpectedShare):
    """P[more than α is missed] ≤ δ for a new function of another law, by known likelihood ratios.

    Tibshirani et al. 2019. ratios: dQ/dP at the calibration functions, (n,); that of a new function
    is its field `likelihood_ratio`. The scale depends on it, and may be infinite.
    """

    delta: float = 0.1
    ratios: tuple = field(default=(), repr=False)
    name = "known shift, a sketch"

    @property
    def settings(self):
        return {"alpha": self.alpha, "delta": self.delta, "ratios": list(self.ratios)}

    def solve(self, evidence):
        ranks = np.ceil((1 - self.alpha) * evidence.sizes - 1e-9).astype(int) - 1
        scores = np.sort(evidence.scores, axis=1)[np.arange(len(evidence)), ranks]
        weights = np.asarray(self.ratios)[np.argsort(scores)]
        scale = self.weighted(np.sort(scores), weights, 1.0)
        return Solution(scale, scores, details={"weights": weights})

    def weighted(self, scores, weights, new):
        reached = np.cumsum(weights) >= (1 - self.delta) * (weights.sum() + new) * (1 - 1e-12)
        return float(scores[reached.argmax()]) if reached.any() else np.inf

    def scale_for(self, calibration, function):
        new = float(function["likelihood_ratio"])
        return self.weighted(calibration.scores, calibration.details["weights"], new)
