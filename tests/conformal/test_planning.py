"""What is feasible, and the smallest change that makes it so."""

import math

import numpy as np
import pytest

from uqno import InfeasibleError, plan
from uqno.conformal import Ranks
from uqno.conformal.checks import LARGEST_COUNT
from uqno.conformal.planning import smallest_count_that, smallest_share_that
from uqno.conformal.words import rounded_up

INFEASIBLE = [
    (0.1, 0.02, 40, 1849, "grid", None),
    (0.1, 0.02, 60, 12, "iid", None),
    (0.01, 0.02, 500, 3, "iid", None),
    (0.1, 0.1, 100, 50, "hoeffding", None),
    (0.04, 0.02, 100, 3586, "iid", 0.9),
    (0.04, 0.02, 100, 3586, "grid", 0.9),
    (0.02, 0.02, 500, 1849, "hoeffding", None),
]


@pytest.mark.parametrize(("alpha", "delta", "n", "m", "sampling", "confidence"), INFEASIBLE)
def test_each_remedy_works_and_nothing_smaller_does(alpha, delta, n, m, sampling, confidence):
    p = plan(alpha, delta, n, m, sampling, confidence)
    assert not p.feasible
    assert p.ranks is None

    def feasible(alpha=alpha, delta=delta, n=n, m=m):
        return plan(alpha, delta, n, m, sampling, confidence).feasible

    if p.smallest["functions"] is not None:
        assert p.smallest["functions"] > n
        assert feasible(n=p.smallest["functions"])
        assert not feasible(n=p.smallest["functions"] - 1)
    if p.smallest["points"] is not None:
        assert p.smallest["points"] > m
        assert feasible(m=p.smallest["points"])
        assert not feasible(m=p.smallest["points"] - 1)
    if p.smallest["alpha"] is not None:
        assert feasible(alpha=p.smallest["alpha"])
        assert not feasible(alpha=p.smallest["alpha"] * (1 - 1e-9))
        assert feasible(alpha=float(rounded_up(p.smallest["alpha"])))
    if p.smallest["delta"] is not None:
        assert feasible(delta=p.smallest["delta"])
        assert not feasible(delta=p.smallest["delta"] * (1 - 1e-9))
        assert feasible(delta=float(rounded_up(p.smallest["delta"])))
    remedies = (
        p.smallest["functions"],
        p.smallest["points"],
        p.smallest["alpha"],
        p.smallest["delta"],
    )
    assert any(r is not None for r in remedies)
    with pytest.raises(InfeasibleError, match="Not feasible with"):
        p.require()


def test_closed_forms():
    p = plan(0.1, 0.02, 40, 1849)
    assert p.smallest["functions"] == math.ceil(1 / 0.02) - 1 == 49
    assert p.smallest["delta"] == pytest.approx(1 / 41, rel=1e-9)
    assert p.smallest["points"] is None
    iid = plan(0.1, 0.05, 30, 5, "iid")
    # (1 − α)^m ≤ 1 − 1/((n + 1) δ)
    assert iid.smallest["points"] == math.ceil(math.log(1 - 1 / (31 * 0.05)) / math.log(0.9))
    assert iid.smallest["delta"] == pytest.approx(1 / (31 * (1 - 0.9**5)), rel=1e-9)
    assert iid.smallest["alpha"] == pytest.approx(1 - (1 - 1 / (31 * 0.05)) ** (1 / 5), rel=1e-9)
    conditional = plan(0.1, 0.02, 100, 50, "grid", 0.9)
    assert conditional.smallest["functions"] == math.ceil(math.log(0.1) / math.log(0.98))


def test_a_feasible_plan_in_fields_and_words():
    p = plan(alpha=0.1, delta=0.02, functions=500, points=1849, sampling="iid")
    assert p.feasible
    assert p.ranks == Ranks(point=1681, function=492)
    assert (p.ranks.point, p.ranks.function) == (1681, 492)
    p.require()
    for said in ("Feasible", "1681st", "492nd", "98 %", "90 %"):
        assert said in str(p)
    assert plan(0.1, 0.02, 500, 10).smallest["alpha"] == 0.0


