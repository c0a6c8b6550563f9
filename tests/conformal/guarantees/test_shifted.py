"""Weighted scores: the quantile with the new function's weight at +∞, against a slow reference."""

import json
from fractions import Fraction

import numpy as np
import pytest

import uqno
from uqno import guarantees
from uqno.conformal import calibrate_splits
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees import Evidence, Facts, Shifted
from uqno.conformal.guarantees.shifted import effective_number

RNG = np.random.default_rng(1)
N, M = 120, 25
ERROR = RNG.standard_normal((N, M)) * np.exp(RNG.standard_normal((N, 1)))
ONES = np.ones((N, M))
RATIOS = RNG.uniform(0.1, 2, N)


def reference(scores, ratios, new, delta):
    """The smallest score at which the weight reached is 1 − δ of all, in exact numbers."""
    w = [Fraction(float(x)) for x in ratios]
    wanted = (1 - Fraction(str(delta))) * (sum(w) + Fraction(float(new)))
    reached = Fraction(0)
    for i in np.argsort(scores):
        reached += w[i]
        if reached >= wanted:
            return scores[i]
    return np.inf


@pytest.mark.parametrize("new", [0.0, 0.1, 1.0, 3.0, 10.0, 14.0, 1e3])
@pytest.mark.parametrize("delta", [0.02, 0.1, 0.35])
def test_the_scale_is_the_weighted_quantile(new, delta):
    cal = uqno.calibrate(ERROR, ONES, 0.1, delta, shift=RATIOS)
    scores = uqno.conformal.function_scores(ERROR, ONES, 23)
    assert cal.scale_for({"likelihood_ratio": new}) == reference(scores, RATIOS, new, delta)
    assert cal.scale == reference(scores, RATIOS, cal.details["up_to"][0], delta)
    assert cal.alpha == 0.1
    assert cal.delta == delta


def test_equal_ratios_give_the_papers_scale():
    plain = uqno.calibrate(ERROR, ONES, 0.1, 0.1)
    for value in (1.0, 0.3, 1e-200):
        cal = uqno.calibrate(ERROR, ONES, 0.1, 0.1, shift=np.full(N, value))
        assert cal.scale == plain.scale
        assert cal.scale_for({"likelihood_ratio": value}) == plain.scale


def test_scales_rise_with_the_ratio_to_infinity():
    cal = uqno.calibrate(ERROR, ONES, 0.1, 0.1, shift=RATIOS)
    limit = float(cal.details["limit"][0])
    ratios = [0.0, 1.0, 5.0, limit * 0.999, limit * 1.001]
    scales = [cal.scale_for({"likelihood_ratio": w}) for w in ratios]
    assert scales == sorted(scales)
    assert scales[-2] < np.inf == scales[-1]
    one = np.zeros(N)
    one[3] = 7.0  # one function that counts: its own score, and only for light new ones
    alone = uqno.calibrate(ERROR, ONES, 0.1, 0.6, shift=one)
    assert alone.scale == pytest.approx(np.sort(np.abs(ERROR[3]))[22])
    few = uqno.calibrate(ERROR[:5], ONES[:5], 0.1, 0.1, shift=[1.0, 1e-3, 1, 1, 1])
    assert few.details["up_to"][0] < 1  # finite for the light function alone


def test_weights_of_points_other_guarantees_and_splits():
    weights = RNG.uniform(size=(N, M))
    cal = uqno.calibrate(ERROR, ONES, 0.1, 0.1, weights=weights, shift=RATIOS)
    scores = uqno.conformal.weighted_scores(ERROR, ONES, weights, 0.1)
    up_to = cal.details["up_to"][0]
    assert cal.scale == reference(scores, RATIOS, up_to, 0.1)
    drag = uqno.calibrate(ERROR[:, :1], ONES[:, :1], guarantee=guarantees.Quantity(0.1, "drag"),
                          shift=RATIOS)  # fmt: skip
    assert drag.scale == reference(np.abs(ERROR[:, 0]), RATIOS, drag.details["up_to"][0], 0.1)
    assert "contains drag with probability" in drag.guarantee
    rule = Shifted(guarantees.Fraction(0.1, 0.2), RATIOS)
    splits = np.array([np.arange(60), np.arange(60, 120)])
    each = [uqno.calibrate(ERROR[s], ONES[s], 0.1, 0.2, shift=RATIOS[s]).scale for s in splits]
    np.testing.assert_array_equal(calibrate_splits(ERROR, ONES, rule, splits), each)
    assert rule.collector(Facts(N, (M,) * N, False)).ranks(M).tolist() == [23]


