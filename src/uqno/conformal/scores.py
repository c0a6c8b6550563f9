"""Ratios r(x) = ‖u(x) − Ĝ(a)(x)‖ / E(a)(x), and one score a function: an order statistic of them.

Every ratio is compared as a float64 number, whatever the input's precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from heapq import heappush, heappushpop
from math import ceil, floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.conformal import checks
from uqno.conformal.stream import Block, Functions
from uqno.types import Floats, Integers, Reals, Share

# From this many points on, a function's score is found by a bracket from a sample of them.
LARGE = 2**15
SAMPLE = 2**10


# --- ratios ---------------------------------------------------------------------------------


def ratios(error: Any, uncertainty: Any) -> Reals:
    """‖error‖ / uncertainty for one function; 0 where both are 0, ∞ where only the uncertainty is.

    error: (*points) or (*points, d); uncertainty: (*points). Returns (points,), float64.

    >>> ratios([0.0, 1.0, -3.0], [0.0, 0.0, 2.0])
    array([0. , inf, 1.5])
    """
    (block,) = Functions([error], [uncertainty]).blocks()
    row: Reals = _block_ratios(block)[0]
    return row


def _block_ratios(block: Block) -> Reals:
    """(functions, points) in float64; raises for what is not a finite error or uncertainty ≥ 0."""
    error, uncertainty = _checked(block)
    out = np.empty(uncertainty.shape)
    try:
        with np.errstate(divide="raise", invalid="raise", over="ignore"):
            return np.divide(error, uncertainty, out=out, dtype=np.float64)
    except FloatingPointError:  # some uncertainty is zero
        out.fill(np.inf)
        np.divide(error, uncertainty, out=out, where=uncertainty > 0, dtype=np.float64)
        out[(uncertainty == 0) & (error == 0)] = 0
        return out


def _checked(block: Block) -> tuple[Floats, Floats]:
    """|error| and uncertainty once they are known to be finite and not negative."""
    error, uncertainty = block.error, block.uncertainty
    if not _finite_nonnegative(uncertainty):
        for where, r in zip(block.names(), uncertainty, strict=True):
            checks.finite_uncertainty(where, r)
    if not _finite_nonnegative(error):
        error = np.abs(error)
        if not _finite_nonnegative(error):
            for where, e in zip(block.names(), error, strict=True):
                checks.finite_error(where, e)
    return error, uncertainty


def _finite_nonnegative(x: Floats) -> bool:
    """One pass instead of three: as unsigned integers, the bits of finite floats ≥ 0 are the
    smallest, then come infinity, NaN and all negative numbers (−0 too: the caller looks again)."""
    bits = np.uint32 if x.dtype == np.float32 else np.uint64
    return bool(x.view(bits).max() < np.array(np.inf, x.dtype).view(bits))


# --- scores ---------------------------------------------------------------------------------


def function_scores(
    error: Any, uncertainty: Any, point_rank: int | Callable[[int], int | Integers]
) -> Reals:
    """The `point_rank`-th smallest ratio of each function, (n,): exact, in one pass.

    error, uncertainty: as in `uqno.calibrate`; only the scores are kept. point_rank: k, or a function
    of the number of points m that gives k, or an array of several k, then the scores are (n, k).

    >>> function_scores([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]], [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], 2)
    array([2. , 2.5])
    """
    rank_of = point_rank if callable(point_rank) else lambda m: point_rank
    parts = [s for _, s in each_score(Functions(error, uncertainty), rank_of)]
    return np.concatenate(parts) if parts else np.empty(0)


class Largest:
    """The `count` largest of the scores added so far, and the floor that a score must exceed.

    λ̂ is the j-th smallest of n scores, so the smallest of the n + 1 − j largest: once that many
    are known, a function that does not exceed the floor need not be scored, only counted.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.heap: list[float] = []

    @property
    def floor(self) -> float:
        return self.heap[0] if len(self.heap) == self.count else -np.inf

    def add(self, scores: Reals) -> None:
        for score in scores.tolist():
            if len(self.heap) < self.count:
                heappush(self.heap, score)
            else:
                heappushpop(self.heap, score)