def test_infeasible_words_name_the_remedies():
    told = str(plan(0.1, 0.02, 40, 12, "iid"))
    for said in ("Not feasible", "40 calibration functions", "functions", "delta of at least"):
        assert said in told
    assert "'iid'" in str(plan(0.1, 0.1, 100, 50, "hoeffding"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (dict(alpha=0), "alpha = 0 must lie strictly between 0 and 1"),
        (dict(alpha=1.0), "alpha = 1.0"),
        (dict(delta=-0.1), "delta = -0.1"),
        (dict(delta=float("nan")), "delta = nan"),
        (dict(delta="much"), "delta = 'much'"),
        (dict(functions=0), "functions = 0 must be a whole number, at least 1"),
        (dict(points=2.5), "points = 2.5"),
        (dict(points=True), "points = True"),
        (dict(sampling="random"), "sampling = 'random' must be one of grid, iid, hoeffding"),
        (dict(confidence=1.5), "confidence = 1.5"),
    ],
)
def test_bad_numbers_are_named(arguments, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        plan(**{**dict(alpha=0.1, delta=0.1, functions=100, points=100), **arguments})


def test_the_choice_depends_on_numbers_alone_and_is_repeatable():
    rng = np.random.default_rng(0)
    for _ in range(3):
        n, m = (int(x) for x in rng.integers(50, 500, 2))
        assert plan(0.1, 0.1, n, m, "iid") == plan(0.1, 0.1, n, m, "iid")


def test_remedies_in_words_are_below_one_and_two_functions_are_the_least():
    told = str(plan(0.1, 0.091, 10, 1, "iid"))
    share = float(told.split("alpha of at least ")[1].split(",")[0].rstrip("."))
    assert plan(share, 0.091, 10, 1, "iid").feasible
    assert not plan(0.1, 0.6, 1, 10).feasible
    assert plan(0.1, 0.6, 1, 10).ranks is None
    assert plan(0.1, 0.6, 1, 10).smallest["functions"] == 2
    with pytest.raises(ValueError, match="at most 10"):
        plan(0.1, 0.1, 100, 10**30, "iid")


# --- the searches ----------------------------------------------------------------------------


class Threshold:
    """Works from a value on, and counts how often it is asked."""

    def __init__(self, least):
        self.least, self.calls = least, 0

    def __call__(self, value):
        assert value > 0
        self.calls += 1
        return value >= self.least


@pytest.mark.parametrize("least", [*range(1, 35), 63, 64, 65, 1000, 2**39 - 1, 2**39])
def test_the_smallest_count_in_few_questions(least):
    works = Threshold(least)
    assert smallest_count_that(works) == least
    assert works.calls <= 2 * math.log2(least) + 2


def test_no_count_works():
    works = Threshold(math.inf)
    assert smallest_count_that(works) is None
    assert works.calls == math.floor(math.log2(LARGEST_COUNT)) + 1


@pytest.mark.parametrize("least", [1.1e-300, 1e-200, 1e-12, 0.001, 0.25, 0.3, 0.5, 0.75, 0.999])
def test_the_smallest_share_in_few_questions(least):
    works = Threshold(least)
    found = smallest_share_that(works)
    assert least <= found <= least * (1 + 1e-12)
    assert works.calls <= 60


def test_every_share_or_none():
    assert smallest_share_that(lambda share: True) == 0.0
    assert smallest_share_that(Threshold(1e-300)) == 0.0
    assert smallest_share_that(lambda share: False) is None
    assert smallest_share_that(Threshold(1.0)) is None
    assert smallest_share_that(Threshold(1 - 2**-53)) == 1 - 2**-53


def test_a_plan_says_what_was_planned():
    p = plan(0.1, 0.02, 500, 1849)
    assert (p.functions, p.points, p.rule.alpha) == (500, 1849, pytest.approx(0.1))
    assert list(p.smallest) == ["functions", "points", "alpha", "delta"]
    assert p.smallest["functions"] == 49
    assert p.smallest["points"] == 1
    with pytest.raises(ValueError, match="functions = 0 must"):
        plan(0.1, 0.02, 0, 10)
    with pytest.raises(ValueError, match="points = 0 must"):
        plan(0.1, 0.02, 10, 0)
