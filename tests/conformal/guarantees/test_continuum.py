"""The whole domain from values on a grid: widened ratios, their rule, words and files."""

import json

import numpy as np
import pytest

import uqno
from uqno import guarantees
from uqno.conformal import InfeasibleError, calibrate_splits
from uqno.conformal.guarantees import Continuum, Fraction, change_between_nodes
from uqno.conformal.profile import concatenate, profile, profile_ranks
from uqno.conformal.stream import FunctionStream

RNG = np.random.default_rng(0)
ERROR = np.abs(RNG.standard_normal((60, 30))) * np.exp(RNG.standard_normal((60, 1)))
UNCERTAINTY = 0.5 + RNG.random((60, 30))


def test_it_is_the_rule_for_a_grid_on_the_largest_ratios_of_the_cells():
    cal = uqno.calibrate(ERROR, UNCERTAINTY, guarantee=Continuum(0.1, 0.1, 0.2, 0.3))
    largest = (ERROR + 0.2) / (UNCERTAINTY - 0.3)
    by_hand = np.sort(np.sort(largest, axis=1)[:, 26])[60 - 6]  # k = 27, j = 61 − 6
    assert cal.scale == by_hand
    assert (cal.ranks.point, cal.ranks.function) == (27, 55)


def test_with_nothing_between_the_nodes_it_is_the_paper_s():
    ours = uqno.calibrate(ERROR, UNCERTAINTY, guarantee=Continuum(0.1, 0.1, 0, 0))
    plain = uqno.calibrate(ERROR, UNCERTAINTY, 0.1, 0.1)
    assert (ours.scale, ours.ranks) == (plain.scale, plain.ranks)
    assert uqno.calibrate(np.zeros((20, 5)), np.zeros((20, 5)),
                          guarantee=Continuum(0.1, 0.1, 0, 0)).scale == 0  # fmt: skip


def test_weights_streams_and_splits():
    rule, weights = Continuum(0.1, 0.1, 0.2, 0.3), RNG.random(30)
    whole = uqno.calibrate(ERROR, UNCERTAINTY, guarantee=rule)
    triples = zip(ERROR, UNCERTAINTY, [None] * 60, strict=True)
    assert uqno.calibrate(FunctionStream(triples), guarantee=rule) == whole
    weighted = uqno.calibrate(ERROR, UNCERTAINTY, guarantee=rule, weights=weights)
    largest = ((ERROR + 0.2) / (UNCERTAINTY - 0.3), np.ones((60, 30)))
    assert weighted.scale == uqno.calibrate(*largest, 0.1, 0.1, weights=weights).scale
    assert weighted.ranks.point is None
    assert "by the weights of its cells" in weighted.guarantee
    splits = np.arange(60).reshape(2, 30)
    each = [uqno.calibrate(ERROR[s], UNCERTAINTY[s], guarantee=rule).scale for s in splits]
    np.testing.assert_array_equal(calibrate_splits(ERROR, UNCERTAINTY, rule, splits), each)


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_it_is_saved_and_says_on_what_it_rests(confidence):
    rule = Continuum(0.1, "0.1", 0.2, 0.3, confidence, estimated=True)
    cal = uqno.calibrate(ERROR, UNCERTAINTY, guarantee=rule)
    again = uqno.Calibration.from_json(cal.to_json())
    assert again == cal
    assert again.rule == Continuum(0.1, 0.1, 0.2, 0.3, confidence, estimated=True)
    assert "at most 0.2 above" in cal.guarantee
    assert "estimated, not proved" in cal.guarantee
    assert "under estimated bounds" in cal.promise
    assert ("confidence 90 %" in cal.guarantee) == (confidence is not None)
    proved = uqno.calibrate(ERROR, UNCERTAINTY, guarantee=Continuum(0.1, 0.1, 0.2, 0.3))
    assert "estimated" not in proved.guarantee
    assert "under stated bounds" in proved.promise


