"""Every guarantee by simulation: at least 30 settings each, and its exact law where there is one.

Many calibration sets are drawn, and new functions beside each. A rate of failures is tested exactly
at level 1e-4 a setting; a mean of shares by the bound of Hoeffding and Bentkus, which holds for
means of independent numbers in [0, 1].
"""

from itertools import product
from math import ceil, exp, log

import numpy as np
import pytest
from scipy import stats

from tests.statistical.test_validity import LEVEL, at_most, chi_square
from uqno.conformal.guarantees import Chosen, Curve, Everywhere, Evidence, Expected, Shape
from uqno.conformal.guarantees.pool import Pool

pytestmark = pytest.mark.statistical

ROUND = (0.01, 0.05, 0.1, 0.2)


def half_normal(rng, n, m):
    return np.abs(rng.standard_normal((n, m))) * np.exp(0.7 * rng.standard_normal((n, 1)))


def cauchy(rng, n, m):
    return np.abs(rng.standard_cauchy((n, m)))


def ties(rng, n, m):
    return rng.integers(0, 3, (n, m)) * rng.integers(1, 3, (n, 1)).astype(float)


def walks(rng, n, m):
    walk = np.cumsum(rng.standard_normal((n, m)), axis=1) / np.sqrt(m)
    return np.abs(walk * rng.standard_t(2, size=(n, 1)))


def alike(rng, n, m):
    return np.broadcast_to(rng.exponential(size=(n, 1)), (n, m)).copy()


def rare(rng, n, m):
    return (rng.random((n, m)) < 0.15 * rng.random((n, 1))) * rng.pareto(1.1, (n, m))


LAWS = (half_normal, cauchy, ties, walks, alike, rare)
DRAWS = 250


def means_at_most(shares, alpha):
    """Whether a mean of numbers in [0, 1] agrees with E ≤ α: Hoeffding–Bentkus."""
    n, mean = len(shares), float(np.mean(shares))
    if mean <= alpha:
        return True
    entropy = mean * log(mean / alpha) + (
        (1 - mean) * log((1 - mean) / (1 - alpha)) if mean < 1 else 0
    )
    bentkus = np.e * stats.binom.sf(ceil(n * mean) - 1, n, alpha)
    return min(exp(-n * entropy), bentkus) > LEVEL


def test_the_test_of_means_notices():
    assert not means_at_most(np.full(400, 0.2), 0.1)
    assert means_at_most(np.full(400, 0.101), 0.1)


EXPECTED = list(
    product(LAWS, [(9, 5, 0.1), (20, 40, 0.2), (60, 1, 0.05), (40, 30, 0.3), (99, 8, 0.1)])
)


@pytest.mark.parametrize(("law", "setting"), EXPECTED)
def test_the_expected_share_is_kept(law, setting):
    n, m, alpha = setting
    rng = np.random.default_rng([n, m])
    rule, shares = Expected(alpha), []
    for _ in range(DRAWS):
        r = law(rng, n + 10, m)
        scale = rule.solve(Pool(np.full(n, m), r[:n].ravel())).scale
        shares.append((r[n:] > scale).mean())
    assert means_at_most(shares, alpha), f"{np.mean(shares)} of {alpha}"
    if law in (half_normal, cauchy, walks):  # no ties: what is given away is at most 2 / (n + 1)
        assert means_at_most(1 - np.array(shares), 1 - alpha + 2 / (n + 1))


@pytest.mark.parametrize("law", [half_normal, cauchy])
def test_the_expected_share_of_one_point_has_its_exact_law(law):
    """With m = 1 it is split conformal prediction: the misses are Beta-binomial."""
    n, new, alpha = 49, 40, 0.1
    rng = np.random.default_rng(0)
    missed = []
    for _ in range(600):
        r = law(rng, n + new, 1)[:, 0]
        missed.append(
            int((r[n:] > Expected(alpha).solve(Pool(np.ones(n, int), r[:n])).scale).sum())
        )
    assert chi_square(np.array(missed), stats.betabinom(new, 5, 45), new) > LEVEL


@pytest.mark.parametrize("n", [20, 60])
def test_the_expected_share_of_random_points_is_that_of_the_domain(n):
    """Points drawn at random from the domain, of another number in each function."""
    rng = np.random.default_rng(n)
    shares = []
    for _ in range(400):
        scales, sizes = np.exp(0.7 * rng.standard_normal(n + 1)), rng.integers(3, 30, n)
        r = np.abs(rng.standard_normal(sizes.sum())) * np.repeat(scales[:n], sizes)
        scale = Expected(0.1, sampling="iid").solve(Pool(sizes, r)).scale
        shares.append(2 * stats.norm.sf(scale / scales[n]))
    assert means_at_most(shares, 0.1)
    assert means_at_most(1 - np.array(shares), 0.9 + 2 / (n + 1))


RANKED = list(
    product(LAWS, [(9, 7, 0.1), (20, 30, 0.1), (49, 12, 0.02), (99, 20, 0.05), (60, 9, 0.3)])
)


