"""(n, m, α, δ) → the rank pair (k, j): which ratio of a function, which score of the set.

The score of a function is the k-th smallest of its m ratios, λ̂ the j-th smallest of the n
scores. A point rank k uses up part of δ, because m points do not show the whole domain; the
*level* δ′ that it leaves bounds P[score > λ̂], and the function rank j follows from it:

    grid       δ′ = δ                        for k ≥ m(1 − α): the points are the domain
    iid        δ′ = δ (1 − β),               β = P[Bin(m, 1 − α) ≥ k]
    hoeffding  δ′ = δ − exp(−2 m t²),        k = ⌈m (1 − α + t)⌉

    marginal     j = n + 1 − ⌊(n + 1) δ′⌋
    conditional  the smallest j with P[Bin(n, 1 − δ′) ≥ j] ≤ 1 − confidence

Functions of different numbers of independent points share one β, fixed before any is seen, and
each has a k of its own: see `CommonTail`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, sqrt
from typing import Any, Final

import numpy as np
from scipy.special import betainc, betaincinv, ndtri

from uqno.conformal import checks
from uqno.conformal.binomial import lower_tail, relative_slack, smallest_count, tail_at_most
from uqno.types import Integers, Reals, Sampling, Share

# Candidates of the default choice, in standard deviations of Bin(m, 1 − α) from its mean. So
# many hold every integer k up to m ≈ 20 000 (α = 0.1), and lose nothing of note beyond.
CANDIDATES: Final = np.linspace(-4.0, 8.0, 513)
# Deviation (of the logarithm) of the scale of functions in the working law of `expected_scale`.
SCALE_DEVIATION: Final = 0.7
# The share of δ that functions of different numbers of points leave to the function rank; the rest
# goes to points that do not show the whole domain. Chosen by simulation, see `benchmarks.mixed`.
LEFT_TO_FUNCTIONS: Final = Fraction(9, 10)


@dataclass(frozen=True)
class Ranks:
    """The pair (k, j), counted from 1."""

    point: int | None
    """k, the rank of a function's score among its ratios; None where points carry weights."""
    function: int
    """j, the rank of λ̂ among the scores."""


@dataclass(frozen=True)
class Request:
    """What is asked for, checked once and held in exact numbers."""

    alpha: Fraction
    delta: Fraction
    sampling: Sampling = "grid"
    confidence: Fraction | None = None

    @classmethod
    def of(
        cls, alpha: Share, delta: Share, sampling: str = "grid", confidence: Share | None = None
    ) -> Request:
        return cls(
            alpha=checks.share("alpha", alpha),
            delta=checks.share("delta", delta),
            sampling=checks.sampling(sampling),
            confidence=None if confidence is None else checks.share("confidence", confidence),
        )


# --- one pair -------------------------------------------------------------------------------


def function_rank(n: int, level: Fraction, confidence: Fraction | None = None) -> int | None:
    """The smallest j that bounds P[score > λ̂] by `level`; None if only j = n + 1 (∞) would."""
    if level <= 0:
        return None
    if confidence is None:
        j = n + 1 - floor((n + 1) * level)
        return j if j <= n else None
    return smallest_count(n, 1 - level, 1 - confidence)


def function_rank_iid(k: int, n: int, m: int, request: Request) -> int | None:
    """The smallest j admissible with point rank k for points drawn independently."""
    alpha, delta, confidence = request.alpha, request.delta, request.confidence
    level = delta * Fraction(float(lower_tail(k, m, float(alpha))))
    slack = Fraction(relative_slack(m))
    if confidence is not None:
        return function_rank(n, level * (1 - slack), confidence)
    # The float level may sit on the wrong side of an integer: between the numbers of misses that it
    # surely allows and surely forbids, ask the exact tail: ℓ ≤ (n + 1) δ (1 − β)  ⇔
    # β ≤ 1 − ℓ / ((n + 1) δ), which holds up to some ℓ.
    sure = floor((n + 1) * level * (1 - slack))
    forbidden = floor((n + 1) * level * (1 + slack)) + 1
    while forbidden - sure > 1:
        misses = (sure + forbidden) // 2
        if tail_at_most(k, m, 1 - alpha, 1 - misses / ((n + 1) * delta)):
            sure = misses
        else:
            forbidden = misses
    return n + 1 - sure if sure >= 1 else None


