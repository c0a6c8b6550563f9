"""Arguments of a kind that nobody meant: refused with the value, in one short line."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import uqno
from uqno.conformal import FunctionStream, checks, frontier, function_scores, tightest
from uqno.conformal.binomial import tail_at_most
from uqno.conformal.profile import profile
from uqno.conformal.ranks import Request, function_rank_iid

E = np.ones((40, 12))
LEVELS = {"alpha": 0.2, "delta": 0.1}


class Refuses:
    def __repr__(self):
        raise RuntimeError("no repr")

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


def deep():
    inner = []
    for _ in range(5_000):
        inner = [inner]
    return inner


def plan(**changed):
    return uqno.plan(**{**LEVELS, "functions": 40, "points": 12, **changed})


def calibrate(**changed):
    return uqno.calibrate(**{"error": E, "uncertainty": E, **LEVELS, **changed})


PAIRS = frontier(40, 12, 0.4, 0.2)
REFUSED = {
    "tiny share": (lambda: plan(alpha="1e-99999999"), "alpha = '1e-99999999' must lie"),
    "long share": (lambda: plan(alpha="0." + "1" * 2000), "alpha = '0.1111"),
    "long fraction": (lambda: plan(delta=Fraction(1, 10**2000)), "delta = Fraction"),
    "too many digits": (lambda: plan(functions=10**5000), "functions = a int must be a whole"),
    "not a number": (lambda: plan(confidence=Decimal("sNaN")), "confidence = Decimal"),
    "without words": (lambda: plan(alpha=Refuses()), "alpha = a Refuses must lie"),
    "deep": (lambda: plan(points=deep()), "points = a list must be"),
    "long": (lambda: plan(points="x" * 1000), "x…"),
    "unhashable design": (lambda: calibrate(sampling=[]), r"sampling = \[\] must be one of"),
    "unhashable way": (lambda: calibrate(mixed={}), r"mixed = {} must be one of"),
    "guarantee": (lambda: calibrate(alpha=None, delta=None, guarantee=3), "guarantee = 3 must be"),
    "one of several": (
        lambda: uqno.conformal.calibrate_all(E, E, [None]), "guarantee = None must be"
    ),
    "no sequence": (lambda: uqno.conformal.calibrate_all(E, E, 3), "guarantees = 3 must be"),
    "no array": (lambda: calibrate(error=[Refuses()] * 40), "cannot be read as an array"),
    "a number": (lambda: calibrate(error=np.array(None)), r"error has shape \(\)"),
    "weighted": (lambda: FunctionStream([], 1), "weighted = 1 must be True or False"),
    "no stream": (lambda: FunctionStream(3), "functions must hold functions, got int"),
    "no triple": (
        lambda: uqno.calibrate(FunctionStream([3]), **LEVELS), "function 0 of the stream is 3"
    ),
    "short triple": (
        lambda: uqno.calibrate(FunctionStream([(E[0], E[0])]), **LEVELS), "expected a tuple"
    ),
    "scale": (lambda: uqno.conformal.coverage(E, E, "x"), "scale of the functions has dtype"),
    "rank": (lambda: function_scores(E, E, 0.5), "point rank 0.5 must be|array.*whole number"),
    "no ranks": (lambda: function_scores(E, E, []), "must be a whole number, or several"),
    "no splits": (
        lambda: uqno.conformal.calibrate_splits(E, E, uqno.guarantees.Fraction(0.5, 0.5), [[0.5]]),
        "splits must be whole numbers",
    ),
    "profile": (lambda: profile(E[0], E[0], None), "ranks = None must be whole numbers"),
    "profile ranks": (lambda: profile(E[0], E[0], [1.5]), "dtype float64, expected whole numbers"),
    "no pairs": (lambda: tightest(3, 12, E, 40), "pairs = 3 must be pairs"),
    "other pairs": (lambda: tightest([3], 12, E, 40), "ranks = 3 must be a uqno"),
    "fewer points": (lambda: tightest(PAIRS, 3, E, 40), "more than 3 points or 40 functions"),
    "fewer functions": (lambda: tightest(PAIRS, 12, E, 4), "more than 12 points or 4 functions"),
    "no training": (lambda: tightest(PAIRS, 12, 3, 40), "training = 3 must be one array"),
    "empty training": (lambda: tightest(PAIRS, 12, [[], []], 40), "training function 0 has no"),
    "scores": (
        lambda: uqno.Calibration.from_json(calibrate().to_json(), [10**400] * 40),
        "scores in the calibration must be numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_its_value(call, said):
    with pytest.raises(ValueError, match=said) as raised:
        call()
    assert len(str(raised.value)) < 500
    assert "\n" not in str(raised.value)


def test_yes_or_no_of_numpy():
    assert checks.yes_or_no("weighted", np.True_) is True


def test_large_ratios_beside_zero_uncertainty_raise_no_warning():
    error, uncertainty = np.array([1e308, 1.0]), np.array([1e-300, 0.0])
    assert uqno.conformal.ratios(error, uncertainty).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("m", [1, 5, 1849, 10**12])
def test_a_plan_of_the_largest_numbers_needs_few_questions(m, monkeypatch):
    """Between what floats surely allow and surely forbid lie millions of numbers of misses."""
    from uqno.conformal import ranks

    asked = []

    def tail(*given):
        asked.append(given)
        return tail_at_most(*given)

    monkeypatch.setattr(ranks, "tail_at_most", tail)
    request = Request.of(0.1, 0.02, "iid")
    j = function_rank_iid(m, 10**12, m, request)
    assert j is None or 1 <= j <= 10**12
    assert len(asked) < 50
    uqno.plan(0.1, 0.02, 10**12, m, "iid")
    assert len(asked) < 10_000


def test_halving_finds_what_asking_every_number_finds():
    """ℓ is the largest number of misses with β ≤ 1 − ℓ / ((n + 1) δ), exactly."""
    for n, m, k in [(9, 1, 1), (199, 3, 3), (10**11, 1, 1), (10**11 + 3, 2, 2)]:
        request = Request.of(0.5, 0.5, "iid")
        largest = (n + 1) * request.delta * (1 - Fraction(1, 2) ** m)
        assert function_rank_iid(k, n, m, request) == n + 1 - int(largest)
