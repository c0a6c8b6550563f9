"""Whether test functions agree with a promise: how many fail, and how likely so many are.

For exchangeable scores without ties, λ̂ the j-th smallest of n, the number of T new functions that
are not covered follows the Beta-binomial law

    failures ~ BetaBin(T, n + 1 − j, j),

by ranks alone, whatever the law of the scores. Ties, and point ranks above the one that counts,
only make failures rarer, so that the p-value below is valid for them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from scipy.stats import betabinom

from uqno.conformal import checks

Verdict = Literal["yes", "doubtful", "no"]
# Below the first the answer is doubtful, below the second it is no.
DOUBTFUL, NO = 0.05, 0.01
USUAL: Final = 0.95


@dataclass(frozen=True)
class Agreement:
    """What a test set says about a promise.

    Args:
        functions: T, the test functions.
        failures: how many of them are covered at less than 1 − α of their points.
        expected: the mean number of failures if the promise holds.
        usual: the number of failures lies between these with probability 95 % or more then.
        p_value: the probability of so many failures or more, then.
    """

    functions: int
    failures: int
    expected: float
    usual: tuple[int, int]
    p_value: float

    @property
    def percentage(self) -> float:
        """The calibration percentage, as a share: test functions that are covered."""
        return 1 - self.failures / self.functions

    @property
    def verdict(self) -> Verdict:
        """Whether the test functions agree with the promise."""
        return verdict(self.p_value)


def verdict(p_value: float) -> Verdict:
    """The answer to a p-value: yes; doubtful below 0.05; no below 0.01."""
    if p_value < NO:
        return "no"
    return "doubtful" if p_value < DOUBTFUL else "yes"


def agreement(failures: int, functions: int, calibration: int, rank: int) -> Agreement:
    """How well so many failures agree with the promise of a calibration.

    Args:
        failures: test functions that are not covered.
        functions: T, all test functions.
        calibration: n, the calibration functions.
        rank: j, the rank of the scale among their scores.

    Raises:
        ValueError: a number is out of its bounds.

    >>> agreement(20, 1000, calibration=500, rank=491).verdict
    'yes'
    >>> agreement(150, 1000, calibration=500, rank=491).verdict
    'no'
    """
    total = checks.count("functions", functions)
    missed = checks.count("failures", failures, least=0)
    n = checks.count("calibration", calibration)
    j = checks.count("rank", rank)
    if missed > total or j > n:
        raise ValueError(
            f"failures = {missed} must be at most functions = {total}, and rank = {j} at most "
            f"calibration = {n}"
        )
    law = betabinom(total, n + 1 - j, j)
    low, high = law.ppf((1 - USUAL) / 2), law.ppf((1 + USUAL) / 2)
    return Agreement(
        functions=total,
        failures=missed,
        expected=total * (n + 1 - j) / (n + 1),
        usual=(int(low), int(high)),
        p_value=float(min(1.0, law.sf(missed - 1))),
    )
