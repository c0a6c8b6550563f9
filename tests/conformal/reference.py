"""Slow and obvious: the definitions in exact rational arithmetic, by search over all pairs."""

from fractions import Fraction
from math import comb


def tail(k: int, trials: int, p: Fraction) -> Fraction:
    """P[Bin(trials, p) ≥ k]."""
    return sum(
        (comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(k, trials + 1)),
        Fraction(0),
    )


def carries(j: int, n: int, level: Fraction, confidence: Fraction | None) -> bool:
    """Whether the j-th of n scores is exceeded with probability at most `level`."""
    if confidence is None:
        return Fraction(n + 1 - j, n + 1) <= level
    return tail(j, n, 1 - level) <= 1 - confidence


def smallest_function_rank(n: int, level: Fraction, confidence: Fraction | None) -> int | None:
    return next((j for j in range(1, n + 1) if carries(j, n, level, confidence)), None)


def iid_pairs(
    n: int, m: int, alpha: Fraction, delta: Fraction, confidence: Fraction | None = None
) -> list[tuple[int, int]]:
    """The frontier: k with its smallest j, where that j is below those of all smaller k."""
    pairs: list[tuple[int, int]] = []
    for k in range(1, m + 1):
        j = smallest_function_rank(n, delta * (1 - tail(k, m, 1 - alpha)), confidence)
        if j is not None and (not pairs or j < pairs[-1][1]):
            pairs.append((k, j))
    return pairs
