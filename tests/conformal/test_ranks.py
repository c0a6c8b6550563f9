"""(k, j) against brute force in exact rational arithmetic, and at integer boundaries."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from tests.conformal import reference
from uqno.conformal import Ranks, frontier, plan, ranks, tightest
from uqno.conformal.binomial import smallest_count, tail_at_most, upper_tail
from uqno.conformal.ranks import (
    Request,
    admissible,
    best_function_rank,
    common_tail,
    default_misses,
    default_ranks,
    expected_scale,
    feasible,
    function_rank,
    function_rank_hoeffding,
    function_rank_iid,
    grid_point_rank,
    held_ranks,
    hoeffding_recipe,
    hoeffding_t,
)


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


def test_tightest_judges_a_pair_by_its_order_statistics():
    """By hand: scores at k of m points, interpolated at j of n + 1 over the training functions."""
    rng = np.random.default_rng(1)
    for seed in range(30):
        training = rng.lognormal(size=(25, 40)) * rng.lognormal(size=(25, 1), sigma=0.1 * seed)
        pairs = frontier(30, 40, 0.3, 0.3)
        expected = []
        for pair in pairs:
            scores = np.sort(np.sort(training, axis=1)[:, pair.point - 1])
            expected.append(np.interp(pair.function / 31 * 24, np.arange(25), scores))
        assert tightest(pairs, 40, iter(training), 30) == pairs[int(np.argmin(expected))]
    with pytest.raises(ValueError, match="holds 1 function"):
        tightest(pairs, 40, training[:1], 30)
    with pytest.raises(ValueError, match="error of the training ratios is nan"):
        tightest(pairs, 40, np.full((25, 40), np.nan), 30)


def test_one_pair_of_each_design():
    assert [grid_point_rank(m, exact(0.3)) for m in (1, 3, 9, 10, 11)] == [1, 3, 7, 7, 8]
    assert function_rank(9, Fraction(0)) is None
    assert function_rank(9, Fraction(-1)) is None
    assert function_rank(9, exact(0.1)) == 9
    assert function_rank(9, exact("0.0999999999")) is None
    assert function_rank(1, Fraction(1, 2)) == 1
    request = Request.of(0.3, 0.1, "grid")
    assert best_function_rank(6, 20, 10, request) is None
    assert best_function_rank(7, 20, 10, request) == best_function_rank(10, 20, 10, request) == 19
    confident = Request.of(0.3, 0.1, "grid", 0.9)
    assert best_function_rank(7, 40, 10, confident) == 39


def test_which_pairs_are_admissible():
    request = Request.of(0.3, 0.1, "grid")
    for point, function, fits in (
        (7, 19, True), (10, 20, True), (7, 18, False), (6, 20, False), (11, 19, False),
        (7, 21, False), (0, 19, False), (7, 0, False), (None, 19, False),
    ):  # fmt: skip
        assert admissible(Ranks(point, function), 20, 10, request) is fits
    assert not admissible(Ranks(7, 5), 5, 10, request)
    everything = Request.of(0.3, 0.9, "grid")
    assert admissible(Ranks(1, 1), 20, 1, everything) is False  # j is 3
    assert admissible(Ranks(1, 1), 9, 1, everything)


@pytest.mark.parametrize("sampling", ["grid", "iid", "hoeffding"])
def test_two_functions_are_the_least(sampling):
    request = Request.of(0.4, 0.9, sampling)
    assert not feasible(1, 100, request)
    assert feasible(2, 100, request)
    assert not feasible(2, 100, Request.of(0.4, 0.1, sampling))


def test_feasible_at_the_boundary_of_independent_points():
    # k = m: β = (1 − α)^m; one miss is allowed from (n + 1) δ (1 − β) = 1 on.
    request = Request.of(0.5, 0.2, "iid")
    assert feasible(9, 1, request)
    assert not feasible(8, 1, request)
    assert function_rank_iid(1, 9, 1, request) == 9
    assert function_rank_iid(1, 8, 1, request) is None
    assert function_rank_iid(1, 19, 1, request) == 18
    assert function_rank_iid(1, 18, 1, request) == 18
    for n, j in ((19, 18), (18, 18)):
        assert function_rank_iid(1, n, 1, request) == j
    below = Request.of(0.5, exact(0.2) - Fraction(1, 10**15), "iid")
    assert function_rank_iid(1, 9, 1, below) is None
    assert function_rank_iid(1, 19, 1, below) == 19


def test_many_functions_where_floats_leave_several_numbers_of_misses_open():
    request = Request.of(0.5, 0.5, "iid")  # δ (1 − β) = 1/4
    for n in range(10**11, 10**11 + 16):
        assert function_rank_iid(1, n, 1, request) == n + 1 - (n + 1) // 4


def test_feasible_asks_the_most_cautious_rank_and_chooses_no_pair():
    assert feasible(100, 50, Request.of(0.1, 0.1, "iid"))
    assert default_ranks.cache_info().misses == 0


def test_the_precision_of_the_callers_decimals_does_not_matter():
    request = Request.of(0.2, 0.1, "hoeffding")
    t, pair = hoeffding_t(500, request), hoeffding_recipe(100, 500, request)
    level = ranks._hoeffding_level(t, 500, request)
    for digits in (3, 100):
        with localcontext(prec=digits):
            assert hoeffding_t(500, request) == t
            assert ranks._hoeffding_level(t, 500, request) == level
            assert hoeffding_recipe(100, 500, request) == pair


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_function_ranks_of_independent_points_equal_brute_force(confidence):
    request = Request.of(0.2, 0.3, "iid", confidence)
    for n, m in ((12, 9), (30, 12), (41, 3)):
        for k in range(1, m + 1):
            level = Fraction(3, 10) * (1 - reference.tail(k, m, Fraction(4, 5)))
            expected = reference.smallest_function_rank(n, level, request.confidence)
            assert function_rank_iid(k, n, m, request) == expected, (n, m, k)


def test_hoeffding_by_the_formula():
    request = Request.of(0.2, 0.1, "hoeffding")
    t0 = np.sqrt(-np.log(0.1) / 1000)
    t = t0 + (0.2 - t0) / 3
    assert float(hoeffding_t(500, request)) == pytest.approx(t, rel=1e-12)
    assert hoeffding_t(28, request) is None  # √(−ln 0.1 / 56) = 0.2028
    assert hoeffding_t(29, request) is not None
    level = 0.1 - np.exp(-1000 * t * t)
    pair = hoeffding_recipe(100, 500, request)
    assert pair == Ranks(ceil(500 * (0.8 + t)), 101 - floor(101 * level))
    assert hoeffding_recipe(8, 500, request) is None
    assert hoeffding_recipe(100, 20, request) is None
    confident = Request.of(0.2, 0.1, "hoeffding", 0.9)
    assert hoeffding_recipe(100, 500, confident).function == function_rank(
        100, Fraction(level), exact(0.9)
    )
    assert function_rank_hoeffding(400, 100, 500, request) is None  # t = 0
    assert function_rank_hoeffding(399, 100, 500, request) is None
    for k in (440, 450, 470, 500):
        best = 0.1 - np.exp(-1000 * (k / 500 - 0.8) ** 2)
        expected = 101 - floor(101 * best) if 101 * best >= 1 else None
        assert function_rank_hoeffding(k, 100, 500, request) == expected
        assert best_function_rank(k, 100, 500, request) == expected
    assert function_rank_hoeffding(470, 100, 500, confident) == function_rank(
        100, Fraction(0.1 - np.exp(-1000 * 0.14**2)), exact(0.9)
    )


@pytest.mark.parametrize(
    ("n", "m", "alpha", "delta", "sampling", "confidence"),
    [
        (2000, 700, 0.5, 0.5, "iid", None),  # more than 64 candidates: the coarse pass
        (999, 600, 0.5, 0.9, "iid", None),
        (999, 600, 0.5, 0.9, "iid", 0.5),
        (60, 90, 0.4, 0.4, "iid", 0.8),
        (60, 90, 0.4, 0.4, "hoeffding", None),
        (200, 1500, 0.4, 0.4, "hoeffding", None),  # many candidates, of which none is spared
        (999, 1999, 0.5, 0.02, "iid", None),  # exactly 10 misses at the middle rank
        (999, 1999, 0.5, exact("0.02") - Fraction(1, 10**17), "iid", None),  # a hair too few
        (60, 30, 0.4, 0.4, "grid", None),
        (3, 30, 0.1, 0.01, "iid", None),
    ],
)
def test_the_frontier_is_what_asking_every_rank_gives(n, m, alpha, delta, sampling, confidence):
    request = Request.of(alpha, delta, sampling, confidence)
    pairs, last = [], n + 1
    for k in range(1, m + 1):
        j = best_function_rank(k, n, m, request)
        if j is not None and j < last:
            pairs.append(Ranks(k, j))
            last = j
    assert frontier(n, m, alpha, delta, sampling, confidence) == tuple(pairs)


def test_the_frontier_names_what_is_wrong():
    with pytest.raises(ValueError, match="functions = 0 must"):
        frontier(0, 10, 0.1, 0.1)
    with pytest.raises(ValueError, match="points = 0 must"):
        frontier(10, 0, 0.1, 0.1)
    with pytest.raises(ValueError, match=r"^alpha = 0 must lie .* any alpha below 1/m"):
        frontier(10, 10, 0, 0.1)
    with pytest.raises(ValueError, match=r"^alpha = 2 must lie .* example alpha=0.1"):
        frontier(10, 10, 2, 0.1)
    with pytest.raises(ValueError, match=r"^delta = 0 must lie .* example delta=0.1"):
        frontier(10, 10, 0.1, 0)
    with pytest.raises(ValueError, match=r"^confidence = 1 must lie .* example confidence=0.1"):
        frontier(10, 10, 0.1, 0.1, confidence=1)
    assert frontier(20, 10, 0.3, 0.1) == frontier(20, 10, 0.3, 0.1, "iid")
    assert Request.of(0.3, 0.1).sampling == "grid"


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize(("n", "m"), [(30, 40), (100, 20), (60, 300), (500, 100), (25, 2)])
def test_the_default_pair_has_the_smallest_scale_to_expect(n, m, confidence):
    """Among all pairs of the frontier, by the working law, to its rounding."""
    alpha, delta = 0.3, 0.2
    pairs = frontier(n, m, alpha, delta, "iid", confidence)
    chosen = default_ranks(n, m, Request.of(alpha, delta, "iid", confidence))
    assert chosen in pairs
    expected = {p: float(expected_scale(p.point, p.function, m, n)) for p in pairs}
    assert expected[chosen] <= min(expected.values()) * (1 + 1e-9)


def test_the_scale_to_expect_by_simulation():
    """|N(0, 1)| errors, lognormal scales: the mean of λ̂ over draws of functions."""
    rng = np.random.default_rng(2)
    for k, j, m, n in ((45, 35, 50, 40), (30, 20, 60, 30), (95, 90, 100, 100)):
        scales = []
        for _ in range(400):
            ratios = np.abs(rng.normal(size=(n, m))) * np.exp(0.7 * rng.normal(size=(n, 1)))
            scores = np.partition(ratios, k - 1, axis=1)[:, k - 1]
            scales.append(np.partition(scores, j - 1)[j - 1])
        assert expected_scale(k, j, m, n) == pytest.approx(np.mean(scales), rel=0.03)


def test_the_scale_to_expect_in_digits():
    """Against the formulas of the docstring, written with scipy's laws."""
    from scipy import stats

    for k, j, m, n in ((45, 35, 50, 40), (3, 2, 7, 5), (100, 60, 100, 60)):
        share = k / (m + 1)
        q = stats.halfnorm.ppf(share)
        noise = np.sqrt(share * (1 - share) / (m + 2)) / (stats.halfnorm.pdf(q) * q)
        deviation = np.hypot(0.7, noise)
        place = (j - 0.375) / (n + 0.25)
        z = stats.norm.ppf(place)
        variance = place * (1 - place) / stats.norm.pdf(z) ** 2 / (n + 2)
        wanted = q * np.exp(deviation * z + deviation**2 * variance / 2)
        assert expected_scale(k, j, m, n) == pytest.approx(wanted, rel=1e-10)
        assert expected_scale(np.float32(k), j, m, n) == expected_scale(k, j, m, n)
        assert expected_scale(k, np.float32(j), m, n) == expected_scale(k, j, m, n)


