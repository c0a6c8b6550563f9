"""Guarantees from outside the package go through the same calibrator, planner, file and band."""

import inspect
import json

import numpy as np
import pytest

import uqno
from tests.extending import own_expected_share, own_known_shift
from tests.extending.own_expected_share import ExpectedShare
from tests.extending.own_known_shift import KnownShift
from uqno import guarantees
from uqno.conformal import calibrate_splits, coverage
from uqno.conformal.stream import FunctionStream


def functions(seed, n, m=40):
    rng = np.random.default_rng(seed)
    scale = np.exp(0.5 * rng.standard_normal((n, 1)))
    return scale * rng.standard_normal((n, m)), np.ones((n, m))


@pytest.mark.parametrize("module", [own_expected_share, own_known_shift])
def test_a_guarantee_is_one_short_file(module):
    assert len(inspect.getsource(module).splitlines()) <= 80


def test_expected_share_is_exact_risk_control():
    error, uncertainty = functions(0, 60)
    cal = uqno.calibrate(error, uncertainty, guarantee=ExpectedShare(alpha=0.1))

    def risk(scale):
        return ((1 - coverage(error, uncertainty, scale)).sum() + 1) / 61

    assert risk(cal.scale) <= 0.1 < risk(np.nextafter(cal.scale, 0))
    own = uqno.calibrate(error, uncertainty, guarantee=guarantees.Expected(alpha=0.1))
    assert cal.scale == own.scale  # the library's, which is for any size, stream and weights
    assert cal.guarantee == "The expected missed share of a new function is at most 0.1."
    assert cal.alpha == 0.1
    assert cal.delta is None


def test_expected_share_holds_in_simulation():
    missed = []
    for seed in range(300):
        error, uncertainty = functions(seed, 51)
        cal = uqno.calibrate(error[:50], uncertainty[:50], guarantee=ExpectedShare(alpha=0.1))
        missed.append(1 - cal.coverage(error[50:], uncertainty[50:])[0])
    assert np.mean(missed) <= 0.1 + 3 * np.std(missed) / np.sqrt(300)


def test_it_streams_splits_plans_and_is_saved():
    error, uncertainty = functions(1, 80)
    rule = ExpectedShare(alpha=0.2)
    whole = uqno.calibrate(error, uncertainty, guarantee=rule)
    triples = FunctionStream((e, E, None) for e, E in zip(error, uncertainty, strict=True))
    assert uqno.calibrate(triples, guarantee=rule) == whole
    splits = np.array([np.arange(40), np.arange(40, 80)])
    each = [uqno.calibrate(error[s], uncertainty[s], guarantee=rule).scale for s in splits]
    np.testing.assert_array_equal(calibrate_splits(error, uncertainty, rule, splits), each)
    planned = uqno.plan(functions=3, points=40, guarantee=ExpectedShare(alpha=0.1))
    assert not planned.feasible
    assert planned.smallest["functions"] == 9
    assert planned.smallest["alpha"] == pytest.approx(0.25)
    assert str(planned) == "Not feasible with 3 functions."
    again = uqno.Calibration.from_json(whole.to_json())
    assert again == whole
    assert json.loads(whole.to_json())["guarantee"]["name"] == "expected share, a sketch"


def test_a_band_of_it():
    error, uncertainty = functions(2, 80)
    cal = uqno.calibrate(error, uncertainty, guarantee=ExpectedShare(alpha=0.2))
    band = uqno.Band(np.zeros((1, 40)), np.ones(40), cal, (np.arange(40.0),))
    assert band.guarantee == cal.guarantee
    assert cal.promise in repr(band)
    assert band.to_xarray().attrs["alpha"] == 0.2
    assert "delta" not in band.to_xarray().attrs


def test_without_shift_the_weighted_scale_is_the_papers():
    error, uncertainty = functions(3, 99)
    rule = KnownShift(alpha=0.1, delta=0.1, ratios=(1.0,) * 99)
    cal = uqno.calibrate(error, uncertainty, guarantee=rule)
    assert cal.scale == uqno.calibrate(error, uncertainty, 0.1, 0.1).scale
    again = uqno.Calibration.from_json(cal.to_json())
    assert again.scale_for({"likelihood_ratio": 1.0}) == cal.scale


def test_the_scale_depends_on_the_new_function():
    error, uncertainty = functions(4, 99)
    sizes = np.abs(error).mean(axis=1)
    ratios = tuple(np.exp(sizes - sizes.mean()))
    rule = KnownShift(alpha=0.1, delta=0.1, ratios=ratios)
    cal = uqno.calibrate(error, uncertainty, guarantee=rule)
    scales = [cal.scale_for({"likelihood_ratio": x}) for x in (0.1, 1.0, 5.0, 1e6)]
    assert scales == sorted(scales)
    assert scales[0] < scales[2] < scales[3] == np.inf
