"""The monitor's false alarms over 2000 deployments of 1000 functions, and how soon it alarms.

Exact binomial tests at level 1e-4. The deployments play at once, by the wealth and the p-values
that `Monitor` uses; that it gives the same is tested in tests/monitor.
"""

import numpy as np
import pytest
from scipy import stats

from uqno.monitor.martingale import Wealth, factors_of, failure_factors, p_value

LEVEL, FUNCTIONS, ETA = 1e-4, 1000, 0.01
BETS = factors_of(0.5).size

pytestmark = pytest.mark.statistical


def first_alarm(calibration, new, rng):
    """When each deployment gives alarm, (deployments,); ∞ for never.

    Args:
        calibration: scores (deployments, n); new: (deployments, functions).
    """
    deployments, n = calibration.shape
    scores = np.concatenate([calibration, new], axis=1)
    wealth, since = Wealth(BETS, (deployments,)), np.full(deployments, np.inf)
    for t in range(new.shape[1]):
        mine, before = scores[:, n + t, None], scores[:, : n + t]
        larger = np.count_nonzero(before > mine, axis=1)
        ties = 1 + np.count_nonzero(before == mine, axis=1)
        wealth.bet(factors_of(p_value(larger, ties, n + t + 1, rng.random(deployments))))
        since[(wealth.log >= np.log(1 / ETA)) & np.isinf(since)] = t + 1
    return since


def scores(rng, law, shape):
    if law == "ties":
        return rng.integers(0, 20, shape).astype(np.float32)
    return np.exp(0.7 * rng.standard_normal(shape, dtype=np.float32))


@pytest.mark.parametrize(("law", "n"), [("lognormal", 100), ("ties", 500)])
def test_false_alarms_of_2000_deployments_of_1000_functions(law, n):
    rng = np.random.default_rng(n)
    calibration, new = scores(rng, law, (2000, n)), scores(rng, law, (2000, FUNCTIONS))
    alarms = int(np.isfinite(first_alarm(calibration, new, rng)).sum())
    assert stats.binomtest(alarms, 2000, ETA, alternative="greater").pvalue > LEVEL


SHIFTS = {
    "twice the error": (lambda s, t, rng: 2 * s, 25),
    "slow drift, e-fold in 500 functions": (lambda s, t, rng: s * np.exp(t / 500), 300),
    "heavier tails, squared scores": (lambda s, t, rng: s**2, 40),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_it_alarms_within_the_stated_median_number_of_functions(name):
    shift, stated = SHIFTS[name]
    rng = np.random.default_rng(7)
    calibration, new = scores(rng, "", (200, 500)), scores(rng, "", (200, 400))
    since = first_alarm(calibration, shift(new, np.arange(400), rng), rng)
    assert np.median(since) <= stated


@pytest.mark.parametrize(("delta", "confidence"), [(0.05, 0.9), (0.1, 0.95)])
def test_false_alarms_about_failures_at_eta_and_gamma(delta, confidence):
    """Of uniform scores the failure probability of a set is 1 − λ̂, the j-th smallest of them."""
    from uqno.conformal.ranks import Request, default_ranks

    n, sets = 300, 2000
    j = default_ranks(n, 10, Request.of(0.1, delta, "grid", confidence)).function
    rng = np.random.default_rng(n)
    scale = rng.beta(j, n + 1 - j, sets)
    factors = failure_factors(delta)
    wealth, largest = Wealth(factors.shape[1], (sets,)), np.zeros(sets)
    for _ in range(FUNCTIONS):
        failed = (rng.random(sets) > scale).astype(int)
        wealth.bet(factors[failed])
        largest = np.maximum(largest, wealth.log)
    alarms = int((largest >= np.log(1 / ETA)).sum())
    bound = ETA + 1 - confidence
    assert stats.binomtest(alarms, sets, bound, alternative="greater").pvalue > LEVEL


def test_failures_twice_as_often_are_found():
    factors, rng = failure_factors(0.05), np.random.default_rng(0)
    wealth = Wealth(factors.shape[1], (200,))
    for _ in range(FUNCTIONS):
        wealth.bet(factors[(rng.random(200) < 0.1).astype(int)])
    assert np.mean(wealth.log >= np.log(1 / ETA)) > 0.9
