"""Tails against sums of exact terms: every k, at the tail itself and a hair to either side."""

from fractions import Fraction

import numpy as np
import pytest

from tests.conformal import reference
from uqno.conformal import binomial
from uqno.conformal.binomial import (
    EXACT_TRIALS,
    lower_tail,
    relative_slack,
    smallest_count,
    tail_at_most,
    upper_tail,
)

HAIR = Fraction(1, 10**30)
CHANCES = [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10), Fraction(2, 3), Fraction(1, 1000)]


@pytest.mark.parametrize("p", CHANCES)
def test_a_bound_at_the_tail_itself_is_decided_exactly(p):
    for trials in (1, 2, 3, 7):
        for k in range(1, trials + 1):
            tail = reference.tail(k, trials, p)
            assert tail_at_most(k, trials, p, tail)
            assert not tail_at_most(k, trials, p, tail - HAIR)
            assert tail_at_most(k, trials, p, tail + HAIR)
            assert not tail_at_most(k, trials, p, tail * Fraction(9, 10))
            assert tail_at_most(k, trials, p, tail + (1 - tail) / 10)


def test_bounds_outside_the_shares():
    half = Fraction(1, 2)
    for bound, fits in ((-1, False), (0, False), (1, True), (2, True)):
        assert tail_at_most(2, 3, half, Fraction(bound)) is fits


def test_many_trials_settle_a_tie_on_the_safe_side():
    half = Fraction(1, 2)
    at_limit = reference.tail(EXACT_TRIALS // 2 + 1, EXACT_TRIALS, half)
    assert tail_at_most(EXACT_TRIALS // 2 + 1, EXACT_TRIALS, half, at_limit)
    trials = EXACT_TRIALS + 1  # odd: half of the law lies above the middle
    assert not tail_at_most(trials // 2 + 1, trials, half, half)
    slack = Fraction(relative_slack(trials)) / 2
    assert tail_at_most(trials // 2 + 1, trials, half, half * (1 + 3 * slack))
    assert not tail_at_most(trials // 2 + 1, trials, half, half * (1 + slack))
    assert not tail_at_most(trials // 2 + 1, trials, half, half * (1 - 3 * slack))


def test_tails_of_arrays():
    k = np.arange(1, 8)
    for p in CHANCES:
        upper = [float(reference.tail(int(i), 7, p)) for i in k]
        lower = [float(1 - reference.tail(int(i), 7, p)) for i in k]
        np.testing.assert_allclose(upper_tail(k, 7, float(p)), upper, rtol=1e-12)
        np.testing.assert_allclose(lower_tail(k, 7, float(1 - p)), lower, rtol=1e-12)
        for narrow in (np.uint8, np.float32):
            np.testing.assert_array_equal(upper_tail(narrow(k), 300, 0.1), upper_tail(k, 300, 0.1))
            np.testing.assert_array_equal(lower_tail(narrow(k), 300, 0.1), lower_tail(k, 300, 0.1))
    assert lower_tail([1], 2, 0.5).dtype == np.float64
    assert isinstance(upper_tail(1, 2, 0.5), np.ndarray)


def test_the_slack_grows_with_the_trials():
    assert relative_slack(0) == 1e-10
    assert relative_slack(10**6) == pytest.approx(5e-10, rel=1e-12)


@pytest.mark.parametrize("p", CHANCES)
def test_smallest_count_against_every_count(p):
    for trials in (1, 2, 5, 6):
        tails = {k: reference.tail(k, trials, p) for k in range(1, trials + 1)}
        for bound in {*tails.values(), *(t - HAIR for t in tails.values()), Fraction(1, 2)}:
            expected = next((k for k, tail in tails.items() if tail <= bound), None)
            assert smallest_count(trials, p, bound) == expected, (trials, bound)


def test_tails_near_zero_and_one_keep_their_digits():
    """With so many trials that no tie is settled in integers: the small side is compared."""
    trials = EXACT_TRIALS + 1
    p = Fraction(1, 100)
    tail = float(upper_tail(80, trials, 0.01))
    assert 0 < tail < 1e-20
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert tail_at_most(80, trials, p, Fraction(tail) * factor) is (factor > 1)
        # P[Bin(n, 1 − p) ≥ n + 1 − k] = 1 − P[Bin(n, p) ≥ k]
        bound = 1 - Fraction(tail) * factor
        assert tail_at_most(trials + 1 - 80, trials, 1 - p, bound) is (factor < 1)


def test_a_bound_of_one_holds_where_the_rest_underflows():
    assert tail_at_most(1, EXACT_TRIALS + 1, 1 - Fraction(1, 10**6), Fraction(1))
    assert not tail_at_most(EXACT_TRIALS + 1, EXACT_TRIALS + 1, Fraction(1, 10**6), Fraction(0))


def test_only_counts_that_have_a_tail_are_asked_for(monkeypatch):
    for fits in (True, False):
        asked = []
        monkeypatch.setattr(
            binomial, "tail_at_most", lambda k, *_, a=asked, f=fits: a.append(k) or f
        )
        for trials in range(9):
            assert smallest_count(trials, HAIR, HAIR) == (1 if fits and trials else None)
            assert all(1 <= k <= trials for k in asked)
            asked.clear()
