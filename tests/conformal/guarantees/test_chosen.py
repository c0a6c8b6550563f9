"""(α, δ) chosen after looking: the figures of the theory note, other choices, files, refusals."""

import json

import numpy as np
import pytest

from uqno import Calibration, InfeasibleError, calibrate, plan
from uqno.conformal import FunctionStream, calibrate_all, calibrate_splits
from uqno.conformal.guarantees import Chosen, Curve, Everywhere, Fraction, Shape

FORTY = tuple(np.round(np.linspace(0.005, 0.2, 40), 3).tolist())


def functions(seed, n=150, m=40):
    rng = np.random.default_rng(seed)
    scale = np.exp(0.7 * rng.standard_normal((n, 1)))
    return scale * rng.standard_normal((n, m)), rng.uniform(0.5, 2, (n, m))


def test_the_ranks_of_the_theory_note():
    def rank(rule):
        return plan(functions=500, points=100, guarantee=rule).ranks.function

    assert rank(Fraction(0.1, 0.02)) == 491
    assert rank(Fraction(0.1, 0.02, confidence=0.9)) == 495
    assert rank(Chosen(0.1, 0.02)) == 498
    assert rank(Chosen(0.1, 0.02, shape="half-normal")) == 498
    assert rank(Chosen(0.1, 0.02, alphas=FORTY)) == 500


@pytest.mark.parametrize("more", [{}, {"alphas": (0.05, 0.1, 0.2)}, {"shape": "half-normal"}])
def test_another_choice_is_what_that_choice_gives(more):
    error, uncertainty = functions(0)
    cal = calibrate(error, uncertainty, guarantee=Chosen(0.1, 0.1, 0.8, **more))
    alphas = (0.1,) if not more else (0.05, 0.1, 0.2)
    for alpha in alphas:
        for delta in (0.05, 0.1, 0.3):
            asked = Chosen(alpha, delta, 0.8, **more)
            again = cal.at(alpha=alpha, delta=delta)
            assert again == calibrate(error, uncertainty, guarantee=asked)
            assert again.at(alpha=0.1, delta=0.1) == cal
            assert Calibration.from_json(again.to_json()) == again
            paper = calibrate(error, uncertainty, alpha, delta, confidence=0.8)
            assert again.scale >= paper.scale
    assert cal.at(delta=0.3).ranks.function < cal.ranks.function


def test_streams_weights_splits_and_others_beside_it():
    error, uncertainty = functions(1)
    rules = [
        Chosen(0.1, 0.1, 0.8),
        Chosen(0.1, 0.1, 0.8, alphas=(0.05, 0.1)),
        Chosen(0.1, 0.1, 0.8, shape=Shape((0.05, 0.1), (2.0, 1.5))),
    ]
    together = calibrate_all(error, uncertainty, rules)
    for rule, cal in zip(rules, together, strict=True):
        assert calibrate(error, uncertainty, guarantee=rule) == cal
        triples = FunctionStream((e, E, None) for e, E in zip(error, uncertainty, strict=True))
        assert calibrate(triples, guarantee=rule) == cal
        weighted = calibrate(error, uncertainty, guarantee=rule, weights=np.ones(40))
        assert weighted.scale == pytest.approx(cal.scale, rel=1e-15)
        splits = [np.arange(100), np.arange(50, 150)]
        each = [calibrate(error[s], uncertainty[s], guarantee=rule).scale for s in splits]
        np.testing.assert_array_equal(calibrate_splits(error, uncertainty, rule, splits), each)


