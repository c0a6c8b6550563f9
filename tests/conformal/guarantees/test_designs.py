"""Which ratio is the score, for every way of observing functions."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from uqno.conformal.guarantees.designs import (
    AllCandidates,
    CommonTailRank,
    FixedRank,
    GridRank,
    HoeffdingRank,
    Subsample,
    WeightedShare,
    held_pair,
    held_scores,
)
from uqno.conformal.ranks import (
    CANDIDATES,
    CommonTail,
    Ranks,
    Request,
    candidate_ranks,
    default_ranks,
    held_ranks,
)
from uqno.conformal.scores import blocks
from uqno.conformal.stream import Stream

TENTH = Fraction(1, 10)


def block(error, weights=None):
    """One block of functions with uncertainty 1."""
    (only,) = blocks(Stream(error, np.ones(np.shape(error)), weights))
    return only


def test_ranks_of_a_grid_and_of_the_caller():
    assert [GridRank(alpha=TENTH).point_rank(m) for m in (1, 9, 10, 11, 20)] == [1, 9, 9, 10, 18]
    np.testing.assert_array_equal(GridRank(alpha=TENTH).ranks(20), [18])
    assert GridRank().alpha == WeightedShare().alpha == Fraction(1, 2)
    assert FixedRank(point=5).point_rank(5) == 5
    for collector, said in ((FixedRank(point=6), "6"), (FixedRank(), "None")):
        with pytest.raises(ValueError, match=f"ranks.point = {said} must lie in 1 … 5, the points"):
            collector.point_rank(5)


def test_scores_are_collected_in_order():
    error = np.array([[3.0, 1, 2], [6, 5, 4]])
    collector = FixedRank(point=2)
    collector.add(block(error))
    collector.add(block(error[:1] * 10))
    evidence = collector.evidence()
    np.testing.assert_array_equal(evidence.scores, [2, 5, 20])
    np.testing.assert_array_equal(evidence.sizes, [3, 3, 3])
    assert not evidence.weighted


def test_weighted_shares():
    collector = WeightedShare(weighted=True, alpha=Fraction(1, 4))
    collector.add(block(np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([3.0, 1, 1])))
    np.testing.assert_array_equal(collector.evidence().scores, [2, 5])
    assert collector.evidence().weighted


def test_hoeffding_takes_t_from_the_smallest_function():
    request = Request.of(0.2, 0.1, "hoeffding")
    known = HoeffdingRank(request, 500)
    alone = default_ranks(200, 500, request)
    assert known.point_rank(500) == alone.point
    assert known.point_rank(2000) in range(
        4 * alone.point - 3, 4 * alone.point + 1
    )  # the same share
    streamed = HoeffdingRank(request, None)
    assert streamed.point_rank(500) == alone.point
    assert streamed.point_rank(2000) == known.point_rank(2000)
    with pytest.raises(ValueError, match="has 499 points and the first one 500: the paper's rule"):
        streamed.point_rank(499)
    # Too few points for any t: the rank of the grid, and `solve` refuses.
    assert HoeffdingRank(request, None).point_rank(10) == 8


def test_candidates():
    ranks = candidate_ranks(100, TENTH)
    held = AllCandidates(TENTH).ranks(100)
    np.testing.assert_array_equal(held, [*ranks, 100])
    np.testing.assert_array_equal(held, held_ranks(100, TENTH))
    for c in (0, 17, 171, 300, 512):
        wanted = ceil(90 + CANDIDATES[c] * 3 - 1e-9)  # mean 90, deviation 3
        assert ranks[c] == min(wanted, 100)
    assert candidate_ranks(2, Fraction(99, 100))[0] == 1
    error = np.random.default_rng(0).random((2, 100))
    scores = AllCandidates(TENTH).score(block(error))
    np.testing.assert_array_equal(scores, np.sort(error, axis=1)[:, held - 1])


def test_subsampling():
    error = np.arange(10.0).reshape(2, 5)
    collector = Subsample(FixedRank(point=3), 3, seed=0)
    collector.add(block(error))
    evidence = collector.evidence()
    np.testing.assert_array_equal(evidence.sizes, [3, 3])
    draws = [np.random.default_rng([0, i]).permutation(5)[:3] for i in range(2)]
    expected = [error[i][draw].max() for i, draw in enumerate(draws)]
    np.testing.assert_array_equal(evidence.scores, expected)


def test_a_rank_of_its_own_for_each_number_of_points():
    """β* = 1/4 at α = 1/10: 0.9¹³ = 0.254 has no rank, 0.9¹⁴ = 0.229 has 14."""
    collector = CommonTailRank(CommonTail(5, Fraction(1, 4), TENTH))
    for points in (13, 14, 50):
        collector.add(block(np.arange(1.0, 2 * points + 1).reshape(2, points)))
    evidence = collector.evidence()
    # P[Bin(50, 0.9) ≥ 47] = 0.2503, of which 1/4 is just below.
    np.testing.assert_array_equal(evidence.scores, [np.inf, np.inf, 14, 28, 48, 98])
    np.testing.assert_array_equal(evidence.sizes, [13, 13, 14, 14, 50, 50])
    assert [collector.ranks(m).tolist() for m in (13, 14, 50)] == [[13], [14], [48]]


def test_functions_without_a_score_are_checked_too():
    collector = CommonTailRank(CommonTail(5, Fraction(1, 4), TENTH))
    with pytest.raises(ValueError, match="function 0"):
        collector.add(block(np.array([[1.0, np.nan]])))


def test_scores_among_all_that_were_kept():
    sizes = np.array([50, 40, 50, 3])
    scores = np.stack([held_ranks(int(m), TENTH) for m in sizes]) * [[1], [100], [2], [7]]
    chosen = held_scores({50: 47, 40: 38, 3: None}.get, sizes, scores, TENTH)
    np.testing.assert_array_equal(chosen, [47, 3800, 94, np.inf])


def test_a_pair_among_all_that_were_kept():
    assert held_pair(Ranks(47, 3), 50, TENTH) == Ranks(47, 3)
    assert held_pair(Ranks(50, 3), 50, TENTH) == Ranks(50, 3)
    m = 10**6
    ranks = held_ranks(m, TENTH)
    assert held_pair(Ranks(int(ranks[200]) + 1, 3), m, TENTH) == Ranks(int(ranks[201]), 3)
    assert held_pair(Ranks(int(ranks[200]), 3), m, TENTH) == Ranks(int(ranks[200]), 3)
