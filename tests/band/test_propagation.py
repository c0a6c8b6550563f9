"""Quantities through a band: exact ranges where it holds everywhere, refused where it may not."""

import numpy as np
import pytest

import uqno
from uqno.band.propagation import linear_interval, monotone_interval

RNG = np.random.default_rng(0)
M = 6
AXIS = (np.arange(float(M)),)


def calibrated(alpha):
    error = RNG.normal(size=(60, M))
    return uqno.calibrate(error, np.ones_like(error), alpha, 0.1)


def band(alpha=0.1, functions=None, channels=1):
    ahead = () if functions is None else (functions,)
    center = RNG.normal(size=(*ahead, channels, M))
    return uqno.Band(center, RNG.uniform(0.5, 1, (*ahead, M)), calibrated(alpha), AXIS)


def test_linear_quantities():
    one, w = band(), RNG.normal(size=M)
    made = linear_interval(one, w)
    assert made.center == pytest.approx(w @ one.center[0])
    assert made.upper - made.center == pytest.approx(np.abs(w) @ one.radius, rel=1e-6)
    inside = one.center[0] + RNG.uniform(-1, 1, (500, M)) * one.radius
    assert all(made.contains(float(w @ u)) for u in inside)
    assert made.guarantee.startswith("It lies between these bounds wherever the band holds. With")
    several = band(functions=4)
    assert linear_interval(several, w[None]).lower.shape == (4,)
    vectors = band(channels=2)
    assert linear_interval(vectors, RNG.normal(size=(2, M))).lower < 1e9


def test_monotone_quantities():
    one = band()
    made = monotone_interval(one, np.max)
    assert (made.lower, made.upper) == (one.lower.max(), one.upper.max())
    falling = monotone_interval(one, lambda u: -u.sum(), rising=np.zeros(M, bool))
    assert falling.upper == pytest.approx(-one.lower.sum())


@pytest.mark.parametrize(
    ("given", "call", "message"),
    [
        (band(0.2), lambda b: linear_interval(b, np.ones(M)), r"may miss points .*alpha < 1/m"),
        (band(0.2), lambda b: monotone_interval(b, np.max), "may miss points"),
        (band(), lambda b: linear_interval(b, np.ones(M + 1)), r"shape \(7,\), expected \(1, 6\)"),
        (band(), lambda b: linear_interval(b, np.full(M, np.nan)), "finite"),
        (band(functions=2), lambda b: monotone_interval(b, np.max), "of one scalar function"),
        (band(channels=2), lambda b: monotone_interval(b, np.max), "of one scalar function"),
        (band(), lambda b: monotone_interval(b, np.ptp), "not monotone"),
    ],
)
def test_what_has_no_range(given, call, message):
    with pytest.raises(ValueError, match=message):
        call(given)