def misses(r, rule, scale):
    """Whether each new function breaks the promise: of everywhere, or of some α from 1 % on."""
    if isinstance(rule, Everywhere):
        return (r > scale).any(axis=1)
    kappa = scale / rule.factor
    m, ordered = r.shape[1], np.sort(r, axis=1)
    k = rule.shape.point_ranks(m)
    return (ordered[:, k - 1] > kappa * rule.shape.sizes * (1 + 1e-12)).any(axis=1)


def scores(r, rule):
    if isinstance(rule, Everywhere):
        return r.max(axis=1)
    k = rule.shape.point_ranks(r.shape[1])
    return (np.sort(r, axis=1)[:, k - 1] / rule.shape.sizes).max(axis=1)


@pytest.mark.parametrize("kind", [Everywhere, Curve])
@pytest.mark.parametrize(("law", "setting"), RANKED)
def test_everywhere_and_every_level_hold(kind, law, setting):
    n, m, delta = setting
    rng = np.random.default_rng([n, m, 1])
    rule = kind(delta)
    r = law(rng, DRAWS * (n + 5), m)
    s = scores(r, rule).reshape(DRAWS, n + 5)
    evidence = Evidence(np.full(s.size, m), s.ravel())
    sets = np.arange(s.size).reshape(s.shape)
    scale = rule.scales(evidence, sets[:, :n])
    failed = np.array(
        [misses(r[new], rule, one).sum() for new, one in zip(sets[:, n:], scale, strict=True)]
    )
    first = np.random.default_rng(0).binomial(1, failed / 5)
    assert at_most(int(first.sum()), DRAWS, delta), f"{failed.mean() / 5} of {delta}"
    if law not in (ties, rare):
        j = n + 1 - int(delta * (n + 1) + 1e-9)
        assert chi_square(failed, stats.betabinom(5, n + 1 - j, j), 5) > LEVEL


CHOSEN = list(product(("continuous", "ties"), (20, 60, 150), (0.8, 0.9, 0.95))) + [
    ("continuous", n, 0.9) for n in (5, 7, 10, 15, 25, 33, 45, 77, 90, 99, 120, 200)
]


@pytest.mark.parametrize(("law", "n", "confidence"), CHOSEN)
def test_every_delta_chosen_afterwards_holds(law, n, confidence):
    """No δ at all may be broken in more than 1 − confidence of the sets."""
    rng = np.random.default_rng(n)
    sets = 400
    s = np.sort(rng.random((sets, n)), axis=1)
    chance = 1 - s
    if law == "ties":
        s = np.ceil(7 * s) / 7
        chance = 1 - s
    broken = np.zeros(sets, bool)
    for delta in np.geomspace(0.004, 0.9, 25).round(4):
        rank = Chosen(delta=delta, confidence=confidence).ranks_for(n, 10)
        if rank is not None:
            broken |= chance[:, rank.function - 1] > delta
    assert at_most(int(broken.sum()), sets, round(1 - confidence, 9)), broken.mean()


@pytest.mark.parametrize("more", [{"alphas": ROUND}, {"shape": Shape.half_normal(ROUND)}])
@pytest.mark.parametrize("n", [60, 200])
def test_every_alpha_and_delta_chosen_afterwards_hold(n, more):
    """Functions of light and of heavy tails: s(α) = S·z(α)^t, so that all chances are known."""
    rng = np.random.default_rng(n)
    z, tails = np.array(Shape.half_normal(ROUND).values), np.array([0.5, 2.0])
    broken, sets = 0, 150
    deltas = (0.05, 0.1, 0.3)
    choices = list(product(range(4), deltas))
    rules = {(i, d): Chosen(ROUND[i], d, 0.8, **more) for i, d in choices}
    ranks = {one: rule.ranks_for(n, 10) for one, rule in rules.items()}
    for _ in range(sets):
        sizes, tail = np.exp(rng.standard_normal(n)), rng.choice(tails, n)
        levels = np.sort(sizes[:, None] * z ** tail[:, None], axis=0)
        curve = np.sort((sizes[:, None] * z ** tail[:, None] / z).max(axis=1))
        held = True
        for (i, delta), rank in ranks.items():
            if rank is None:
                continue
            j = rank.function - 1
            scale = levels[j, i] if "alphas" in more else curve[j] * z[i]
            held &= stats.norm.sf(np.log(scale / z[i] ** tails)).mean() <= delta
        broken += not held
    assert at_most(broken, sets, 0.2), broken
    assert sum(rank is not None for rank in ranks.values()) > 5


def test_a_marginal_rank_would_not_do_for_every_delta():
    """The test above can fail: ranks that are good for one δ beforehand break for some δ."""
    rng = np.random.default_rng(0)
    n, sets = 150, 400
    chance = 1 - np.sort(rng.random((sets, n)), axis=1)
    broken = np.zeros(sets, bool)
    for delta in np.geomspace(0.004, 0.9, 25).round(4):
        rank = Everywhere(delta, confidence=0.9).ranks_for(n, 10)
        if rank is not None:
            broken |= chance[:, rank.function - 1] > delta
    assert not at_most(int(broken.sum()), sets, 0.1)
