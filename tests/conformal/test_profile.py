"""A profile holds what direct computation on the fields gives: exactly, or bounded."""

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from uqno.conformal import coverage, function_scores, weighted_scores
from uqno.conformal.profile import (
    ALL_RANKS,
    CORRELATED_POINTS,
    EVEN_RANKS,
    TOP_RANKS,
    ByArea,
    Profile,
    concatenate,
    profile,
    profile_ranks,
    rank_correlation,
)


def functions(points, count=6, seed=0):
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.normal(size=(count, 1)))
    return scale * np.abs(rng.normal(size=(count, points))), rng.lognormal(size=(count, points))


def stacked(error, uncertainty, ranks=()):
    kept = profile_ranks(uncertainty.shape[1], ranks)
    return concatenate([profile(e, r, kept) for e, r in zip(error, uncertainty, strict=True)])


def direct_excess(error, uncertainty, lam):
    return np.stack([np.maximum(0, error - x * uncertainty).mean(axis=1) for x in lam], axis=1)


def test_every_rung_is_an_order_statistic_of_the_ratios():
    error, uncertainty = functions(2000)
    held = stacked(error, uncertainty, ranks=[1234, 1777])
    for rank in [1, 1234, 1777, 1999, 2000]:
        np.testing.assert_array_equal(held.scores(rank), function_scores(error, uncertainty, rank))
    np.testing.assert_allclose(held.mean_uncertainty, uncertainty.mean(axis=1), rtol=1e-14)
    np.testing.assert_allclose(held.mean_error, error.mean(axis=1), rtol=1e-14)


def test_a_rank_that_was_not_asked_for_is_refused():
    held = stacked(*functions(2000))
    absent = int(np.setdiff1d(np.arange(1, 2001), held.ranks)[0])
    with pytest.raises(ValueError, match=f"rank {absent} of 2000 points is not among"):
        held.scores(absent)
    with pytest.raises(ValueError, match="rank 2001"):
        held.scores(2001)