def test_it_is_planned_saved_and_said():
    cal = uqno.calibrate(ERROR, ONES, 0.1, 0.1, shift=RATIOS)
    again = uqno.Calibration.from_json(cal.to_json())
    assert again == cal
    assert again.scale_for({"likelihood_ratio": 2.0}) == cal.scale_for({"likelihood_ratio": 2.0})
    assert again.levels["of"] == "fraction"
    assert f"(effective number {effective_number(RATIOS):.3g})" in cal.guarantee
    assert "known likelihood ratios" in cal.guarantee
    assert cal.promise.endswith("under a shift of the inputs")
    rule = Shifted(guarantees.Fraction(0.1, 0.02))
    plan = uqno.plan(functions=40, points=M, guarantee=rule)
    assert plan.smallest["functions"] == 49
    assert plan.smallest["delta"] == pytest.approx(1 / 41)
    assert str(plan).startswith("For equal likelihood ratios: Not feasible")
    estimated = Shifted(guarantees.Fraction(0.1, 0.1), RATIOS, estimated=True)
    said = uqno.calibrate(ERROR, ONES, guarantee=estimated)
    assert said.promise.endswith("that is estimated: no finite-sample promise")
    assert uqno.Calibration.from_json(said.to_json()).rule.estimated
    band = uqno.Band(np.zeros((1, M)), np.ones(M), cal, (np.arange(M * 1.0),))
    assert band.to_xarray().attrs["delta"] == 0.1


def test_effective_number_of_functions():
    assert effective_number(np.full(50, 3.0)) == pytest.approx(50)
    assert effective_number(np.array([1e300, 1e300])) == 2
    assert effective_number(np.array([1.0, 0.0, 0.0])) == 1


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratios", "message"),
    [
        (np.zeros(N), "sum to zero"),
        (np.full(N, np.inf), "shift of the functions is inf"),
        (np.full(N, 1e308), "infinite sum"),
        (-RATIOS, "finite numbers ≥ 0"),
        (np.full(N, np.nan), "is nan at point 0"),
        (RATIOS[:-1], "119 of likelihood ratios, 120 of functions"),
        (RATIOS[:, None], r"shift has shape \(120, 1\)"),
        ([], r"shape \(0,\)"),
    ],
)
def test_ratios_that_are_none(ratios, message):
    with pytest.raises(ValueError, match=message):
        uqno.calibrate(ERROR, ONES, 0.1, 0.1, shift=ratios)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "much", [1.0, 2.0]])
def test_a_new_ratio_that_is_none(value):
    cal = uqno.calibrate(ERROR, ONES, 0.1, 0.1, shift=RATIOS)
    with pytest.raises(ValueError, match="must be one finite number"):
        cal.scale_for({"likelihood_ratio": value})
    with pytest.raises(ValueError, match="no field likelihood_ratio"):
        cal.scale_for({"a": 1})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (guarantees.Fraction(0.1, 0.1, "iid"), "points drawn at random"),
        (guarantees.Fraction(0.1, 0.1, confidence=0.9), "confidence"),
        (guarantees.Fraction(0.1, 0.1, ranks=uqno.conformal.Ranks(23, 110)), "ranks, which"),
        (guarantees.Nothing(), "'nothing', which has no delta"),
        (Shifted(guarantees.Fraction(0.1, 0.1), RATIOS), "shifted already"),
    ],
)
def test_guarantees_that_are_not_weighted(rule, message):
    with pytest.raises(ValueError, match=message):
        uqno.calibrate(ERROR, ONES, guarantee=rule, shift=RATIOS)


def test_no_finite_scale():
    with pytest.raises(InfeasibleError, match=r"the 5 calibration functions carry no finite scale"):
        uqno.calibrate(ERROR[:5], ONES[:5], 0.1, 0.1, shift=np.ones(5))
    with pytest.raises(InfeasibleError, match="may weigh at most 0,"):
        uqno.calibrate(ERROR, np.zeros((N, M)), 0.1, 0.1, shift=RATIOS)
    with pytest.raises(ValueError, match="ratios are missing"):
        uqno.calibrate(ERROR, ONES, guarantee=Shifted(guarantees.Fraction(0.1, 0.1)))


def test_rounding_at_the_very_limit():
    """A new function of exactly the share δ of all weights still has the largest score."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        w = rng.uniform(0, 1, 12)
        w[0] = 40.0
        rule = Shifted(guarantees.Fraction(0.5, 0.3), w)
        solved = rule.solve(Evidence(np.full(12, 4), np.stack([rng.uniform(size=12), w], axis=1)))
        assert np.isfinite(solved.scale)


def test_a_file_that_claims_more_than_its_numbers():
    cal = uqno.calibrate(ERROR, ONES, 0.1, 0.1, shift=RATIOS)
    content = json.loads(cal.to_json())

    def read(**changes):
        return uqno.Calibration.from_json(json.dumps({**content, **changes}))

    with pytest.raises(ValueError, match="less than its scores and ratios carry"):
        read(scale=cal.scale / 2)
    with pytest.raises(ValueError, match="details of a shifted calibration have shapes"):
        read(details={})
    with pytest.raises(ValueError, match="estimated = 3 in the calibration"):
        read(guarantee={**content["guarantee"], "estimated": 3})
    details = content["details"]
    with pytest.raises(ValueError, match="finite numbers ≥ 0"):
        read(details={**details, "ratios": [-1.0] * N})
    bare = read(scores=None)
    with pytest.raises(ValueError, match="stored without its scores"):
        bare.scale_for({"likelihood_ratio": 1.0})
