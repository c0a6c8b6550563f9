"""One point a stratum, and points without replacement: exact tails, pairs, words and files."""

import json
from fractions import Fraction as Rational
from math import ceil, comb

import numpy as np
import pytest
from scipy import stats

import uqno
from uqno import guarantees
from uqno.conformal import InfeasibleError, Ranks, calibrate_splits
from uqno.conformal.guarantees import Strata, WithoutReplacement, drawn
from uqno.conformal.stream import FunctionStream

RNG = np.random.default_rng(0)
ERROR = np.abs(RNG.standard_normal((80, 40))) * np.exp(RNG.standard_normal((80, 1)))
ONES = np.ones((80, 40))
RULES = [Strata(0.2, 0.1), WithoutReplacement(0.2, 0.1, 300), Strata(0.2, 0.1, 0.9),
         WithoutReplacement(0.2, 0.1, 40)]  # fmt: skip


def exact_below(k, nodes, inside, taken):
    total = sum(comb(inside, x) * comb(nodes - inside, taken - x) for x in range(k))
    return Rational(total, comb(nodes, taken))


@pytest.mark.parametrize(
    ("nodes", "inside", "taken"), [(10, 4, 3), (50, 44, 20), (7, 7, 3), (200, 179, 60), (5, 0, 2)]
)
def test_hypergeometric_sums_are_those_of_whole_numbers(nodes, inside, taken):
    k = np.arange(taken + 2)
    exact = [float(exact_below(int(i), nodes, inside, taken)) for i in k]
    np.testing.assert_allclose(drawn.below(k, nodes, inside, taken), exact, rtol=1e-11)


@pytest.mark.parametrize("alpha", [0.1, 0.3])
@pytest.mark.parametrize("nodes", [30, 400])
def test_without_replacement_never_promises_more_than_exact_sums_do(alpha, nodes):
    rule, n = WithoutReplacement(alpha, 0.2, nodes), 50
    inside = ceil(nodes * (1 - Rational(str(alpha)))) - 1
    for k in range(1, 21):
        level = Rational("0.2") * exact_below(k, nodes, inside, 20)
        misses = (n + 1) * level // 1
        j = drawn.function_rank_of(rule, k, n, 20)
        assert (j is None and misses < 1) or n + 1 - j == misses


def test_all_nodes_without_replacement_are_the_grid():
    whole = uqno.calibrate(ERROR, ONES, guarantee=WithoutReplacement(0.2, 0.1, of=40))
    assert whole.scale == uqno.calibrate(ERROR, ONES, 0.2, 0.1).scale
    assert whole.ranks == Ranks(32, 73)


def test_of_few_nodes_beta_is_smaller_than_for_independent_points():
    k, strata = np.arange(37, 41), Strata(0.1, 0.1)
    assert (WithoutReplacement(0.1, 0.1, 60).shown(k, 40) > strata.shown(k, 40)).all()


@pytest.mark.parametrize("m", [20, 57, 400])
def test_strata_have_the_binomial_tail_from_one_above_the_mean_on(m):
    rule, n = Strata(0.1, 0.1), 150
    least = ceil(m * 0.9) + 1
    for k in range(1, m + 1):
        j = drawn.function_rank_of(rule, k, n, m)
        level = 0.1 * (1 - stats.binom.sf(k - 1, m, 0.9))
        misses = int((n + 1) * level)
        if k < least:
            assert j is None
        else:
            assert (j is None and misses == 0) or n + 1 - j == misses


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("n", "m"), [(80, 40), (200, 30), (45, 20)])
def test_the_pair_is_admissible_and_its_point_rank_cannot_be_lowered(rule, n, m):
    pair = rule.ranks_for(n, m)
    assert drawn.function_rank_of(rule, pair.point, n, m) <= pair.function
    lower = drawn.function_rank_of(rule, pair.point - 1, n, m)
    assert lower is None or lower > pair.function