def each_score(
    functions: Functions,
    rank_of: Callable[[int], int | Integers],
    largest: Largest | None = None,
) -> Iterator[tuple[int, Reals]]:
    """(points, scores) block by block; with `largest`, −∞ stands for "not above its floor"."""

    ranks: dict[int, Integers] = {}  # of functions of m points, found once
    scratch = Scratch()
    for block in functions.blocks():
        m = block.points
        if m not in ranks:
            ranks[m] = np.asarray(rank_of(m))
            checks.point_rank(ranks[m], m, next(block.names()))
        floor = -np.inf if largest is None else largest.floor
        scores = _block_scores(block, ranks[m], floor, scratch)
        if largest is not None:
            largest.add(scores)
        yield m, scores


def _block_scores(block: Block, k: Integers, floor: float, scratch: Scratch) -> Reals:
    if k.ndim == 0 and block.uncertainty.shape[0] == 1 and block.points >= LARGE:
        score = _large_score(block.error[0], block.uncertainty[0], int(k), floor, scratch)
        if score is not None:
            return np.array([score])
    r = _block_ratios(block)
    if k.ndim == 0:
        r.partition(int(k) - 1, axis=1)
        return r[:, int(k) - 1].copy()
    low = int(k.min()) - 1
    r.partition(low, axis=1)
    return np.sort(r[:, low:], axis=1)[:, k - 1 - low]


class Scratch:
    """Buffers kept for the next function: fresh ones would cost more than the arithmetic."""

    def __init__(self) -> None:
        self.buffers: dict[tuple[str, np.dtype[Any]], NDArray[Any]] = {}

    def take(self, name: str, size: int, dtype: Any) -> NDArray[Any]:
        key = (name, np.dtype(dtype))
        if key not in self.buffers or self.buffers[key].size < size:
            self.buffers[key] = np.empty(size, dtype)
        return self.buffers[key][:size]


def _large_score(
    error: Floats, uncertainty: Floats, k: int, floor: float, scratch: Scratch
) -> float | None:
    """The k-th smallest of many ratios, or −∞ if that does not exceed `floor`.

    None where something asks for the careful way: a zero uncertainty, a negative or bad number.
    Division rounds monotonically, so float32 ratios are in the order of the exact ones up to
    ties, and only the ties are divided again in float64.
    """
    ratio = scratch.take("ratio", error.size, np.result_type(error, uncertainty))
    try:
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            np.divide(error, uncertainty, out=ratio)
    except FloatingPointError:
        return None
    # A finite ratio ≥ 0 to a finite uncertainty > 0 is that of a finite error ≥ 0.
    if not (_finite_nonnegative(ratio) and _finite_nonnegative(uncertainty)):
        return None
    if floor > -np.inf:
        above = scratch.take("below", ratio.size, np.bool_)
        np.greater_equal(ratio, ratio.dtype.type(floor), out=above)
        if np.count_nonzero(above) <= ratio.size - k:
            return -np.inf
    inside, place = _narrowed(ratio, k - 1, scratch)
    candidates = ratio[inside]
    value = np.partition(candidates, place)[place]
    ties = np.flatnonzero(candidates == value)
    ties = ties if isinstance(inside, slice) else inside[ties]
    rank = place - np.count_nonzero(candidates < value)
    exact = np.divide(error[ties], uncertainty[ties], dtype=np.float64)
    return float(np.partition(exact, rank)[rank])


def _narrowed(values: Floats, place: int, scratch: Scratch) -> tuple[Any, int]:
    """An index of few values that hold the `place`-th smallest (from 0), and its place in them.

    A plain selection branches at every value; a few comparisons of all with one do not. A sample
    gives a first guess and how far apart neighbours are there; counting how many values lie
    below the guess tells how many neighbours to move on; a second count leaves few between.
    """
    guess, step = _first_guess(values, place)
    below = scratch.take("below", values.size, np.bool_)
    number = np.count_nonzero(np.less(values, guess, out=below))
    guess = values.dtype.type(guess - (number - place) * step)
    number = np.count_nonzero(np.less(values, guess, out=below))
    off = number - place  # the answer is the off-th below the guess, or the (1 − off)-th above
    reach = step * (1.5 * abs(off) + 4 * sqrt(abs(off)) + 16)
    between = scratch.take("between", values.size, np.bool_)
    if off > 0:
        np.greater_equal(values, values.dtype.type(guess - reach), out=between)
        inside = np.flatnonzero(np.logical_and(between, below, out=between))
        first = number - inside.size
    else:
        np.less_equal(values, values.dtype.type(guess + reach), out=between)
        inside = np.flatnonzero(np.greater(between, below, out=between))
        first = number
    if not first <= place < first + inside.size:
        return slice(None), place  # misled: a plain selection among all
    return inside, place - int(first)


