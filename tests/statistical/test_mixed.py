"""Functions of different numbers of random points: the promise, by simulation, and its price.

A calibration function of m points is drawn by the k-th smallest of its ratios alone: the ratio at
the share U ~ Beta(k, m + 1 − k) of its law. So a thousand calibration sets are a few arrays.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special, stats

from uqno import calibrate
from uqno.conformal.ranks import Request, common_tail, default_ranks

LEVEL = 1e-4
DRAWS = 4000

pytestmark = pytest.mark.statistical


def sizes_at_random(rng, hardness):
    return rng.choice([60, 100, 200, 2000], hardness.shape)


def rough_ones_fine(rng, hardness):
    return np.where(hardness > 1, 400, 30)


def rough_ones_coarse(rng, hardness):
    return np.where(hardness > 1, 30, 400)


def rare_and_rough_ones_coarse(rng, hardness):
    return np.where(hardness > 1.8, 6, 300)


def rare_and_smooth_ones_coarse(rng, hardness):
    return np.where(hardness < -1.8, 6, 300)


def one_very_coarse_in_each_set(rng, hardness):
    """Which one is random; where the new function is it, no calibration function is."""
    place = np.argsort(rng.random(hardness.shape), axis=1)
    return np.where(place == 0, 2, 2000)


def roughest_of_each_set_coarse(rng, hardness):
    """Exchangeable, but the size tells that a function is the worst of all."""
    rank = np.argsort(np.argsort(-hardness, axis=1), axis=1)
    return np.where(rank < 2, 3, 200)


def worst_sizes_for_the_tail(rng, hardness):
    """Sizes at which the rank is least cautious: β of it is closest to β*."""
    return rng.choice([22, 29, 38, 45, 52, 59], hardness.shape)


@dataclass(frozen=True)
class Setting:
    sizes: object
    n: int
    alpha: float
    delta: float
    quantile: object = stats.halfnorm.ppf
    deviation: float = 0.7
    misses: int | None = None
    confidence: float | None = None


def sharp(share):
    """0 up to a share of 0.9, then a constant: the law for which the rule is sharp."""
    return np.where(share < 0.9 - 1e-9, 0.0, 1.0)


HEAVY = stats.halfcauchy.ppf
SETTINGS = [
    Setting(sizes_at_random, 40, 0.2, 0.2),
    Setting(sizes_at_random, 100, 0.1, 0.1),
    Setting(sizes_at_random, 200, 0.1, 0.05, HEAVY),
    Setting(sizes_at_random, 200, 0.05, 0.1, deviation=0.1),
    Setting(rough_ones_fine, 40, 0.2, 0.2),
    Setting(rough_ones_fine, 100, 0.2, 0.1, HEAVY),
    Setting(rough_ones_coarse, 40, 0.2, 0.2),
    Setting(rough_ones_coarse, 100, 0.1, 0.1),
    Setting(rough_ones_coarse, 100, 0.1, 0.1, misses=5),
    Setting(rare_and_rough_ones_coarse, 100, 0.2, 0.1),
    Setting(rare_and_rough_ones_coarse, 200, 0.3, 0.05, HEAVY),
    Setting(rare_and_smooth_ones_coarse, 100, 0.2, 0.1),
    Setting(one_very_coarse_in_each_set, 60, 0.1, 0.1),
    Setting(one_very_coarse_in_each_set, 200, 0.1, 0.05, deviation=0.05),
    Setting(roughest_of_each_set_coarse, 60, 0.1, 0.1),
    Setting(roughest_of_each_set_coarse, 150, 0.2, 0.2, misses=20),
    Setting(worst_sizes_for_the_tail, 50, 0.1, 0.1, deviation=0.2),
    Setting(worst_sizes_for_the_tail, 100, 0.1, 0.1, sharp, deviation=0.7),
    Setting(sizes_at_random, 100, 0.1, 0.1, sharp, deviation=0.7),
    Setting(rough_ones_coarse, 49, 0.1, 0.3, sharp, deviation=0.7),
]


def coverage_fails(setting, scale, hardness):
    """Whether less than 1 − α of a function of this hardness is covered, exactly."""
    # The ratio at the share 1 − α of its domain, just above which `sharp` is not 0 any more.
    edge = setting.quantile(np.array(1 - setting.alpha))
    return edge * np.exp(setting.deviation * hardness) > scale


def drawn_scores(setting, rng, hardness, sizes, tail):
    scores = np.full(hardness.shape, np.inf)
    for m in np.unique(sizes).tolist():
        k, here = tail.point_rank(m), sizes == m
        if k is not None:
            share = rng.beta(k, m + 1 - k, int(here.sum()))
            scores[here] = setting.quantile(share) * np.exp(setting.deviation * hardness[here])
    return scores


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: f"{s.sizes.__name__}-{s.n}")
def test_failures_are_no_more_than_promised(setting):
    rng = np.random.default_rng([setting.n, len(setting.sizes.__name__)])
    n = setting.n
    request = Request.of(setting.alpha, setting.delta, "iid")
    tail = common_tail(n, request, setting.misses)
    hardness = rng.standard_normal((DRAWS, n + 1))
    sizes = setting.sizes(rng, hardness)
    scores = drawn_scores(setting, rng, hardness[:, :n], sizes[:, :n], tail)
    scale = np.partition(scores, tail.function - 1, axis=1)[:, tail.function - 1]
    # Where all calibration functions are alike, another rule is used; it promises less.
    mixed = (sizes[:, :n] != sizes[:, :1]).any(axis=1) | (setting.misses is not None)
    failures = int((coverage_fails(setting, scale, hardness[:, n]) & mixed).sum())
    p = stats.binomtest(failures, DRAWS, setting.delta, alternative="greater").pvalue
    assert p > LEVEL, f"{failures} of {DRAWS}, bound {setting.delta}"
    assert np.isfinite(scale).mean() > 0.5  # it is no wonder that an infinite one never fails


def test_a_calibration_takes_the_same_scores():
    """The simulations above draw what `calibrate` computes."""
    rng = np.random.default_rng(0)
    sizes = rng.choice([21, 60, 200], 100, p=[0.03, 0.47, 0.5])
    error = [rng.standard_normal(m) for m in sizes]
    cal = calibrate(error, [np.ones(m) for m in sizes], 0.1, 0.1, "iid")
    tail = common_tail(100, Request.of(0.1, 0.1, "iid"))
    ranks = [tail.point_rank(m) for m in sizes.tolist()]
    scores = [
        np.inf if k is None else np.sort(np.abs(e))[k - 1]
        for e, k in zip(error, ranks, strict=True)
    ]
    assert cal.scale == np.sort(scores)[tail.function - 1]


def test_ranks_without_an_allowance_would_fail():
    """The simulation can say no: the ranks of a grid, k = m (1 − α) and j of δ, break it."""
    setting = Setting(rough_ones_coarse, 100, 0.1, 0.1)
    rng = np.random.default_rng(3)
    draws = 5 * DRAWS
    hardness = rng.standard_normal((draws, 101))
    sizes = setting.sizes(rng, hardness)
    share = np.where(sizes == 30, rng.beta(27, 4, sizes.shape), rng.beta(360, 41, sizes.shape))
    scores = setting.quantile(share) * np.exp(setting.deviation * hardness)
    scale = np.sort(scores[:, :100], axis=1)[:, 90]
    failures = int(coverage_fails(setting, scale, hardness[:, 100]).sum())
    assert stats.binomtest(failures, draws, 0.1, alternative="greater").pvalue < LEVEL


@pytest.mark.parametrize(("n", "m", "alpha", "delta"), [(100, 50, 0.1, 0.1), (60, 200, 0.2, 0.2)])
def test_the_rule_for_random_points_is_sharp(n, m, alpha, delta):
    """A share just above α of a function has one continuous ratio, and 0 is the ratio elsewhere.

    Then a function fails with the probability ℓ/((n + 1)(1 − β)) itself: but for ℓ being a whole
    number there is nothing left of δ.
    """
    ranks = default_ranks(n, m, Request.of(alpha, delta, "iid"))
    rng, draws = np.random.default_rng(n), 10 * DRAWS
    ratio = rng.random((draws, n + 1))
    seen = rng.binomial(m, 1 - alpha, (draws, n)) < ranks.point
    scores = np.where(seen, ratio[:, :n], 0.0)
    scale = np.partition(scores, ranks.function - 1, axis=1)[:, ranks.function - 1]
    failures = int((ratio[:, n] > scale).sum())
    beta = special.betainc(ranks.point, m - ranks.point + 1.0, 1 - alpha)
    exact = (n + 1 - ranks.function) / ((n + 1) * (1 - beta))
    assert 0.9 * delta < exact <= delta
    assert stats.binomtest(failures, draws, exact).pvalue > LEVEL


@pytest.mark.parametrize(("n", "delta", "confidence"), [(60, 0.1, 0.9), (150, 0.1, 0.8)])
def test_conditional_on_the_calibration_set(n, delta, confidence):
    """With probability ≥ confidence over the draw of the set, at most δ of new functions fail."""
    setting = Setting(rough_ones_coarse, n, 0.1, delta)
    rng = np.random.default_rng(n)
    tail = common_tail(n, Request.of(0.1, delta, "iid", confidence))
    hardness = rng.standard_normal((DRAWS, n))
    sizes = setting.sizes(rng, hardness)
    scores = drawn_scores(setting, rng, hardness, sizes, tail)
    scale = np.partition(scores, tail.function - 1, axis=1)[:, tail.function - 1]
    edge = stats.halfnorm.ppf(0.9)
    broken = int((special.ndtr(-np.log(scale / edge) / setting.deviation) > delta).sum())
    p = stats.binomtest(broken, DRAWS, 1 - confidence, alternative="greater").pvalue
    assert p > LEVEL, f"{broken} of {DRAWS}"


@pytest.mark.parametrize("points", [5, 20, 60])
@pytest.mark.parametrize("alpha", [0.1, 0.04])
@pytest.mark.parametrize("delta", [0.05, 0.1, 0.2])
def test_one_coarse_function_costs_little(points, alpha, delta):
    """Among 200 functions of 2000 points, beside 201 of 2000 points and the pair they have."""
    n, m = 201, 2000
    request = Request.of(alpha, delta, "iid")
    tail, alone = common_tail(n, request), default_ranks(n, m, request)
    rng = np.random.default_rng(points)
    # The same functions for both: hardness, and the shares by one draw of each.
    size = np.exp(0.7 * rng.standard_normal((DRAWS // 4, n)))
    uniform = rng.random((DRAWS // 4, n))

    def scores(k, m, here):
        share = special.betaincinv(k, m + 1 - k, uniform[:, here])
        return stats.halfnorm.ppf(share) * size[:, here]

    def mean_scale(values, j):
        return np.partition(values, j - 1, axis=1)[:, j - 1].mean()

    rank = tail.point_rank(points)
    coarse = (
        np.full((DRAWS // 4, 1), np.inf) if rank is None else scores(rank, points, slice(200, 201))
    )
    mixed = np.concatenate([scores(tail.point_rank(m), m, slice(200)), coarse], axis=1)
    fine = scores(alone.point, m, slice(None))
    assert mean_scale(mixed, tail.function) <= 1.06 * mean_scale(fine, alone.function)
