"""λ̂ end to end: properties, reductions, streams, mixed discretisation, files."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uqno
from uqno import Calibration, InfeasibleError, calibrate
from uqno.conformal import (
    FunctionStream,
    Ranks,
    calibrate_all,
    calibrate_splits,
    coverage,
    frontier,
    function_scores,
    guarantees,
)
from uqno.conformal.profile import concatenate, profile, profile_ranks
from uqno.conformal.record import checksum
from uqno.conformal.selection import LARGE

SHARES = st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.3, 0.5])
DESIGNS = st.sampled_from(["grid", "iid", "hoeffding"])


def functions(seed, n=60, m=40):
    rng = np.random.default_rng(seed)
    scale = np.exp(0.7 * rng.standard_normal((n, 1)))
    return scale * rng.standard_normal((n, m)), rng.uniform(0.5, 2, (n, m))


def calibrate_or_none(*arguments, **more):
    try:
        return calibrate(*arguments, **more)
    except InfeasibleError:
        return None


def test_one_point_and_unit_radius_is_textbook_split_conformal():
    rng = np.random.default_rng(0)
    for n in (19, 50, 99, 200):
        residuals = np.abs(rng.standard_normal(n))
        for delta in (0.05, 0.1, 0.2):
            cal = calibrate(residuals[:, None], np.ones((n, 1)), alpha=0.5, delta=delta)
            textbook = np.sort(residuals)[int(np.ceil((n + 1) * (1 - delta) - 1e-9)) - 1]
            assert cal.scale == textbook


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), SHARES, SHARES, DESIGNS)
def test_order_of_functions_and_points_does_not_matter(seed, alpha, delta, design):
    error, uncertainty = functions(seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(error)), rng.permutation(error.shape[1])
    first = calibrate_or_none(error, uncertainty, alpha, delta, design)
    again = calibrate_or_none(
        error[rows][:, columns], uncertainty[rows][:, columns], alpha, delta, design
    )
    assert first == again


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), SHARES, SHARES, st.sampled_from([0.125, 0.5, 2.0, 1024.0]))
def test_scaling_the_errors_scales_the_scale(seed, alpha, delta, factor):
    error, uncertainty = functions(seed)
    one = calibrate(error, uncertainty, alpha, delta)
    assert calibrate(factor * error, uncertainty, alpha, delta).scale == factor * one.scale
    assert calibrate(error, factor * uncertainty, alpha, delta).scale == one.scale / factor


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.tuples(SHARES, SHARES), st.tuples(SHARES, SHARES))
def test_on_the_grid_the_scale_never_rises_with_alpha_or_delta(seed, alphas, deltas):
    error, uncertainty = functions(seed)
    strict = calibrate(error, uncertainty, min(alphas), min(deltas))
    loose = calibrate(error, uncertainty, max(alphas), max(deltas))
    assert loose.scale <= strict.scale


@settings(max_examples=100, deadline=None)
@given(
    st.integers(5, 300), st.integers(5, 300), st.tuples(SHARES, SHARES), st.tuples(SHARES, SHARES)
)
def test_the_iid_frontier_only_gains_pairs(n, m, alphas, deltas):
    strict = frontier(n, m, min(alphas), min(deltas))
    loose = frontier(n, m, max(alphas), max(deltas))
    for pair in strict:
        assert any(p.point <= pair.point and p.function <= pair.function for p in loose)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), SHARES, SHARES, DESIGNS, st.sampled_from([None, 0.8]))
def test_streams_lists_and_arrays_agree_at_any_level(seed, alpha, delta, design, confidence):
    check_that_streams_agree(design, confidence, seed, alpha, delta)


@pytest.mark.parametrize("design", ["grid", "iid", "hoeffding"])
@pytest.mark.parametrize("confidence", [None, 0.8])
def test_streams_lists_and_arrays_agree(design, confidence):
    check_that_streams_agree(design, confidence, seed=0, alpha=0.3, delta=0.2)


def check_that_streams_agree(design, confidence, seed, alpha, delta):
    error, uncertainty = functions(seed)
    arguments = (alpha, delta, design, None, confidence)
    whole = calibrate_or_none(error, uncertainty, *arguments)
    assert calibrate_or_none(list(error), list(uncertainty), *arguments) == whole
    assert calibrate_or_none(iter(error), iter(uncertainty), *arguments) == whole
    triples = FunctionStream((e, E, None) for e, E in zip(error, uncertainty, strict=True))
    assert calibrate_or_none(triples, None, *arguments) == whole


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), SHARES, SHARES, st.sampled_from(["grid", "iid"]))
def test_mixed_streams_and_lists_agree_at_any_level(seed, alpha, delta, design):
    check_that_mixed_streams_agree(design, seed, alpha, delta)


@pytest.mark.parametrize("design", ["grid", "iid"])
def test_mixed_streams_and_lists_agree(design):
    check_that_mixed_streams_agree(design, seed=0, alpha=0.3, delta=0.2)


def check_that_mixed_streams_agree(design, seed, alpha, delta):
    rng = np.random.default_rng(seed)
    error = [rng.standard_normal(m) for m in rng.integers(20, 80, 70)]
    uncertainty = [np.ones(e.size) for e in error]
    whole = calibrate_or_none(error, uncertainty, alpha, delta, design)
    assert calibrate_or_none(iter(error), iter(uncertainty), alpha, delta, design) == whole


def test_large_functions_give_the_scale_of_all_scores():
    """Large functions are selected, not sorted; the answer is that of sorting all."""
    rng = np.random.default_rng(1)
    n, m = 60, LARGE + 100
    error = (rng.standard_normal((n, m)) * np.exp(rng.standard_normal((n, 1)))).astype(np.float32)
    uncertainty = rng.uniform(0.5, 2, (n, m)).astype(np.float32)
    scores = np.sort(np.abs(error.astype(float)) / uncertainty.astype(float), axis=1)
    for order in (slice(None), np.argsort(scores[:, -1000]), np.argsort(-scores[:, -1000])):
        for alpha, delta in [(0.1, 0.1), (0.02, 0.3)]:
            cal = calibrate(error[order], uncertainty[order], alpha, delta)
            expected = np.sort(scores[:, cal.ranks.point - 1])[cal.ranks.function - 1]
            assert cal.scale == expected
            streamed = calibrate(iter(error[order]), iter(uncertainty[order]), alpha, delta)
            assert streamed == cal


def test_a_calibration_keeps_its_sorted_scores():
    error, uncertainty = functions(3, n=200, m=40)
    cal = calibrate(error, uncertainty, 0.1, 0.1)
    expected = np.sort(function_scores(error, uncertainty, cal.ranks.point))
    np.testing.assert_array_equal(cal.scores, expected)
    assert cal.scores[cal.ranks.function - 1] == cal.scale
    again = Calibration.from_json(cal.to_json())
    np.testing.assert_array_equal(again.scores, expected)
    bare = Calibration.from_json(cal.to_json(scores=False))
    assert bare == cal
    assert bare.scores is None
    beside = Calibration.from_json(cal.to_json(scores=False), scores=cal.scores)
    np.testing.assert_array_equal(beside.scores, expected)


def test_infinite_scores_survive_the_file():
    uncertainty = np.ones((40, 10))
    uncertainty[:2] = 0
    cal = calibrate(np.ones((40, 10)), uncertainty, 0.1, 0.1)
    assert np.isinf(cal.scores[-2:]).all()
    assert json.loads(cal.to_json())["scores"][-2:] == [None, None]  # JSON has no infinity
    np.testing.assert_array_equal(Calibration.from_json(cal.to_json()).scores, cal.scores)


def test_many_scores_are_kept_beside_the_json(monkeypatch):
    from uqno.conformal import record

    cal = calibrate(*functions(0), 0.1, 0.1)
    monkeypatch.setattr(record, "MOST_SCORES_IN_JSON", 59)
    assert json.loads(cal.to_json())["scores"] is None
    monkeypatch.setattr(record, "MOST_SCORES_IN_JSON", 60)
    assert len(json.loads(cal.to_json())["scores"]) == 60


# --- profiles and splits --------------------------------------------------------------------------


def profiled(error, uncertainty, areas=None, alphas=()):
    ranks = profile_ranks(error.shape[1])
    each = zip(error, uncertainty, [None] * len(error) if areas is None else areas, strict=True)
    return concatenate([profile(e, E, ranks, a, alphas) for e, E, a in each])


@pytest.mark.parametrize("design", ["grid", "iid", "hoeffding"])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_profile_is_calibrated_like_its_functions(design, confidence):
    error, uncertainty = functions(5, n=150, m=120)
    asked = (0.2, 0.1, design, None, confidence)
    assert calibrate(profiled(error, uncertainty), None, *asked) == calibrate(
        error, uncertainty, *asked
    )


def test_an_area_profile_is_calibrated_like_weights():
    error, uncertainty = functions(6, n=80, m=50)
    areas = np.random.default_rng(0).random((80, 50))
    held = profiled(error, uncertainty, areas, alphas=(0.2,))
    by_area = calibrate(held.area, alpha=0.2, delta=0.1)
    assert by_area == calibrate(error, uncertainty, 0.2, 0.1, weights=areas)
    assert by_area.weighted
    with pytest.raises(ValueError, match="leave them out"):
        calibrate(held, uncertainty, 0.2, 0.1)
    with pytest.raises(ValueError, match="uncertainty is missing"):
        calibrate(error, None, 0.2, 0.1)
    with pytest.raises(ValueError, match="no points to draw from"):
        calibrate(held, alpha=0.2, delta=0.1, sampling="iid", mixed="subsample")


@pytest.mark.parametrize("design", ["grid", "iid", "hoeffding", "weights", "own ranks"])
def test_splits_are_calibrated_like_each_set_alone(design):
    error, uncertainty = functions(7, n=200, m=150)
    rng = np.random.default_rng(1)
    splits = np.array([rng.permutation(200)[:120] for _ in range(25)])
    weights = np.arange(1.0, 151) if design == "weights" else None
    sampling = design if design in ("iid", "hoeffding") else "grid"
    ranks = Ranks(140, 115) if design == "own ranks" else None
    rule = guarantees.Fraction(0.2, 0.1, sampling, ranks=ranks)
    each = [
        calibrate(error[s], uncertainty[s], weights=weights, guarantee=rule).scale for s in splits
    ]
    scales = calibrate_splits(error, uncertainty, rule, splits, weights)
    np.testing.assert_array_equal(scales, each)
    if weights is None:
        held = profiled(error, uncertainty)
        np.testing.assert_array_equal(calibrate_splits(held, None, rule, splits), each)


def test_splits_of_functions_with_different_numbers_of_points():
    rng = np.random.default_rng(2)
    error = [rng.standard_normal(m) for m in rng.integers(60, 90, 100)]
    uncertainty = [np.ones(e.size) for e in error]
    splits = np.array([rng.permutation(100)[:70] for _ in range(5)])
    for design in ("grid", "iid"):
        rule = guarantees.Fraction(0.2, 0.2, design)
        scales = calibrate_splits(error, uncertainty, rule, splits)
        for scale, split in zip(scales, splits, strict=True):
            alone = calibrate([error[i] for i in split], [uncertainty[i] for i in split],
                              guarantee=rule)  # fmt: skip
            assert scale == alone.scale


def test_splits_without_a_finite_scale_are_infinite():
    error, uncertainty = functions(8, n=60, m=30)
    splits = np.tile(np.arange(40), (3, 1))
    rule = guarantees.Fraction(0.1, 0.01)
    with pytest.raises(InfeasibleError):
        calibrate_splits(error, uncertainty, rule, splits)
    blind = np.where(np.arange(60)[:, None] < 10, 0.0, uncertainty)
    assert np.isinf(calibrate_splits(error, blind, guarantees.Fraction(0.1, 0.1), splits)).all()


@pytest.mark.parametrize(
    ("splits", "said"),
    [([1, 2, 3], "expected \\(sets, functions\\)"), ([[0, 60]], "expected 0 … 59"), ([], "shape")],
)
def test_bad_splits(splits, said):
    with pytest.raises(ValueError, match=said):
        calibrate_splits(*functions(0), guarantees.Fraction(0.5, 0.5), splits)


def test_a_guarantee_has_its_own_levels():
    error, uncertainty = functions(0)
    rule = guarantees.Fraction(0.1, 0.1)
    assert calibrate(error, uncertainty, guarantee=rule) == calibrate(error, uncertainty, 0.1, 0.1)
    with pytest.raises(ValueError, match="give either alpha and delta or guarantee="):
        calibrate(error, uncertainty, 0.1, 0.1, guarantee=rule)
    with pytest.raises(ValueError, match="delta must be given"):
        calibrate(error, uncertainty, 0.1)
    with pytest.raises(ValueError, match="alpha and delta must be given"):
        calibrate(error, uncertainty)


def test_shares_that_are_no_decimals_survive_the_file():
    from fractions import Fraction

    cal = calibrate(*functions(0), Fraction(1, 3), Fraction(1, 7))
    again = Calibration.from_json(cal.to_json())
    assert again == cal
    assert again.rule.alpha == Fraction(1, 3)
    assert "at least 6/7" in cal.guarantee
    assert "at least 2/3 of" in cal.guarantee


def test_coverage_with_a_scale_for_each_function():
    error, uncertainty = functions(4, n=3, m=20)
    each = [coverage(e[None], E[None], s)[0] for e, E, s in zip(error, uncertainty, (1, 2, 3),
                                                               strict=True)]  # fmt: skip
    np.testing.assert_array_equal(coverage(error, uncertainty, [1.0, 2.0, 3.0]), each)
    for bad in ([1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [[1.0]], -1.0):
        with pytest.raises(ValueError, match="scale"):
            coverage(error, uncertainty, bad)


def test_a_long_stream_of_large_functions_is_valid_though_its_rank_is_coarser():
    rng = np.random.default_rng(2)
    error = rng.standard_normal((30, 50_000))
    ones = np.ones(50_000)
    streamed = calibrate(iter(error), (ones for _ in error), 0.1, 0.2, "iid")
    whole = calibrate(error, np.ones_like(error), 0.1, 0.2, "iid")
    assert streamed.ranks.function == whole.ranks.function
    assert 0 <= streamed.ranks.point - whole.ranks.point <= 4
    assert whole.scale <= streamed.scale <= whole.scale * 1.001


def test_mixed_discretisation_own_ranks_share_one_beta():
    rng = np.random.default_rng(3)
    sizes = rng.choice([50, 200, 2000], 150)
    error = [rng.standard_normal(m) for m in sizes]
    uncertainty = [np.ones(m) for m in sizes]
    cal = calibrate(error, uncertainty, 0.1, 0.1, "iid")
    assert (cal.points, cal.points_max, cal.rule.mixed) == (50, 2000, "own")
    assert "how finely a function is observed is part of its draw" in cal.guarantee
    reduced = calibrate(error, uncertainty, 0.1, 0.1, "iid", mixed="subsample", seed=1)
    assert (reduced.points, reduced.points_max) == (50, 50)
    assert reduced == calibrate(error, uncertainty, 0.1, 0.1, "iid", mixed="subsample", seed=1)
    other = calibrate(error, uncertainty, 0.1, 0.1, "iid", mixed="subsample", seed=2)
    assert reduced.scale != other.scale
    # Every function keeps its points, and its rank is that of its number of points.
    scores = [np.sort(np.abs(e))[{50: 48, 200: 186, 2000: 1816}[e.size] - 1] for e in error]
    assert cal.ranks == Ranks(48, 138)
    assert cal.scale == np.sort(scores)[137]


def test_subsampling_keeps_vectors_and_weights_out():
    rng = np.random.default_rng(4)
    error = [rng.standard_normal((m, 2)) for m in (30, 40, 50, 60) * 10]
    uncertainty = [np.ones(len(e)) for e in error]
    cal = calibrate(error, uncertainty, 0.2, 0.2, "iid", mixed="subsample")
    assert cal.points == cal.points_max == 30


def test_subsampling_grids_of_points():
    error, uncertainty = functions(12, n=60, m=40)
    flat = calibrate(error, uncertainty, 0.2, 0.2, "iid", mixed="subsample")
    shaped = calibrate(error.reshape(60, 8, 5), uncertainty.reshape(60, 8, 5), 0.2, 0.2, "iid",
                       mixed="subsample")  # fmt: skip
    assert shaped == flat
    with pytest.raises(ValueError, match=r"shape \(39,\), uncertainty \(40,\)"):
        calibrate([e[:39] for e in error], list(uncertainty), 0.2, 0.2, "iid", mixed="subsample")


def test_mixed_sizes_on_a_boundary_are_decided_exactly():
    """β* = 1 − 1/(10 · 0.2) = 1/2 = P[Bin(1, 1/2) ≥ 1]: a function of one point has a score."""
    error = [np.arange(1.0, m + 1) for m in (1, 2) * 4 + (1,)]
    ones = [np.ones(e.size) for e in error]
    cal = calibrate(error, ones, 0.5, 0.2, "iid")
    assert (cal.ranks, cal.scale) == (Ranks(1, 9), 2.0)
    with pytest.raises(InfeasibleError, match=r"^5 of 9 functions have too few points for a score"):
        calibrate(error, ones, 0.5, 0.1999, "iid")


def test_what_is_quoted_is_never_better_than_what_holds():
    error = np.full((60, 10), 2.0000004)
    said = calibrate(error, np.ones_like(error), 0.1, 0.1).guarantee
    assert "2.00001 × uncertainty" in said
    assert "made without these functions" in said
    tiny = calibrate(np.ones((60, 10)), np.ones((60, 10)), 0.1234561, 0.1).guarantee
    assert "87.65439 %" in tiny


def test_hoeffding_with_mixed_sizes_takes_t_from_the_smallest():
    rng = np.random.default_rng(5)
    error = [rng.standard_normal(m) for m in (2000, 500) * 60]
    uncertainty = [np.ones(e.size) for e in error]
    cal = calibrate(error, uncertainty, 0.2, 0.1, "hoeffding")
    assert cal.ranks == uqno.plan(0.2, 0.1, 120, 500, "hoeffding").ranks
    with pytest.raises(ValueError, match="500 points and the first one 2000"):
        calibrate(iter(error), iter(uncertainty), 0.2, 0.1, "hoeffding")


def test_weights_change_what_the_domain_is():
    error, uncertainty = functions(6)
    error[:, :4] *= 100
    heavy, light = np.ones(40), np.ones(40)
    heavy[:4], light[:4] = 50, 1e-9
    plain = calibrate(error, uncertainty, 0.2, 0.1)
    by_light = calibrate(error, uncertainty, 0.2, 0.1, weights=light)
    by_heavy = calibrate(error, uncertainty, 0.2, 0.1, weights=heavy)
    assert by_light.scale < plain.scale < by_heavy.scale
    assert by_light.weighted
    assert by_light.ranks == Ranks(None, plain.ranks.function)
    assert "measured by the weights" in by_light.guarantee
    assert by_light == calibrate(iter(error), iter(uncertainty), 0.2, 0.1, weights=light)


def test_confidence_takes_a_higher_rank():
    error, uncertainty = functions(7, n=500)
    marginal = calibrate(error, uncertainty, 0.1, 0.05)
    conditional = calibrate(error, uncertainty, 0.1, 0.05, confidence=0.9)
    assert (marginal.ranks.function, conditional.ranks.function) == (476, 482)
    assert conditional.scale > marginal.scale
    assert "confidence 90 %" in conditional.guarantee


def test_a_pair_of_the_callers_own():
    error, uncertainty = functions(8, n=100, m=50)
    for pair in frontier(100, 50, 0.1, 0.1):
        cal = calibrate(error, uncertainty, 0.1, 0.1, "iid", ranks=pair)
        everything = np.sort(np.sort(np.abs(error) / uncertainty, axis=1)[:, pair.point - 1])
        assert cal.scale == everything[pair.function - 1]
    with pytest.raises(InfeasibleError, match="function must be 94 to 100"):
        calibrate(error, uncertainty, 0.1, 0.1, "iid", ranks=Ranks(47, 93))
    with pytest.raises(InfeasibleError, match="larger point rank"):
        calibrate(error, uncertainty, 0.1, 0.1, "iid", ranks=Ranks(20, 100))
    with pytest.raises(ValueError, match=r"ranks.point = 51 must lie in 1 … 50"):
        calibrate(error, uncertainty, 0.1, 0.1, "iid", ranks=Ranks(51, 100))
    with pytest.raises(ValueError, match="fits one number of points"):
        calibrate(
            [*error, error[0, :30]],
            [*uncertainty, uncertainty[0, :30]],
            0.1,
            0.1,
            ranks=Ranks(27, 100),
        )


@pytest.mark.parametrize("design", ["grid", "iid", "hoeffding", "weights"])
@pytest.mark.parametrize("streamed", [False, True])
def test_several_levels_in_one_pass(design, streamed):
    error, uncertainty = functions(11, n=200, m=300)
    levels = [(0.2, 0.1), (0.3, 0.1), (0.2, 0.3)]
    sampling = "grid" if design == "weights" else design
    weights = np.arange(1.0, 301) if design == "weights" else None
    several = calibrate_all(
        iter(error) if streamed else error,
        iter(uncertainty) if streamed else uncertainty,
        [guarantees.Fraction(*pair, sampling) for pair in levels],
        weights,
    )
    assert several == tuple(
        calibrate(error, uncertainty, *pair, sampling, weights) for pair in levels
    )


def test_ties_are_conservative_not_clipped():
    error = np.ones((50, 20))
    cal = calibrate(error, np.full((50, 20), 4.0), 0.1, 0.1)
    assert cal.scale == 0.25
    assert (cal.coverage(error, np.full((50, 20), 4.0)) == 1).all()


def test_perfect_predictions_need_no_band():
    cal = calibrate(np.zeros((50, 20)), np.zeros((50, 20)), 0.1, 0.1)
    assert cal.scale == 0.0


def test_coverage_of_the_calibration_set_itself():
    error, uncertainty = functions(9, n=200, m=100)
    cal = calibrate(error, uncertainty, 0.1, 0.1)
    assert (cal.coverage(error, uncertainty) >= 0.9).sum() == cal.ranks.function


@pytest.mark.parametrize("kind", ["xarray", "torch", "zarr"])
def test_other_array_libraries(kind, tmp_path):
    error, uncertainty = functions(10)
    if kind == "xarray":
        import xarray

        e, r = xarray.DataArray(error), xarray.DataArray(uncertainty)
    elif kind == "torch":
        import torch

        e, r = torch.from_numpy(error), torch.from_numpy(uncertainty)
    else:
        import zarr

        e = zarr.create_array(tmp_path / "e.zarr", data=error, chunks=(7, 40))
        r = zarr.create_array(tmp_path / "r.zarr", data=uncertainty, chunks=(7, 40))
    assert calibrate(e, r, 0.1, 0.1) == calibrate(error, uncertainty, 0.1, 0.1)


def test_what_a_calibration_says_of_itself():
    error, uncertainty = functions(13)
    cal = calibrate(error, uncertainty, 0.1, 0.2, confidence=0.7)
    assert (cal.alpha, cal.delta) == (0.1, 0.2)
    assert cal.levels == {
        "alpha": 0.1, "delta": 0.2, "confidence": 0.7, "sampling": "grid", "mixed": "own",
        "seed": 0,
    }  # fmt: skip
    assert cal.scale_for({}) == cal.scale
    assert (cal.functions, cal.points, cal.points_max, cal.weighted) == (60, 40, 40, False)
    weights = np.arange(1.0, 41)
    np.testing.assert_array_equal(
        cal.coverage(error, uncertainty, weights),
        coverage(error, uncertainty, cal.scale, weights),
    )
    assert repr(cal).startswith("Calibration(scale=")
    assert "scores=" not in repr(cal)


def test_ratios_are_sorted_once_for_several_guarantees(monkeypatch):
    from uqno.conformal.scores import Block

    sorts = []
    ratios_of = Block.all_ratios
    monkeypatch.setattr(Block, "all_ratios", lambda self: sorts.append(1) or ratios_of(self))
    rules = [guarantees.Fraction(alpha, 0.2) for alpha in (0.1, 0.2, 0.4)]
    several = calibrate_all(*functions(14), rules)
    assert len(sorts) == 1
    assert [c.rule.alpha for c in several] == [rule.alpha for rule in rules]
    calibrate_all(*functions(14), rules[:1])
    assert len(sorts) == 2


@pytest.mark.parametrize("rules", [1, 2, 3])
def test_ratios_are_sorted_beforehand_for_several_guarantees_alone(monkeypatch, rules):
    from uqno.conformal.scores import Block

    asked = []
    expect = Block.expect
    monkeypatch.setattr(
        Block, "expect", lambda self, k: asked.append(k.tolist()) or expect(self, k)
    )
    alphas = (0.1, 0.2, 0.4)[:rules]
    calibrate_all(*functions(14, m=40), [guarantees.Fraction(alpha, 0.2) for alpha in alphas])
    assert asked == {1: [], 2: [[32, 36]], 3: [[24, 32, 36]]}[rules]


def test_streams_have_their_own_uncertainty_and_weights():
    error, uncertainty = functions(15)
    triples = [(e, E, None) for e, E in zip(error, uncertainty, strict=True)]
    for more in ({"uncertainty": uncertainty}, {"weights": np.ones(40)}):
        with pytest.raises(ValueError, match="has its own uncertainty and weights"):
            calibrate(FunctionStream(triples), alpha=0.1, delta=0.1, **more)
    with pytest.raises(ValueError, match="holds 1 function"):
        calibrate(FunctionStream(triples[:1]), alpha=0.1, delta=0.1)
    with pytest.raises(ValueError, match="holds 1 function"):
        calibrate(profiled(error[:1], uncertainty[:1]), alpha=0.1, delta=0.1)
    with pytest.raises(ValueError, match="no points to draw from"):
        calibrate(profiled(error, uncertainty), alpha=0.4, delta=0.4, sampling="iid",
                  mixed="subsample")  # fmt: skip


def test_splits_of_weights_iterators_and_lists():
    error, uncertainty = functions(16, n=40)
    rule, splits = guarantees.Fraction(0.2, 0.2), [[0, 5, 7, 9, 11, 13], [1, 2, 3, 4, 5, 39]]
    each = [calibrate(error[s], uncertainty[s], guarantee=rule).scale for s in np.array(splits)]
    for both in ((error, uncertainty), (list(error), list(uncertainty)),
                  (iter(error), iter(uncertainty))):  # fmt: skip
        np.testing.assert_array_equal(calibrate_splits(*both, rule, splits), each)
    with pytest.raises(ValueError, match="splits name functions -1 … 5, expected 0 … 39"):
        calibrate_splits(error, uncertainty, rule, [[-1, 3, 5, 2, 1, 0]])
    with pytest.raises(ValueError, match=r"splits have shape \(3,\), expected"):
        calibrate_splits(error, uncertainty, rule, [1, 2, 3])


def test_plans_of_another_guarantee():
    rule = guarantees.Fraction(0.1, 0.02)
    assert uqno.plan(functions=40, points=9, guarantee=rule) == uqno.plan(0.1, 0.02, 40, 9)
    assert uqno.plan(0.1, 0.02, 40).points == 1
    with pytest.raises(ValueError, match="functions = 0 must"):
        uqno.plan(0.1, 0.02)
    with pytest.raises(ValueError, match="alpha must be given, such as"):
        uqno.plan(delta=0.1, functions=40)
    for more in ({"alpha": 0.1}, {"delta": 0.1}):
        with pytest.raises(ValueError, match="give either alpha and delta or guarantee="):
            uqno.plan(functions=40, guarantee=rule, **more)


def test_the_arguments_of_the_guarantee_arrive():
    error, uncertainty = functions(17)
    rule = calibrate(error, uncertainty, 0.3, 0.3, "iid", None, 0.6, mixed="subsample", seed=4).rule
    assert rule == guarantees.Fraction(0.3, 0.3, "iid", 0.6, "subsample", None, 4)
    assert calibrate(error, uncertainty, 0.3, 0.3).rule == guarantees.Fraction(0.3, 0.3)
    pair = Ranks(40, 60)
    assert calibrate(error, uncertainty, 0.3, 0.3, ranks=pair).rule.ranks == pair


# --- files ----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), SHARES, SHARES, DESIGNS, st.sampled_from([None, 0.8]))
def test_json_round_trip(seed, alpha, delta, design, confidence):
    error, uncertainty = functions(seed)
    cal = calibrate_or_none(error, uncertainty, alpha, delta, design, None, confidence)
    if cal is None:
        return
    again = Calibration.from_json(cal.to_json())
    assert again == cal
    assert again.created == cal.created
    assert again.guarantee == cal.guarantee
    assert replace(again, scale=np.nextafter(cal.scale, np.inf)) != cal


def test_json_round_trip_with_weights():
    cal = calibrate(*functions(0), 0.1, 0.1, weights=np.arange(40.0))
    assert Calibration.from_json(cal.to_json()) == cal


def tampered(**changes):
    content = json.loads(calibrate(*functions(0), 0.1, 0.1).to_json())
    content.update(changes)
    return json.dumps({k: v for k, v in content.items() if v != "remove"})


def asked(**changes):
    content = json.loads(tampered())
    content["guarantee"].update(changes)
    content["guarantee"] = {k: v for k, v in content["guarantee"].items() if v != "remove"}
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "expected JSON with format"),
        ('{"format": "other"}', "expected JSON with format"),
        (tampered(version=1), "format version 1, this uqno reads 2"),
        (tampered(scale=-1), "scale = -1"),
        (tampered(scale=float("nan")), "scale = None"),
        (tampered(scale="1"), "scale = '1'"),
        (tampered(scale=True), "scale = True"),
        (asked(alpha=1.5), "alpha = 1.5"),
        (asked(sampling="guess"), "sampling = 'guess'"),
        (tampered(functions=0), "functions = 0"),
        (tampered(ranks={"point": 99, "function": 3}), "ranks.point = 99"),
        (tampered(ranks={"point": 3, "function": 99}), "ranks.function = 99"),
        (tampered(ranks=[1, 2]), "must hold point and function"),
        (tampered(created=3), "created must be text"),
        (tampered(model=3), "model = 3 in the calibration must be text"),
        (tampered(model=None), "model = None in the calibration must be text"),
        (tampered(points_max=1), "points_max = 1"),
        (asked(mixed="sometimes"), "mixed = 'sometimes'"),
        ("[" * 100_000, "not JSON"),
        (tampered(version=True), "format version True"),
        (tampered(scale=10**400), "scale = 1000"),
        (asked(alpha="a tenth"), "alpha = 'a tenth'"),
        (asked(name="best"), "guarantee 'best' is not known, there are .*fraction"),
        (asked(delta="remove"), "settings of guarantee 'fraction' do not fit"),
        (asked(weight=1), "settings of guarantee 'fraction' do not fit"),
        (tampered(guarantee=3), "guarantee = 3 in the calibration must be an object"),
        (tampered(scores=[1.0]), "expected 60 numbers"),
        (tampered(scores=["a"] * 60), "must be numbers"),
        (tampered(scores=[2.0] + [1.0] * 59), "in rising order"),
        (tampered(weighted=True), "do not fit a calibration with weighted = True"),
        (tampered(ranks=None), "ranks = None do not fit"),
        (tampered(functions=1), "functions = 1 must be"),
        (tampered(ranks={"point": 1, "function": 1}), "do not carry the guarantee"),
        (tampered(points="remove"), r"missing \['points'\]"),
        (tampered(extra=1), r"missing \[\], unknown \['extra'\]"),
        (tampered(zeta=1, eta=2), r"unknown \['eta', 'zeta'\]"),
        (tampered(scale=float("inf")), "scale = None"),
        (tampered(scale=1.1e300), "scale = 1.1e"),
        (tampered(scale=None), "scale = None in the calibration must be a finite number"),
        (tampered(weighted=0), "created must be text and weighted true or false"),
        (tampered(ranks={"point": 3}), "must hold point and function"),
        (tampered(ranks={"point": 36, "function": 55, "k": 1}), "must hold point and function"),
        (tampered(points=0), "points = 0 must"),
        (tampered(points_max=39), "points_max = 39 must be a whole number, at least 40"),
        (tampered(scores=3), "must be numbers"),
        (tampered(scores=[-1.0] * 60), "60 numbers ≥ 0"),
        (tampered(scores=[1.0] * 59), r"have shape \(59,\), expected 60 numbers"),
        (tampered(details=3), "details = 3 in the calibration must be an object"),
        (
            tampered(details={"edges": "abc"}),
            "^details in the calibration must be arrays of numbers$",
        ),
        (
            tampered(details={"edges": {"a": 1}}),
            "^details in the calibration must be arrays of numbers$",
        ),
        (tampered(format="remove"), "expected JSON with format = 'uqno.calibration'"),
        (tampered(version="remove"), "format version None, this uqno reads 2"),
    ],
)
def test_a_foreign_or_damaged_file_is_refused_by_name(text, said):
    with pytest.raises(ValueError, match=said):
        Calibration.from_json(text)


def test_a_calibration_is_frozen_and_says_when():
    cal = calibrate(*functions(0), 0.1, 0.1)
    assert cal.created.endswith("+00:00")
    with pytest.raises(AttributeError):
        cal.scale = 1.0


def test_a_stream_at_a_rank_above_all_candidates():
    """α so near to 1 that the point rank lies beyond the candidates that a stream keeps."""
    rng = np.random.default_rng(0)
    error, uncertainty = rng.normal(size=(99, 1000)), np.ones((99, 1000))
    level = (0.999, 0.010000001, "iid")
    whole = calibrate(error, uncertainty, *level)
    stream = calibrate(iter(error), iter(uncertainty), *level)
    assert stream.ranks == Ranks(1000, whole.ranks.function)  # the largest: valid, if wider
    assert stream.scale > whole.scale


def test_what_the_file_looks_like():
    cal = calibrate(*functions(0), 0.1, 0.1)
    content = json.loads(cal.to_json())
    assert list(content) == [
        "format", "version", "scale", "guarantee", "ranks", "functions", "points", "points_max",
        "weighted", "created", "scores", "details",
    ]  # fmt: skip
    assert (content["format"], content["version"]) == ("uqno.calibration", 2)
    assert content["guarantee"] == {"name": "fraction", **cal.rule.settings}
    assert content["ranks"] == {"point": 36, "function": 55}
    assert content["scores"] == cal.scores.tolist()
    assert cal.to_json().startswith('{\n  "format"')
    assert json.loads(cal.to_json(scores=False))["scores"] is None
    unranked = replace(cal, ranks=None, scores=None)
    assert json.loads(unranked.to_json())["ranks"] is None


def test_the_model_of_a_calibration_survives_the_file():
    cal = calibrate(*functions(0), 0.1, 0.1)
    assert cal.model == ""
    assert Calibration.from_json(cal.to_json()).model == ""
    tied = replace(cal, model="5d3")
    assert tied == cal, "it promises the same"
    content = json.loads(tied.to_json())
    assert list(content)[-1] == "model"
    assert content["model"] == "5d3"
    assert Calibration.from_json(tied.to_json()).model == "5d3"


def test_a_scale_at_the_edges_of_what_a_file_may_hold():
    for scale in (0, 0.0, 1e300, 3):
        again = Calibration.from_json(tampered(scale=scale))
        assert again.scale == scale
        assert isinstance(again.scale, float)
    with pytest.raises(ValueError, match="not JSON"):
        Calibration.from_json(None)


def test_scores_beside_the_file_are_checked_too():
    text = tampered(scores=None)
    with pytest.raises(ValueError, match="expected 60 numbers"):
        Calibration.from_json(text, scores=np.ones(3))
    held = Calibration.from_json(text, scores=np.arange(60.0))
    np.testing.assert_array_equal(held.scores, np.arange(60))
    flat = Calibration.from_json(tampered(scores=[1.0] * 60), scores=np.arange(60.0))
    np.testing.assert_array_equal(flat.scores, np.arange(60))


def test_two_functions_are_enough_for_a_file():
    cal = calibrate(np.ones((2, 3)), np.ones((2, 3)), 0.5, 0.5)
    assert Calibration.from_json(cal.to_json()) == cal


def test_splits_as_whole_floats():
    error, uncertainty = functions(18)
    rule, splits = guarantees.Fraction(0.2, 0.2), np.arange(60.0).reshape(3, 20)
    found = calibrate_splits(error, uncertainty, rule, splits)
    np.testing.assert_array_equal(
        found, calibrate_splits(error, uncertainty, rule, splits.astype(int))
    )


def test_a_checksum_is_compared_where_there_is_one():
    cal = calibrate(*functions(3), 0.2, 0.2)
    content = json.loads(cal.to_json())
    whole = {**content, "checksum": checksum(content)}
    assert Calibration.from_json(json.dumps(whole)) == cal
    assert Calibration.from_json(json.dumps(dict(reversed(whole.items())), indent=7)) == cal
    with pytest.raises(ValueError, match="does not have the checksum it was written with"):
        Calibration.from_json(json.dumps({**whole, "scale": cal.scale * 2}))
    with pytest.raises(ValueError, match="does not have the checksum"):
        Calibration.from_json(json.dumps({**whole, "checksum": 3}))
