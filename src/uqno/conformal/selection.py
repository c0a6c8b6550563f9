"""Order statistics of one function's ratios: of millions of points quickly, by weights exactly."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uqno.types import Floats, Integers, Reals

# From this many points on, the k-th smallest ratio is found between two guesses from a sample.
LARGE: Final = 2**15
SAMPLE: Final = 2**10
# The largest ratios that are looked at alone: one in so many; and one in so many of these to guess.
FEW, SAMPLE_OF_TOP = 64, 4


# --- many points ------------------------------------------------------------------------------


class Scratch:
    """Buffers kept for the next function: fresh ones would cost more than the arithmetic."""

    def __init__(self) -> None:
        self.buffers: dict[tuple[str, np.dtype[Any]], NDArray[Any]] = {}

    def take(self, name: str, size: int, dtype: Any) -> NDArray[Any]:
        """A buffer (size,) of that type, with whatever was left in it."""
        key = (name, np.dtype(dtype))
        if key not in self.buffers or self.buffers[key].size < size:
            self.buffers[key] = np.empty(size, dtype)
        return self.buffers[key][:size]


def finite_nonnegative(x: Floats) -> bool:
    """Whether every number is finite and ≥ 0; −0 is answered with False, so look again then.

    One pass instead of three: as unsigned integers, the bits of finite floats ≥ 0 are the
    smallest, then come infinity, NaN and all negative numbers.
    """
    bits = np.uint32 if x.dtype == np.float32 else np.uint64
    return bool(x.view(bits).max() < np.array(np.inf, x.dtype).view(bits))


def large_ratio(error: Floats, uncertainty: Floats, k: int, scratch: Scratch) -> float | None:
    """The k-th smallest of many ratios error / uncertainty, exactly as float64 would have it.

    Division rounds monotonically, so float32 ratios are in the order of the exact ones up to
    ties, and only the ties are divided again in float64.

    Args:
        error: (points,), uncertainty: (points,).
        k: the rank, from 1.
        scratch: buffers to work in.

    Returns:
        The ratio; None where a zero, negative, infinite or missing number asks for the slow way.
    """
    ratio = _divided(error, uncertainty, scratch)
    return None if ratio is None else _selected(ratio, error, uncertainty, k, scratch)


def large_window(
    error: Floats, uncertainty: Floats, low: float, high: float, scratch: Scratch
) -> tuple[int, Reals] | None:
    """How many ratios lie above `high`, and all those in (low, high], in float64.

    Args:
        error: (points,), uncertainty: (points,).
        low, high: exact in float32; the ratios are compared with what lies just behind them, so
            that those of float32 and of float64 are told apart at the same place.
        scratch: buffers to work in.

    Returns:
        The count and the values, in no order; None where the slow way is asked for.
    """
    ratio = _divided(error, uncertainty, scratch)
    if ratio is None:
        return None
    least, most = (low, high) if ratio.dtype == np.float32 else (behind(low), behind(high))
    above = np.greater(ratio, ratio.dtype.type(most), out=scratch.take("below", ratio.size, bool))
    number = int(np.count_nonzero(above))
    inside = np.greater(
        ratio, ratio.dtype.type(least), out=scratch.take("between", ratio.size, bool)
    )
    found = np.flatnonzero(np.not_equal(inside, above, out=inside))  # above is part of inside
    return number, np.divide(error[found], uncertainty[found], dtype=np.float64)


def behind(bound: float) -> float:
    """Half way from a float32 number to the next: what rounds to it in float32 lies before."""
    if np.isinf(bound):
        return bound
    return (float(bound) + float(np.nextafter(np.float32(bound), np.float32(np.inf)))) / 2


def large_largest(
    error: Floats, uncertainty: Floats, ranks: Integers, sizes: Reals, scratch: Scratch
) -> float | None:
    """max_l of the ratio at rank k_l over g_l, for many points.

    One level is guessed by a sample and its ratio selected; that no other level has more, r_(k) ≤
    B g, is a count of the ratios above B g, at most m − k. Every count settles all levels that
    allow as many, so few are needed; only a level that has more is selected too. The levels of
    the largest ratios are settled among these alone.

    Args:
        error: (points,), uncertainty: (points,).
        ranks: k, falling, (levels,); sizes: g > 0, falling, (levels,).
        scratch: buffers to work in.

    Returns:
        The largest, exactly as float64 has it; None where the slow way is asked for.
    """
    ratio = _divided(error, uncertainty, scratch)
    if ratio is None:
        return None
    above = ratio.size - ranks  # so many ratios may lie above B g
    top = _largest_few(ratio, scratch)
    far = int(np.searchsorted(above, top.size))  # from here on not among the top
    few, largest = ratio[top], 0.0
    buffer = scratch.take("between", ratio.size, bool)

    def select(level: int) -> float:
        """The ratio at the rank of a level over its size."""
        if level < far:
            k = few.size - int(above[level])
            return _tied(few, error[top], uncertainty[top], k) / float(sizes[level])
        own = _selected(ratio, error, uncertainty, int(ranks[level]), scratch)
        return own / float(sizes[level])

    def settle(level: int) -> int:
        """Settle a level by a count, and return the next one that is to be settled."""
        nonlocal largest
        values = few if level < far else ratio
        with np.errstate(over="ignore"):
            bound = ratio.dtype.type(largest * sizes[level])
        # As it is rounded: a ratio that rounds to the bound counts as one above it.
        more = np.count_nonzero(np.greater_equal(values, bound, out=buffer[: values.size]))
        if more > above[level]:
            largest, more = max(largest, select(level)), above[level]
        return int(np.searchsorted(above[:level], more)) - 1

    if far:
        sample = np.sort(few[::SAMPLE_OF_TOP])[::-1]
        largest = select(int(np.argmax(sample[above[:far] // SAMPLE_OF_TOP] / sizes[:far])))
    level = len(ranks) - 1
    while level >= 0:
        level = settle(level)
    return float(largest)


def _divided(error: Floats, uncertainty: Floats, scratch: Scratch) -> Floats | None:
    """error / uncertainty in a buffer; None where some are zero, negative, infinite or missing."""
    ratio = scratch.take("ratio", error.size, np.result_type(error, uncertainty))
    try:
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            np.divide(error, uncertainty, out=ratio)
    except FloatingPointError:
        return None
    # A finite ratio ≥ 0 to a finite uncertainty > 0 is that of a finite error ≥ 0.
    return ratio if finite_nonnegative(ratio) and finite_nonnegative(uncertainty) else None


def _selected(ratio: Floats, error: Floats, uncertainty: Floats, k: int, scratch: Scratch) -> float:
    """The k-th smallest ratio, to be divided again in float64 where float32 has ties."""
    if (ratio.size - k) * 2 * FEW < ratio.size:
        top = _largest_few(ratio, scratch)
        if ratio.size - k < top.size:
            return _tied(ratio[top], error[top], uncertainty[top], k - ratio.size + top.size)
    inside, place = _narrowed(ratio, k - 1, scratch)
    return _tied(ratio[inside], error[inside], uncertainty[inside], place + 1)


def _tied(ratio: Floats, error: Floats, uncertainty: Floats, k: int) -> float:
    """The k-th smallest of few ratios; those that are tied with it are divided in float64."""
    value = np.partition(ratio, k - 1)[k - 1]
    ties = np.flatnonzero(ratio == value)
    rank = k - 1 - np.count_nonzero(ratio < value)
    exact = np.divide(error[ties], uncertainty[ties], dtype=np.float64)
    return float(np.partition(exact, rank)[rank])


def _largest_few(values: Floats, scratch: Scratch) -> Integers:
    """The places of about a `FEW`-th of the values, the largest; none where too many are tied."""
    sample = np.sort(values[:: values.size // SAMPLE])
    above = np.greater(
        values, sample[-sample.size // FEW], out=scratch.take("above", values.size, bool)
    )
    return np.flatnonzero(above)


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
    return sample[int(share * sample.size)], step


# --- points with weights ----------------------------------------------------------------------


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
