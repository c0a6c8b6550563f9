"""Binomial tails, decided exactly: floats where they suffice, integers where they do not."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

# Above this many trials a tie of tail and bound is settled on the safe side instead of in integers.
EXACT_TRIALS = 2000


def upper_tail(k: ArrayLike, trials: int, p: float) -> NDArray[np.float64]:
    """P[Bin(trials, p) ≥ k] for 1 ≤ k ≤ trials."""
    k = np.asarray(k, dtype=np.float64)
    return np.asarray(betainc(k, trials - k + 1, p))


def lower_tail(k: ArrayLike, trials: int, q: float) -> NDArray[np.float64]:
    """P[Bin(trials, 1 − q) < k] for 1 ≤ k ≤ trials; accurate where it is small."""
    k = np.asarray(k, dtype=np.float64)
    return np.asarray(betainc(trials - k + 1, k, q))


def relative_slack(trials: int) -> float:
    """How far the float tails may be off, relatively: the rounding of p grows with the trials."""
    return 1e-10 + 4e-16 * trials


def tail_at_most(k: int, trials: int, p: Fraction, bound: Fraction) -> bool:
    """Whether P[Bin(trials, p) ≥ k] ≤ bound, for 1 ≤ k ≤ trials.

    Exact, or on the safe side ("no") in a near-tie.
    """
    if bound >= 1:
        return True
    upper = float(upper_tail(k, trials, float(p)))
    if upper <= 0.5:
        tail, limit = upper, float(bound)
    else:  # compare the small sides: 1 − bound ≤ 1 − tail
        tail, limit = -float(lower_tail(k, trials, float(1 - p))), -float(1 - bound)
    slack = relative_slack(trials) * abs(tail)
    if abs(tail - limit) > slack:
        return tail < limit
    return trials <= EXACT_TRIALS and _exact_tail(k, trials, p) <= bound


@lru_cache(maxsize=16)  # as several bounds are asked of one tail
def _exact_tail(k: int, trials: int, p: Fraction) -> Fraction:
    """Σ_{i ≥ k} C(trials, i) pⁱ (1 − p)^{trials − i} as a ratio of integers."""
    hit, miss = p.numerator, p.denominator - p.numerator
    term = total = hit**trials
    for i in range(trials, k, -1):  # C(n, i−1) = C(n, i) · i / (n − i + 1), an exact division
        term = term * (i * miss) // ((trials - i + 1) * hit)
        total += term
    return Fraction(total, p.denominator**trials)


def smallest_count(trials: int, p: Fraction, bound: Fraction) -> int | None:
    """The smallest k in 1 … trials with P[Bin(trials, p) ≥ k] ≤ bound, or None."""
    low, high = 0, trials + 1  # invariant: not admissible at low, admissible at high
    while high - low > 1:
        middle = (low + high) // 2
        if tail_at_most(middle, trials, p, bound):
            high = middle
        else:
            low = middle
    return high if high <= trials else None
