"""R of quantities, their intervals, and bounds by a band that holds at every point."""

import numpy as np
import pytest
from scipy.optimize import linprog

import uqno
from uqno.conformal import Interval, guarantees
from uqno.conformal.functionals import (
    FLOOR,
    LEVEL,
    holds_everywhere,
    learn_uncertainty,
    linear_bounds,
    monotone_bounds,
    uncertainty_of,
)

RNG = np.random.default_rng(4)
CAL = uqno.calibrate(RNG.normal(size=(99, 5)), np.ones((99, 5)), 0.1, 0.1)


def loss(c, phi, r):
    rest = r - (c[0] + phi @ c[1:])
    return np.maximum(LEVEL * rest, (LEVEL - 1) * rest).sum()


def test_r_is_the_quantile_regression():
    n = 80
    phi = RNG.uniform(0.1, 3, (n, 2)) * [1.0, 1e-3]
    r = np.abs(RNG.standard_normal(n)) * (0.2 + phi[:, 0])
    c = learn_uncertainty(r, phi)
    alone = np.quantile(r, LEVEL, method="higher")
    assert (c >= 0).all()
    assert c[0] >= FLOOR * alone * (1 - 1e-9)
    assert c[1] > 0.5  # the residuals grow with it
    best = loss(c, phi, r)
    assert best < loss([alone, 0, 0], phi, r)
    for _ in range(300):  # no other admissible line is better
        other = np.maximum(c * (1 + 0.2 * RNG.standard_normal(3)), [FLOOR * alone, 0, 0])
        assert loss(other, phi, r) >= best - 1e-9
    assert (uncertainty_of(c, phi) > 0).all()
    assert uncertainty_of(c, phi[0]).shape == ()


def test_a_constant_where_there_is_nothing_to_learn(monkeypatch):
    r = RNG.uniform(size=30)
    alone = np.quantile(r, LEVEL, method="higher")
    np.testing.assert_array_equal(learn_uncertainty(r[:5], np.ones((5, 1)))[1:], [0])
    np.testing.assert_array_equal(learn_uncertainty(r, np.zeros((30, 2))), [alone, 0, 0])
    assert learn_uncertainty(np.zeros(3), np.ones((3, 1)))[0] == 1.0
    some = learn_uncertainty(r, np.column_stack([RNG.uniform(size=30), np.zeros(30)]))
    assert some[2] == 0
    monkeypatch.setattr(
        "uqno.conformal.functionals.linprog", lambda *a, **k: linprog([1], bounds=[(1, 0)])
    )
    np.testing.assert_array_equal(learn_uncertainty(r, np.ones((30, 1))), [alone, 0])


def test_bad_residuals():
    with pytest.raises(ValueError, match="residuals of the inputs is nan"):
        learn_uncertainty([np.nan, 1.0], np.ones((2, 1)))
    with pytest.raises(ValueError, match="2 of residuals, 3 of features"):
        learn_uncertainty([1.0, 1.0], np.ones((3, 1)))


def test_intervals_contain():
    one = Interval(np.array(1.0), np.array(0.0), np.array(2.0), CAL, "")
    assert one.contains(0.0) is True
    assert one.contains(2.1) is False
    with pytest.raises(ValueError, match=r"the value has shape \(2,\), the quantity \(\)"):
        one.contains([1.0, 2.0])
    batch = Interval(np.ones(3), np.zeros(3), np.array([2.0, 0.5, 2.0]), CAL, "said")
    assert batch.contains([1.0, 1.0, 1.0]).tolist() == [True, False, True]
    assert batch[1].upper == 0.5
    assert batch[1:].lower.shape == (2,)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"alpha": 0.1}, True),
        ({"alpha": 0.2}, False),
        ({"alpha": 0.1, "weights": np.ones(5)}, False),
        ({"alpha": 0.1, "sampling": "iid"}, False),
    ],
)
def test_which_bands_hold_everywhere(options, expected):
    error = RNG.normal(size=(99, 5))
    cal = uqno.calibrate(error, np.ones_like(error), delta=0.6, **options)
    assert holds_everywhere(cal) == expected


def test_other_guarantees_hold_everywhere_by_name():
    error = np.ones((20, 4))
    drag = uqno.calibrate(error, error, guarantee=guarantees.Quantity(0.1))
    assert not holds_everywhere(drag)

    class Everywhere(guarantees.Nothing):
        name = ""

    rule = Everywhere()
    object.__setattr__(rule, "name", "everywhere")
    assert holds_everywhere(uqno.Calibration(1.0, rule, 20, 4, 4))


def test_linear_bounds_are_attained():
    center, radius = RNG.normal(size=(1, 7)), RNG.uniform(size=7)
    w = RNG.normal(size=(1, 7))
    middle, lower, upper = linear_bounds(center, radius, w)
    assert middle == pytest.approx((w * center).sum())
    worst = center + np.sign(w) * radius
    assert upper >= (w * worst).sum()
    assert upper == pytest.approx((w * worst).sum(), rel=1e-6)
    assert lower == pytest.approx(2 * middle - upper)
    vectors, weights = RNG.normal(size=(3, 7)), RNG.normal(size=(3, 7))
    _, _, upper = linear_bounds(vectors, radius, weights)
    moved = vectors + radius * weights / np.linalg.norm(weights, axis=0)
    assert upper == pytest.approx((weights * moved).sum(), rel=1e-6)
    batch = linear_bounds(np.stack([center, center]), np.stack([radius, radius]), w)
    assert batch[1].tolist() == [lower, lower]


def test_monotone_bounds():
    center, radius = RNG.normal(size=7), RNG.uniform(size=7)
    assert monotone_bounds(np.max, center, radius) == (
        center.max(), (center - radius).max(), (center + radius).max(),
    )  # fmt: skip
    rising = np.arange(7) % 2 == 0
    w = np.where(rising, 1.0, -1.0)
    middle, lower, upper = monotone_bounds(lambda u: w @ u, center, radius, rising)
    assert upper - lower == pytest.approx(2 * radius.sum())
    assert lower < middle < upper
    with pytest.raises(ValueError, match="not monotone in the direction"):
        monotone_bounds(np.max, center, radius, rising=False)
    with pytest.raises(ValueError, match="not monotone"):
        monotone_bounds(lambda u: float((u**2).sum()), 0 * center, radius)
