"""Expected share: against exact rational arithmetic, in every way that it can be counted."""

from fractions import Fraction as Exact

import numpy as np
import pytest

from uqno import Calibration, InfeasibleError, calibrate, plan
from uqno.conformal import FunctionStream, calibrate_all, calibrate_splits, coverage
from uqno.conformal.guarantees import Evidence, Expected, Fraction, pool, pooling
from uqno.conformal.guarantees import expected as module
from uqno.conformal.guarantees.pool import Bins, Pool
from uqno.conformal.profile import concatenate, profile, profile_ranks
from uqno.conformal.scores import Block
from uqno.conformal.selection import LARGE
from uqno.conformal.stream import Stream


def functions(seed, n=60, m=40):
    rng = np.random.default_rng(seed)
    scale = np.exp(0.7 * rng.standard_normal((n, 1)))
    return scale * rng.standard_normal((n, m)), rng.uniform(0.5, 2, (n, m))


def slow(ratios, alpha, weights=None, kept_back=0):
    """The least ratio at which the shares add up to no more than the budget, in fractions."""
    budget = ((len(ratios) + 1) * Exact(str(alpha)) - 1) * (1 - Exact(kept_back))
    masses = [[Exact(1)] * len(r) for r in ratios] if weights is None else weights
    masses = [[Exact(float(x)) for x in one] for one in masses]
    each = [
        (float(v), x / sum(one))
        for r, one in zip(ratios, masses, strict=True)
        for v, x in zip(r, one, strict=True)
    ]
    least, missed = np.inf, Exact(0)
    for value, share in sorted(each, reverse=True):  # missed: of those above or before it
        if value < least and missed > budget:
            return least
        least = value
        missed += share
    return least if missed > budget else 0.0


def streamed(error, uncertainty, weights=None):
    each = [None] * len(error) if weights is None else weights
    triples = zip(error, uncertainty, each, strict=True)
    return FunctionStream(triples, weighted=weights is not None)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(pooling, "KEPT_VALUES", 500)
    monkeypatch.setattr(module, "KEPT_VALUES", 500)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("ties", [False, True])
def test_it_is_the_least_scale_exactly(alpha, ties):
    error, uncertainty = functions(0)
    if ties:
        error, uncertainty = np.round(error), np.ones_like(uncertainty)
    cal = calibrate(error, uncertainty, guarantee=Expected(alpha))
    assert cal.scale == slow(list(np.abs(error) / uncertainty), alpha)
    assert cal.scores is None
    assert not cal.details


def test_a_budget_that_is_met_exactly_is_not_overdrawn_by_rounding():
    error = np.arange(1.0, 91.0).reshape(9, 10)  # budget 0: the largest ratio
    assert calibrate(error, np.ones((9, 10)), guarantee=Expected(0.1)).scale == 90
    error = np.arange(1.0, 191.0).reshape(19, 10)  # budget 1: ten points
    assert calibrate(error, np.ones((19, 10)), guarantee=Expected(0.1)).scale == 180


@pytest.mark.parametrize("seed", range(5))
def test_functions_of_different_sizes_count_alike(seed):
    rng = np.random.default_rng(seed)
    error = [np.abs(rng.standard_normal(m)).round(1) for m in rng.integers(2, 9, 29)]
    ones = [np.ones(len(e)) for e in error]
    cal = calibrate(error, ones, guarantee=Expected(0.1))
    assert cal.scale == slow(error, 0.1)
    assert calibrate(iter(error), iter(ones), guarantee=Expected(0.1)) == cal
    assert ", that how finely a function is observed is part of its draw" in cal.guarantee


def test_sizes_without_a_common_unit_are_counted_in_floats():
    sizes = np.array([9973, 9967, 9949, 9941, 9931, 9929, 9923, 9907, 9901, 9887, 9883, 9871, 9859,
                      9857, 9851, 9839, 9833, 9829, 9817])  # fmt: skip
    rng = np.random.default_rng(0)
    ratios = [rng.random(m) for m in sizes]
    found = Expected(0.1).solve(Pool(sizes, np.concatenate(ratios))).scale
    missed = [sum((r > x).mean() for r in ratios) for x in (found, np.nextafter(found, 0))]
    assert missed[0] <= 0.1 * 20 - 1 < missed[1]


