"""Bounds on all order statistics of n scores at once, so that a rank may be chosen after looking.

V_(i) = 1 − U_(n + 1 − i) is the chance that a new score exceeds the i-th largest of n independent
ones (at most, where scores have ties); it follows the law Beta(i, n + 1 − i). For one i fixed
beforehand, P[ V_(i) > b ] = P[ Bin(n, b) < i ] bounds it. For all i at once let every one be
exceeded with the same *local level* t,

    b_i(t)       the number with P[ V_(i) > b_i ] = t
    t*(n, γ)     the largest t with P[ V_(i) ≤ b_i(t) for all i ] ≥ 1 − γ

Then, with probability 1 − γ, the i-th largest score is exceeded with a chance ≤ δ for all pairs
(i, δ) with P[ Bin(n, δ) < i ] ≤ t* at once. The level of a pair is known, and whether it is at
most t* is one computation of the joint law.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Final

import numpy as np
from scipy.special import betaincinv
from scipy.stats import poisson

from uqno.conformal.binomial import lower_tail
from uqno.types import Integers, Reals, Share

# The ranks that are bounded, counted from the largest score: each of the first, then every one
# that is so much further, up to the last. The bound of one carries over to those behind it.
FIRST_RANKS, FURTHER, LAST_RANK = 500, 1.02, 20_000
# −log of the probability that the recursion may leave out at a step, on the safe side.
LEFT_OUT: Final = 40.0
# How far float sums of positive terms may be off, relatively.
SLACK: Final = 1e-9


def bounded_ranks(n: int) -> Integers:
    """The i, counted from the largest score, that are bounded at once, rising.

    >>> bounded_ranks(4)
    array([1, 2, 3, 4])
    """
    most = min(n, LAST_RANK)
    ranks = list(range(1, min(most, FIRST_RANKS) + 1))
    while ranks[-1] < most:
        ranks.append(min(most, int(ranks[-1] * FURTHER)))
    return np.array(ranks)


def probability_within(bounds: Reals, ranks: Integers, n: int) -> float:
    """P[ V_(i) ≤ b_i for all i in `ranks` ] for the order statistics V of n uniform numbers.

    The number of V up to b_i must be at least i. These numbers are a Poisson process that has n
    points in all: from bound to bound its law is convolved with that of the increment, and what
    lies below i is cut off. All terms are positive, and what is left out lowers the answer.

    Args:
        bounds: b, rising, (ranks,); ranks: i, rising, (ranks,).
        n: how many numbers.

    Reference:
        A. Moscovich, B. Nadler: Fast Calculation of Boundary Crossing Probabilities for Poisson
        Processes (2017).
    """
    first, law, before = 0, np.ones(1), 0.0  # law[s]: of first + s numbers so far
    for i, b in zip(ranks.tolist(), bounds.tolist(), strict=True):
        mean = n * (b - before)
        law = np.convolve(law, poisson.pmf(np.arange(_most(mean) + 1), mean))
        cut = max(0, i - first)
        law, first, before = law[cut:], first + cut, b
        law = law[: max(1, min(_most(n * b), n) - first + 1)]
        if not law.size:
            return 0.0
    counts = first + np.arange(law.size)
    # P[the others come later and are n in all] over P[n in all], without large cancellations.
    rest = n * (np.log1p(-before) + before) - counts * np.log1p(-before)
    return float(min(1.0, law @ np.exp(_log_falling(n, counts) + rest)))


def _most(mean: float) -> int:
    """A number that a Poisson variable exceeds with probability at most e^−LEFT_OUT (Bernstein)."""
    return int(mean + LEFT_OUT / 3 + sqrt((LEFT_OUT / 3) ** 2 + 2 * LEFT_OUT * mean)) + 1


def _log_falling(n: int, counts: Integers) -> Reals:
    """log( n! / (n − k)! nᵏ ) for each k, which rise one by one."""
    steps = np.log1p(-np.arange(counts[-1]) / n)
    return np.append(0.0, np.cumsum(steps))[counts]


def simultaneous_rank(n: int, delta: Share, miss: Fraction) -> int | None:
    """The smallest j that is good for δ, whatever δ is chosen after looking; None if none is.

    Args:
        n: scores; delta: δ; miss: γ.

    >>> simultaneous_rank(500, Fraction(2, 100), Fraction(1, 10))
    498
    """
    ranks = bounded_ranks(n)
    low, high = 0, ranks.size  # the largest i that holds is ranks[low − 1]
    while high > low:
        middle = (low + high + 1) // 2
        fits = _holds(n, _level(int(ranks[middle - 1]), n, Fraction(delta)), miss)
        low, high = (middle, high) if fits else (low, middle - 1)
    return n + 1 - int(ranks[low - 1]) if low else None


def feasible_at_once(n: int, delta: Share, miss: Fraction) -> bool:
    """Whether any rank is good for δ."""
    return n > 1 and _holds(n, _level(1, n, Fraction(delta)), miss)


def _level(i: int, n: int, delta: Fraction) -> float:
    """P[ V_(i) > δ ] = P[ Bin(n, δ) < i ]."""
    return float(lower_tail(i, n, float(1 - delta))) * (1 + SLACK)


@lru_cache(maxsize=4096)
def _holds(n: int, level: float, miss: Fraction) -> bool:
    """Whether P[ V_(i) ≤ b_i(level) for all i ] ≥ 1 − miss; the quick answers first."""
    ranks = bounded_ranks(n)
    if level > float(miss):  # not even for one i
        return False
    if level * ranks.size * (1 + SLACK) <= float(miss):  # by the union bound
        return True
    bounds = betaincinv(ranks, n + 1.0 - ranks, 1 - level)
    return probability_within(bounds, ranks, n) * (1 - SLACK) >= 1 - float(miss)
