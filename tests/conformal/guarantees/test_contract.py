"""What every guarantee gets from the contract, with a rule of three lines."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from uqno.conformal import Calibration, InfeasibleError, calibrate, calibrate_splits
from uqno.conformal.guarantees import (
    GUARANTEES,
    Collector,
    Evidence,
    Facts,
    Guarantee,
    ScoreCollector,
    Solution,
    finite_scale,
)
from uqno.conformal.guarantees.contract import guarantee_of, share_in_json


@dataclass
class Largest(ScoreCollector):
    def score(self, functions: Any) -> Any:
        return functions.scores(functions.points)


class Worst(Guarantee):
    """The largest score of all; without a name, so that no file may hold it."""

    shares: ClassVar[tuple[str, ...]] = ("share",)

    def __init__(self, share: float = 0.5, unit: str = "m") -> None:
        self.share, self.unit = share, unit

    settings = property(lambda self: {"share": self.share, "unit": self.unit})

    def feasible(self, functions: int, points: int) -> bool:
        return functions > 2

    def collector(self, facts: Facts) -> Collector:
        return Largest(weighted=facts.weighted)

    def solve(self, evidence: Evidence) -> Solution:
        return Solution(finite_scale(evidence.scores, len(evidence)), evidence.scores)

    def sentence(self, calibration: Any) -> str:
        return "All is covered."

    def promise(self, calibration: Any) -> str:
        return "all"

    def plan_sentence(self, plan: Any) -> str:
        return "Perhaps."


def test_a_guarantee_without_a_name_is_not_registered():
    assert Worst not in GUARANTEES.values()
    assert "" not in GUARANTEES


def test_registered_by_being_defined():
    class Named(Worst):
        name: ClassVar[str] = "only here"

    assert GUARANTEES.pop("only here") is Named
    assert GUARANTEES["fraction"].name == "fraction"


def test_what_most_rules_leave_alone():
    rule, error = Worst(), np.arange(1.0, 13).reshape(4, 3)
    cal = calibrate(error, np.ones((4, 3)), guarantee=rule)
    assert cal.scale == 12.0
    assert cal.scale_for({"a": np.zeros(3)}) == 12.0
    assert cal.ranks is rule.ranks_for(4, 3) is None
    assert (cal.guarantee, cal.promise) == ("All is covered.", "all")
    assert (cal.alpha, cal.delta) == (None, None)
    assert cal.levels == {"share": 0.5, "unit": "m"}
    assert rule.check(cal) is None
    assert rule.needs_independent_points is False
    np.testing.assert_array_equal(cal.scores, [3, 6, 9, 12])
    assert cal.details == {}
    assert Largest().ranks(3) is None


def test_a_scale_for_each_new_function():
    class Doubled(Worst):
        def scale_for(self, calibration: Any, function: Any) -> float:
            return calibration.scale * function["factor"]

    cal = calibrate(np.ones((4, 3)), np.ones((4, 3)), guarantee=Doubled())
    assert cal.scale_for({"factor": 2.0}) == 2.0


def test_another_share():
    other = Worst(unit="s").with_share("share", 0.25)
    assert (other.share, other.unit) == (0.25, "s")
    assert isinstance(other, Worst)


def test_scales_of_splits_are_infinite_where_there_is_none():
    error, uncertainty = np.arange(1.0, 13).reshape(4, 3), np.ones((4, 3))
    uncertainty[3] = 0
    scales = calibrate_splits(error, uncertainty, Worst(), [[0, 1, 2], [0, 1, 3], [2, 0, 1]])
    np.testing.assert_array_equal(scales, [9, np.inf, 9])


def test_evidence_of_some_functions():
    whole = Evidence(np.array([3, 4, 5]), np.array([[1.0, 2], [3, 4], [5, 6]]), weighted=True)
    some = whole.take(np.array([2, 0]))
    assert (len(whole), len(some), some.weighted) == (3, 2, True)
    np.testing.assert_array_equal(some.sizes, [5, 3])
    np.testing.assert_array_equal(some.scores, [[5, 6], [1, 2]])
    assert not Evidence(np.array([3]), np.array([1.0])).weighted


def test_a_collector_without_functions():
    evidence = Largest().evidence()
    assert (len(evidence), evidence.scores.shape, evidence.weighted) == (0, (0,), False)
    assert evidence.sizes.dtype == np.int64
    assert Largest(weighted=True).evidence().weighted


def test_a_collector_keeps_numbers_of_any_type():
    collector = Largest()
    collector.keep(np.array([[1.5, 2.5], [0.5, 1.0]], np.float32), np.int32(7))
    collector.keep(np.array([[3, 4]]), 9)
    evidence = collector.evidence()
    np.testing.assert_array_equal(evidence.scores, [[1.5, 2.5], [0.5, 1.0], [3, 4]])
    np.testing.assert_array_equal(evidence.sizes, [7, 7, 9])
    assert (evidence.scores.dtype, evidence.sizes.dtype) == (np.float64, np.int64)


@pytest.mark.parametrize("number", [0, 1])
def test_an_iterator_of_too_few_functions_is_refused_for_every_rule(number):
    said = "is empty" if number == 0 else "holds 1 function"
    with pytest.raises(ValueError, match=said):
        calibrate(iter([np.ones(3)] * number), iter([np.ones(3)] * number), guarantee=Worst())


def test_details_of_a_rule_reach_the_calibration():
    class Detailed(Worst):
        def solve(self, evidence: Evidence) -> Solution:
            return Solution(1.0, evidence.scores, details={"sizes": evidence.sizes * 1.0})

    cal = calibrate(np.ones((4, 3)), np.ones((4, 3)), guarantee=Detailed())
    np.testing.assert_array_equal(cal.details["sizes"], [3, 3, 3, 3])


def test_the_facts_of_splits_are_those_of_one_set():
    """Its number of functions, and their points where those are the same for all."""

    class Curious(Worst):
        def collector(self, facts: Facts) -> Collector:
            told.append(facts)
            return super().collector(facts)

    told: list[Facts] = []
    splits = [[0, 1, 2], [3, 1, 2]]
    calibrate_splits(np.ones((4, 5)), np.ones((4, 5)), Curious(), splits)
    ragged = [np.ones(5), np.ones(6), np.ones(7), np.ones(8)]
    calibrate_splits(ragged, ragged, Curious(), splits)
    calibrate_splits(iter(ragged), iter(ragged), Curious(), splits)
    assert told == [Facts(3, (5, 5, 5), False), Facts(3, None, False), Facts(3, None, False)]


def test_the_scale_is_the_jth_smallest_and_finite():
    scores = np.array([3.0, 1.0, np.inf, 2.0])
    assert [finite_scale(scores, j) for j in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(InfeasibleError, match="more than 0 of 4 functions have zero uncertainty"):
        finite_scale(scores, 4)
    np.testing.assert_array_equal(scores, [3.0, 1.0, np.inf, 2.0])
    many = np.random.default_rng(0).random(200)
    assert [finite_scale(many, j) for j in range(1, 201)] == np.sort(many).tolist()


def test_shares_in_json():
    assert share_in_json(Fraction(1, 10)) == 0.1
    assert share_in_json(Fraction(1, 3)) == "1/3"
    assert share_in_json(Fraction(1, 2)) == 0.5
    assert share_in_json(Fraction("0.12345678901234567891")) == str(
        Fraction("0.12345678901234567891")
    )


def test_a_guarantee_of_a_file(monkeypatch):
    monkeypatch.setitem(GUARANTEES, "another", Worst)
    content = {"name": "fraction", "alpha": "1/3", "delta": 0.1}
    rule = guarantee_of(content)
    assert (rule.alpha, rule.delta) == (Fraction(1, 3), Fraction(1, 10))
    assert content["name"] == "fraction"  # what was passed stays as it is
    known = ", ".join(sorted(GUARANTEES))
    assert "another, " in known
    with pytest.raises(ValueError, match=f"guarantee None is not known, there are {known}: import"):
        guarantee_of({"alpha": 0.1, "delta": 0.1})
    with pytest.raises(ValueError, match=r"settings of guarantee 'fraction' .*argument: 'delta'"):
        guarantee_of({"name": "fraction", "alpha": 0.1})


def test_details_survive_the_file():
    cal = calibrate(np.ones((20, 3)), np.ones((20, 3)), 0.1, 0.1)
    held = Calibration(**{**vars(cal), "details": {"edges": np.array([1.0, 2.5])}})
    again = Calibration.from_json(held.to_json())
    assert list(again.details) == ["edges"]
    np.testing.assert_array_equal(again.details["edges"], [1, 2.5])
