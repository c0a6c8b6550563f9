"""Every number against a naive double loop, and the percentage against its exact law."""

from dataclasses import fields
from itertools import combinations
from math import ceil

import numpy as np
import pytest
from scipy.stats import binom

from tests.experiments.simulated import profiles
from uqno.conformal import calibrate, calibrate_splits, coverage, frontier
from uqno.conformal.agreement import agreement, verdict
from uqno.conformal.guarantees import Fraction
from uqno.experiments import measuring
from uqno.experiments.measuring import BEST_T, Measured, calibrated, exact_interval, raw

ALPHA, DELTA, N = 0.1, 0.1, 60


def fields_of(count=150, points=240, seed=0):
    rng = np.random.default_rng(seed)
    uncertainty = rng.lognormal(size=(count, points))
    scale = np.exp(0.5 * rng.normal(size=(count, 1)))
    return scale * uncertainty * np.abs(rng.normal(size=(count, points))), uncertainty


@pytest.fixture(scope="module")
def data():
    error, uncertainty = fields_of()
    return error, uncertainty, profiles(error, uncertainty, [])


def naive(error, uncertainty, sampling, splits, ranks=None):
    """Means over the splits, function by function, from the fields themselves."""
    found = []
    for learn, test in zip(*measuring.random_splits(len(error), N, splits, 0), strict=True):
        cal = calibrate(error[learn], uncertainty[learn], ALPHA, DELTA, sampling, ranks=ranks)
        lam = cal.scale
        e, E = error[test], uncertainty[test]
        covered = [coverage(e[i : i + 1], E[i : i + 1], lam)[0] for i in range(len(test))]
        scores = 2 * lam * E + 2 / ALPHA * np.maximum(0, e - lam * E)
        found.append((lam, (lam * E).mean(), np.mean(covered), scores.mean()))
    return np.array(found)


@pytest.mark.parametrize("sampling", ["grid", "iid"])
def test_all_numbers_agree_with_a_double_loop(data, sampling):
    error, uncertainty, held = data
    found = calibrated(held, ALPHA, DELTA, sampling, calibration=N, splits=12)
    wanted = naive(error, uncertainty, sampling, 12)
    mean, sd = wanted.mean(axis=0), wanted.std(axis=0, ddof=1)
    assert found.scale == pytest.approx(mean[0], rel=1e-12)
    assert found.scale_sd == pytest.approx(sd[0], rel=1e-9)
    assert found.bandwidth == pytest.approx(mean[1], rel=1e-12)
    assert found.bandwidth_sd == pytest.approx(sd[1], rel=1e-9)
    assert found.coverage == pytest.approx(mean[2], abs=1e-12)
    assert found.interval_score == pytest.approx(mean[3], rel=1e-9)


def test_the_oracle_is_the_smallest_scale_that_reaches_the_target(data):
    error, uncertainty, held = data
    found = calibrated(held, ALPHA, DELTA, calibration=N, splits=5)
    scales, widths = [], []
    for test in measuring.random_splits(len(error), N, 5, 0)[1]:
        r = error[test] / uncertainty[test]
        tried = np.unique(np.sort(r, axis=1)[:, 210:220])
        lam = next(x for x in tried if ((r <= x).mean(1) >= 1 - ALPHA).mean() >= 1 - DELTA)
        scales.append(lam)
        widths.append(lam * uncertainty[test].mean())
    assert found.oracle_scale == pytest.approx(np.mean(scales), rel=1e-12)
    assert found.oracle_bandwidth == pytest.approx(np.mean(widths), rel=1e-12)
    assert raw(held, ALPHA, DELTA).oracle_scale == pytest.approx(np.mean(scales), rel=0.2)


@pytest.mark.parametrize("sampling", ["grid", "iid"])
def test_the_percentage_is_that_of_the_recorded_split(data, sampling):
    error, uncertainty, held = data
    found = calibrated(held, ALPHA, DELTA, sampling, calibration=N, splits=3)
    cal = calibrate(error[:N], uncertainty[:N], ALPHA, DELTA, sampling)
    covered = coverage(error[N:], uncertainty[N:], cal.scale)
    failures = int((covered < 1 - ALPHA).sum())
    tested = len(error) - N
    assert found.failures == failures
    assert found.calibration_percentage == pytest.approx(1 - failures / tested)
    wanted = agreement(failures, tested, N, cal.ranks.function)
    assert found.p_value == wanted.p_value
    assert found.usual == (1 - wanted.usual[1] / tested, 1 - wanted.usual[0] / tested)
    assert found.interval is None


