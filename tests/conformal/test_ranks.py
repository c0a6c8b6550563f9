"""(k, j) against brute force in exact rational arithmetic, and at integer boundaries."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from tests.conformal import reference
from uqno.conformal import Ranks, frontier, plan, tightest
from uqno.conformal.binomial import smallest_count, tail_at_most, upper_tail
from uqno.conformal.ranks import Request, admissible, default_ranks, function_rank


def random_settings(count, seed, functions, points):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        digits = int(rng.integers(1, 4))
        alpha, delta = (max(round(float(x), digits), 10.0**-digits) for x in rng.uniform(0, 0.9, 2))
        yield int(rng.integers(1, functions)), int(rng.integers(1, points)), alpha, delta


def a_few_and(many):
    """The same check twice: quickly, and with so many settings."""
    return pytest.mark.parametrize("count", [20, pytest.param(many, marks=pytest.mark.slow)])


def exact(value):
    return Fraction(str(value))


@a_few_and(2000)
def test_grid_ranks_equal_brute_force(count):
    for n, m, alpha, delta in random_settings(count, 0, functions=120, points=200):
        k = next(k for k in range(1, m + 1) if Fraction(k, m) >= 1 - exact(alpha))
        j = reference.smallest_function_rank(n, exact(delta), None)
        found = default_ranks(n, m, Request.of(alpha, delta, "grid"))
        assert found == (None if j is None else Ranks(k, j)), (n, m, alpha, delta)


@a_few_and(1200)
def test_iid_frontier_equals_brute_force(count):
    for n, m, alpha, delta in random_settings(count, 1, functions=60, points=24):
        expected = reference.iid_pairs(n, m, exact(alpha), exact(delta))
        found = [(r.point, r.function) for r in frontier(n, m, alpha, delta)]
        assert found == expected, (n, m, alpha, delta)
        chosen = default_ranks(n, m, Request.of(alpha, delta, "iid"))
        if not expected:
            assert chosen is None, (n, m, alpha, delta)
        else:
            assert (chosen.point, chosen.function) in expected, (n, m, alpha, delta)


@pytest.mark.slow
def test_iid_frontier_with_more_points_equals_brute_force():
    for n, m, alpha, delta in random_settings(25, 2, functions=300, points=200):
        expected = reference.iid_pairs(n, m, exact(alpha), exact(delta))
        found = [(r.point, r.function) for r in frontier(n, m, alpha, delta)]
        assert found == expected, (n, m, alpha, delta)


@a_few_and(150)
def test_conditional_ranks_equal_brute_force(count):
    for n, m, alpha, delta in random_settings(count, 3, functions=24, points=10):
        j = reference.smallest_function_rank(n, exact(delta), exact(0.9))
        assert function_rank(n, exact(delta), exact(0.9)) == j, (n, delta)
        expected = reference.iid_pairs(n, m, exact(alpha), exact(delta), exact(0.9))
        found = [(r.point, r.function) for r in frontier(n, m, alpha, delta, confidence=0.9)]
        assert found == expected, (n, m, alpha, delta)


def test_conditional_rank_of_the_theory_note():
    assert function_rank(500, exact(0.05), exact(0.9)) == 482
    assert function_rank(500, exact(0.05)) == 476


@a_few_and(200)
def test_hoeffding_equals_the_formula_in_many_digits(count):
    with localcontext(prec=500):  # e⁻¹⁰⁰⁰ must not vanish beside δ
        _check_hoeffding(count)


def _check_hoeffding(count):
    for n, m, alpha, delta in random_settings(count, 4, functions=2000, points=600):
        a, d = Decimal(str(alpha)), Decimal(str(delta))
        t0 = (-d.ln() / (2 * m)).sqrt()
        expected = None
        if t0 < a:
            t = t0 + (a - t0) / 3
            allowed = floor((n + 1) * (d - (-2 * m * t * t).exp()))
            if allowed >= 1:
                expected = Ranks(ceil(m * (1 - a + t)), n + 1 - allowed)
        found = default_ranks(n, m, Request.of(alpha, delta, "hoeffding"))
        assert found == expected, (n, m, alpha, delta)


@pytest.mark.parametrize(
    ("n", "m", "alpha", "delta", "expected"),
    [
        (99, 10, 0.1, 0.1, Ranks(9, 90)),  # (n + 1) δ = 10 exactly
        (1000, 10, 0.1, 0.001, Ranks(9, 1000)),  # (n + 1) δ = 1.001
        (999, 10, 0.1, 0.001, Ranks(9, 999)),  # (n + 1) δ = 1 exactly
        (998, 10, 0.1, 0.001, None),  # (n + 1) δ = 0.999
        (9, 10, 0.3, 0.3, Ranks(7, 7)),  # 0.3 is below 3/10 in binary
        (9, 1000, 0.007, 0.7, Ranks(993, 3)),
        (49, 50, 0.02, 0.02, Ranks(49, 49)),
        (10**6, 10**8, 0.1, 0.02, Ranks(9 * 10**7, 980001)),
    ],
)
def test_no_slip_at_integer_boundaries(n, m, alpha, delta, expected):
    assert default_ranks(n, m, Request.of(alpha, delta, "grid")) == expected


def test_every_alpha_times_m_that_is_integral_on_the_grid():
    for m in (10, 20, 50, 100, 1000):
        for misses in range(1, m):
            alpha = float(Decimal(misses) / Decimal(m))
            found = default_ranks(1000, m, Request.of(alpha, 0.1, "grid"))
            assert found.point == m - misses, (m, alpha)


def test_a_tie_of_tail_and_bound_is_decided_exactly():
    # P[Bin(1, 1/2) ≥ 1] = 1/2, P[Bin(7, 1/2) ≥ 4] = 1/2 by symmetry.
    half = Fraction(1, 2)
    assert tail_at_most(1, 1, half, half)
    assert tail_at_most(4, 7, half, half)
    assert not tail_at_most(4, 7, half, half - Fraction(1, 10**30))
    # α (n + 1) δ = 1: the one admissible pair sits on the boundary.
    assert frontier(9, 1, 0.5, 0.2) == (Ranks(1, 9),)
    assert default_ranks(9, 1, Request.of(0.5, 0.2, "iid")) == Ranks(1, 9)


def test_tails_of_many_trials_keep_their_digits():
    """Against a sum of logarithms over the terms that matter, at 10⁸ trials."""
    from scipy.special import gammaln

    m, p = 10**8, 0.9
    for k in (90_000_000, 90_006_000, 90_015_000):
        i = np.arange(k, k + 60_000, dtype=np.float64)
        log = gammaln(m + 1) - gammaln(i + 1) - gammaln(m - i + 1)
        total = np.exp(log + i * np.log(p) + (m - i) * np.log1p(-p)).sum()
        assert upper_tail(k, m, p) == pytest.approx(total, rel=1e-5)


def test_smallest_count_is_the_first_that_fits():
    for m, p, bound in [
        (50, Fraction(9, 10), Fraction(1, 100)),
        (1, Fraction(1, 2), Fraction(1, 3)),
    ]:
        expected = next((k for k in range(1, m + 1) if reference.tail(k, m, p) <= bound), None)
        assert smallest_count(m, p, bound) == expected


def test_largest_sizes():
    request = Request.of(0.1, 0.02, "iid")
    chosen = default_ranks(10**6, 10**8, request)
    assert admissible(chosen, 10**6, 10**8, request)
    assert not admissible(Ranks(chosen.point, chosen.function - 1), 10**6, 10**8, request)
    assert not admissible(Ranks(chosen.point - 1, chosen.function), 10**6, 10**8, request)


def test_the_pair_of_the_theory_note_at_100_functions():
    """Only β ≤ 0.0099 admits j = 99 instead of 100, and that pair is tighter."""
    pairs = frontier(100, 3586, 0.04, 0.02)
    assert {r.function for r in pairs} == {99, 100}
    assert default_ranks(100, 3586, Request.of(0.04, 0.02, "iid")).function == 99


@a_few_and(200)
def test_iid_never_needs_more_than_hoeffding_at_the_same_point_rank(count):
    for n, m, alpha, delta in random_settings(count, 5, functions=500, points=500):
        exact_tails = {r.point: r.function for r in frontier(n, m, alpha, delta, "iid")}
        for pair in frontier(n, m, alpha, delta, "hoeffding"):
            better = [j for k, j in exact_tails.items() if k <= pair.point]
            assert better, (n, m, alpha, delta)
            assert min(better) <= pair.function, (n, m, alpha, delta)


def test_numpy_and_fraction_arguments_mean_the_same():
    expected = plan(0.1, 0.02, 90, 120, "iid").ranks
    for alpha, delta in [
        (np.float64(0.1), np.float32(0.02)),
        (Fraction(1, 10), Decimal("0.02")),
    ]:
        assert plan(alpha, delta, np.int64(90), 120, "iid").ranks == expected


def test_tightest_follows_the_training_residuals():
    """Functions alike: a low j, whatever k. Points alike, functions not: a low k pays."""
    rng = np.random.default_rng(0)
    pairs = frontier(200, 400, 0.1, 0.1)
    alike = np.abs(rng.standard_cauchy((300, 400)))  # steep in k, functions exchangeable
    unlike = np.exp(2 * rng.standard_normal((300, 1))) * (1 + 0.001 * rng.random((300, 400)))
    assert tightest(pairs, 400, alike, 200).point < tightest(pairs, 400, unlike, 200).point
    with pytest.raises(ValueError, match="training ratios is nan"):
        tightest(pairs, 400, np.full((300, 400), np.nan), 200)
    with pytest.raises(ValueError, match="frontier is empty"):
        tightest((), 400, alike, 200)