def hoeffding_t(m: int, request: Request) -> Fraction | None:
    """The authors' t = t₀ + (α − t₀)/3 with t₀ = √(−ln δ / 2m); None if t₀ ≥ α."""
    with localcontext(prec=60):
        alpha, delta = _decimal(request.alpha), _decimal(request.delta)
        least = (-delta.ln() / (2 * m)).sqrt()
        return None if least >= alpha else Fraction(least + (alpha - least) / 3)


def hoeffding_recipe(n: int, m: int, request: Request) -> Ranks | None:
    """The paper's rule, ranks corrected: k = ⌈m (1 − α + t)⌉, δ′ = δ − exp(−2 m t²)."""
    t = hoeffding_t(m, request)
    if t is None:
        return None
    j = function_rank(n, _hoeffding_level(t, m, request), request.confidence)
    return None if j is None else Ranks(ceil(m * (1 - request.alpha + t)), j)


def _hoeffding_level(t: Fraction, m: int, request: Request) -> Fraction:
    # Rounded down: even e⁻¹⁰⁰⁰ less than δ is less than δ, and may cost a rank.
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        t_ = _decimal(t)
        return Fraction(_decimal(request.delta) - (-2 * m * t_ * t_).exp())


def function_rank_hoeffding(k: int, n: int, m: int, request: Request) -> int | None:
    """The smallest j admissible with point rank k at the best t, the largest that k allows."""
    t = Fraction(k, m) - (1 - request.alpha)
    if t <= 0:
        return None
    return function_rank(n, _hoeffding_level(t, m, request), request.confidence)


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def grid_point_rank(m: int, alpha: Fraction) -> int:
    """k = ⌈m (1 − α)⌉."""
    return ceil(m * (1 - alpha))


def best_function_rank(k: int, n: int, m: int, request: Request) -> int | None:
    """The smallest j that is admissible with point rank k (1 ≤ k ≤ m), or None."""
    if request.sampling == "iid":
        return function_rank_iid(k, n, m, request)
    if request.sampling == "hoeffding":
        return function_rank_hoeffding(k, n, m, request)
    if k < grid_point_rank(m, request.alpha):
        return None
    return function_rank(n, request.delta, request.confidence)


def feasible(n: int, m: int, request: Request) -> bool:
    """Whether any pair is admissible (for `hoeffding`: the paper's recipe), n at least 2."""
    if n < 2:
        return False
    if request.sampling == "iid":
        return function_rank_iid(m, n, m, request) is not None
    return default_ranks(n, m, request) is not None


def admissible(ranks: Ranks, n: int, m: int, request: Request) -> bool:
    """Whether this pair carries the (α, δ) guarantee with n functions of m points."""
    if ranks.point is None or not 1 <= ranks.point <= m or not 1 <= ranks.function <= n:
        return False
    best = best_function_rank(ranks.point, n, m, request)
    return best is not None and ranks.function >= best


# --- all pairs, and a choice among them -----------------------------------------------------


def frontier(
    functions: int,
    points: int,
    alpha: Share,
    delta: Share,
    sampling: str = "iid",
    confidence: Share | None = None,
) -> tuple[Ranks, ...]:
    """All admissible (k, j) of which neither rank could be lowered alone; k rises, j falls.

    >>> frontier(100, 50, alpha=0.1, delta=0.1)[:2]
    (Ranks(point=43, function=100), Ranks(point=44, function=99))
    """
    request = Request.of(alpha, delta, sampling, confidence)
    n, m = checks.count("functions", functions), checks.count("points", points)
    last = best_function_rank(m, n, m, request)
    if last is None:
        return ()
    low = _first_rank(n, n, m, request)
    high = _first_rank(last, n, m, request)
    pairs: list[Ranks] = []
    for k in _candidates_between(low, high, n, m, request):
        j = best_function_rank(k, n, m, request)
        if j is not None and (not pairs or j < pairs[-1].function):
            pairs.append(Ranks(k, j))
    return tuple(pairs)


def _first_rank(j: int, n: int, m: int, request: Request) -> int:
    """The smallest k that admits j, given that k = m does (j never rises with k)."""
    low, high = 0, m
    while high - low > 1:
        middle = (low + high) // 2
        best = best_function_rank(middle, n, m, request)
        low, high = (low, middle) if best is not None and best <= j else (middle, high)
    return high


