"""The interval of a quantity: the order statistic of |q(u) − q(Ĝ)| / R."""

import json

import numpy as np
import pytest

import uqno
from uqno.conformal import guarantees
from uqno.conformal.checks import InfeasibleError

RNG = np.random.default_rng(2)
N = 99
ERROR, R = RNG.standard_normal((N, 3)), RNG.uniform(0.5, 2, (N, 3))


def test_the_scale_is_a_ranked_score():
    cal = uqno.calibrate(ERROR, R, guarantee=guarantees.Quantity(0.1, "drag"))
    scores = np.sort((np.abs(ERROR) / R).max(axis=1))
    assert cal.scale == scores[89]
    assert cal.ranks == uqno.conformal.Ranks(3, 90)
    assert cal.alpha is None
    assert cal.promise == "contains drag with probability ≥ 90 %"
    assert "over the draw of the n = 99 calibration functions" in cal.guarantee
    assert uqno.Calibration.from_json(cal.to_json()) == cal


def test_one_number_is_the_papers_rule_at_one_point():
    cal = uqno.calibrate(ERROR[:, :1], R[:, :1], guarantee=guarantees.Quantity(0.1))
    assert cal.scale == uqno.calibrate(ERROR[:, :1], R[:, :1], 0.5, 0.1).scale


def test_with_confidence():
    rule = guarantees.Quantity(0.1, "lift", confidence=0.9)
    cal = uqno.calibrate(ERROR, R, guarantee=rule)
    paper = uqno.calibrate(ERROR, R, 0.1, 0.1, confidence=0.9)
    assert cal.ranks.function == paper.ranks.function
    assert "With confidence 90 %" in cal.guarantee
    assert cal.promise.endswith("confidence 90 %")
    assert "confidence = 0.9" in str(uqno.plan(functions=9, points=1, guarantee=rule))


def test_it_is_planned_for():
    plan = uqno.plan(functions=40, points=1, guarantee=guarantees.Quantity(0.02))
    assert plan.smallest["functions"] == 49
    assert "at least 49 functions, or delta of at least 0.0244" in str(plan)
    assert "49th smallest" in str(
        uqno.plan(functions=49, points=1, guarantee=guarantees.Quantity(0.02))
    )
    nothing = uqno.plan(functions=1, points=1, guarantee=guarantees.Quantity(0.02))
    assert str(nothing).startswith("Not feasible")


def test_bad_input():
    with pytest.raises(InfeasibleError, match="at least 49 functions"):
        uqno.calibrate(ERROR[:40], R[:40], guarantee=guarantees.Quantity(0.02))
    with pytest.raises(InfeasibleError, match="at least 49 functions"):
        uqno.calibrate(iter(ERROR[:40]), iter(R[:40]), guarantee=guarantees.Quantity(0.02))
    with pytest.raises(ValueError, match="have no weights"):
        uqno.calibrate(ERROR, R, guarantee=guarantees.Quantity(0.1), weights=np.ones(3))
    with pytest.raises(ValueError, match="must be a name"):
        guarantees.Quantity(0.1, "")
    content = json.loads(uqno.calibrate(ERROR, R, guarantee=guarantees.Quantity(0.1)).to_json())
    for ranks, message in (
        (None, "do not fit"),
        ({"point": 2, "function": 95}, "do not fit"),
        ({"point": 3, "function": 80}, "do not carry"),
        ({"point": 3, "function": 100}, "do not carry"),
    ):
        with pytest.raises(ValueError, match=message):
            uqno.Calibration.from_json(json.dumps({**content, "ranks": ranks}))