@pytest.mark.parametrize("points", [1, 7, 300, 301, 1849, 421**2])
def test_kept_ranks_bracket_every_scale(points):
    kept = profile_ranks(points, ranks=[max(1, points // 3)])
    assert kept[0] == 1
    assert kept[-1] == points
    assert max(1, points // 3) in kept
    assert len(kept) <= 300
    assert (np.diff(kept) >= 1).all()
    assert np.diff(kept).max(initial=1) <= max(1, np.ceil(points / 100))
    top = kept[kept > points - 10]
    assert len(top) == min(10, points)


def test_the_kept_refuses_a_rank_that_no_function_has():
    with pytest.raises(ValueError, match="must lie in 1 … 50"):
        profile_ranks(50, [51])
    with pytest.raises(ValueError, match="ranks must rise from 1 to 4"):
        profile(np.ones(4), np.ones(4), [1, 2, 3])


def test_coverage_is_exact_with_every_rank_and_at_ranks():
    error, uncertainty = functions(200)
    lam = np.array([0.0, 0.1, 0.7, 1.0, 3.0, 1e9])
    found = stacked(error, uncertainty).coverage(lam)
    wanted = np.stack([coverage(error, uncertainty, x) for x in lam], axis=1)
    np.testing.assert_array_equal(found, wanted)
    error, uncertainty = functions(3000)
    held = stacked(error, uncertainty)
    for i in (0, 40, 150, -1):
        lam = held.ratios[2, i]
        assert held.coverage(lam)[2, 0] == coverage(error[2:3], uncertainty[2:3], lam)[0]


def test_coverage_between_ranks_is_off_by_less_than_their_distance():
    error, uncertainty = functions(3000)
    held = stacked(error, uncertainty)
    lam = np.linspace(0, 8, 57)
    wanted = np.stack([coverage(error, uncertainty, x) for x in lam], axis=1)
    gap = np.abs(held.coverage(lam) - wanted)
    assert gap.max() < np.diff(held.ranks).max() / 3000
    assert gap.mean() < 1e-3


def test_excess_is_exact_at_ranks_and_an_upper_bound_between():
    error, uncertainty = functions(3000)
    held = stacked(error, uncertainty)
    for i in (0, 10, 200, -1):
        lam = held.ratios[:, i]
        found = np.diagonal(held.excess(lam))
        wanted = np.diagonal(direct_excess(error, uncertainty, lam))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-15)
    lam = np.linspace(0, 8, 57)
    wanted = direct_excess(error, uncertainty, lam)
    over = held.excess(lam) - wanted
    assert over.min() > -1e-14
    assert over.max() < 1e-3 * wanted.max()
    np.testing.assert_allclose(held.excess(0.0)[:, 0], error.mean(axis=1), rtol=1e-14)


def test_excess_is_exact_with_every_rank_and_ties():
    rng = np.random.default_rng(1)
    error, uncertainty = (rng.integers(1, 4, size=(5, 100)).astype(float) for _ in range(2))
    lam = np.array([0.0, 0.2, 0.5, 0.9, 1.0, 1.7, 3.0, 9.0])
    found = stacked(error, uncertainty).excess(lam)
    np.testing.assert_allclose(found, direct_excess(error, uncertainty, lam), atol=1e-15)


def test_a_zero_radius_follows_the_conventions_of_the_ratios():
    error, uncertainty = np.array([[0.0, 2.0, 1.0, 1.0]]), np.array([[0.0, 0.0, 1.0, 2.0]])
    held = stacked(error, uncertainty)
    np.testing.assert_array_equal(held.ratios, [[0, 0.5, 1, np.inf]])
    np.testing.assert_array_equal(held.coverage([0.0, 0.6, 5.0]), [[0.25, 0.5, 0.75]])
    lam = np.array([0.0, 0.6, 1.0, 5.0])
    np.testing.assert_allclose(held.excess(lam), direct_excess(error, uncertainty, lam))


def assert_alike(one, other):
    for field in fields(Profile):
        if field.name != "area":
            found, expected = (getattr(p, field.name) for p in (one, other))
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (one.area is None) == (other.area is None)
    for name in ("alphas", "needed", "covered") if one.area else ():
        np.testing.assert_array_equal(getattr(one.area, name), getattr(other.area, name))


def test_signed_and_vector_errors_and_grids():
    error, uncertainty = functions(36, count=1)
    flat = profile(error[0], uncertainty[0], profile_ranks(36))
    grid = profile(-error[0].reshape(6, 6), uncertainty[0].reshape(6, 6), profile_ranks(36))
    vector = np.stack([0.6 * error[0], -0.8 * error[0]], axis=-1)
    pair = profile(vector.reshape(6, 6, 2), uncertainty[0].reshape(6, 6), profile_ranks(36))
    for other in (grid, pair):
        assert_alike(other, flat)


def test_rank_correlation_against_a_reference_and_of_a_constant():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    x = rng.integers(0, 20, size=500).astype(float)
    y = x + 10 * rng.normal(size=500)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
    assert np.isnan(rank_correlation(np.ones(5), np.arange(5.0)))
    held = profile(y**2, np.exp(x), profile_ranks(500))
    assert held.correlation[0] == pytest.approx(spearmanr(np.exp(x), y**2).statistic, abs=1e-12)


def test_areas_are_scored_as_calibrate_scores_them():
    error, uncertainty = functions(400, count=6)
    areas = np.random.default_rng(5).random((6, 400))
    kept = profile_ranks(400)
    held = concatenate(
        [
            profile(*three, areas=a, alphas=(0.1, 0.3))
            for *three, a in zip(error, uncertainty, [kept] * 6, areas, strict=True)
        ]
    )
    assert_alike(Profile.of_arrays(held.arrays()), held)
    for alpha in (0.1, 0.3):
        found = held.area.scores_at(alpha)
        np.testing.assert_array_equal(found, weighted_scores(error, uncertainty, areas, alpha))
    # Exact at kept ranks, between them nearly.
    for scale in (held.ratios[0, 30], 1.0):
        exact = coverage(error, uncertainty, scale, areas)
        np.testing.assert_allclose(held.area.coverage(held.ratios, [scale])[:, 0], exact, atol=0.01)
    with pytest.raises(ValueError, match=r"0\.2 is not among"):
        held.area.scores_at(0.2)
    with pytest.raises(ValueError, match="profile all alike"):
        concatenate([held, profile(error[0], uncertainty[0], kept)])
    half = held.divided(2.0)
    np.testing.assert_array_equal(half.mean_uncertainty, held.mean_uncertainty / 2)
    np.testing.assert_array_equal(half.ratios, held.ratios)


def test_a_profile_says_what_it_lacks():
    held = stacked(*functions(400))
    arrays = held.arrays()
    del arrays["ratios"]
    with pytest.raises(ValueError, match="lack ratios"):
        Profile.of_arrays(arrays)
    with pytest.raises(ValueError, match="keeps some ratios alone"):
        held.all_ratios()
    with pytest.raises(ValueError, match="count alike"):
        held.weighted_scores([0.5])
    whole = stacked(*functions(30))
    assert whole.all_ratios().shape == (len(whole), 30)
    assert_alike(whole[1:3], stacked(*(x[1:3] for x in functions(30))))


def test_profiles_of_different_kepts_do_not_mix():
    one, other = (profile(np.ones(m), np.ones(m), profile_ranks(m)) for m in (4, 5))
    with pytest.raises(ValueError, match="profile 1 has 5 ranks of 5 points"):
        concatenate([one, other])
    with pytest.raises(ValueError, match="at least one"):
        concatenate([])
    both = concatenate([one, one])
    assert len(both) == 2


def with_areas(points=400, count=6, alphas=(0.1, 0.3)):
    error, uncertainty = functions(points, count=count)
    areas = np.random.default_rng(5).random((count, points))
    kept = profile_ranks(points)
    each = zip(error, uncertainty, areas, strict=True)
    return concatenate([profile(e, E, kept, a, alphas) for e, E, a in each])


def test_some_of_the_functions_with_their_areas():
    held = with_areas()
    some = held[np.array([4, 1])]
    assert len(some) == len(some.area) == 2
    for name in ("ratios", "error_above", "uncertainty_above", "mean_error", "mean_uncertainty",
                 "correlation"):  # fmt: skip
        np.testing.assert_array_equal(getattr(some, name), getattr(held, name)[[4, 1]])
    np.testing.assert_array_equal(some.area.needed, held.area.needed[[4, 1]])
    np.testing.assert_array_equal(some.area.covered, held.area.covered[[4, 1]])
    np.testing.assert_array_equal(some.area.alphas, [0.1, 0.3])
    assert (some.points, some.area.points) == (400, 400)
    np.testing.assert_array_equal(some.ranks, held.ranks)
    assert stacked(*functions(30))[:2].area is None


def test_areas_without_any_small_ratio():
    """Below the first ratio nothing is covered, above the last all of it, ∞ stays outside."""
    area = ByArea(3, np.array([0.1]), np.ones((1, 1)), np.array([[0.2, 0.5, 1.0]]))
    ratios = np.array([[1.0, 2.0, np.inf]])
    found = area.coverage(ratios, np.array([0.0, 0.5, 1.0, 1.5, 2.0, 9.0]))
    np.testing.assert_allclose(found, [[0, 0.1, 0.2, 0.35, 0.5, 0.5]])


def test_what_areas_refuse():
    area = with_areas().area
    with pytest.raises(ValueError, match=r"alpha = 0.2 is not among \[0.1, 0.3\], for which"):
        area.weighted_scores([Fraction(8, 10)])
    both = area.weighted_scores([Fraction(7, 10), Fraction(9, 10)])
    np.testing.assert_array_equal(both, area.needed[:, ::-1])
    np.testing.assert_array_equal(area.scores_at(0.1 + 1e-13), area.needed[:, 0])
    with pytest.raises(ValueError, match="is not among"):
        area.scores_at(0.1 + 1e-9)
    with pytest.raises(ValueError, match="count by area have no ranks"):
        area.scores(3)
    with pytest.raises(ValueError, match="keeps no points to draw from"):
        area.subsample(3, 0)
    with pytest.raises(ValueError, match="keeps some ratios alone"):
        area.all_ratios()
    assert list(area.names()) == [f"function {i}" for i in range(6)]
    assert area.weighted
    assert not with_areas().weighted
    with pytest.raises(ValueError, match="alpha = 2 must lie"):
        with_areas(alphas=(2,))


def test_profiles_with_areas_at_other_levels_do_not_mix():
    with pytest.raises(ValueError, match="profile all alike"):
        concatenate([with_areas(alphas=(0.1,)), with_areas(alphas=(0.2,))])
    both = concatenate([with_areas(), with_areas()])
    assert (len(both), len(both.area), both.area.points) == (12, 12, 400)
    np.testing.assert_array_equal(both.area.alphas, [0.1, 0.3])
    kept = profile_ranks(4)
    other = profile(np.ones(4), np.ones(4), [1, 2, 4])
    with pytest.raises(ValueError, match="profile 1 has 3 ranks of 4 points, the first 4 of 4"):
        concatenate([profile(np.ones(4), np.ones(4), kept), other])


def test_arrays_make_the_profile_again():
    plain = stacked(*functions(30))
    assert_alike(Profile.of_arrays(plain.arrays()), plain)
    assert set(plain.arrays()) == {f.name for f in fields(Profile)} - {"area"}
    again = Profile.of_arrays(with_areas().arrays())
    assert_alike(again, with_areas())
    assert again.area.points == again.points == 400
    assert isinstance(again.points, int)
    with pytest.raises(ValueError, match="lack points, ranks, ratios"):
        Profile.of_arrays({})


def test_ranks_that_are_kept_of_many_points():
    assert ALL_RANKS == 300
    np.testing.assert_array_equal(profile_ranks(300), np.arange(1, 301))
    m = 100_000
    kept, extra = profile_ranks(m), profile_ranks(m, [7, 12_345, 7])
    top = m + 1 - np.geomspace(1, m, TOP_RANKS).round()
    even = np.linspace(1, m, EVEN_RANKS).round()
    np.testing.assert_array_equal(kept, np.unique(np.append(top, even)))
    np.testing.assert_array_equal(extra, np.unique(np.append(kept, [7, 12_345])))
    assert extra.dtype == kept.dtype == profile_ranks(3).dtype == np.int64
    with pytest.raises(ValueError, match=r"point rank \[0\] must lie in 1 … 9, .* every function"):
        profile_ranks(9, [0])
    with pytest.raises(ValueError, match="points = 0 must"):
        profile_ranks(0)


@pytest.mark.parametrize("ranks", [[], [2, 3, 4], [1, 2, 3], [1, 3, 3, 4], [1, 3, 2, 4], [1, 5]])
def test_ranks_must_rise_from_one_to_the_points(ranks):
    with pytest.raises(ValueError, match=r"rise from 1 to 4, the points: take profile_ranks\(4\)"):
        profile(np.ones(4), np.ones(4), ranks)


def test_scores_at_ranks_before_between_and_behind_the_kept():
    held = profile(np.arange(1.0, 10), np.ones(9), [1, 4, 9])
    np.testing.assert_array_equal(held.scores(np.array([9, 1, 4])), [[9, 1, 4]])
    np.testing.assert_array_equal(held.scores(4), [4])
    for rank in (0, 2, 5, 10):
        with pytest.raises(ValueError, match=f"rank {rank} of 9 points is not among the 3"):
            held.scores(np.array([4, rank]))
    with pytest.raises(ValueError, match="count alike"):
        held.weighted_scores([Fraction(1, 2)])
    with pytest.raises(ValueError, match="no points to draw from"):
        held.subsample(2, 0)
    assert held.expect(np.array([1])) is None
    assert list(held.names()) == ["function 0"]


def test_sums_above_each_rank_by_hand():
    held = profile([-8.0, 1.0, 3.0, 4.0], [2.0, 1.0, 1.0, 4.0], [1, 3, 4])
    # Ratios 4, 1, 3, 1: ordered 1 (error 1 or 4), 1, 3 (3), 4 (8).
    np.testing.assert_array_equal(held.ratios, [[1, 3, 4]])
    assert held.error_above[0, 1:].tolist() == [2.0, 0.0]
    assert held.uncertainty_above[0, 1:].tolist() == [0.5, 0.0]
    assert held.error_above[0, 0] in (3.0, 3.75)
    assert (held.mean_error[0], held.mean_uncertainty[0], held.points) == (4.0, 2.0, 4)
    half = held.divided(2)
    for name in ("error_above", "uncertainty_above", "mean_error", "mean_uncertainty"):
        np.testing.assert_array_equal(getattr(half, name), getattr(held, name) / 2)


def test_coverage_between_kept_ranks_by_hand():
    held = profile(np.arange(10.0, 110, 10), np.ones(10), [1, 5, 10])
    scales = [0, 5, 10, 15, 20, 30, 49, 50, 60, 75, 99, 100, 1000]
    counts = [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 9, 10, 10]
    np.testing.assert_array_equal(held.coverage(scales), [np.array(counts) / 10])
    assert held.coverage(7).shape == (1, 1)
    assert held.coverage(np.inf) == 1
    endless = profile([1.0, 1.0, 1.0, 1.0], [1.0, 0.5, 0.0, 0.0], [1, 3, 4])
    np.testing.assert_array_equal(endless.coverage([0.5, 1, 5]), [[0, 0.25, 0.25]])


def test_excess_takes_whole_numbers():
    held = stacked(*functions(40))
    np.testing.assert_array_equal(held.excess(1), held.excess([1.0]))
    np.testing.assert_array_equal(held.coverage(1), held.coverage([1.0]))


def test_many_points_are_thinned_for_the_correlation():
    rng = np.random.default_rng(3)
    for m, step in ((CORRELATED_POINTS, 1), (CORRELATED_POINTS + 1, 2), (3 * CORRELATED_POINTS, 3)):
        x, y = rng.random(m), rng.random(m)
        held = profile(y, x + y, profile_ranks(m))
        assert held.correlation[0] == rank_correlation((x + y)[::step], y[::step])
    assert rank_correlation(np.arange(4.0), -np.arange(4.0)) == -1.0
    assert np.isnan(rank_correlation(np.arange(4.0), np.ones(4)))


def test_vectors_of_one_component_are_scalars():
    error, uncertainty = functions(20, count=1)
    kept = profile_ranks(20)
    assert_alike(profile(error[0][:, None], uncertainty[0], kept),
                 profile(error[0], uncertainty[0], kept))  # fmt: skip
    areas = np.random.default_rng(0).random((4, 5))
    grid = profile(error[0].reshape(4, 5), uncertainty[0].reshape(4, 5), kept, areas, (0.1,))
    flat = profile(error[0], uncertainty[0], kept, areas.ravel(), [0.1])
    assert_alike(grid, flat)
    assert flat.area.covered[0, -1] == pytest.approx(1)


def test_sums_are_float64_whatever_the_input():
    error, uncertainty = (x[0].astype(np.float32) for x in functions(250, count=1))
    kept = profile_ranks(250)
    single = profile(error, uncertainty, kept)
    double = profile(error.astype(np.float64), uncertainty.astype(np.float64), kept)
    for name in ("ratios", "error_above", "uncertainty_above", "mean_error", "mean_uncertainty"):
        assert getattr(single, name).dtype == np.float64
        np.testing.assert_array_equal(getattr(single, name), getattr(double, name))


def test_rank_correlation_of_two_points():
    assert rank_correlation(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 1.0


def test_one_profile_with_areas_is_concatenated_too():
    held = with_areas(count=2)
    assert_alike(concatenate([held]), held)
    assert concatenate([held]).area.points == 400


def test_a_scale_just_below_a_kept_ratio_does_not_cover_it():
    """Though the place between the two kept ratios rounds to 1."""
    ulp = 2.0**-52
    error = np.array([ulp / 2, 0.1, 0.2, 0.3, 1 + 3 * ulp, 2, 3, 4, 5, 6])
    held = profile(error, np.ones(10), [1, 5, 10])
    lam = 1 + 2 * ulp
    assert (lam - error[0]) / (error[4] - error[0]) == 1.0
    np.testing.assert_array_equal(held.coverage([lam, error[4]]), [[0.4, 0.5]])


def test_small_errors_of_scalars_do_not_vanish():
    held = profile(np.full(4, -1e-200), np.ones(4), [1, 2, 3, 4])
    assert held.mean_error[0] == 1e-200


def test_unsigned_ranks_that_fall_are_refused():
    with pytest.raises(ValueError, match="rise from 1 to 4"):
        profile(np.ones(4), np.ones(4), np.array([1, 3, 2, 4], np.uint8))


def test_areas_are_added_up_in_float64():
    error, uncertainty = (x[0] for x in functions(400, count=1))
    areas = np.random.default_rng(6).random(400).astype(np.float32)
    single, double = (
        profile(error, uncertainty, profile_ranks(400), x, (0.1,)).area.covered
        for x in (areas, areas.astype(np.float64))
    )
    np.testing.assert_array_equal(single, double)