def test_its_sentences():
    ones = np.ones((150, 40))
    cal = calibrate(ones, ones, guarantee=Chosen(0.1, 0.1, 0.8, alphas=(0.1, 0.05)))
    assert cal.guarantee.startswith(
        "With confidence 80 % in the draw of the n = 150 calibration functions, for every delta "
        "and every alpha among 5 %, 10 % at once, also if they are chosen after the results were "
        "seen, at least 1 − delta of the new functions drawn independently from the same law have "
        "at least 1 − alpha of the function's grid points in the band of that choice"
    )
    assert "independent draws from one law" in cal.guarantee
    assert cal.promise == (
        "covers ≥ 90 % of the function's grid points for ≥ 90 % of new functions, for every delta "
        "and every alpha among 5 %, 10 % at once, confidence 80 %"
    )
    one = calibrate(ones, ones, guarantee=Chosen(0.1, 0.1, 0.8))
    assert "for every delta at once, at alpha = 10 %" in one.guarantee
    shaped = calibrate(ones, ones, guarantee=Chosen(0.1, 0.1, 0.8, shape="half-normal"))
    assert "for every delta and every alpha from 0.1 % on at once" in shaped.guarantee
    assert shaped.levels["shape"] == "half-normal"
    assert str(plan(functions=150, points=4, guarantee=Chosen(0.1, 0.1, 0.8))).startswith(
        "Feasible with 150 calibration functions of 4 points each, alpha = 0.1 and delta = 0.1 "
        "chosen after looking, confidence = 0.8: the scale is from the "
    )


def test_what_is_infeasible_says_what_would_do():
    with pytest.raises(InfeasibleError, match="at least 273 functions"):
        calibrate(np.ones((99, 4)), np.ones((99, 4)), guarantee=Chosen())
    with pytest.raises(InfeasibleError, match="at least 273 functions"):
        calibrate(iter(np.ones((99, 4))), iter(np.ones((99, 4))), guarantee=Chosen())
    cal = calibrate(*functions(2), guarantee=Chosen(0.1, 0.1, 0.8))
    with pytest.raises(InfeasibleError, match=r"delta = 0\.001 chosen after looking"):
        cal.at(delta=0.001)
    error, uncertainty = functions(3)
    uncertainty[:3] = 0
    cal = calibrate(error, uncertainty, guarantee=Chosen(0.1, 0.3, 0.8))
    assert Calibration.from_json(cal.to_json()) == cal  # infinite scores are kept
    with pytest.raises(InfeasibleError, match="the score at rank 149 of 150 is infinite"):
        cal.at(delta=0.05)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"alphas": (0.05, 0.2)}, "alpha = 0.1 is not among .0.05, 0.2.: calibrate with it in"),
        ({"alphas": (0.1,), "shape": "half-normal"}, "give either alphas"),
        ({"shape": "steep"}, "must be a guarantees.Shape"),
        ({"shape": Shape((0.2,), (1.0,))}, "lies below the smallest level"),
        ({"sampling": "iid"}, "the best point rank depends on the choice"),
        ({"confidence": 1}, "confidence = 1 must lie strictly between 0 and 1"),
    ],
)
def test_bad_settings(more, why):
    with pytest.raises(ValueError, match=why):
        Chosen(**more)


def test_the_shape_of_one_is_that_of_the_other():
    error, uncertainty = functions(4)
    shape = Shape((0.05, 0.1, 0.2), (2.0, 1.5, 1.0))
    chosen = calibrate(error, uncertainty, guarantee=Chosen(0.1, 0.1, 0.8, shape=shape))
    curve = calibrate(error, uncertainty, guarantee=Curve(0.1, shape))
    np.testing.assert_array_equal(chosen.scores, curve.scores)
    assert chosen.scale >= curve.scale
    assert Chosen.of_settings(chosen.rule.settings) == chosen.rule


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"details": {}}, r"must hold scores of shape \(1, 150\)"),
        ({"details": {"scores": [[1.0, 2.0]]}}, r"must hold scores of shape \(1, 150\)"),
        ({"details": {"scores": [list(range(150, 0, -1))]}}, "in rising order"),
        ({"scale": 0.001}, "is not what the scores of the calibration give"),
        ({"ranks": {"point": None, "function": 100}}, "is not what the scores"),
    ],
)
def test_a_file_may_not_claim_more_than_its_numbers_carry(change, why):
    cal = calibrate(*functions(5), guarantee=Chosen(0.1, 0.1, 0.8))
    content = json.loads(cal.to_json()) | change
    with pytest.raises(ValueError, match=why):
        Calibration.from_json(json.dumps(content))


def test_everywhere_has_no_choice():
    assert Everywhere(0.1).settings == {"delta": 0.1, "confidence": None, "sampling": "grid"}