@pytest.mark.parametrize("rule", RULES)
def test_arrays_streams_splits_and_files(rule):
    cal = uqno.calibrate(ERROR, ONES, guarantee=rule)
    by_hand = np.sort(np.sort(ERROR, axis=1)[:, cal.ranks.point - 1])[cal.ranks.function - 1]
    assert cal.scale == by_hand
    triples = zip(ERROR, ONES, [None] * 80, strict=True)
    assert uqno.calibrate(FunctionStream(triples), guarantee=rule) == cal
    assert uqno.Calibration.from_json(cal.to_json()) == cal
    splits = np.arange(80).reshape(1, 80)
    assert calibrate_splits(ERROR, ONES, rule, splits) == [cal.scale]
    assert str(40) in cal.guarantee
    assert rule.domain in cal.promise
    assert rule.needs_independent_points
    for ranks in ({"point": 1, "function": 80}, {"point": 40, "function": 1}, None,
                  {"point": None, "function": 80}):  # fmt: skip
        content = {**json.loads(cal.to_json()), "ranks": ranks}
        with pytest.raises(ValueError, match=r"do not carry the guarantee|do not fit"):
            uqno.Calibration.from_json(json.dumps(content))


def test_what_is_infeasible_says_what_would_be():
    with pytest.raises(InfeasibleError, match=r"What would be: at least \d+ functions, or"):
        uqno.calibrate(ERROR[:9], ONES[:9], guarantee=Strata(0.1, 0.1))
    with pytest.raises(InfeasibleError, match="alpha of at least"):
        uqno.calibrate(ERROR[:, :4], ONES[:, :4], guarantee=Strata(0.1, 0.1))
    plan = uqno.plan(functions=60, points=4, guarantee=Strata(0.1, 0.1))
    assert not plan.feasible
    assert plan.smallest["points"] == 10
    assert not uqno.plan(functions=5, points=8, guarantee=WithoutReplacement(0.1, 0.1, 9)).feasible
    assert uqno.plan(functions=9, points=99, guarantee=WithoutReplacement(0.1, 0.1, 99)).feasible
    assert "no single change" in str(uqno.plan(functions=1, points=1, guarantee=Strata(0.01, 1e-9)))


def test_a_float_choice_that_exact_numbers_refuse_falls_back_to_the_last_rank(monkeypatch):
    """The working law only ranks: what it picks is confirmed, else k = m is asked."""
    rule = WithoutReplacement(0.2, 0.1, 300)
    monkeypatch.setattr(drawn, "best_candidate", lambda n, m, k, shown, request: 0)
    drawn.pair_for.cache_clear()
    assert rule.ranks_for(80, 40).point <= 40
    assert rule.ranks_for(9, 40) is None
    drawn.pair_for.cache_clear()


def test_bad_input():
    with pytest.raises(ValueError, match="weights go with a grid"):
        uqno.calibrate(ERROR, ONES, guarantee=Strata(0.2, 0.1), weights=np.ones(40))
    with pytest.raises(ValueError, match="functions have 20 to 40 points: this design needs"):
        uqno.calibrate([*ERROR, ERROR[0, :20]], [*ONES, ONES[0, :20]], guarantee=Strata(0.2, 0.1))
    with pytest.raises(ValueError, match="40 points, more than of = 30 nodes"):
        uqno.calibrate(ERROR, ONES, guarantee=WithoutReplacement(0.2, 0.1, 30))
    with pytest.raises(ValueError, match="of = 0 must be a whole number"):
        WithoutReplacement(0.2, 0.1, 0)
    with pytest.raises(ValueError, match="delta = 0 must lie strictly between"):
        Strata(0.2, 0)
    with pytest.raises(ValueError, match=r"confidence = 1\.5 must lie"):
        WithoutReplacement(0.2, 0.1, 30, confidence=1.5)


def test_they_are_registered():
    assert guarantees.GUARANTEES["strata"] is Strata
    assert guarantees.GUARANTEES["without-replacement"] is WithoutReplacement
