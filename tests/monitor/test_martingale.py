"""Bets, wealth and p-values: fair where nothing changed, exact against a slow reference."""

import numpy as np
import pytest
from scipy import integrate, stats

from uqno.monitor.martingale import (
    RATES,
    SHARE_KEPT,
    Seen,
    Wealth,
    factors_of,
    failure_factors,
    p_value,
    smoothing,
)

BETS = factors_of(0.5).size


def test_every_bet_on_p_values_is_a_density():
    for k in range(BETS):
        parts = [
            integrate.quad(lambda p, k=k: float(factors_of(p)[k]), a, b, limit=200)[0]
            for a, b in ((1e-12, 1e-6), (1e-6, 0.5), (0.5, 1 - 1e-6), (1 - 1e-6, 1 - 1e-12))
        ]
        # The rest lies below the smallest p-value that is told apart; never more than fair.
        assert 0.93 < sum(parts) <= 1 + 1e-9


def test_p_values_of_zero_and_one_pay_a_finite_factor():
    assert np.isfinite(factors_of(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.5])
def test_bets_on_failures_are_fair_at_delta_and_lose_below(delta):
    without, with_failure = failure_factors(delta)
    np.testing.assert_allclose((1 - delta) * without + delta * with_failure, 1)
    for p in (0.0, delta / 2, 0.9 * delta):
        assert ((1 - p) * without + p * with_failure < 1).all()
    assert len(without) >= 2


def test_wealth_is_that_of_a_gambler_who_keeps_books():
    """A slow reference: each rate an account, each bet a purse in it, moved by hand."""
    rng = np.random.default_rng(0)
    factors = rng.exponential(size=(50, 3))
    wealth = Wealth(3)
    accounts = [np.array([SHARE_KEPT, *[(1 - SHARE_KEPT) / 3] * 3]) / len(RATES) for _ in RATES]
    for t in range(50):
        wealth.bet(factors[t])
        for a, rate in zip(accounts, RATES, strict=True):
            a[1:] *= factors[t]
            total = a.sum()
            a *= 1 - rate
            a += rate * total * np.array([SHARE_KEPT, *[(1 - SHARE_KEPT) / 3] * 3])
    assert float(wealth.log) == pytest.approx(np.log(sum(a.sum() for a in accounts)), abs=1e-9)


def test_wealth_stays_finite_where_doubles_would_not():
    wealth = Wealth(2)
    for _ in range(2000):
        wealth.bet(np.array([10.0, 0.0]))
    assert 4000 < float(wealth.log) < np.inf
    without_bets = Wealth(0)
    without_bets.bet(np.empty(0))
    assert float(without_bets.log) == pytest.approx(0)


def test_many_gamblers_play_apart():
    factors = np.random.default_rng(1).exponential(size=(30, 4, 3))
    together, apart = Wealth(3, (4,)), [Wealth(3) for _ in range(4)]
    for row in factors:
        together.bet(row)
        for one, own in zip(apart, row, strict=True):
            one.bet(own)
    np.testing.assert_allclose(together.log, [float(one.log) for one in apart])


def test_p_values_are_ranks_among_all_seen_with_ties_broken():
    seen = Seen([1.0, 3.0, 3.0, np.inf])
    assert seen.p_value(3.0, 0.5) == (1 + 0.5 * 3) / 5
    assert seen.p_value(0.0, 0.25) == (5 + 0.25) / 6
    assert seen.p_value(np.inf, 0.5) == (0 + 0.5 * 2) / 7
    assert p_value(np.array([2, 0]), 1, 10, 0.0).tolist() == [0.2, 0.0]


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["continuous", "many ties"])
def test_p_values_are_uniform_and_independent_where_nothing_changed(law):
    rng = np.random.default_rng(3)
    first, second = [], []
    for i in range(3000):
        scores = rng.standard_cauchy(12) ** 2
        if law == "many ties":
            scores = np.floor(np.minimum(scores, 2))
        seen = Seen(scores[:10])
        first.append(seen.p_value(scores[10], smoothing(0, 0, 2 * i)))
        second.append(seen.p_value(scores[11], smoothing(0, 0, 2 * i + 1)))
    for p in (first, second):
        assert stats.kstest(p, "uniform").pvalue > 1e-4
    assert stats.spearmanr(first, second).pvalue > 1e-4


def test_smoothing_is_the_same_whenever_it_is_asked_for():
    assert smoothing(0, 1, 5) == smoothing(0, 1, 5) != smoothing(0, 1, 6)
    assert smoothing(0, 0, 5) != smoothing(0, 1, 5)