def test_weights_measure_the_share():
    error, uncertainty = functions(1, n=29, m=12)
    weights = np.random.default_rng(0).integers(1, 9, (29, 12)).astype(float)
    cal = calibrate(error, uncertainty, guarantee=Expected(0.11), weights=weights)
    assert cal.scale == slow(list(np.abs(error) / uncertainty), 0.11, weights)
    assert cal.weighted
    assert "measured by the weights" in cal.guarantee
    assert calibrate(streamed(error, uncertainty, weights), guarantee=Expected(0.11)) == cal


def test_equal_weights_are_none_and_mixed_ones_are_taken_as_they_are():
    error, uncertainty = functions(2)
    plain = calibrate(error, uncertainty, guarantee=Expected(0.1)).scale
    alike = calibrate(error, uncertainty, guarantee=Expected(0.1), weights=np.full(40, 0.3))
    assert alike.scale == plain
    weights = np.ones((60, 40))
    weights[30:, 5] = 1 + 1e-12
    mixed = calibrate(streamed(error, uncertainty, weights), guarantee=Expected(0.11))
    assert mixed.scale == calibrate(error, uncertainty, guarantee=Expected(0.11)).scale


def test_random_points_have_the_same_scale_and_another_sentence():
    error, uncertainty = functions(3)
    grid, iid = (
        calibrate(error, uncertainty, guarantee=Expected(0.1, sampling=s)) for s in ("grid", "iid")
    )
    assert grid.scale == iid.scale
    assert grid.guarantee == (
        "The share of the function's grid points that lies outside the band of "
        f"{_up(grid.scale)} × uncertainty around the prediction is at most 10 % in the mean, over "
        "the draw of the n = 60 calibration functions and of a new function exchangeable with "
        "them, given that prediction and uncertainty were made without these functions, whatever "
        "the law and however good the model; nothing is promised about this calibration set "
        "alone, about how likely a function is to miss more than that, about other points than "
        "those functions are calibrated at, about which points are missed, about functions picked "
        "for their input, or about data of another kind."
    )
    assert (
        grid.promise == "misses ≤ 10 % of the function's grid points in the mean over new functions"
    )
    assert "of the function's domain that lies" in iid.guarantee
    assert ", that each point is drawn from the domain, whatever" in iid.guarantee
    assert "about other points" not in iid.guarantee
    assert Expected(0.1, sampling="iid").needs_independent_points
    assert not Expected(0.1).needs_independent_points


def _up(scale):
    from uqno.conformal.words import rounded_up

    return rounded_up(scale, 6)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("kind", ["plain", "ties", "weights", "sizes", "late", "zeros"])
def test_beyond_memory_it_is_rounded_up_by_at_most_the_promised_part(kind):
    error, uncertainty = functions(4)
    weights = None
    if kind == "ties":
        error, uncertainty = np.round(error), np.ones_like(uncertainty)
    if kind == "weights":
        weights = np.random.default_rng(0).uniform(0.5, 1, error.shape)
    if kind == "zeros":
        error[:, 3:] = 0
    error, uncertainty = list(error), list(uncertainty)
    if kind == "sizes":
        error[3], uncertainty[3] = error[3][:7], uncertainty[3][:7]
    if kind == "late":  # the first size that differs comes when bins hold numbers of points
        error[50], uncertainty[50] = error[50][:7], uncertainty[50][:7]
    cal = calibrate(streamed(error, uncertainty, weights), guarantee=Expected(0.1))
    ratios = [np.abs(e) / E for e, E in zip(error, uncertainty, strict=True)]
    exact = slow(ratios, 0.1, weights)
    # Sums of shares are rounded: of the budget, a little is kept back for that.
    kept_back = 0 if kind in ("plain", "ties", "zeros") else 2 * pool.SLACK
    most = slow(ratios, 0.1, weights, kept_back)
    assert exact <= cal.scale <= most * (1 + pool.ROUNDING)
    assert "(the factor is rounded up, by at most 0.01 % of it)" in cal.guarantee
    again = Calibration.from_json(cal.to_json())
    assert again == cal
    assert again.guarantee == cal.guarantee


