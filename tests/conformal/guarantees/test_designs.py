"""Which ratio is the score, for every way of observing functions."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from tests.conformal import reference
from uqno.conformal.guarantees.designs import (
    AllCandidates,
    CommonCandidate,
    FixedRank,
    GridRank,
    HoeffdingRank,
    Subsample,
    WeightedShare,
    all_candidates,
    chosen_column,
    iid_choice,
)
from uqno.conformal.ranks import CANDIDATES, Ranks, Request, candidate_ranks, default_ranks
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
    assert CommonCandidate(TENTH, 200).point_rank(100) == ranks[200]
    held = AllCandidates(TENTH).ranks(100)
    np.testing.assert_array_equal(held, [*ranks, 100])
    np.testing.assert_array_equal(held, all_candidates(100, TENTH))
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


@pytest.mark.parametrize("confidence", [None, 0.8])
def test_one_beta_for_functions_of_different_numbers_of_points(confidence):
    request = Request.of(0.2, 0.2, "iid", confidence)
    sizes = [30, 20, 25] * 20
    pair, candidate = iid_choice(request, sizes)
    assert pair.point == candidate_ranks(20, request.alpha)[candidate]
    worst = max(
        reference.tail(int(candidate_ranks(m, request.alpha)[candidate]), m, Fraction(4, 5))
        for m in (20, 25, 30)
    )
    level = request.delta * (1 - worst)
    assert pair.function == reference.smallest_function_rank(60, level, request.confidence)
    assert iid_choice(request, [20] * 60) == (default_ranks(60, 20, request), None)
    assert iid_choice(request, [20, 30]) == (None, None)
    assert iid_choice(request, [20, 20]) == (None, None)


def test_a_choice_at_the_edge_of_rounding_is_refused():
    """(n + 1) δ (1 − β) = 1 exactly: one number of points decides it exactly, several do not."""
    request = Request.of(0.5, 0.2, "iid")
    assert default_ranks(9, 1, request) == Ranks(1, 9)
    assert iid_choice(request, [1] * 8 + [2]) == (None, None)
    j = iid_choice(Request.of(0.5, 0.2000001, "iid"), [1] * 8 + [2])[0].function
    assert j == 9


def test_the_chosen_column():
    request = Request.of(0.1, 0.1, "iid")
    sizes = np.array([50, 40, 50])
    scores = np.stack([all_candidates(int(m), request.alpha) for m in sizes]) * [[1], [100], [2]]
    pair, candidate = Ranks(38, 60), 300
    own = {m: int(candidate_ranks(m, request.alpha)[candidate]) for m in (40, 50)}
    found, chosen = chosen_column(request, sizes, scores, pair, candidate)
    assert found == Ranks(own[40], 60)  # that of the smallest number of points
    np.testing.assert_array_equal(chosen, [own[50], 100 * own[40], 2 * own[50]])
    found, chosen = chosen_column(request, sizes[:1], scores[:1], Ranks(47, 3), None)
    assert found == Ranks(47, 3)
    np.testing.assert_array_equal(chosen, [47])
