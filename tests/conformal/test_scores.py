"""Ratios and their order statistics, against sorting everything in float64."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from uqno.conformal import calibrate, coverage, function_scores, ratios, weighted_scores
from uqno.conformal.scores import Block, blocks
from uqno.conformal.selection import LARGE, Scratch, exact_sum, weighted_quantile
from uqno.conformal.stream import Stream


def naive(error, uncertainty, k):
    """Sort the ratios of one function, all in float64."""
    e, r = np.asarray(error, np.float64), np.asarray(uncertainty, np.float64)
    e = np.linalg.norm(e, axis=-1) if e.ndim > r.ndim else np.abs(e)
    return np.sort(np.ravel(e / r))[k - 1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("shape", [(7, 30), (3, 5, 6), (200, 40)])
def test_arrays_of_any_shape(dtype, shape):
    rng = np.random.default_rng(0)
    error, uncertainty = (
        rng.normal(size=shape).astype(dtype),
        rng.uniform(0.5, 2, shape).astype(dtype),
    )
    for k in (1, 10, 30):
        expected = [naive(e, r, k) for e, r in zip(error, uncertainty, strict=True)]
        np.testing.assert_array_equal(function_scores(error, uncertainty, k), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("law", ["normal", "cauchy", "ties", "few values", "sorted", "constant"])
def test_large_functions_are_selected_exactly(dtype, law):
    """The bracketed selection, whatever the law; k from the first to the last."""
    rng = np.random.default_rng(1)
    m = LARGE + 12_345
    error = {
        "normal": lambda: rng.normal(size=m),
        "cauchy": lambda: rng.standard_cauchy(m),
        "ties": lambda: rng.integers(0, 50, m),
        "few values": lambda: rng.choice([0.1, 0.2], m),
        "sorted": lambda: np.sort(rng.exponential(size=m)),
        "constant": lambda: np.full(m, 0.3),
    }[law]().astype(dtype)
    uncertainty = (
        rng.uniform(0.5, 2, m) if law in ("normal", "sorted") else np.full(m, 0.7)
    ).astype(dtype)
    everything = np.sort(np.abs(error.astype(np.float64)) / uncertainty.astype(np.float64))
    for k in (1, 2, 100, m // 2, int(0.9 * m), int(0.999 * m), m - 1, m):
        found = function_scores([error], [uncertainty], k)
        assert found[0] == everything[k - 1], (law, k)


def test_large_float32_ratios_that_overflow_float32():
    m = LARGE + 1
    error, uncertainty = np.full(m, 1e30, np.float32), np.full(m, 1e-20, np.float32)
    assert function_scores([error], [uncertainty], m // 2)[0] == np.float64(error[0]) / np.float64(
        uncertainty[0]
    )


def test_mixed_precision_is_compared_in_float64():
    rng = np.random.default_rng(2)
    error, uncertainty = (
        rng.normal(size=(4, LARGE + 9)).astype(np.float32),
        rng.uniform(1, 2, (4, LARGE + 9)),
    )
    expected = [naive(e, r, 30_000) for e, r in zip(error, uncertainty, strict=True)]
    np.testing.assert_array_equal(function_scores(error, uncertainty, 30_000), expected)


def test_vectors_take_the_2_norm_over_the_last_axis():
    rng = np.random.default_rng(3)
    error, uncertainty = rng.normal(size=(6, 20, 3)), rng.uniform(1, 2, (6, 20))
    expected = [naive(e, r, 15) for e, r in zip(error, uncertainty, strict=True)]
    np.testing.assert_allclose(function_scores(error, uncertainty, 15), expected, rtol=1e-14)
    one = rng.normal(size=(6, 20, 1))
    np.testing.assert_array_equal(
        function_scores(one, uncertainty, 15), function_scores(one[..., 0], uncertainty, 15)
    )


def test_vectors_neither_overflow_nor_underflow():
    error = np.array([[[3e200, 4e200], [3e-200, 4e-200]]])
    np.testing.assert_allclose(ratios(error[0], np.ones(2)), [5e200, 5e-200])


def test_zero_radius():
    np.testing.assert_array_equal(ratios([0.0, 2.0, 1.0], [0.0, 0.0, 4.0]), [0.0, np.inf, 0.25])
    np.testing.assert_array_equal(ratios([0.0, 1.0], [-0.0, 1.0]), [0.0, 1.0])
    large = np.ones(LARGE + 5)
    uncertainty = np.where(np.arange(large.size) < 7, 0.0, 1.0)
    assert function_scores([large], [uncertainty], large.size - 7)[0] == 1.0
    assert function_scores([large], [uncertainty], large.size - 6)[0] == np.inf
    zeros = np.where(uncertainty == 0, 0.0, large)
    assert function_scores([zeros], [uncertainty], 7)[0] == 0.0
    single = ratios(np.array([1.0, 1.0], np.float32), np.array([3.0, 0.0], np.float32))
    assert single.tolist() == [1 / 3, np.inf]  # in float64 too


def test_streams_lists_and_arrays_agree():
    rng = np.random.default_rng(4)
    error, uncertainty = rng.normal(size=(30, 50)), rng.uniform(1, 2, (30, 50))
    whole = function_scores(error, uncertainty, 40)
    np.testing.assert_array_equal(function_scores(list(error), list(uncertainty), 40), whole)
    np.testing.assert_array_equal(function_scores(iter(error), iter(uncertainty), 40), whole)
    np.testing.assert_array_equal(function_scores(error, iter(uncertainty), 40), whole)
    np.testing.assert_array_equal(function_scores(error.tolist(), uncertainty.tolist(), 40), whole)


def test_only_one_function_of_a_stream_is_alive_at_a_time():
    alive, most = 0, 0

    class Function(np.ndarray):
        def __del__(self):
            nonlocal alive
            alive -= self.base is None

    def stream():
        nonlocal alive, most
        for _ in range(40):
            f = np.ones(100).view(Function).copy()
            alive += 1
            most = max(most, alive)
            yield f

    function_scores(stream(), (np.ones(100) for _ in range(40)), 90)
    assert most <= 3


def test_several_ranks_in_one_pass():
    rng = np.random.default_rng(5)
    error, uncertainty = rng.normal(size=(8, 60)), np.ones((8, 60))
    several = function_scores(error, uncertainty, lambda m: np.array([30, 45, 60]))
    assert several.shape == (8, 3)
    for column, k in enumerate((30, 45, 60)):
        np.testing.assert_array_equal(several[:, column], function_scores(error, uncertainty, k))


def test_a_rank_out_of_range_is_refused():
    with pytest.raises(ValueError, match="point rank 4 must lie in 1 … 3"):
        function_scores(np.ones((2, 3)), np.ones((2, 3)), 4)


# --- weights --------------------------------------------------------------------------------


def naive_weighted(ratio, weights, alpha):
    """Every candidate λ, with sums in rational arithmetic."""
    w = [Fraction(x) for x in weights]
    wanted = (1 - Fraction(str(alpha)) - Fraction(1, 2**52)) * sum(w)
    for lam in sorted(ratio):
        if sum(x for x, r in zip(w, ratio, strict=True) if r <= lam) >= wanted:
            return lam
    raise AssertionError("unreachable: the largest ratio covers all")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=12).filter(
        lambda rows: any(w for _, w in rows)
    ),
    st.sampled_from([0.5, 0.25, 0.1, 0.3, 0.01, 0.9]),
    st.sampled_from([1.0, 0.1, 1 / 3, 1e-9]),
)
def test_weighted_score_equals_every_candidate_tried(rows, alpha, unit):
    ratio = np.array([r for r, _ in rows], float)
    weights = np.array([w * unit for _, w in rows])
    found = weighted_scores([ratio], [np.ones_like(ratio)], weights, alpha)[0]
    assert found == naive_weighted(ratio, weights, alpha)


def test_equal_weights_are_ranks():
    rng = np.random.default_rng(6)
    error = rng.normal(size=(5, 70))
    for weight in (1.0, 1 / 70, 0.1):
        found = weighted_scores(error, np.ones((5, 70)), np.full(70, weight), 0.1)
        np.testing.assert_array_equal(found, function_scores(error, np.ones((5, 70)), 63))


def test_decimal_weights_reach_a_decimal_share():
    values = np.array([1.0, 2.0, 3.0])
    assert weighted_quantile(values, np.array([0.5, 0.4, 0.1]), Fraction(9, 10)) == 2.0
    assert weighted_quantile(values, np.array([0.5, 0.39, 0.11]), Fraction(9, 10)) == 3.0


def test_coverage_is_not_an_ulp_below_the_share():
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights = rng.integers(1, 10, 20) / 10
        errors = np.abs(rng.normal(size=(9, 20)))
        found = calibrate(errors, np.ones((9, 20)), 0.1, 0.1, weights=weights)
        assert (coverage(errors, np.ones((9, 20)), found.scale, weights) >= 0.9).all()


def test_weights_shared_or_one_set_a_function():
    rng = np.random.default_rng(7)
    error, uncertainty = rng.normal(size=(6, 9)), rng.uniform(1, 2, (6, 9))
    shared = rng.uniform(size=9)
    each = np.tile(shared, (6, 1))
    expected = weighted_scores(error, uncertainty, shared, 0.2)
    for weights in (each, list(each), iter(each), shared.tolist()):
        np.testing.assert_array_equal(weighted_scores(error, uncertainty, weights, 0.2), expected)
    grid = weighted_scores(
        error.reshape(6, 3, 3), uncertainty.reshape(6, 3, 3), shared.reshape(3, 3), 0.2
    )
    np.testing.assert_array_equal(grid, expected)
    np.testing.assert_array_equal(
        weighted_scores(list(error), list(uncertainty), list(each), 0.2), expected
    )


def test_shared_weights_of_a_grid_for_lists_of_functions():
    rng = np.random.default_rng(9)
    error, shared = rng.normal(size=(6, 4, 5)), rng.uniform(size=(4, 5))
    ones = np.ones((6, 4, 5))
    expected = weighted_scores(error, ones, shared, 0.2)
    np.testing.assert_array_equal(weighted_scores(list(error), list(ones), shared, 0.2), expected)


def test_points_without_weight_do_not_count():
    error = np.array([[1.0, 2.0, 100.0, 100.0]])
    assert weighted_scores(error, np.ones((1, 4)), np.array([1.0, 1, 0, 0]), 0.1)[0] == 2.0


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1e300)))
def test_exact_sum_has_no_rounding(weights):
    assert exact_sum(weights) == sum(Fraction(w) for w in weights)


# --- coverage -------------------------------------------------------------------------------


def test_coverage_is_the_share_of_ratios_up_to_the_scale():
    error = np.array([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 9.0, 9.0]])
    np.testing.assert_array_equal(coverage(error, np.ones((2, 4)), 3.0), [0.75, 0.5])
    weights = np.array([1.0, 1, 1, 7])
    np.testing.assert_array_equal(coverage(error, np.ones((2, 4)), 3.0, weights), [0.3, 0.2])
    with pytest.raises(ValueError, match="scale = nan"):
        coverage(error, np.ones((2, 4)), float("nan"))


def test_a_score_covers_its_function_exactly():
    """The k-th ratio as scale covers k points, in any precision: no slip by rounding."""
    rng = np.random.default_rng(8)
    for dtype in (np.float32, np.float64):
        error = rng.normal(size=(20, 100)).astype(dtype)
        uncertainty = rng.uniform(0.1, 3, (20, 100)).astype(dtype)
        for i, score in enumerate(function_scores(error, uncertainty, 90)):
            assert coverage(error[i : i + 1], uncertainty[i : i + 1], score)[0] == 0.9


def test_coverage_with_scales_in_several_chunks():
    """A scale for each function, where the functions come one by one or a few at a time."""
    rng = np.random.default_rng(9)
    error, ones = rng.exponential(size=(5, 2**14)), np.ones((5, 2**14))
    scales = np.array([0.1, 0.5, 1.0, 2.0, 4.0])
    expected = [(e <= s).mean() for e, s in zip(error, scales, strict=True)]
    np.testing.assert_allclose(coverage(error, ones, scales), expected)
    np.testing.assert_allclose(coverage(list(error), list(ones), list(scales)), expected)
    weights = np.arange(2.0**14)
    by_weight = [weights[e <= s].sum() / weights.sum() for e, s in zip(error, scales, strict=True)]
    np.testing.assert_allclose(coverage(error, ones, scales, weights), by_weight)
    for wrong in (scales[:4], np.append(scales, 1.0)):
        with pytest.raises(ValueError, match=f"scale has {len(wrong)} values, expected one number"):
            coverage(error, ones, wrong)
        with pytest.raises(ValueError, match=f"scale has {len(wrong)} values, expected one number"):
            coverage(iter(error), iter(ones), wrong)
    assert coverage(iter([]), iter([]), 1.0).shape == (0,)
    with pytest.raises(ValueError, match="scale has 1 values"):
        coverage(iter([]), iter([]), [1.0])
    assert coverage(iter([]), iter([]), []).shape == (0,)
    assert coverage(error, ones, 0.0).tolist() == [0.0] * 5
    with pytest.raises(ValueError, match=r"scale = \[\[1.0\]\] must be a number ≥ 0"):
        coverage(error, ones, [[1.0]])


def test_scores_of_no_functions():
    assert function_scores(iter([]), iter([]), 3).shape == (0,)
    assert weighted_scores(iter([]), iter([]), iter([]), 0.1).shape == (0,)
    with pytest.raises(ValueError, match="alpha = 0 must"):
        weighted_scores([[1.0]], [[1.0]], [1.0], 0)


def test_ranks_by_the_number_of_points():
    ragged = [np.array([3.0, 1, 2]), np.array([5.0, 4])]
    ones = [np.ones(3), np.ones(2)]
    np.testing.assert_array_equal(function_scores(ragged, ones, lambda m: m), [3, 5])
    np.testing.assert_array_equal(function_scores(ragged, ones, lambda m: m - 1), [2, 4])
    with pytest.raises(ValueError, match=r"point rank 3 must lie in 1 … 2, .* of function 1"):
        function_scores(ragged, ones, 3)
    with pytest.raises(ValueError, match=r"point rank 0 must lie in 1 … 3, .* of function 0"):
        function_scores(ragged, ones, 0)


def test_a_block_sorts_once_for_all_ranks_that_it_expects():
    error = np.array([[4.0, -2, 1, 3], [8, 6, -7, 5]])
    (block,) = blocks(Stream(error, np.ones((2, 4))))
    assert (len(block), block.points) == (2, 4)
    assert list(block.names()) == ["function 0", "function 1"]
    block.expect(np.array([2, 4]))
    np.testing.assert_array_equal(block.scores(2), [2, 6])
    np.testing.assert_array_equal(block.scores(np.array([4, 2])), [[4, 2], [8, 6]])
    np.testing.assert_array_equal(block.all_ratios(), np.abs(error))
    (later,) = blocks(Stream(error, np.ones((2, 4))))
    np.testing.assert_array_equal(later.scores(np.array([1, 3])), [[1, 3], [5, 7]])
    np.testing.assert_array_equal(later.scores(3), [3, 7])
    assert Block(later.chunk).scratch.buffers == {}
    scratch = Scratch()
    assert Block(later.chunk, scratch).scratch is scratch


def test_names_count_from_the_first_function_of_a_chunk():
    ones = np.ones((5, 2**15))
    each = list(blocks(Stream(ones, ones)))
    expected = [["function 0", "function 1"], ["function 2", "function 3"], ["function 4"]]
    assert [list(block.names()) for block in each] == expected
    assert all(block.scratch is each[0].scratch for block in each)


def test_a_subsample_is_drawn_by_seed_and_index():
    error = np.arange(12.0).reshape(3, 4) + 1
    (block,) = blocks(Stream(error, 2 * np.ones((3, 4))))
    drawn = block.subsample(2, seed=5)
    for i, row in enumerate(drawn.all_ratios()):
        order = np.random.default_rng([5, i]).permutation(4)[:2]
        np.testing.assert_array_equal(row, error[i, order] / 2)
    assert (drawn.points, drawn.chunk.weights, drawn.chunk.first) == (2, None, 0)
    assert drawn.scratch is block.scratch
    ragged = list(blocks(Stream(list(error), [np.full(4, 2.0)] * 3)))
    np.testing.assert_array_equal(ragged[2].subsample(2, 5).all_ratios(), drawn.all_ratios()[2:])


def test_minus_zero_is_a_zero():
    np.testing.assert_array_equal(ratios([-0.0, -1.0], [1.0, 2.0]), [0.0, 0.5])
    np.testing.assert_array_equal(ratios([-0.0, 1.0], [-0.0, -0.0]), [0.0, np.inf])
    assert not np.signbit(ratios([-0.0], [1.0])).any()


def test_large_functions_together_and_alone():
    """Two large functions cannot come in one block, but a profile of the choice is the same."""
    rng = np.random.default_rng(10)
    error, ones = rng.normal(size=(2, LARGE)), np.ones((2, LARGE))
    expected = np.sort(np.abs(error), axis=1)[:, 999]
    np.testing.assert_array_equal(function_scores(error, ones, 1000), expected)
    np.testing.assert_array_equal(function_scores(list(error), list(ones), 1000), expected)
    zero = np.where(np.arange(LARGE) == 3, 0.0, ones)
    np.testing.assert_array_equal(function_scores(list(error), list(zero), LARGE), [np.inf, np.inf])
    overflow = function_scores([np.full(3, 1e300)], [np.full(3, 1e-300)], 2)
    assert overflow.tolist() == [np.inf]


def test_only_large_functions_take_the_fast_way(monkeypatch):
    from uqno.conformal import scores

    sizes = []
    fast = scores.large_ratio
    monkeypatch.setattr(
        scores, "large_ratio", lambda e, *more: sizes.append(e.size) or fast(e, *more)
    )
    for m in (LARGE - 1, LARGE, LARGE + 1):
        assert function_scores([np.arange(1.0, m + 1)], [np.ones(m)], 7)[0] == 7
    function_scores(np.ones((2, LARGE)), np.ones((2, LARGE)), 7)
    assert sizes == [LARGE, LARGE + 1]