@pytest.mark.parametrize("seed", range(3, 7))
def test_a_broken_model_gets_a_no(seed):
    """Calibrated, then its uncertainty is rescaled by 0.8: a standard-size test set notices."""
    rng = np.random.default_rng(seed)
    uncertainty = rng.lognormal(size=(1500, 100))
    scale = np.exp(0.3 * rng.normal(size=(1500, 1)))
    error = scale * uncertainty * np.abs(rng.normal(size=uncertainty.shape))
    whole = calibrated(profiles(error, uncertainty, []), 0.1, 0.02, calibration=500, splits=2)
    assert verdict(whole.p_value) != "no"
    broken = np.concatenate([uncertainty[:500], 0.8 * uncertainty[500:]])
    noticed = calibrated(profiles(error, broken, []), 0.1, 0.02, calibration=500, splits=2)
    assert verdict(noticed.p_value) == "no"
    assert noticed.failures > whole.failures


def test_scores_alone_give_the_same_of_what_follows_from_them(data):
    held = data[2]
    whole = calibrated(held, ALPHA, DELTA, calibration=N, splits=5)
    part = calibrated(held, ALPHA, DELTA, calibration=N, splits=5, scores_only=True)
    assert (part.bandwidth, part.p_value, part.usual) == (
        whole.bandwidth,
        whole.p_value,
        whole.usual,
    )
    assert part.coverage is part.interval_score is part.rank_correlation is None


def test_the_mean_percentage_over_all_splits_says_nothing():
    """On the grid without ties it is j / (n + 1), whatever the errors, over all C(9, 5) splits."""
    error, uncertainty = fields_of(count=9, points=20)
    held = profiles(error, uncertainty, [])
    learn = np.array(list(combinations(range(9), 5)))
    test = np.array([[i for i in range(9) if i not in one] for one in learn])
    scales = calibrate_splits(held, None, Fraction(0.1, 0.4), learn)
    covered = held.scores(18)[test] <= scales[:, np.newaxis]
    assert covered.mean() == pytest.approx(4 / 6, abs=1e-12)


def test_the_best_t_is_the_pair_with_the_smallest_bandwidth():
    error, uncertainty = fields_of(points=1000)
    ranks = measuring.ranks_needed(1000, N, [(ALPHA, DELTA)])
    held = profiles(error, uncertainty, ranks)
    best = calibrated(held, ALPHA, DELTA, BEST_T, calibration=N, splits=10)
    pairs = frontier(N, 1000, ALPHA, DELTA, "hoeffding")
    assert len(pairs) > 2
    widths = {p: naive(error, uncertainty, "hoeffding", 10, ranks=p)[:, 1].mean() for p in pairs}
    assert best.ranks == min(widths, key=widths.get)
    assert best.bandwidth == pytest.approx(min(widths.values()), rel=1e-12)
    paper = calibrated(held, ALPHA, DELTA, "hoeffding", calibration=N, splits=10)
    grid = calibrated(held, ALPHA, DELTA, "grid", calibration=N, splits=10)
    assert grid.bandwidth < best.bandwidth < paper.bandwidth


def test_a_raw_row_is_the_band_as_it_comes(data):
    error, uncertainty, held = data
    found = raw(held, ALPHA, DELTA)
    inside = coverage(error, uncertainty, 1.0)
    assert (found.scale, found.scale_sd, found.sampling) == (1.0, None, "none")
    assert not found.calibrated
    assert found.bandwidth == pytest.approx(uncertainty.mean(), rel=1e-12)
    assert found.calibration_percentage == (inside >= 1 - ALPHA).mean()
    assert 0 < found.calibration_percentage < 1
    assert found.coverage == pytest.approx(inside.mean(), abs=1e-12)
    assert found.interval == exact_interval(found.calibration_percentage, len(error))