def test_a_tie_with_confidence_is_settled_on_the_safe_side():
    """δ (1 − β) = 0.1 and P[Bin(1, 0.9) ≥ 1] = 0.9 = 1 − confidence, in floats perhaps more."""
    request = Request.of(0.5, 0.2, "iid", 0.1)
    assert function_rank(1, exact(0.1), exact(0.1)) == 1
    assert function_rank_iid(1, 1, 1, request) is None


def test_the_coarse_pass_spares_most_exact_ones(monkeypatch):
    calls = []
    asked = ranks.best_function_rank
    monkeypatch.setattr(ranks, "best_function_rank", lambda *a: calls.append(a[0]) or asked(*a))
    pairs = frontier(500, 20_000, 0.1, 0.1)
    assert max(calls[-len(pairs) :]) - min(calls[-len(pairs) :]) > 3 * len(pairs)
    assert len(calls) < len(pairs) + 60  # two bisections, then hardly one for each pair


def test_candidates_are_spared_from_64_on_and_lie_between_the_ends():
    request = Request.of(0.5, 0.02, "iid")
    few = ranks._candidates_between(960, 1023, 999, 1999, request)
    assert list(few) == list(range(960, 1024))
    some = ranks._candidates_between(960, 1024, 999, 1999, request)
    assert len(some) < 30
    assert 960 <= min(some) <= max(some) <= 1024