@pytest.mark.usefixtures("little_memory")
def test_bins_hold_any_size_of_ratio():
    error = 10.0 ** np.random.default_rng(0).uniform(-300, 300, (60, 40))
    cal = calibrate(streamed(error, np.ones((60, 40))), guarantee=Expected(0.3))
    exact = slow(list(error), 0.3)
    assert exact <= cal.scale <= exact * (1 + pool.ROUNDING)
    bins = Bins()
    bins.add(np.empty(0), None)
    assert not bins.missed.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "ties", "zero uncertainty", "all zero"])
def test_arrays_in_memory_are_looked_at_twice_and_stay_exact(dtype, kind, monkeypatch):
    for place in (module, pooling):
        monkeypatch.setattr(place, "KEPT_VALUES", 4000)
    error, uncertainty = (x.astype(dtype) for x in functions(5, n=400, m=400))
    if kind == "ties":
        error, uncertainty = np.round(3 * error), np.ones_like(uncertainty)
    if kind == "zero uncertainty":
        uncertainty[:, 0] = 0
    if kind == "all zero":
        error[:] = 0
    cal = calibrate(error, uncertainty, guarantee=Expected(0.1))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sort(np.nan_to_num(np.abs(error).astype(float) / uncertainty), axis=None)
    place = ratios.size - 1 - int(400 * (401 * Exact(1, 10) - 1))
    if kind in ("plain", "zero uncertainty"):
        assert cal.scale == ratios[place]
        assert not cal.details
    else:  # so many ties do not fit into a window: counted in bins
        assert ratios[place] <= cal.scale <= ratios[place] * (1 + pool.ROUNDING)


@pytest.mark.usefixtures("little_memory")
def test_a_misleading_sample_costs_a_third_look_and_no_more():
    error, uncertainty = functions(6, n=101, m=401)
    collector = pooling.WindowOfRatios(101, 401, Expected(0.1).budget(101))
    collector.step = 3
    error[:, ::3] *= 100  # the sample sees these alone
    whole = calibrate(error, uncertainty, guarantee=Fraction(0.1, 0.1))  # no other effect
    assert whole.functions == 101
    stream = Stream(error, uncertainty)
    for _ in range(3):
        for chunk in stream.chunks():
            collector.add(Block(chunk))
        more = collector.again()
    assert not more
    found = Expected(0.1).solve(collector.evidence()).scale
    pooled = np.sort(np.abs(error) / uncertainty, axis=None)
    exact = pooled[pooled.size - 1 - int(401 * (102 * Exact(1, 10) - 1))]
    assert exact <= found <= exact * (1 + pool.ROUNDING)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_window_of_a_large_function_is_exact(dtype):
    rng = np.random.default_rng(0)
    error = np.abs(rng.standard_normal((1, LARGE))).astype(dtype)
    uncertainty = rng.uniform(0.5, 2, (1, LARGE)).astype(dtype)
    (chunk,) = Stream(error, uncertainty).chunks()
    low, high = float(np.float32(0.7)), float(np.float32(1.1))
    above, inside = Block(chunk).window(low, high)
    ratios = error[0].astype(float) / uncertainty[0]
    assert above == (ratios > high + 5e-8).sum()
    np.testing.assert_array_equal(
        np.sort(inside), np.sort(ratios[(ratios > low + 5e-8) & (ratios <= high + 5e-8)])
    )
    uncertainty[0, 0] = 0  # the slow way
    (chunk,) = Stream(error, uncertainty).chunks()
    assert Block(chunk).window(low, np.inf)[0] == 0


def test_splits_share_their_scores():
    error, uncertainty = functions(7, n=90, m=30)
    rng = np.random.default_rng(0)
    splits = np.array([rng.permutation(90)[:40] for _ in range(6)])
    rule = Expected(0.1)
    for weights in (None, rng.uniform(0.5, 1, (90, 30))):
        parts = [
            (error[s], uncertainty[s], None if weights is None else weights[s]) for s in splits
        ]
        each = [calibrate(e, E, guarantee=rule, weights=w).scale for e, E, w in parts]
        found = calibrate_splits(error, uncertainty, rule, splits, weights)
        np.testing.assert_array_equal(found, each)
    ragged = [e[: 20 + i % 3] for i, e in enumerate(error)]
    ones = [np.ones(len(e)) for e in ragged]
    each = [
        calibrate([ragged[i] for i in s], [ones[i] for i in s], guarantee=rule).scale
        for s in splits
    ]
    np.testing.assert_array_equal(calibrate_splits(ragged, ones, rule, splits), each)
    few = Pool(np.full(90, 30), (np.abs(error) / uncertainty).ravel())
    assert np.isinf(rule.scales(few, splits[:, :5])).all()
    part = rule.solve(few.take(splits[0])).scale
    assert part == calibrate(error[splits[0]], uncertainty[splits[0]], guarantee=rule).scale