def test_correlations_are_those_of_the_radius_with_the_error():
    rng = np.random.default_rng(0)
    size = np.arange(1.0, 41.0)[:, np.newaxis]
    uncertainty = rng.lognormal(size=(40, 50))
    uncertainty *= size / uncertainty.mean(axis=1, keepdims=True)
    held = profiles(uncertainty**2 / size, uncertainty, [])
    found = raw(held, ALPHA, DELTA)
    assert found.rank_correlation == pytest.approx(1)
    flat = raw(profiles(uncertainty, np.ones_like(uncertainty), []), ALPHA, DELTA)
    assert flat.rank_correlation is None
    assert flat.function_correlation is None
    assert (
        raw(profiles(size * np.ones(50), uncertainty, []), ALPHA, DELTA).function_correlation == 1
    )
    assert (
        raw(profiles(uncertainty, uncertainty[::-1], []), ALPHA, DELTA).function_correlation == -1
    )


@pytest.mark.parametrize("sampling", ["grid", "iid", "hoeffding", BEST_T])
def test_an_infeasible_row_has_words_and_no_number(data, sampling):
    found = calibrated(data[2], ALPHA, 0.001, sampling, calibration=N)
    assert not found.feasible
    assert "Not feasible with 60 calibration functions" in found.reason
    given = {"alpha", "delta", "sampling", "calibrated", "feasible", "reason"}
    numbers = [getattr(found, f.name) for f in fields(Measured) if f.name not in given]
    assert numbers == [None] * len(numbers)
    assert found.target == 0.999


def test_no_finite_scale_gives_no_number():
    error, uncertainty = fields_of(points=50)
    uncertainty[:, :10] = 0
    found = calibrated(profiles(error, uncertainty, []), ALPHA, DELTA, calibration=N)
    assert not found.feasible
    assert found.bandwidth is None
    assert "uncertainty is zero" in found.reason


def test_a_sweep_is_the_rows_at_each_delta(data):
    deltas = (0.001, 0.05, 0.1, 0.3)
    swept = measuring.sweep(data[2], ALPHA, deltas, calibration=N, splits=20)
    assert swept[2] == calibrated(data[2], ALPHA, 0.1, calibration=N, splits=20)
    assert [m.feasible for m in swept] == [False, True, True, True]
    assert swept[1].bandwidth > swept[2].bandwidth > swept[3].bandwidth
    assert swept[1].calibration_percentage > swept[3].calibration_percentage


def test_all_methods_see_the_same_disjoint_splits():
    learn, test = measuring.random_splits(30, 12, 7, seed=5)
    assert learn.shape == (7, 12)
    assert test.shape == (7, 18)
    both = np.sort(np.concatenate([learn, test], axis=1), axis=1)
    np.testing.assert_array_equal(both, np.tile(np.arange(30), (7, 1)))
    np.testing.assert_array_equal(learn, measuring.random_splits(30, 12, 7, seed=5)[0])
    assert not np.array_equal(learn, measuring.random_splits(30, 12, 7, seed=6)[0])
    with pytest.raises(ValueError, match="leaves no test function of 30"):
        measuring.random_splits(30, 30, 7, 0)


def test_the_exact_interval_is_the_inverse_of_the_binomial_tails():
    low, high = exact_interval(0.9, 40)
    assert binom.sf(35, 40, low) == pytest.approx(0.025, abs=1e-9)
    assert binom.cdf(36, 40, high) == pytest.approx(0.025, abs=1e-9)
    assert exact_interval(0.0, 40)[0] == 0
    assert exact_interval(1.0, 40)[1] == 1
    assert exact_interval(1.0, 40)[0] == pytest.approx(0.025 ** (1 / 40), abs=1e-9)


def test_at_least_counts_a_function_that_is_covered_to_the_point():
    """18 of 20 points are 1 − α of them: "more than" would not count this function."""
    error = np.ones((4, 20))
    error[:, 18:] = 3
    found = raw(profiles(error, np.ones((4, 20)), []), 0.1, 0.1)
    assert found.calibration_percentage == 1
    assert found.coverage == 0.9


def test_ranks_needed_are_those_that_the_rows_ask_for():
    error, uncertainty = fields_of(count=80, points=2000)
    ranks = measuring.ranks_needed(2000, N, [(ALPHA, DELTA), (0.05, DELTA)])
    assert ceil(0.9 * 2000) in ranks
    held = profiles(error, uncertainty, ranks)
    for alpha in (ALPHA, 0.05):
        for sampling in ("grid", "iid", "hoeffding", BEST_T):
            assert calibrated(held, alpha, DELTA, sampling, calibration=N, splits=2).feasible
    with pytest.raises(ValueError, match="rank 1753 of 2000 points"):
        calibrated(held, 0.1235, DELTA, calibration=N)
