"""Everywhere and every level at once: reductions to the paper's rule, words, files, refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from uqno import Band, Calibration, InfeasibleError, calibrate, plan
from uqno.conformal import FunctionStream, calibrate_all, calibrate_splits, coverage
from uqno.conformal.guarantees import Curve, Everywhere, Evidence, Fraction, Shape
from uqno.conformal.profile import concatenate, profile, profile_ranks
from uqno.conformal.scores import Block
from uqno.conformal.selection import LARGE, Scratch, large_largest
from uqno.conformal.stream import Stream

RULES = [Everywhere(0.1), Curve(0.1), Everywhere(0.1, confidence=0.8), Curve(0.1, confidence=0.8)]


def functions(seed, n=60, m=40):
    rng = np.random.default_rng(seed)
    scale = np.exp(0.7 * rng.standard_normal((n, 1)))
    return scale * rng.standard_normal((n, m)), rng.uniform(0.5, 2, (n, m))


def curve_scores(error, uncertainty, shape):
    r = np.sort(np.abs(error) / uncertainty, axis=1)
    k = [int(np.ceil(r.shape[1] * (1 - float(a)) - 1e-9)) for a in shape.levels]
    return (r[:, np.array(k) - 1] / np.array(shape.values)).max(axis=1)


@pytest.mark.parametrize("confidence", [None, 0.8])
def test_everywhere_is_the_papers_rule_with_a_tiny_alpha(confidence):
    error, uncertainty = functions(0)
    cal = calibrate(error, uncertainty, guarantee=Everywhere(0.1, confidence))
    paper = calibrate(error, uncertainty, 0.024, 0.1, confidence=confidence)
    assert cal.scale == paper.scale
    assert cal.ranks.function == paper.ranks.function
    weights = np.random.default_rng(0).random(40)
    weighted = calibrate(error, uncertainty, guarantee=Everywhere(0.1, confidence), weights=weights)
    assert weighted.scale == cal.scale
    assert weighted.weighted


@pytest.mark.parametrize("m", [7, 40, 1500, LARGE + 7])
def test_the_score_of_the_curve_is_a_maximum_over_its_levels(m):
    error, uncertainty = functions(1, n=12, m=m)
    error = np.abs(error)
    rule = Curve(0.1)
    cal = calibrate(error, uncertainty, guarantee=rule)
    np.testing.assert_allclose(
        cal.scores, np.sort(curve_scores(error, uncertainty, rule.shape)), rtol=1e-15
    )
    assert cal.scale == pytest.approx(cal.scores[-1] * rule.shape.at(0.1), rel=1e-14)


@pytest.mark.parametrize("seed", range(16))
def test_the_largest_over_levels_of_many_points(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(LARGE, 2 * LARGE))
    dtype = (np.float32, np.float64)[seed % 2]
    laws = [
        np.abs(rng.standard_normal(m)),
        np.abs(rng.standard_cauchy(m)),
        rng.integers(0, 4, m).astype(float),
        np.abs(np.cumsum(rng.standard_normal(m))),
    ]
    error = laws[seed % 4].astype(dtype)
    uncertainty = (rng.random(m) + 0.5).astype(dtype) if seed % 3 else np.ones(m, dtype)
    shape = (Shape.half_normal(), Shape((0.001, 0.3), (2.0, 1.9)), Shape((0.5,), (1.0,)))[seed % 3]
    ranks = shape.point_ranks(m)
    ordered = np.sort(error.astype(float) / uncertainty.astype(float))
    wanted = (ordered[ranks - 1] / shape.sizes).max()
    found = large_largest(error, uncertainty, ranks, shape.sizes, Scratch())
    assert found == pytest.approx(wanted, rel=1e-15)


def test_large_functions_with_zero_uncertainty_go_the_slow_way():
    error, uncertainty = functions(2, n=1, m=LARGE)
    uncertainty[0, 0] = 0
    shape = Shape.half_normal()
    assert large_largest(
        np.abs(error[0]), uncertainty[0], shape.point_ranks(LARGE), shape.sizes, Scratch()
    ) is None  # fmt: skip
    (chunk,) = Stream(error, uncertainty).chunks()
    with np.errstate(divide="ignore"):
        wanted = curve_scores(error, uncertainty, shape)
    found = Block(chunk).largest(shape.point_ranks(LARGE), shape.sizes)
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


@pytest.mark.parametrize("rule", RULES)
def test_streams_splits_profiles_and_files(rule):
    error, uncertainty = functions(3)
    cal = calibrate(error, uncertainty, guarantee=rule)
    triples = FunctionStream((e, E, None) for e, E in zip(error, uncertainty, strict=True))
    assert calibrate(triples, guarantee=rule) == cal
    assert calibrate_all(error, uncertainty, [rule, Fraction(0.1, 0.1)])[0] == cal
    splits = np.array([np.arange(40), np.arange(20, 60)])
    each = [calibrate(error[s], uncertainty[s], guarantee=rule).scale for s in splits]
    np.testing.assert_array_equal(calibrate_splits(error, uncertainty, rule, splits), each)
    few = Evidence(np.full(60, 40), np.arange(60.0))
    assert np.isinf(rule.scales(few, splits[:, :5])).all()
    kept = concatenate(
        [profile(*one, profile_ranks(40)) for one in zip(error, uncertainty, strict=True)]
    )
    assert calibrate(kept, guarantee=rule) == cal
    again = Calibration.from_json(cal.to_json())
    assert again == cal
    assert again.guarantee == cal.guarantee
    assert again.rule == rule


def test_weights_measure_every_level_and_equal_ones_change_nothing():
    error, uncertainty = functions(4)
    plain = calibrate(error, uncertainty, guarantee=Curve(0.1))
    alike = calibrate(error, uncertainty, guarantee=Curve(0.1), weights=np.ones(40))
    assert alike.scale == pytest.approx(plain.scale, rel=1e-15)
    weights = np.random.default_rng(0).uniform(0.2, 1, 40)
    cal = calibrate(error, uncertainty, guarantee=Curve(0.1), weights=weights)
    for alpha in (0.01, 0.05, 0.2, 0.7):
        shares = coverage(error, uncertainty, cal.at(alpha=alpha).scale, weights)
        assert (shares < 1 - alpha - 1e-12).sum() <= 60 - cal.ranks.function
    assert "measured by the weights" in cal.guarantee


def test_every_level_of_the_calibration_functions_is_covered():
    error, uncertainty = functions(5, n=99, m=200)
    shape = Shape.of_residuals(*functions(6, n=30, m=200))
    cal = calibrate(error, uncertainty, guarantee=Curve(0.1, shape))
    broken = np.zeros(99, bool)
    for alpha in np.round(np.linspace(0.001, 0.999, 250), 3):
        inside = coverage(error, uncertainty, cal.at(alpha=alpha).scale)
        broken |= inside < 1 - alpha - 1e-12
    assert broken.sum() == 99 - cal.ranks.function  # the functions whose score is larger, no other


def test_a_band_of_another_level():
    error, uncertainty = functions(7)
    cal = calibrate(error, uncertainty, guarantee=Curve(0.1))
    band = Band(np.zeros((1, 40)), np.ones(40), cal, (np.arange(40.0),))
    wider = band.at(alpha=0.01)
    assert wider.applied_scale == cal.at(alpha=0.01).scale > band.applied_scale
    assert "at least 99 % of" in wider.guarantee
    assert wider.to_xarray().attrs["alpha"] == 0.01
    assert wider.at(alpha=0.1).calibration == cal
    assert cal.at(alpha=0.6).scale == cal.at(alpha=0.2).scale
    assert cal.at(alpha=0.12).scale == cal.at(alpha=0.1).scale > cal.at(alpha=0.125).scale


def test_what_may_not_be_chosen_afterwards():
    error, uncertainty = functions(8)
    cal = calibrate(error, uncertainty, guarantee=Curve(0.1))
    with pytest.raises(InfeasibleError, match=r"alpha = 0\.0005 lies below the smallest level"):
        cal.at(alpha=0.0005)
    with pytest.raises(ValueError, match="leaves the choice of alpha to the reader, got delta"):
        cal.at(delta=0.2)
    with pytest.raises(ValueError, match="got none"):
        cal.at()
    fixed = calibrate(error, uncertainty, guarantee=Everywhere(0.1))
    with pytest.raises(ValueError, match=r"fixed beforehand, got alpha = 0\.1: calibrate with"):
        fixed.at(alpha=0.1)


def test_their_sentences():
    error = np.ones((60, 40))
    cal = calibrate(error, error, guarantee=Everywhere(0.1))
    assert cal.guarantee == (
        "With probability at least 90 % over the draw of the n = 60 calibration functions and of a "
        "new function exchangeable with them, the band of 1 × uncertainty around the prediction "
        "covers every one of the function's grid points, given that prediction and uncertainty "
        "were made without these functions, whatever the law and however good the model; nothing "
        "is promised about this calibration set alone, about other points than those functions "
        "are calibrated at, about functions picked for their input, or about data of another kind."
    )
    assert cal.promise == "covers every one of the function's grid points with probability ≥ 90 %"
    sure = calibrate(error, error, guarantee=Everywhere(0.1, confidence=0.8))
    assert sure.guarantee.startswith(
        "With confidence 80 % in the draw of the n = 60 calibration functions, for at least 90 % "
        "of new functions drawn independently from the same law the band"
    )
    assert "this calibration set alone" not in sure.guarantee
    assert sure.promise.endswith("for ≥ 90 % of new functions, confidence 80 %")
    curve = calibrate(error, error, guarantee=Curve(0.1))
    assert (
        "covers at least 90 % of the function's grid points, and at once for every alpha from "
        "0.1 % on the band of that alpha covers at least 1 − alpha of them, given"
    ) in curve.guarantee


def test_plans():
    assert str(plan(functions=20, points=9, guarantee=Everywhere(0.02))) == (
        "Not feasible with 20 calibration functions of 9 points each, delta = 0.02. What would be: "
        "at least 49 functions, or delta of at least 0.0477."
    )
    with pytest.raises(InfeasibleError, match="at least 49 functions"):
        calibrate(np.ones((20, 9)), np.ones((20, 9)), guarantee=Curve(0.02))
    with pytest.raises(InfeasibleError, match="at least 49 functions"):
        calibrate(iter(np.ones((20, 9))), iter(np.ones((20, 9))), guarantee=Everywhere(0.02))
    planned = plan(functions=500, points=9, guarantee=Everywhere(0.02, confidence=0.9))
    assert planned.ranks.function == 495
    assert "from the 495th smallest score of 500; then, with confidence 90 %" in str(planned)
    assert "no single change" in str(plan(functions=1, points=1, guarantee=Everywhere(1e-13)))


@pytest.mark.parametrize("kind", [Everywhere, Curve])
@pytest.mark.parametrize("sampling", ["iid", "hoeffding"])
def test_random_points_are_refused(kind, sampling):
    with pytest.raises(ValueError, match=f"is for sampling='grid', got '{sampling}'"):
        kind(0.1, sampling=sampling)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (((), ()), "0 levels and 0 values"),
        (((0.1, 0.2), (1.0,)), "2 levels and 1 values"),
        (((0.2, 0.1), (2.0, 1.0)), "must rise, got .0.2, 0.1."),
        (((0.1, 0.2), (1.0, 2.0)), "must not rise with alpha"),
        (((0.1,), (0.0,)), "the shape is 0.0 at alpha = 0.1, expected a finite number > 0"),
        (((0.1,), (np.inf,)), "the shape is inf"),
        (((0.1,), (True,)), "the shape is True"),
        (((1.5,), (1.0,)), "a level of the shape = 1.5 must lie strictly between"),
    ],
)
def test_bad_shapes(shape, why):
    with pytest.raises(ValueError, match=why):
        Shape(*shape)


def test_shapes_from_callers_and_files():
    shape = Shape((0.1, 0.2), (2.0, 1.0))
    assert Curve(0.1, shape.settings).shape == shape
    assert Curve(0.1, {"levels": ["1/10", 0.2], "values": [2, 1]}).shape == shape
    with pytest.raises(ValueError, match=r"must be a guarantees\.Shape"):
        Curve(0.1, shape=[1, 2])
    with pytest.raises(InfeasibleError, match=r"alpha = 0\.05 lies below the smallest level"):
        Curve(0.1, shape, alpha=0.05)
    error = np.ones((3, 10))
    error[:, 0] = 0
    with pytest.raises(ValueError, match="leave the level out, or make it of residuals"):
        Shape.of_residuals(0 * error, error + 1)
    assert Shape.of_residuals(error, error + 1, levels=(0.1, 0.5)).values == (0.5, 0.5)


def test_zero_uncertainty_is_refused_where_it_decides():
    error = np.ones((20, 10))
    with pytest.raises(InfeasibleError, match="give the uncertainty a positive floor"):
        calibrate(error, 0 * error, guarantee=Everywhere(0.1))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ranks": None}, r"\(None, j\) would"),
        ({"ranks": {"point": 3, "function": 55}}, r"\(None, j\) would"),
        ({"ranks": {"point": None, "function": 50}}, "the least that does is 55"),
        ({"ranks": {"point": None, "function": 61}}, "ranks.function = 61 of 60 functions"),
        ({"details": {}}, "must hold a number kappa ≥ 0, got None"),
        ({"details": {"kappa": [1.0]}}, "must hold a number kappa"),
        ({"details": {"kappa": None}}, "must hold a number kappa"),
        ({"scale": 0.5}, "claims more than its numbers carry"),
    ],
)
def test_a_file_may_not_claim_more_than_its_numbers_carry(change, why):
    cal = calibrate(*functions(9), guarantee=Curve(0.1))
    content = json.loads(cal.to_json()) | change
    with pytest.raises(ValueError, match=why):
        Calibration.from_json(json.dumps(content))
    everywhere = calibrate(*functions(9), guarantee=Everywhere(0.1))
    assert Calibration.from_json(everywhere.to_json()) == everywhere
    assert replace(everywhere, scale=1.0) != everywhere