def _candidates_between(low: int, high: int, n: int, m: int, request: Request) -> Iterable[int]:
    """The k in low … high at which j may fall; a coarse float pass spares most exact ones."""
    if high - low < 64 or request.sampling != "iid" or request.confidence is not None:
        return range(low, high + 1)
    k = np.arange(low, high + 1)
    expected = (n + 1) * float(request.delta) * lower_tail(k, m, float(request.alpha))
    slack = 4 * relative_slack(m) * expected
    rises = np.floor(expected + slack) > np.concatenate([[-1], np.floor(expected - slack)[:-1]])
    return [int(x) for x in k[rises]]


@lru_cache(maxsize=4096)
def default_ranks(n: int, m: int, request: Request) -> Ranks | None:
    """The pair that the library takes: a function of n, m, α, δ alone. None if infeasible."""
    if request.sampling == "grid":
        j = function_rank(n, request.delta, request.confidence)
        return None if j is None else Ranks(grid_point_rank(m, request.alpha), j)
    if request.sampling == "hoeffding":
        return hoeffding_recipe(n, m, request)
    k = candidate_ranks(m, request.alpha)
    best = best_candidate(n, float(m), k, lower_tail(k, m, float(request.alpha)), request)
    # Where no candidate is surely good, k = m, the most cautious rank, may still hold exactly.
    j = function_rank_iid(m if best is None else int(k[best]), n, m, request)
    return None if j is None else Ranks(_first_rank(j, n, m, request), j)


@lru_cache(maxsize=4096)
def candidate_ranks(m: int, alpha: Fraction) -> Integers:
    """The point rank k at each of `CANDIDATES`, for functions of m points; (candidates,)."""
    p = float(1 - alpha)
    k = np.ceil(m * p + CANDIDATES * sqrt(m * p * (1 - p)))
    return np.clip(k, 1, m).astype(np.int64)


def held_ranks(m: int, alpha: Fraction) -> Integers:
    """Every candidate rank for functions of m points, and m: rising, with repetitions."""
    return np.append(candidate_ranks(m, alpha), m)


def best_candidate(
    n: int, m: float, k: Integers, one_minus_beta: Reals, request: Request
) -> int | None:
    """Which candidate has the smallest λ̂ to expect. Floats suffice: the caller confirms it."""
    j = _function_ranks(n, float(request.delta) * one_minus_beta, request.confidence)
    expected = np.where(j <= n, expected_scale(k, np.minimum(j, n), m, n), np.inf)
    best = int(np.argmin(expected))
    return best if np.isfinite(expected[best]) else None


def _function_ranks(n: int, level: Reals, confidence: Fraction | None) -> Integers:
    """`function_rank` in floats, for an array of levels; n + 1 where there is none."""
    if confidence is None:
        return np.asarray(n + 1 - np.floor((n + 1) * level * (1 - 1e-12)), dtype=np.int64)
    miss = float(1 - confidence)
    low = np.full(
        level.shape, (function_rank(n, Fraction(float(level.max())), confidence) or n) - 1
    )
    high = np.full(level.shape, n + 1)
    while (high - low).max() > 1:  # the bisection of `smallest_count`, for all levels at once
        middle = (low + high) // 2
        fits = betainc(middle, n - middle + 1.0, 1 - level) <= miss * (1 - 1e-9)
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    return high


def expected_scale(k: Any, j: Any, m: float, n: int) -> Reals:
    """λ̂ to expect from a pair under a working law: |N(0, 1)| errors, lognormal function scales.

    log score ≈ N(log q(k/m), σ² + ν²), ν the relative deviation of the k-th of m half-normals; λ̂
    is the j-th of n such. It ranks the pairs; no guarantee rests on it.
    """
    upper = (m + 1 - np.asarray(k, dtype=np.float64)) / (m + 1)
    q = -ndtri(upper / 2)
    density = np.sqrt(2 / np.pi) * np.exp(-q * q / 2)
    noise = np.sqrt(upper * (1 - upper) / (m + 2)) / (density * q)
    deviation = np.sqrt(SCALE_DEVIATION**2 + noise**2)
    place = (np.asarray(j, dtype=np.float64) - 0.375) / (n + 0.25)
    z = ndtri(place)
    variance = place * (1 - place) * 2 * np.pi * np.exp(z * z) / (n + 2)
    return np.asarray(q * np.exp(deviation * z + deviation**2 * variance / 2))


