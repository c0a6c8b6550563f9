"""A guarantee written outside the package: a rule on whole coverage curves. A sketch.

The library has it too, as `guarantees.Expected`, for any size, for streams and for weights.
"""

from dataclasses import dataclass

import numpy as np

from uqno.conformal.guarantees import Guarantee, ScoreCollector, Solution, finite_scale


class Curves(ScoreCollector):
    """Keeps all ratios of each function, (functions, points): its coverage at every scale."""

    def score(self, functions):
        return functions.all_ratios()


@dataclass(frozen=True)
class ExpectedShare(Guarantee):
    """E[missed share of a new function] ≤ α: conformal risk control (Angelopoulos et al. 2024).

    λ̂ is the smallest λ with (Σ_i missed share of function i + 1) / (n + 1) ≤ α.
    """

    alpha: float
    name = "expected share, a sketch"
    shares = ("alpha",)

    @property
    def settings(self):
        return {"alpha": self.alpha}

    def feasible(self, functions, points):
        return functions >= 2 and self.alpha * (functions + 1) >= 1

    def collector(self, facts):
        return Curves()

    def solve(self, evidence):
        (m,) = np.unique(evidence.sizes)
        ratios, n = evidence.scores.ravel(), len(evidence)
        missed = int(np.floor((self.alpha * (n + 1) - 1) * m + 1e-9))  # points, of all functions
        return Solution(finite_scale(ratios, ratios.size - missed), evidence.scores.max(axis=1))

    def sentence(self, calibration):
        return f"The expected missed share of a new function is at most {self.alpha:g}."

    promise = sentence

    def plan_sentence(self, plan):
        return f"{'F' if plan.feasible else 'Not f'}easible with {plan.functions} functions."