@pytest.mark.usefixtures("little_memory")
def test_counts_cannot_be_told_apart_by_function():
    error, uncertainty = functions(8)
    with pytest.raises(ValueError, match="of 60 functions with 2400 values in all only counts"):
        calibrate_splits(error, uncertainty, Expected(0.1), [np.arange(30)])


def test_it_goes_with_others_in_one_pass_and_with_whole_profiles():
    error, uncertainty = functions(9)
    rules = [Expected(0.1), Fraction(0.1, 0.1)]
    both = calibrate_all(error, uncertainty, rules)
    assert both == tuple(calibrate(error, uncertainty, guarantee=rule) for rule in rules)
    ranks = profile_ranks(40)
    kept = concatenate([profile(e, E, ranks) for e, E in zip(error, uncertainty, strict=True)])
    assert calibrate(kept, guarantee=rules[0]).scale == both[0].scale
    with pytest.raises(ValueError, match="keeps no points to thin out"):
        kept.every(2)
    with pytest.raises(ValueError, match="keeps some ratios alone"):
        kept.window(0, 1)


def test_what_is_infeasible_says_what_would_do():
    error, uncertainty = functions(10, n=8)
    with pytest.raises(InfeasibleError, match=r"at least 9 functions, or alpha of at least 0\.112"):
        calibrate(error, uncertainty, guarantee=Expected(0.1))
    with pytest.raises(InfeasibleError, match="at least 9 functions"):
        calibrate(streamed(error, uncertainty), guarantee=Expected(0.1))
    assert "What would be: at least 9 functions" in str(
        plan(functions=8, points=4, guarantee=Expected(0.1))
    )
    planned = plan(functions=500, points=4, guarantee=Expected(0.1))
    assert "add up to at most 49.1; then, in the mean over new functions" in str(planned)
    uncertainty = np.zeros((20, 40))
    with pytest.raises(InfeasibleError, match=r"alpha = 0.1 allows over 20 functions"):
        calibrate(functions(0, n=20)[0], uncertainty, guarantee=Expected(0.1))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"alpha": 0}, "alpha = 0 must lie strictly between 0 and 1"),
        ({"alpha": 0.1, "sampling": "hoeffding"}, "take 'iid' for points drawn from the domain"),
        ({"alpha": 0.1, "sampling": "mesh"}, "must be one of grid, iid, hoeffding"),
    ],
)
def test_bad_settings(settings, why):
    with pytest.raises(ValueError, match=why):
        Expected(**settings)


def test_weights_go_with_a_grid_alone():
    error, uncertainty = functions(0)
    rule = Expected(0.1, sampling="iid")
    with pytest.raises(ValueError, match="weights go with sampling='grid'"):
        calibrate(error, uncertainty, guarantee=rule, weights=np.ones(40))
    cal = calibrate(error, uncertainty, guarantee=Expected(0.1), weights=np.arange(1.0, 41))
    text = cal.to_json().replace('"sampling": "grid"', '"sampling": "iid"')
    with pytest.raises(ValueError, match="weights go with sampling='grid'"):
        Calibration.from_json(text)
    text = cal.to_json().replace('"functions": 60', '"functions": 5')
    with pytest.raises(InfeasibleError, match="5 calibration functions"):
        Calibration.from_json(text)


def test_the_coverage_is_what_the_scale_says():
    error, uncertainty = functions(11)
    cal = calibrate(error, uncertainty, guarantee=Expected(0.2))
    missed = (1 - coverage(error, uncertainty, cal.scale)).sum()
    assert missed <= 0.2 * 61 - 1 < missed + 1 / 40
    assert (cal.alpha, cal.delta) == (0.2, None)
    assert Evidence(np.array([1]), np.array([1.0])).take(np.array([0])).sizes == 1
