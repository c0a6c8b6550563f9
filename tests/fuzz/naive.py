"""What a calibration must be, by the definitions: sorted lists and exact fractions."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor, hypot, inf
from typing import Any

import numpy as np

from tests.conformal import reference
from tests.fuzz.harness import WrongAnswerError

# How much of a level the library may give away where floats cannot decide.
SLACK = Fraction(1, 10**8)


def ratios(error: Any, uncertainty: Any) -> list[float]:
    """‖error‖ / E at every point."""
    E = [float(x) for x in np.ravel(uncertainty)]
    e = np.asarray(error, dtype=np.float64).reshape(len(E), -1)
    norms = [hypot(*row) if len(row) > 1 else abs(float(row[0])) for row in e]
    return [0.0 if x == y == 0 else inf if y == 0 else x / y for x, y in zip(norms, E, strict=True)]


def weighted_score(r: list[float], weights: Any, alpha: Fraction) -> float:
    """The smallest λ such that the points with ratio ≤ λ have 1 − α of the weight."""
    w = [Fraction(float(x)) for x in np.ravel(weights)]
    needed = (1 - alpha) * sum(w)
    return next(
        x for x in sorted(r) if sum(b for a, b in zip(r, w, strict=True) if a <= x) >= needed
    )


def check(found: Any, functions: list[tuple[Any, Any, Any]], asked: dict[str, Any]) -> None:
    """Refuse a calibration that the definitions do not give.

    Args:
        found: the calibration; None where the library said that there is none.
        functions: (error, uncertainty, weights) of each.
        asked: alpha, delta, confidence as exact fractions; sampling.
    """
    n, sampling = len(functions), asked["sampling"]
    alpha, delta, confidence = (asked[x] for x in ("alpha", "delta", "confidence"))
    rows = [ratios(e, E) for e, E, _ in functions]
    sizes = [len(r) for r in rows]
    if functions[0][2] is not None or sampling == "grid":
        j = reference.smallest_function_rank(n, delta, confidence)
        if functions[0][2] is not None:
            scores = [
                weighted_score(r, w, alpha) for r, (_, _, w) in zip(rows, functions, strict=True)
            ]
        else:
            scores = [sorted(r)[ceil(len(r) * (1 - alpha)) - 1] for r in rows]
    elif sampling == "hoeffding":
        j, scores = _hoeffding(rows, alpha, delta, confidence)
    elif len(set(sizes)) > 1:
        j, scores = _common_tail(rows, alpha, delta, confidence)
    else:
        j, scores = _iid(found, rows, alpha, delta, confidence)
    expected = None if j is None else sorted(scores)[j - 1]
    expected = None if expected == inf else expected
    if found is None or expected is None:
        if found is not None or expected is not None:
            raise WrongAnswerError(f"{found}, the reference says {expected}: {asked}")
        return
    if found.ranks.function != j or not abs(found.scale - expected) <= 1e-14 * abs(expected):
        raise WrongAnswerError(f"{found}, the reference says {expected} at {j}: {asked}")


def _iid(found: Any, rows: list[list[float]], alpha: Any, delta: Any, confidence: Any) -> Any:
    """Of the pairs (k, j) that the definitions allow, that of the library, if none is below it."""
    n, m = len(rows), len(rows[0])

    def level(k: int) -> Fraction:
        return delta * (1 - reference.tail(k, m, 1 - alpha))

    if found is None:
        if any(inf in r for r in rows):  # at the pair of the library the scale is infinite
            return None, []
        best = reference.smallest_function_rank(n, level(m) * (1 - SLACK), confidence)
        scores = [sorted(r)[-1] for r in rows]
        return (None, scores) if best is None else (best, scores)
    k, j = found.ranks.point, found.ranks.function
    allowed = reference.carries(j, n, level(k), confidence)
    lower = k > 1 and reference.carries(j, n, level(k - 1) * (1 - SLACK), confidence)
    fewer = j > 1 and reference.carries(j - 1, n, level(k) * (1 - SLACK), confidence)
    if not allowed or lower or fewer:
        raise WrongAnswerError(f"{found.ranks} of {n} × {m}: {allowed=} {lower=} {fewer=}")
    return j, [sorted(r)[k - 1] for r in rows]


def _hoeffding(rows: list[list[float]], alpha: Any, delta: Any, confidence: Any) -> Any:
    """t = t₀ + (α − t₀)/3 with t₀ = √(−ln δ / 2m); k = ⌈m (1 − α + t)⌉, δ′ = δ − exp(−2 m t²)."""
    m = min(len(r) for r in rows)
    with localcontext(prec=80):
        a, d = (Decimal(x.numerator) / Decimal(x.denominator) for x in (alpha, delta))
        least = (-d.ln() / (2 * m)).sqrt()
        if least >= a:
            return None, []
        t = least + (a - least) / 3
        level = Fraction(d - (-2 * m * t * t).exp())
    j = reference.smallest_function_rank(len(rows), level, confidence) if level > 0 else None
    if j is None:
        return None, []
    return j, [sorted(r)[ceil(len(r) * (1 - alpha + Fraction(t))) - 1] for r in rows]


def _common_tail(rows: list[list[float]], alpha: Any, delta: Any, confidence: Any) -> Any:
    """ℓ misses fixed beforehand use up a level δ′ < δ; β = 1 − δ′/δ; k(m) with tail at most β."""
    n = len(rows)
    if confidence is None:
        misses = max(1, floor(Fraction(9, 10) * (n + 1) * delta))
        level = Fraction(misses, n + 1)
    else:
        j = reference.smallest_function_rank(n, Fraction(9, 10) * delta, confidence)
        misses = 1 if j is None else n + 1 - j
        level = _least_level(n + 1 - misses, n, confidence) * (1 + Fraction(1, 10**9))
    if level >= delta:
        return None, []
    beta = 1 - level / delta
    scores = []
    for r in rows:
        ranks = range(1, len(r) + 1)
        k = next((k for k in ranks if reference.tail(k, len(r), 1 - alpha) <= beta), None)
        scores.append(inf if k is None else sorted(r)[k - 1])
    coarse = sum(s == inf and max(r) < inf for s, r in zip(scores, rows, strict=True))
    return (None, []) if coarse >= misses else (n + 1 - misses, scores)


def _least_level(j: int, n: int, confidence: Fraction) -> Fraction:
    """The smallest level at which the j-th of n scores carries the confidence, by halving."""
    low, high = Fraction(0), Fraction(1)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if reference.carries(j, n, middle, confidence) else (middle, high)
    return high
