"""The guarantee itself, by simulation: many calibration draws, one new function for each.

The new function fails when less than 1 − α of its domain is covered. The number of failures in
R independent draws is Bin(R, p) with p ≤ δ, so it is tested exactly, at level 1e-4 a setting.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from uqno import calibrate
from uqno.conformal import coverage, function_scores
from uqno.conformal.ranks import Request, default_ranks

LEVEL = 1e-4

pytestmark = pytest.mark.statistical


@dataclass(frozen=True)
class Law:
    """Ratios at independent points: the scale S of the function times |Z| of the point."""

    name: str
    point: stats.rv_continuous
    deviation: float = 0.7

    def scales(self, rng, n):
        return np.exp(self.deviation * rng.standard_normal(n))

    def draw(self, rng, n, m):
        """(errors (n, m), scales (n,))"""
        scales = self.scales(rng, n)
        return scales[:, None] * self.point.rvs(size=(n, m), random_state=rng), scales

    def failure(self, scale, alpha):
        """P[a new function has coverage below 1 − α], exactly: coverage is F(λ / S)."""
        edge = self.point.ppf(1 - alpha)
        return float(stats.norm.sf(np.log(scale / edge) / self.deviation))


NORMAL = Law("half-normal", stats.halfnorm())
HEAVY = Law("half-cauchy", stats.halfcauchy())
ALIKE = Law("functions alike", stats.halfnorm(), deviation=1e-6)

CONTINUOUS = [  # law, sampling, n, m, alpha, delta, draws
    (NORMAL, "iid", 20, 20, 0.3, 0.2, 1200),
    (NORMAL, "iid", 20, 200, 0.1, 0.1, 1000),
    (NORMAL, "iid", 50, 50, 0.1, 0.1, 1000),
    (NORMAL, "iid", 100, 50, 0.1, 0.1, 1000),
    (NORMAL, "iid", 100, 400, 0.05, 0.05, 600),
    (NORMAL, "iid", 200, 20, 0.2, 0.05, 600),
    (NORMAL, "iid", 500, 100, 0.1, 0.02, 400),
    (NORMAL, "iid", 2000, 20, 0.1, 0.1, 250),
    (NORMAL, "iid", 60, 20_000, 0.02, 0.1, 60),
    (HEAVY, "iid", 20, 50, 0.2, 0.2, 1000),
    (HEAVY, "iid", 100, 200, 0.1, 0.1, 600),
    (HEAVY, "iid", 300, 50, 0.05, 0.05, 400),
    (HEAVY, "iid", 1000, 30, 0.1, 0.3, 250),
    (ALIKE, "iid", 50, 100, 0.1, 0.1, 1000),
    (ALIKE, "iid", 100, 30, 0.2, 0.2, 1000),
    (ALIKE, "iid", 400, 1000, 0.05, 0.05, 100),
    (NORMAL, "hoeffding", 50, 600, 0.2, 0.2, 500),
    (NORMAL, "hoeffding", 200, 2000, 0.1, 0.1, 80),
    (HEAVY, "hoeffding", 100, 500, 0.2, 0.1, 400),
]


def at_most(failures, draws, delta):
    """The exact test of "p ≤ delta" against more."""
    return stats.binomtest(failures, draws, delta, alternative="greater").pvalue > LEVEL


@pytest.mark.parametrize(("law", "sampling", "n", "m", "alpha", "delta", "draws"), CONTINUOUS)
def test_points_drawn_from_a_continuous_domain(law, sampling, n, m, alpha, delta, draws):
    rng = np.random.default_rng([len(law.name), len(sampling), n, m])
    failures, chances = 0, []
    for _ in range(draws):
        error, _ = law.draw(rng, n, m)
        cal = calibrate(error, np.ones_like(error), alpha, delta, sampling)
        chances.append(law.failure(cal.scale, alpha))
        failures += rng.random() < chances[-1]
    assert at_most(failures, draws, delta), f"{failures} of {draws}, bound {delta}"
    # Sharper: the mean chance itself, by the central limit theorem.
    error = np.std(chances) / np.sqrt(draws)
    assert np.mean(chances) <= delta + 4 * error + 1e-12


@pytest.mark.parametrize(
    ("law", "n", "m", "alpha", "delta", "confidence", "draws"),
    [
        (NORMAL, 60, 100, 0.1, 0.1, 0.9, 600),
        (NORMAL, 200, 50, 0.1, 0.05, 0.8, 400),
        (HEAVY, 100, 200, 0.2, 0.1, 0.95, 400),
        (ALIKE, 80, 60, 0.2, 0.1, 0.9, 500),
    ],
)
def test_conditional_on_the_calibration_set(law, n, m, alpha, delta, confidence, draws):
    """With probability ≥ confidence over the calibration draw the failure chance is ≤ δ."""
    rng = np.random.default_rng(n * m)
    broken = 0
    for _ in range(draws):
        error, _ = law.draw(rng, n, m)
        cal = calibrate(error, np.ones_like(error), alpha, delta, "iid", confidence=confidence)
        broken += law.failure(cal.scale, alpha) > delta
    assert at_most(broken, draws, 1 - confidence), f"{broken} of {draws}"


def field(rng, n, m):
    """Correlated ratios on a grid: random walks with a random scale, heavy-tailed, no ties."""
    walk = np.cumsum(rng.standard_normal((n, m)), axis=1) / np.sqrt(m)
    return walk * rng.standard_t(2, size=(n, 1))


GRID = [  # n, m, alpha, delta, new functions a draw, draws
    (20, 20, 0.1, 0.1, 20, 800),
    (49, 30, 0.2, 0.02, 60, 800),
    (99, 100, 0.1, 0.1, 40, 500),
    (100, 64, 0.05, 0.05, 60, 500),
    (250, 400, 0.1, 0.02, 100, 150),
    (500, 50, 0.02, 0.1, 50, 300),
    (1000, 20, 0.3, 0.3, 30, 200),
    (2000, 25, 0.1, 0.05, 100, 120),
    (40, 20_000, 0.1, 0.1, 20, 40),
]


@pytest.mark.parametrize(("n", "m", "alpha", "delta", "new", "draws"), GRID)
def test_grid_failures_follow_their_exact_law(n, m, alpha, delta, new, draws):
    """Of `new` functions, BetaBinomial(new, n + 1 − j, j) fail: valid, and no more than that."""
    rng = np.random.default_rng(n + m)
    failures = np.empty(draws, int)
    for i in range(draws):
        cal = calibrate(field(rng, n, m), np.ones((n, m)), alpha, delta)
        covered = cal.coverage(field(rng, new, m), np.ones((new, m)))
        failures[i] = (np.round(covered * m) < np.ceil(np.round(m * (1 - alpha), 9))).sum()
    j = cal.ranks.function
    law = stats.betabinom(new, n + 1 - j, j)
    assert law.mean() / new <= delta <= law.mean() / new + 1 / (n + 1) + 1e-12
    assert chi_square(failures, law, new) > LEVEL
    first = rng.binomial(1, failures / new)  # one function a draw: independent trials
    assert at_most(int(first.sum()), draws, delta)


def chi_square(values, law, top):
    """p-value of the counts against the law, neighbours pooled until 5 are expected in each."""
    expected = law.pmf(np.arange(top + 1)) * len(values)
    observed = np.bincount(values, minlength=top + 1)
    pooled_e, pooled_o, e, o = [], [], 0.0, 0
    for x, y in zip(expected, observed, strict=True):
        e, o = e + x, o + y
        if e >= 5:
            pooled_e, pooled_o, e, o = [*pooled_e, e], [*pooled_o, o], 0.0, 0
    pooled_e[-1], pooled_o[-1] = pooled_e[-1] + e, pooled_o[-1] + o
    if len(pooled_e) < 2:
        return 1.0
    statistic = sum((o - e) ** 2 / e for o, e in zip(pooled_o, pooled_e, strict=True))
    return float(stats.chi2.sf(statistic, len(pooled_e) - 1))


def failed(cal, error, uncertainty, alpha, weights=None):
    return bool(cal.coverage([error], [uncertainty], weights)[0] < 1 - alpha - 1e-12)


@pytest.mark.parametrize(
    ("n", "m", "alpha", "delta", "values"),
    [
        (30, 20, 0.1, 0.1, 3),
        (99, 50, 0.1, 0.1, 2),
        (60, 40, 0.25, 0.2, 5),
        (25, 30, 0.2, 0.15, 10),
    ],
)
def test_ties_and_discrete_errors_are_covered(n, m, alpha, delta, values):
    rng = np.random.default_rng(values)
    draws, failures = 1000, 0
    for _ in range(draws):
        p = rng.beta(1, 3, size=(n + 1, 1))  # functions differ
        error = (0.1 * rng.binomial(values, p, size=(n + 1, m))).astype(np.float32)
        uncertainty = np.full(error.shape, 0.3, np.float32)
        cal = calibrate(error[:n], uncertainty[:n], alpha, delta)
        failures += failed(cal, error[n], uncertainty[n], alpha)
    assert at_most(failures, draws, delta), f"{failures} of {draws}"


@pytest.mark.parametrize(
    ("way", "n", "alpha", "delta"),
    [("own", 40, 0.2, 0.2), ("own", 100, 0.1, 0.1), ("subsample", 40, 0.2, 0.2),
     ("subsample", 100, 0.1, 0.1)],
)  # fmt: skip
def test_mixed_discretisation_of_a_continuous_domain(way, n, alpha, delta):
    """Sizes drawn with the function, and larger where the function is rough."""
    rng = np.random.default_rng(n)
    draws, chances = 400, []
    for _ in range(draws):
        scales = NORMAL.scales(rng, n)
        sizes = np.where(scales > 1, 200, 30) + rng.integers(0, 20, n)
        error = [s * np.abs(rng.standard_normal(m)) for s, m in zip(scales, sizes, strict=True)]
        uncertainty = [np.ones(m) for m in sizes]
        cal = calibrate(
            error, uncertainty, alpha, delta, "iid", mixed=way, seed=int(rng.integers(2**31))
        )
        chances.append(NORMAL.failure(cal.scale, alpha))
    failures = int((rng.random(draws) < chances).sum())
    assert at_most(failures, draws, delta), f"{failures} of {draws}"
    assert np.mean(chances) <= delta + 4 * np.std(chances) / np.sqrt(draws)


@pytest.mark.parametrize(
    ("n", "m", "alpha", "delta", "own"),
    [(30, 25, 0.1, 0.1, False), (99, 40, 0.2, 0.1, True), (60, 100, 0.05, 0.2, False)],
)
def test_weighted_domains(n, m, alpha, delta, own):
    """Weights for all, or drawn with the function; coverage is measured by them."""
    rng = np.random.default_rng(m)
    draws, failures = 800, 0
    for _ in range(draws):
        error = field(rng, n + 1, m)
        weights = rng.exponential(size=(n + 1, m)) if own else rng.exponential(size=m)
        cal = calibrate(
            error[:n], np.ones((n, m)), alpha, delta, weights=weights[:n] if own else weights
        )
        failures += failed(cal, error[n], np.ones(m), alpha, weights[n:] if own else weights)
    assert at_most(failures, draws, delta), f"{failures} of {draws}"


def test_vector_valued_functions():
    rng = np.random.default_rng(12)
    n, m, draws, failures = 50, 40, 800, 0
    for _ in range(draws):
        error = rng.standard_normal((n + 1, m, 3)) * np.exp(rng.standard_normal((n + 1, 1, 1)))
        uncertainty = rng.uniform(0.5, 2, (n + 1, m))
        cal = calibrate(error[:n], uncertainty[:n], 0.1, 0.1)
        failures += failed(cal, error[n], uncertainty[n], 0.1)
    assert at_most(failures, draws, 0.1), f"{failures} of {draws}"


def test_the_papers_own_index_breaks_the_bound():
    """Why j is corrected: the paper's 1 − ⌈(n+1)δ′⌉/n quantile fails more often than δ′.

    A record of the mistake, on scores alone: P[new score > λ̂] ≤ δ′ is what the paper claims.
    """
    rng = np.random.default_rng(13)
    n, delta, draws = 20, 0.1, 4000
    scores = rng.standard_normal((draws, n + 1))
    calibration, new = np.sort(scores[:, :n], axis=1), scores[:, n]
    level = 1 - np.ceil((n + 1) * delta) / n
    for method in ("inverted_cdf", "linear", "higher"):
        theirs = np.quantile(calibration, level, axis=1, method=method)
        assert not at_most(int((new > theirs).sum()), draws, delta), method
    j = default_ranks(n, 1, Request.of(0.5, delta, "grid")).function
    assert at_most(int((new > calibration[:, j - 1]).sum()), draws, delta)


def test_rounding_the_point_rank_down_loses_the_implication():
    """Why k is rounded up: a score ≤ λ must mean an empirical coverage of at least 1 − α + t."""
    rng = np.random.default_rng(14)
    m, wanted = 30, 0.95
    error = rng.standard_normal((200, m))
    ones = np.ones_like(error)
    for k, implied in ((int(np.ceil(m * wanted)), True), (int(np.floor(m * wanted)), False)):
        scores = function_scores(error, ones, k)
        shares = [coverage([e], [np.ones(m)], s)[0] for e, s in zip(error, scores, strict=True)]
        assert (np.array(shares) >= wanted).all() == implied
