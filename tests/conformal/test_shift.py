"""A logistic regression recovers likelihood ratios that are known."""

import numpy as np
import pytest

import uqno
from uqno.conformal import estimate_shift
from uqno.conformal.guarantees import Fraction, Shifted


def test_ratios_of_two_normal_laws():
    rng = np.random.default_rng(0)
    old = rng.normal(size=(20_000, 2))
    new = rng.normal(loc=[0.8, 0], size=(10_000, 2))
    shift = estimate_shift(old, new)
    x = rng.normal(size=(200, 2))
    known = np.exp(0.8 * x[:, 0] - 0.32)  # of N(0.8, 1) against N(0, 1)
    np.testing.assert_allclose(shift.ratios(x), known, rtol=0.25)
    assert np.abs(np.log(shift.ratios(x)) - np.log(known)).mean() < 0.06


def test_it_goes_into_a_calibration():
    rng = np.random.default_rng(1)
    old, new, inputs = (rng.normal(size=(n, 1)) for n in (50, 40, 60))
    shift = estimate_shift(old, new, features=lambda sample: sample["x"])
    rule = Shifted(Fraction(0.1, 0.1), shift.ratios(inputs), estimated=True)
    cal = uqno.calibrate(rng.normal(size=(60, 9)), np.ones((60, 9)), guarantee=rule)
    assert "estimated likelihood ratios" in cal.guarantee
    assert shift({"x": inputs[0]}) == shift.ratios(inputs[:1])[0]
    with pytest.raises(ValueError, match="features of a sample are not known"):
        estimate_shift(old, new)({"x": 1})
    with pytest.raises(ValueError, match="1 of 2 inputs are among those that the classifier"):
        shift.ratios([old[3], inputs[0]])


def test_features_that_tell_nothing_or_all():
    rng = np.random.default_rng(2)
    same = estimate_shift(np.ones((30, 1)), np.ones((60, 1)))
    assert same.ratios([[2.0]])[0] == pytest.approx(1.0, rel=1e-3)
    apart = estimate_shift(rng.normal(size=(50, 1)), rng.normal(size=(50, 1)) + 100)
    assert np.isfinite(apart.ratios([[-1e9], [1e9]])).all()


@pytest.mark.parametrize(
    ("old", "new", "penalty", "message"),
    [
        (np.ones(3), np.ones((3, 1)), 1.0, r"calibration have shape \(3,\)"),
        (np.ones((3, 1)), np.ones((3, 2)), 1.0, r"deployment have shape \(3, 2\)"),
        (np.ones((0, 1)), np.ones((3, 1)), 1.0, r"shape \(0, 1\)"),
        (np.full((3, 1), np.nan), np.ones((3, 1)), 1.0, "calibration of the inputs is nan"),
        (np.ones((3, 1)), np.ones((3, 1)), 0.0, "penalty = 0.0 must be"),
    ],
)
def test_bad_input(old, new, penalty, message):
    with pytest.raises(ValueError, match=message):
        estimate_shift(old, new, penalty)
