"""Wealth that cannot grow as long as nothing has changed, and so is evidence where it has.

A gambler begins with 1 and bets against "the new function is exchangeable with all before it". Each
*bet* multiplies what is staked on it by a factor whose expectation is at most 1 if that is true,
whatever was seen before; then so is the expectation of the wealth, and by Ville's inequality

    P[ the wealth ever reaches 1/η ] ≤ η.

The stakes follow what has won so far. They also return to where they began at a slow rate, so that
a change after a thousand quiet functions is found as well; several rates share the wealth.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from uqno.types import Reals

# Powers ε of the bets ε p^(ε − 1): the smaller, the more they stake on p-values near 0.
SMALL_P: Final = np.array([0.1, 0.25, 0.5, 0.75])
"""Scores that are too large: errors grew, or a tail became heavier."""
LARGE_P: Final = np.array([0.5])
"""Scores that are too small, as a power of 1 − p."""
SHARE_KEPT: Final = 0.5
"""What begins, and returns, to no bet at all, so that quiet times cost little."""
RATES: Final = np.array([0.0, 0.001, 0.01])
"""Shares of the wealth that return to the first division after each function."""
LEAST_P: Final = 1e-12
"""Smaller p-values count as this: a bet on them is finite, and no larger than it would be."""
MULTIPLES: Final = np.array([1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 25.0])
"""Rates of failures, in multiples of δ, that are bet on."""


class Wealth:
    """The wealth of a gambler, or of many that play apart.

    Args:
        bets: how many there are beside no bet at all.
        gamblers: the shape of many that play apart, () for one.
    """

    def __init__(self, bets: int, gamblers: tuple[int, ...] = ()) -> None:
        rest = np.full(bets, (1 - SHARE_KEPT) / max(1, bets))
        self.first: Reals = np.concatenate([[SHARE_KEPT if bets else 1.0], rest])
        self.staked: Reals = np.broadcast_to(
            self.first / len(RATES), (*gamblers, len(RATES), bets + 1)
        ).copy()
        self.log: Reals = np.zeros(gamblers)
        """The logarithm of the wealth, (*gamblers)."""

    def bet(self, factors: Reals) -> None:
        """Let each bet win or lose.

        Args:
            factors: (*gamblers, bets), each of expectation at most 1 given all before it.
        """
        ones = np.ones((*factors.shape[:-1], 1))
        won = self.staked * np.concatenate([ones, factors], axis=-1)[..., None, :]
        total = won.sum(axis=(-2, -1))
        self.log = self.log + np.log(total)
        won /= total[..., None, None]
        by_rate = won.sum(axis=-1, keepdims=True)
        self.staked = won + RATES[:, None] * (by_rate * self.first - won)


def factors_of(p: Any) -> Reals:
    """What each bet on p-values pays: densities on (0, 1), (*p, bets)."""
    small = np.maximum(np.asarray(p, dtype=np.float64), LEAST_P)[..., None]
    large = np.maximum(1 - np.asarray(p, dtype=np.float64), LEAST_P)[..., None]
    falling = SMALL_P * small ** (SMALL_P - 1)
    return np.concatenate([falling, LARGE_P * large ** (LARGE_P - 1)], axis=-1)


def failure_factors(delta: float) -> Reals:
    """What each bet on a rate q > δ pays, (2, bets): [0] if the function did not fail, [1] if so.

    (1 − q)/(1 − δ) and q/δ: of expectation at most 1 as long as failures have probability ≤ δ.
    """
    q = MULTIPLES * delta
    q = q[q < 1]
    return np.stack([(1 - q) / (1 - delta), q / delta])


def p_value(rank: Any, ties: Any, number: Any, smoothing: Any) -> Reals:
    """(how many scores are larger + smoothing · how many are equal) / all, each with the new one.

    Args:
        rank: scores larger than the new one; ties: those equal to it, itself among them.
        number: all scores, the new one among them.
        smoothing: uniform on (0, 1), new for each.

    Returns:
        Uniform on (0, 1) and independent of all earlier ones, where scores are exchangeable.
    """
    return np.asarray((rank + smoothing * ties) / number)


class Seen:
    """All scores so far, those of calibration first, and the p-value of each new one among them."""

    def __init__(self, scores: Iterable[float]) -> None:
        self.sorted = sorted(map(float, scores))

    def p_value(self, score: float, smoothing: float) -> float:
        """The p-value of a new score, which is kept."""
        insort(self.sorted, score)
        n = len(self.sorted)
        after = bisect_right(self.sorted, score)
        ties = after - bisect_left(self.sorted, score)
        return float(p_value(n - after, ties, n, smoothing))


def smoothing(seed: int, stream: int, place: int) -> float:
    """A number in (0, 1) for the function at this place of a stream: the same whenever asked."""
    return float(np.random.default_rng([seed, stream, place]).random())