@pytest.mark.parametrize("confidence", [None, Fraction(9, 10), Fraction(1, 2)])
def test_ranks_of_many_levels_at_once(confidence):
    levels = np.linspace(0.011, 0.97, 60)
    found = ranks._function_ranks(40, levels, confidence)
    each = [function_rank(40, Fraction(x), confidence) or 41 for x in levels]
    np.testing.assert_array_equal(found, each)
    assert ranks._function_ranks(40, np.array([0.001, 1e-9]), confidence).tolist() == [41, 41]
    if confidence is None:  # at (n + 1) · level = 1 the careful side: a level that rounding made
        assert ranks._function_ranks(9, np.array([0.1]), None).tolist() == [10]


# --- functions of different numbers of points ------------------------------------------------


@pytest.mark.parametrize("confidence", [None, 0.8])
@a_few_and(400)
def test_the_common_tail_equals_brute_force(count, confidence):
    exact_confidence = None if confidence is None else exact(confidence)
    for n, m, alpha, delta in random_settings(count, 5, functions=60, points=24):
        request = Request.of(alpha, delta, "iid", confidence)
        for misses in (None, 1, 2, n // 4 + 1, n, n + 1):
            tail = common_tail(n, request, misses)
            fixed = default_misses(n, request) if misses is None else misses
            j = n + 1 - fixed
            if tail is None:  # j would not be admissible even if points showed the whole domain
                assert j < 1 or not carried_with_room(j, n, exact(delta), exact_confidence)
                continue
            assert tail.function == j
            assert reference.carries(j, n, exact(delta) * (1 - tail.beta), exact_confidence)
            if confidence is None:
                assert tail.beta == 1 - fixed / ((n + 1) * exact(delta))
            else:  # no larger β would do
                more = exact(delta) * (1 - tail.beta) * (1 - Fraction(1, 10**8))
                assert not reference.carries(j, n, more, exact_confidence)
            tails = [reference.tail(k, m, 1 - exact(alpha)) for k in range(1, m + 1)]
            expected = next((k for k, x in enumerate(tails, 1) if x <= tail.beta), None)
            assert tail.point_rank(m) in (expected, *lowest_candidate(m, alpha, expected))


def carried_with_room(j, n, delta, confidence):
    """Whether j bounds P[score > λ̂] by less than δ."""
    return reference.carries(j, n, delta * (1 - Fraction(1, 10**8)), confidence)


def lowest_candidate(m, alpha, expected):
    """The lowest rank that is looked at, where it is above the smallest admissible one."""
    lowest = int(held_ranks(m, exact(alpha))[0])
    return [lowest] if expected is not None and lowest > expected else []


@pytest.mark.parametrize(
    ("n", "delta", "confidence", "misses"),
    [
        (99, 0.1, None, 9),  # ⌊0.9 · 10⌋
        (98, 0.1, None, 8),
        (100, 0.02, None, 1),
        (200, 0.02, None, 3),
        (20, 0.05, None, 1),
        (5, 0.05, None, 1),
        (500, 0.05, 0.9, 17),
        (60, 0.01, 0.9, 1),
    ],
)
def test_misses_are_chosen_by_n_and_delta_alone(n, delta, confidence, misses):
    assert default_misses(n, Request.of(0.1, delta, "iid", confidence)) == misses
    assert default_misses(n, Request.of(0.3, delta, "iid", confidence)) == misses


def test_a_tail_needs_some_of_delta():
    request = Request.of(0.1, 0.1, "iid")
    assert common_tail(99, request, 9).beta == Fraction(1, 10)
    assert common_tail(99, request, 9).function == 91
    assert common_tail(99, request).beta == Fraction(1, 10)
    assert common_tail(99, request, 10) is None  # ten of a hundred are all of δ
    assert common_tail(100, request, 10).beta == Fraction(1, 101)
    assert common_tail(9, request) is None
    conditional = Request.of(0.1, 0.1, "iid", 0.9)
    assert common_tail(5, conditional, 6) is None
    assert common_tail(5, Request.of(0.1, 0.9999, "iid", 0.9), 6) is None
    assert common_tail(20, conditional) is None  # 0.9²⁰ = 0.12 > 1 − confidence
    # P[Bin(22, 1 − δ′) = 22] = 0.1 at δ′ = 1 − 0.1^(1/22)
    tail = common_tail(22, conditional)
    assert tail.function == 22
    assert float(tail.beta) == pytest.approx(1 - (1 - 0.1 ** (1 / 22)) / 0.1, abs=1e-7)


def test_a_large_function_has_the_next_rank_that_streams_keep():
    """And so a stream, which tells its length last, gives the same scale as a list."""
    m, alpha = 10**6, Fraction(1, 10)
    tail = common_tail(99, Request.of(alpha, 0.1, "iid"))
    least = smallest_count(m, 1 - alpha, tail.beta)
    held = held_ranks(m, alpha)
    assert tail.point_rank(m) == held[np.searchsorted(held, least)]
    assert 0 <= tail.point_rank(m) - least < 8