def _first_guess(values: Floats, place: int) -> tuple[np.floating[Any], float]:
    """The value at `place` by a sample, and the mean distance of neighbours around it."""
    m = values.size
    sample = np.sort(values[:: m // SAMPLE])
    share = (place + 0.5) / m
    reach = 3 * sqrt(share * (1 - share) * sample.size) + 1
    low = max(0, floor(share * sample.size - reach))
    high = min(sample.size - 1, ceil(share * sample.size + reach))
    step = float(sample[high] - sample[low]) * sample.size / (m * (high - low))
    return sample[min(int(share * sample.size), sample.size - 1)], step


# --- weighted scores ------------------------------------------------------------------------


def weighted_scores(error: Any, uncertainty: Any, weights: Any, alpha: Share) -> Reals:
    """The smallest λ whose weighted coverage μ{r ≤ λ} reaches 1 − α, a function; shape (n,).

    weights: (*points) for all functions, or one set a function; any positive total.
    """
    shares = [1 - checks.share("alpha", alpha)]
    functions = Functions(error, uncertainty, weights)
    parts = [s[:, 0] for _, s in each_weighted_score(functions, shares)]
    return np.concatenate(parts) if parts else np.empty(0)


def each_weighted_score(
    functions: Functions, shares: Sequence[Fraction]
) -> Iterator[tuple[int, Reals]]:
    """(points, scores (functions, shares)) block by block."""

    for block in functions.blocks():
        rows = zip(_block_ratios(block), block.weights or (), strict=True)
        scores = [[weighted_quantile(r, w, share) for share in shares] for r, w in rows]
        yield block.points, np.array(scores)


def weighted_quantile(values: Reals, weights: Reals, share: Fraction) -> float:
    """The smallest v among `values` with Σ weights[values ≤ v] ≥ share · Σ weights, exactly.

    A shortfall below the rounding of the weights themselves, 2⁻⁵² of their sum, is none: 0.5 and
    0.4 out of 0.5, 0.4 and 0.1 are a share of 0.9.

    >>> weighted_quantile(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.4, 0.1]), Fraction(9, 10))
    2.0
    """
    if weights.min() == weights.max():  # equal weights are ranks
        k = ceil(share * values.size)
        return float(np.partition(values, k - 1)[k - 1])
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    wanted = float(share) * sums[-1]
    slack = values.size * np.finfo(np.float64).eps * sums[-1]
    first, last = np.searchsorted(sums, [wanted - slack, wanted + slack])
    last = min(int(last), values.size - 1)
    if first < last:  # between the two rounding could decide, so integers do
        wanted_exactly = (share - Fraction(1, 2**52)) * exact_sum(weights)
        covered = exact_sum(weights[order[:first]])
        for i in range(int(first), last):
            covered += exact_sum(weights[order[i : i + 1]])
            if covered >= wanted_exactly:
                return float(values[order[i]])
    return float(values[order[last]])


def exact_sum(weights: Reals) -> Fraction:
    """Σ weights without rounding: 53-bit integers, added up exponent by exponent."""
    mantissa, exponent = np.frexp(weights)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    total = Fraction(0)
    for e in np.unique(exponent):
        group = whole[exponent == e]  # two halves, so that 2³⁶ of them cannot overflow
        units = (int((group >> 27).sum()) << 27) + int((group & (2**27 - 1)).sum())
        total += units * Fraction(2) ** (int(e) - 53)
    return total


# --- coverage -------------------------------------------------------------------------------


def coverage(error: Any, uncertainty: Any, scale: float, weights: Any = None) -> Reals:
    """c(λ) = μ{x : r(x) ≤ λ}, the covered share of each function, shape (n,).

    >>> coverage([[1.0, 2.0, 3.0, 4.0]], [[1.0, 1.0, 1.0, 1.0]], scale=3.0)
    array([0.75])
    """
    checks.scale(scale)
    parts = [np.empty(0)]
    for block in Functions(error, uncertainty, weights).blocks():
        inside = _block_ratios(block) <= scale
        if block.weights is None:
            parts.append(np.asarray(np.count_nonzero(inside, axis=1) / block.points))
        else:
            rows = zip(inside, block.weights, strict=True)
            # Without rounding, as the scale was found: a share of 0.9 is not 0.9 less an ulp.
            parts.append(np.array([float(exact_sum(w[i]) / exact_sum(w)) for i, w in rows]))
    return np.concatenate(parts)
