"""Bounds on all order statistics at once: against exact sums, simulation and single ranks."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from uqno.conformal.ranks import function_rank
from uqno.conformal.simultaneous import (
    FIRST_RANKS,
    LAST_RANK,
    bounded_ranks,
    feasible_at_once,
    probability_within,
    simultaneous_rank,
)

TENTH = Fraction(1, 10)


def slow(bounds, n):
    """P[V_(i) ≤ b_i for all i] by counting the numbers in each interval, exactly."""
    edges = [Fraction(0), *map(Fraction, bounds), Fraction(1)]
    law = {0: Fraction(1)}
    for i in range(1, len(edges)):
        width = edges[i] - edges[i - 1]
        new = {}
        for k, p in law.items():
            for more in range(n - k + 1):
                if k + more >= min(i, n):
                    new[k + more] = new.get(k + more, 0) + p * comb(n - k, more) * width**more
        law = new
    return law[n]


@pytest.mark.parametrize(
    "bounds", [(0.3,), (0.2, 0.9), (0.3, 0.5, 0.8), (0.1, 0.6, 0.6, 0.9, 0.99)]
)
def test_the_joint_law_is_exact(bounds):
    n = len(bounds)
    found = probability_within(np.array(bounds), np.arange(1, n + 1), n)
    assert found == pytest.approx(float(slow(bounds, n)), rel=1e-12)


def test_no_number_below_the_bounds_has_probability_zero():
    assert probability_within(np.array([0.0, 0.0]), np.array([1, 2]), 2) == 0.0
    assert probability_within(np.array([1e-9]), np.array([100]), 200) == 0.0


@pytest.mark.parametrize("n", [1, 2, 3, 30, 200])
def test_one_rank_alone_is_the_conditional_one(n):
    """With a list of one rank the law is a binomial tail."""
    for b in (0.05, 0.3):
        tail = 1 - (1 - b) ** n
        assert probability_within(np.array([b]), np.array([1]), n) == pytest.approx(tail, rel=1e-12)


def test_the_figures_of_the_theory_note():
    delta = Fraction(2, 100)
    assert function_rank(500, delta) == 491
    assert function_rank(500, delta, 1 - TENTH) == 495
    assert simultaneous_rank(500, delta, TENTH) == 498
    assert simultaneous_rank(500, delta, TENTH / 40) == 500


@pytest.mark.parametrize("n", [2, 10, 22, 50, 100])
def test_it_lies_between_the_rank_of_one_and_the_union_of_all(n):
    for delta in (Fraction(1, 50), TENTH, Fraction(3, 10), Fraction(9, 10)):
        rank = simultaneous_rank(n, delta, TENTH)
        one, union = (function_rank(n, delta, 1 - TENTH / share) for share in (1, n))
        assert feasible_at_once(n, delta, TENTH) == (rank is not None)
        if rank is None:
            assert union is None
        else:
            assert one <= rank
            assert union is None or rank <= union


def test_ranks_fall_with_delta_and_rise_with_confidence():
    ranks = [simultaneous_rank(200, Fraction(d, 100), TENTH) for d in range(3, 60, 4)]
    assert ranks == sorted(ranks, reverse=True)
    levels = [simultaneous_rank(200, TENTH, Fraction(1, x)) for x in (2, 5, 10, 100)]
    assert levels == sorted(levels)


def test_many_functions_are_bounded_at_fewer_ranks():
    assert bounded_ranks(FIRST_RANKS).tolist() == list(range(1, FIRST_RANKS + 1))
    ranks = bounded_ranks(10**9)
    assert (np.diff(ranks) > 0).all()
    assert ranks[-1] == LAST_RANK
    assert len(ranks) < 800
    large = simultaneous_rank(10**5, Fraction(2, 100), TENTH)
    assert function_rank(10**5, Fraction(2, 100), 1 - TENTH) <= large <= 10**5 - 1800
    assert feasible_at_once(10**12, Fraction(1, 10**6), TENTH)
    assert simultaneous_rank(10**6, Fraction(1, 2), TENTH) == 10**6 + 1 - LAST_RANK
    assert not feasible_at_once(1, Fraction(99, 100), TENTH)