def test_a_file_that_promises_more_than_its_ranks_carry_is_refused():
    cal = uqno.calibrate(ERROR, UNCERTAINTY, guarantee=Continuum(0.1, 0.1, 0.2, 0.3))
    content = json.loads(cal.to_json())
    content["ranks"]["function"] = 30
    with pytest.raises(ValueError, match="do not carry the guarantee"):
        uqno.Calibration.from_json(json.dumps(content))


def test_plans():
    plan = uqno.plan(functions=5, points=30, guarantee=Continuum(0.1, 0.1, 0.2, 0.3))
    assert not plan.feasible
    assert "What would be: at least 9 functions, or delta of at least 0.167" in str(plan)
    good = uqno.plan(functions=60, points=30, guarantee=Continuum(0.1, 0.1, 0.2, 0.3, 0.9))
    assert "27th smallest ratio of 30" in str(good)
    assert "confidence = 0.9" in str(good)
    with pytest.raises(InfeasibleError, match="at least 9 functions"):
        uqno.calibrate(ERROR[:5], UNCERTAINTY[:5], guarantee=Continuum(0.1, 0.1, 0.2, 0.3))
    triples = zip(ERROR[:5], UNCERTAINTY[:5], [None] * 5, strict=True)
    with pytest.raises(InfeasibleError, match="at least 9 functions"):
        uqno.calibrate(FunctionStream(triples), guarantee=Continuum(0.1, 0.1, 0.2, 0.3))


def test_an_uncertainty_below_what_it_may_change_has_no_scale():
    with pytest.raises(InfeasibleError, match=r"uncertainty_change = 2 at more nodes.*finer grid"):
        uqno.calibrate(ERROR, UNCERTAINTY, guarantee=Continuum(0.1, 0.1, 0.2, 2.0))


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "much", True, None])
def test_bounds_that_are_none(bad):
    with pytest.raises(ValueError, match=r"error_change = .* must be a finite number ≥ 0"):
        Continuum(0.1, 0.1, bad, 0.0)
    with pytest.raises(ValueError, match=r"uncertainty_change = .* must be a finite number ≥ 0"):
        Continuum(0.1, 0.1, 0.0, bad)


def test_other_bad_input():
    with pytest.raises(ValueError, match=r"alpha = 2 must lie strictly"):
        Continuum(2, 0.1, 0, 0)
    with pytest.raises(ValueError, match="estimated = 'yes' must be True or False"):
        Continuum(0.1, 0.1, 0, 0, estimated="yes")
    each = [profile(e, E, profile_ranks(30)) for e, E in zip(ERROR, UNCERTAINTY, strict=True)]
    with pytest.raises(ValueError, match="keeps ratios alone: pass errors"):
        uqno.calibrate(concatenate(each), guarantee=Continuum(0.1, 0.1, 0.1, 0.1))


def test_the_estimate_of_what_changes_between_nodes():
    """Of a function of slope (3, −2) on a grid of spacings 0.1 and 0.2, to a cell's corner."""
    x, y = np.meshgrid(np.arange(4) * 0.1, np.arange(5) * 0.2, indexing="ij")
    steep = 3 * x - 2 * y
    largest, each = change_between_nodes(np.stack([steep, 0 * steep]), factor=2)
    np.testing.assert_allclose(each, [3 * 0.05 + 2 * 0.1, 0])
    assert largest == pytest.approx(2 * 0.35)
    assert change_between_nodes(np.ones((2, 1)))[0] == 0
    assert guarantees.change_between_nodes is change_between_nodes
    with pytest.raises(ValueError, match=r"values have shape \(3,\), expected \(functions"):
        change_between_nodes(np.ones(3))
    with pytest.raises(ValueError, match=r"factor = 0\.5 must be at least 1"):
        change_between_nodes(np.ones((2, 3)), factor=0.5)
    with pytest.raises(ValueError, match="is nan at point 1"):
        change_between_nodes(np.array([[0, np.nan]]))


def test_it_is_registered():
    assert guarantees.GUARANTEES["continuum"] is Continuum
    assert isinstance(Continuum(0.1, 0.1, 0, 0).on_nodes, Fraction)
