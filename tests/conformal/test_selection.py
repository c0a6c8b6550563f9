"""Selection among many points, sums without rounding, quantiles by weights: at their edges."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from uqno.conformal import selection
from uqno.conformal.selection import (
    LARGE,
    SAMPLE,
    Scratch,
    exact_sum,
    finite_nonnegative,
    large_ratio,
    weighted_quantile,
)


def test_buffers_are_used_again():
    scratch = Scratch()
    first = scratch.take("ratio", 10, np.float64)
    assert (first.shape, first.dtype) == ((10,), np.float64)
    assert np.shares_memory(scratch.take("ratio", 10, np.float64), first)
    assert np.shares_memory(scratch.take("ratio", 4, np.float64), first)
    assert scratch.take("ratio", 4, np.float64).shape == (4,)
    assert not np.shares_memory(scratch.take("other", 10, np.float64), first)
    assert scratch.take("ratio", 10, np.float32).dtype == np.float32
    assert scratch.take("ratio", 11, np.float64).shape == (11,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finite_and_not_negative(dtype):
    good = np.array([0, 1, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal], dtype)
    assert finite_nonnegative(good)
    for bad in (np.inf, -np.inf, np.nan, -1.0, -0.0):
        assert not finite_nonnegative(np.append(good, dtype(bad)))


def functions(dtype, m=LARGE, seed=0):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=m).astype(dtype), rng.uniform(0.5, 2, m).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_ratios_at_every_kind_of_rank(dtype):
    error, uncertainty = functions(dtype)
    expected = np.sort(error.astype(np.float64) / uncertainty)
    scratch = Scratch()
    for k in (1, 2, 17, 3000, LARGE // 2, int(0.9 * LARGE), LARGE - 1, LARGE):
        assert large_ratio(error, uncertainty, k, scratch) == expected[k - 1]


def test_ties_in_float32_are_divided_again_in_float64():
    """Ratios that float32 cannot tell apart, in an order that float64 can."""
    rng = np.random.default_rng(1)
    error = (1 + rng.integers(0, 40, LARGE) * 2.0**-23).astype(np.float32)
    uncertainty = (1.5 + rng.integers(0, 40, LARGE) * 2.0**-22).astype(np.float32)
    expected = np.sort(error.astype(np.float64) / uncertainty.astype(np.float64))
    assert len(np.unique(error / uncertainty)) < len(np.unique(expected)) / 4
    for k in (1, 5, 1000, LARGE // 2, LARGE - 3, LARGE):
        assert large_ratio(error, uncertainty, k, Scratch()) == expected[k - 1]


@pytest.mark.parametrize(
    ("error", "uncertainty"),
    [(1.0, 0.0), (0.0, 0.0), (1e30, 1e-30), (-1.0, 1.0), (np.nan, 1.0), (1.0, -1.0),
     (-1.0, -1.0), (np.inf, 1.0), (1.0, np.nan), (1.0, np.inf)],
)  # fmt: skip
def test_what_the_fast_way_leaves_to_the_slow_one(error, uncertainty):
    e, E = (np.ones(LARGE, np.float32) for _ in range(2))
    e[5], E[5] = error, uncertainty
    assert large_ratio(e, E, 100, Scratch()) is None


@pytest.mark.parametrize("types", [("f4", "f4"), ("f4", "f8"), ("f8", "f4")])
def test_later_functions_are_worked_on_in_the_buffers_of_the_first(types):
    """Ratios in the wider type and two masks; beyond them, less than a byte a point."""
    m = 16 * LARGE
    error, uncertainty = (x.astype(t) for x, t in zip(functions("f8", m), types, strict=True))
    expected = np.sort(error.astype(np.float64) / uncertainty)
    scratch = Scratch()
    large_ratio(error, uncertainty, m // 2, scratch)
    wider, mask = np.result_type(*types), np.dtype(bool)
    assert set(scratch.buffers) == {("ratio", wider), ("below", mask), ("between", mask)}
    assert all(buffer.size == m for buffer in scratch.buffers.values())
    peaks = []
    for k in np.linspace(0.05, 0.95, 10) * m:
        tracemalloc.start()
        assert large_ratio(error, uncertainty, int(k), scratch) == expected[int(k) - 1]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < m / 2


@pytest.mark.parametrize("law", ["uniform", "normal", "heavy"])
def test_few_values_are_left_to_choose_from(law):
    """The two guesses of `_narrowed` do their work: no plain selection among all is needed."""
    rng = np.random.default_rng(0)
    m = 2 * LARGE
    values = {
        "uniform": lambda: rng.random(m),
        "normal": lambda: np.abs(rng.normal(size=m)),
        "heavy": lambda: np.abs(rng.standard_cauchy(m)),
    }[law]()
    ordered, left = np.sort(values), []
    for place in (np.linspace(0.1, 0.95, 18) * m).astype(int):
        inside, shifted = selection._narrowed(values, place, Scratch())
        assert np.sort(values[inside])[shifted] == ordered[place]
        left.append(m if isinstance(inside, slice) else len(inside))
    assert m not in left
    assert np.median(left) < m / 250


def test_a_sample_that_misleads_falls_back_on_all_values():
    """Every 32nd value, which is all that the sample sees, is far from the rest."""
    m = 32 * SAMPLE
    values = np.where(np.arange(m) % 32 == 0, 1e6, np.arange(m) / m)
    for place in (0, m // 2, m - SAMPLE - 1, m - 1):
        inside, shifted = selection._narrowed(values, place, Scratch())
        chosen = np.sort(values[inside])[shifted]
        assert chosen == np.sort(values)[place]
    assert any(
        isinstance(selection._narrowed(values, place, Scratch())[0], slice)
        for place in (0, m // 2, m - SAMPLE - 1)
    )


def test_the_first_guess_is_the_value_and_the_distance_of_neighbours():
    m = 64 * SAMPLE
    values = np.arange(m) / m
    for place in (0, 100, m // 2, m - 100, m - 1):
        guess, step = selection._first_guess(values, place)
        assert abs(guess - place / m) <= 64 / m
        assert step == pytest.approx(1 / m, rel=0.01)
    values = -np.log1p(-(np.arange(m) + 0.5) / m)  # ever further apart: 1 / (1 − share)
    for share in (0.8, 0.9):
        _, step = selection._first_guess(values, int(share * m))
        assert step == pytest.approx(1 / (m * (1 - share)), rel=0.035)


# --- weights ---------------------------------------------------------------------------------

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("weights", "place"),
    [
        ([2.0**52 - 1, 2.0**52 + 1], 0),  # short by 2⁻⁵³ of the sum
        ([2.0**52 - 2, 2.0**52 + 2], 0),  # by 2⁻⁵²: that is the rounding of the weights themselves
        ([2.0**52 - 3, 2.0**52 + 3], 1),  # by more
        ([2.0**52 - 3, 4.0, 2.0**52 - 1], 1),
        ([2.0**52 - 2, 4.0, 2.0**52 - 2], 0),
        ([2.0**52 - 3, 0.0, 0.0, 2.0**52 + 3], 3),
        ([2.0**52, 2.0**52 - 1, 1.0], 0),
        ([1.0, 2.0, 5.0], 2),
        ([1.0, 5.0, 2.0], 1),
        ([5.0, 1.0, 2.0], 0),
        ([3.0, 3.0, 3.0, 3.0], 1),
        ([3.0, 3.0, 3.0], 1),
    ],
)
def test_the_quantile_by_weights_at_the_edge_of_rounding(weights, place):
    values = np.arange(1.0, len(weights) + 1)
    order = np.random.default_rng(3).permutation(len(weights))
    found = weighted_quantile(values[order], np.array(weights)[order], HALF)
    assert found == place + 1


def test_the_quantile_by_weights_at_other_shares():
    values, weights = np.array([1.0, 2, 3, 4]), np.array([0.1, 0.2, 0.3, 0.4])
    for share, expected in (("0.1", 1), ("0.11", 2), ("0.3", 2), ("0.6", 3), ("0.61", 4)):
        assert weighted_quantile(values, weights, Fraction(share)) == expected
    assert weighted_quantile(values, weights, Fraction(999_999, 10**6)) == 4
    for share, expected in (("0.25", 1), ("0.26", 2), ("0.75", 3), ("0.76", 4)):
        assert weighted_quantile(values, np.ones(4), Fraction(share)) == expected
    many = np.random.default_rng(0).random(200)
    alike = [weighted_quantile(many, np.ones(200), Fraction(k, 200)) for k in range(1, 201)]
    assert alike == np.sort(many).tolist()


def test_the_rounding_of_the_sum_counts_and_not_that_of_small_weights():
    """The first weight is short by 1/4, which is less than 2⁻⁵² of the sum."""
    weights = np.array([1.0, 1.0, 2.0**52])
    share = Fraction(5, 4) / (2**52 + 2)
    assert weighted_quantile(np.array([1.0, 2.0, 3.0]), weights, share) == 1


def test_sums_of_many_weights_and_exponents():
    for weights in ([0.1] * 10, [1e300, 1e-300, 3.0], [2.0**60 + 2.0**8] * 5, [0.0], [5e-324]):
        assert exact_sum(np.array(weights)) == sum(Fraction(w) for w in weights)
    assert exact_sum(np.zeros(0)) == 0
    many = np.full(5000, 1 - 2.0**-53)
    assert exact_sum(many) == 5000 * Fraction(1 - 2.0**-53)