# --- functions of different numbers of points -----------------------------------------------


@dataclass(frozen=True)
class CommonTail:
    """One bound β* for functions of any number of points: the same rule for each of them.

        ℓ = n + 1 − j is fixed beforehand and bounds P[score > λ̂] by a level δ′;  β* = 1 − δ′/δ
        k(m) = the smallest rank with P[Bin(m, 1 − α) ≥ k] ≤ β*; the score is ∞ where there is none

    The smallest of `held_ranks`, to be exact: all of them for m up to about 20 000.
    """

    function: int
    """j, the rank of λ̂ among the scores."""
    beta: Fraction
    """β*, in (0, 1)."""
    alpha: Fraction

    def point_rank(self, m: int) -> int | None:
        """k of a function of m points; None where its score is ∞."""
        return _smallest_held(m, self.alpha, self.beta)


def common_tail(n: int, request: Request, misses: int | None = None) -> CommonTail | None:
    """The rule for n functions of different numbers of points, which it does not look at.

    Args:
        n: the number of functions.
        request: what is asked for.
        misses: ℓ = n + 1 − j; `default_misses` if None.

    Returns:
        None where so many misses leave nothing of δ.
    """
    fixed = default_misses(n, request) if misses is None else misses
    level = _level(n, fixed, request.confidence) if fixed <= n else Fraction(1)
    if level >= request.delta:
        return None
    j = function_rank(n, level, request.confidence)
    return None if j is None else CommonTail(j, 1 - level / request.delta, request.alpha)


def default_misses(n: int, request: Request) -> int:
    """ℓ = max(1, ⌊0.9 (n + 1) δ⌋), or with confidence as many as the level 0.9 δ allows."""
    j = function_rank(n, LEFT_TO_FUNCTIONS * request.delta, request.confidence)
    return 1 if j is None else n + 1 - j


def _level(n: int, misses: int, confidence: Fraction | None) -> Fraction:
    """The level δ′ that admits the function rank j = n + 1 − `misses`."""
    if confidence is None:
        return Fraction(misses, n + 1)
    # P[Bin(n, 1 − δ′) ≥ j] ≤ 1 − confidence from a quantile of a Beta law on. Whether j is really
    # admitted is for `function_rank` to say, so the quantile is taken a little larger.
    quantile = float(betaincinv(misses, n + 1 - misses, float(confidence)))
    return Fraction(quantile) * (1 + Fraction(1, 10**9))


@lru_cache(maxsize=4096)
def _smallest_held(m: int, alpha: Fraction, beta: Fraction) -> int | None:
    ranks = held_ranks(m, alpha).tolist()
    place = bisect_left(ranks, True, key=lambda k: tail_at_most(k, m, 1 - alpha, beta))
    return ranks[place] if place < len(ranks) else None


def tightest(pairs: Sequence[Ranks], points: int, training: Iterable[Any], n: int) -> Ranks:
    """The pair with the smallest λ̂ to expect, judged by ratios of *training* residuals.

    pairs: from `frontier`; training: one array of ratios a function; n: calibration functions.
    Never pass calibration or test functions: the choice must not depend on them.
    """
    pairs = checks.elements("pairs", pairs, "pairs from uqno.conformal.frontier")
    if not pairs:
        raise ValueError("no pairs to choose from: the frontier is empty, see uqno.plan")
    for pair in pairs:
        checks.own_ranks(pair)
    m, n = checks.count("points", points), checks.count("n", n)
    levels = np.array([p.point for p in pairs]) / m
    place = np.array([p.function for p in pairs]) / (n + 1)
    if levels.max() > 1 or place.max() > 1:
        raise ValueError(f"the pairs are of more than {m} points or {n} functions: give theirs")
    each = checks.elements("training", training, "one array of ratios for each function")
    ratios = [checks.real("training", f"function {i}", r).ravel() for i, r in enumerate(each)]
    checks.functions(len(ratios))
    for i, r in enumerate(ratios):
        checks.shapes(f"training function {i}", r.shape, r.shape)
        checks.finite_error("the training ratios", r)
    scores = np.array([np.quantile(r, levels, method="inverted_cdf") for r in ratios])
    expected = [np.quantile(s, x) for s, x in zip(scores.T, place, strict=True)]
    best: Ranks = pairs[int(np.argmin(expected))]
    return best
