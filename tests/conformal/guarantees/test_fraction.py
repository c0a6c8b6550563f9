"""The paper's guarantee: its sentences word for word, what it refuses, what a file may claim."""

import json
from dataclasses import replace
from fractions import Fraction as Exact

import numpy as np
import pytest

from uqno.conformal import (
    Calibration,
    InfeasibleError,
    Ranks,
    calibrate,
    calibrate_splits,
    plan,
)
from uqno.conformal.guarantees import Evidence, Facts, Fraction

ONES = np.ones((60, 1000))
RAGGED = [np.ones(m) for m in (40, 50) * 30]
MARGINAL = (
    "With probability at least 90 % over the draw of the n = 60 calibration functions and of a new "
    "function exchangeable with them, "
)
CONDITIONAL = (
    "With confidence 80 % in the draw of the n = 60 calibration functions, for at least 90 % of "
    "new functions drawn independently from the same law "
)
BAND = "the band of 1 × uncertainty around the prediction covers at least 90 % of "
GIVEN = ", given that prediction and uncertainty were made without these functions"
DRAWN = ", that each function's points are independent draws from the domain"
FIXED = " and their number, 1000, was fixed beforehand or is the new one's too"
FINELY = ", that how finely a function is observed is part of its draw"
LAW = ", whatever the law and however good the model; nothing is promised "
SET = "about this calibration set alone, "
OTHERS = "about other points than those functions are calibrated at, "
REST = (
    "about which points are missed, about functions picked for their input, or about data of "
    "another kind."
)
POINTS, DOMAIN = "the function's grid points", "the function's domain"
WEIGHED = "the function's domain, measured by the weights"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, MARGINAL + BAND + POINTS + GIVEN + LAW + SET + OTHERS + REST),
        ({"sampling": "iid"}, MARGINAL + BAND + DOMAIN + GIVEN + DRAWN + FIXED + LAW + SET + REST),
        (
            {"sampling": "hoeffding"},
            MARGINAL + BAND + DOMAIN + GIVEN + DRAWN + FIXED + LAW + SET + REST,
        ),
        (
            {"sampling": "iid", "misses": 2},
            MARGINAL + BAND + DOMAIN + GIVEN + DRAWN + FINELY + LAW + SET + REST,
        ),
        (
            {"weights": np.ones(1000)},
            MARGINAL + BAND + WEIGHED + GIVEN + LAW + SET + OTHERS + REST,
        ),
        ({"confidence": 0.8}, CONDITIONAL + BAND + POINTS + GIVEN + LAW + OTHERS + REST),
        (
            {"confidence": 0.8, "sampling": "iid"},
            CONDITIONAL + BAND + DOMAIN + GIVEN + DRAWN + FIXED + LAW + REST,
        ),
    ],
)
def test_the_sentence_word_for_word(more, said):
    assert calibrate(ONES, ONES, 0.1, 0.1, **more).guarantee == said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, FINELY + LAW),
        ({"sampling": "iid"}, DRAWN + FINELY + LAW),
        (
            {"sampling": "hoeffding", "alpha": 0.4, "delta": 0.4},
            DRAWN + FINELY + " and a new one is observed at no fewer than 40 points" + LAW,
        ),
        (
            {"sampling": "iid", "mixed": "subsample"},
            DRAWN + " and their number tells nothing of the function, or a new one is observed at "
            "no fewer than 40 points" + LAW,
        ),
    ],
)
def test_the_sentence_for_different_numbers_of_points(more, said):
    asked = {"alpha": 0.2, "delta": 0.2, **more}
    assert GIVEN + said in calibrate(RAGGED, RAGGED, **asked).guarantee


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "covers ≥ 90 % of the function's grid points with probability ≥ 80 %"),
        ({"sampling": "iid"}, "covers ≥ 90 % of the function's domain with probability ≥ 80 %"),
        ({"weights": np.ones(1000)}, f"covers ≥ 90 % of {WEIGHED} with probability ≥ 80 %"),
        (
            {"confidence": 0.7},
            "covers ≥ 90 % of the function's grid points for ≥ 80 % of new functions, "
            "confidence 70 %",
        ),
    ],
)
def test_the_promise_in_one_line(more, said):
    assert calibrate(ONES, ONES, 0.1, 0.2, **more).promise == said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            (0.1, 0.02, 60, 30, "iid"),
            "Feasible with 60 calibration functions of 30 points each, alpha = 0.1, delta = 0.02, "
            "sampling = 'iid': the score of a function is its 30th smallest ratio of 30, the scale "
            "the 60th smallest score of 60; then, with probability at least 98 %, the band covers "
            "at least 90 % of the function's domain.",
        ),
        (
            (0.1, 0.02, 200, 50, "grid", 0.9),
            "Feasible with 200 calibration functions of 50 points each, alpha = 0.1, delta = 0.02, "
            "sampling = 'grid', confidence = 0.9: the score of a function is its 45th smallest "
            "ratio of 50, the scale the 199th smallest score of 200; then, with confidence 90 % in "
            "the draw of the calibration functions, the band covers at least 90 % of the "
            "function's grid points for at least 98 % of new functions.",
        ),
        (
            (0.1, 0.02, 40, 12, "iid"),
            "Not feasible with 40 calibration functions of 12 points each, alpha = 0.1, "
            "delta = 0.02, sampling = 'iid'. What would be: at least 69 functions, or delta of at "
            "least 0.034.",
        ),
        (
            (0.1, 0.02, 40, 12, "grid"),
            "Not feasible with 40 calibration functions of 12 points each, alpha = 0.1, "
            "delta = 0.02, sampling = 'grid'. What would be: at least 49 functions, or delta of at "
            "least 0.0244.",
        ),
        (
            (0.1, 0.1, 100, 50, "hoeffding"),
            "Not feasible with 100 calibration functions of 50 points each, alpha = 0.1, "
            "delta = 0.1, sampling = 'hoeffding'. What would be: at least 132 points per function, "
            "or alpha of at least 0.162, or delta of at least 0.398, or sampling = 'iid', whose "
            "exact tails need fewer points.",
        ),
        (
            (1e-9, 1e-9, 2, 1, "iid"),
            "Not feasible with 2 calibration functions of 1 points each, alpha = 1e-09, "
            "delta = 1e-09, sampling = 'iid'. What would be: no single change; change several at "
            "once.",
        ),
    ],
)
def test_the_plan_word_for_word(asked, said):
    assert str(plan(*asked)) == said


def test_the_plan_with_misses():
    rule = Fraction(0.1, 0.1, "iid", misses=8)
    # β* = 1 − 8/(101 · 0.1) = 0.2079; P[Bin(50, 0.9) ≥ 47] = 0.2503, ≥ 48: 0.1117.
    assert rule.ranks_for(100, 50) == Ranks(48, 93)
    assert rule.feasible(100, 50)
    assert str(plan(functions=100, points=50, guarantee=rule)).startswith(
        "Feasible with 100 calibration functions of 50 points each, alpha = 0.1, delta = 0.1, "
        "sampling = 'iid', misses = 8: the score of a function is its 48th smallest ratio of 50, "
        "the scale the 93rd smallest score of 100; then, "
    )
    # 0.9¹⁴ = 0.2288, 0.9¹⁵ = 0.2059; and ten misses of 100 functions leave 1 − 10/10.1.
    assert [rule.feasible(100, m) for m in (14, 15)] == [False, True]
    assert rule.ranks_for(100, 14) is None
    assert rule.ranks_for(79, 50) is None
    assert [rule.feasible(n, 10**6) for n in (1, 79, 80)] == [False, False, True]
    assert not Fraction(0.5, 0.9, "iid", misses=1).feasible(1, 1000)
    assert str(plan(functions=100, points=14, guarantee=rule)) == (
        "Not feasible with 100 calibration functions of 14 points each, alpha = 0.1, delta = 0.1, "
        "sampling = 'iid', misses = 8. What would be: at least 103 functions, or at least 15 "
        "points per function, or alpha of at least 0.107, or delta of at least 0.103."
    )


# --- what is asked for -----------------------------------------------------------------------


def test_settings_are_exact_and_make_it_again():
    rule = Fraction(0.1, Exact(1, 3), "iid", 0.9, "subsample", Ranks(3, 4), 7)
    assert rule.alpha == Exact(1, 10)
    assert rule.settings == {
        "alpha": 0.1,
        "delta": "1/3",
        "confidence": 0.9,
        "sampling": "iid",
        "mixed": "subsample",
        "seed": 7,
        "misses": None,
        "ranks": {"point": 3, "function": 4},
    }
    plain = Fraction(0.1, 0.2)
    assert (plain.sampling, plain.confidence, plain.mixed, plain.seed) == ("grid", None, "own", 0)
    assert plain.settings["confidence"] is plain.settings["ranks"] is None
    assert plain.misses is plain.settings["misses"] is None
    fixed = Fraction(0.1, 0.2, "iid", misses=5)
    assert fixed.settings["misses"] == 5
    assert Fraction.of_settings(fixed.settings) == fixed != Fraction(0.1, 0.2, "iid")
    assert Fraction.of_settings(plain.settings) == plain
    assert Fraction(0.1, 0.2, seed=3).seed == 3


@pytest.mark.parametrize(
    ("sampling", "needs"), [("grid", False), ("iid", True), ("hoeffding", True)]
)
def test_which_promises_need_independent_points(sampling, needs):
    assert Fraction(0.1, 0.1, sampling).needs_independent_points is needs


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"alpha": 0}, "alpha = 0 must"),
        ({"delta": 1}, "delta = 1 must"),
        ({"confidence": 1}, "confidence = 1 must .*for example confidence=0.1"),
        ({"seed": -1}, "seed = -1 must be a whole number, at least 0"),
        ({"seed": 0.5}, "seed = 0.5 must be"),
        ({"sampling": "none"}, "sampling = 'none'"),
        ({"mixed": "none"}, "mixed = 'none'"),
        ({"ranks": 3}, "ranks = 3 must be"),
        ({"misses": 0, "sampling": "iid"}, "misses = 0 must be a whole number, at least 1"),
        ({"misses": 1.5, "sampling": "iid"}, "misses = 1.5 must be a whole number"),
        (
            {"misses": 3},
            r"misses = 3 is for sampling='iid' with mixed='own' and no ranks, got "
            r"sampling='grid', mixed='own', ranks=None: leave misses out",
        ),
        ({"misses": 3, "sampling": "hoeffding"}, "misses = 3 is for sampling='iid'"),
        ({"misses": 3, "sampling": "iid", "mixed": "subsample"}, "got .* mixed='subsample'"),
        ({"misses": 3, "sampling": "iid", "ranks": Ranks(1, 2)}, r"got .*ranks=Ranks\(point=1"),
    ],
)
def test_bad_settings(more, said):
    with pytest.raises(ValueError, match=said):
        Fraction(**{"alpha": 0.1, "delta": 0.1, **more})


# --- what is refused before anything is read -------------------------------------------------


@pytest.mark.parametrize("sampling", ["grid", "iid", "hoeffding"])
@pytest.mark.parametrize("sizes", [(8,) * 30, (8, 9) * 15])
def test_what_is_infeasible_is_refused_before_reading(sampling, sizes):
    rule = Fraction(0.1, 0.01, sampling)
    with pytest.raises(InfeasibleError, match="Not feasible with 30 calibration functions of 8 "):
        rule.collector(Facts(30, sizes, weighted=False))


def test_subsampling_refuses_with_the_smallest_number_of_points():
    rule = Fraction(0.1, 0.02, "iid", mixed="subsample")
    with pytest.raises(InfeasibleError, match="Not feasible with 60 calibration functions of 12 "):
        rule.collector(Facts(60, (20, 12, 15) * 20, weighted=False))


@pytest.mark.parametrize("sampling", ["iid", "hoeffding"])
def test_weights_go_with_a_grid_alone(sampling):
    with pytest.raises(ValueError, match=f"got sampling='{sampling}'"):
        Fraction(0.1, 0.1, sampling).collector(Facts(30, None, weighted=True))


# --- the rule --------------------------------------------------------------------------------


def test_scales_of_sets_that_are_too_small():
    rng = np.random.default_rng(0)
    scores, sizes = rng.random(60), np.full(60, 30)
    evidence = Evidence(sizes, scores)
    splits = np.array([rng.permutation(60)[:20] for _ in range(4)])
    assert np.isinf(Fraction(0.1, 0.01).scales(evidence, splits)).all()
    assert Fraction(0.1, 0.01).scales(evidence, splits).shape == (4,)
    found = Fraction(0.1, 0.1).scales(evidence, splits)
    np.testing.assert_array_equal(found, np.sort(scores[splits], axis=1)[:, 18])


def test_scales_where_each_set_has_a_pair_of_its_own():
    """Different numbers of points, random: the pair depends on which functions are in a set."""
    rng = np.random.default_rng(1)
    error = [rng.standard_normal(m) for m in (30, 300) * 40]
    ones = [np.ones(e.size) for e in error]
    splits = np.stack([np.arange(0, 80, 2), np.arange(1, 80, 2), rng.permutation(80)[:40]])
    rule = Fraction(0.2, 0.2, "iid", mixed="own")
    scales = calibrate_splits(iter(error), iter(ones), rule, splits)
    for scale, split in zip(scales, splits, strict=True):
        alone = calibrate(
            iter([error[i] for i in split]), iter([ones[i] for i in split]), guarantee=rule
        )
        assert scale == alone.scale


def test_an_own_pair_is_named_when_it_does_not_carry():
    with pytest.raises(
        InfeasibleError,
        match=r"Ranks\(point=900, function=54\) does not carry the guarantee with 60 functions of "
        "1000 points: function must be 55 to 60",
    ):
        calibrate(ONES, ONES, 0.1, 0.1, ranks=Ranks(900, 54))
    with pytest.raises(InfeasibleError, match="take a larger point rank"):
        calibrate(ONES, ONES, 0.1, 0.1, ranks=Ranks(899, 60))
    with pytest.raises(ValueError, match="fits one number of points, the functions have 40 to 50"):
        calibrate(RAGGED, RAGGED, 0.2, 0.2, ranks=Ranks(40, 60))
    assert calibrate(ONES, ONES, 0.1, 0.1, ranks=Ranks(1000, 60)).ranks == Ranks(1000, 60)


# --- what a file may claim -------------------------------------------------------------------


def claimed(**changes):
    """The JSON of a calibration of 60 functions of 1000 points, with (900, 55), changed."""
    content = json.loads(calibrate(ONES, ONES, 0.1, 0.1).to_json(scores=False))
    return json.dumps(content | changes)


def test_pairs_on_the_boundary():
    for point, function in ((900, 55), (1000, 60), (900, 60), (1000, 55)):
        text = claimed(ranks={"point": point, "function": function})
        assert Calibration.from_json(text).ranks == Ranks(point, function)
    for point, function, said in (
        (899, 60, "do not carry the guarantee"),
        (900, 54, "do not carry the guarantee"),
        (1001, 60, "ranks.point = 1001 does not fit 1000 points"),
        (900, 61, "ranks.function = 61 exceeds the 60 functions"),
        (0, 60, "ranks.point = 0 must"),
        (900, 0, "ranks.function = 0 must"),
        (None, 55, r"ranks = Ranks\(point=None, function=55\) do not fit .* weighted = False"),
    ):
        with pytest.raises(ValueError, match=said):
            Calibration.from_json(claimed(ranks={"point": point, "function": function}))


def test_claims_of_functions_with_different_numbers_of_random_points():
    """They say j; what follows from it is checked, and what was fixed beforehand too."""
    fixed = calibrate(RAGGED, RAGGED, 0.2, 0.2, "iid", misses=8)
    free = calibrate(RAGGED, RAGGED, 0.2, 0.2, "iid")
    assert (fixed.ranks, free.ranks) == (Ranks(34, 53), Ranks(35, 51))
    for cal in (fixed, free):
        again = Calibration.from_json(cal.to_json())
        assert again == cal
        assert again.rule.misses == cal.rule.misses
    # Without misses in the file any j is as good as another, with the k that belongs to it.
    Calibration.from_json(replace(free, ranks=fixed.ranks).to_json())
    for wrong in (
        replace(fixed, ranks=free.ranks),
        replace(free, ranks=Ranks(34, 51)),
        replace(free, ranks=Ranks(36, 51)),
        replace(free, ranks=Ranks(None, 51)),
        replace(free, ranks=Ranks(40, 48)),
        replace(free, ranks=Ranks(35, 53)),
    ):
        with pytest.raises(ValueError, match="do not carry the guarantee"):
            Calibration.from_json(wrong.to_json())
    coarse = [np.ones(m) for m in (1, *(50,) * 59)]
    cal = calibrate(coarse, coarse, 0.2, 0.2, "iid")
    assert cal.ranks == Ranks(None, 51)
    assert Calibration.from_json(cal.to_json()) == cal


def test_misses_fix_the_rule_where_all_functions_are_alike():
    error = np.random.default_rng(3).random((60, 50))
    cal = calibrate(error, np.ones((60, 50)), 0.2, 0.2, "iid", misses=9)
    assert cal.ranks == Ranks(43, 52)
    assert cal.scale == np.sort(np.sort(error, axis=1)[:, 42])[51]
    assert calibrate(iter(error), iter(np.ones((60, 50))), 0.2, 0.2, "iid", misses=9) == cal
    assert Calibration.from_json(cal.to_json()) == cal
    splits = [np.arange(60), np.arange(59, -1, -1)]
    rule = Fraction(0.2, 0.2, "iid", misses=9)
    both = calibrate_splits(error, np.ones((60, 50)), rule, splits)
    assert both.tolist() == [cal.scale, cal.scale]
    with pytest.raises(ValueError, match="do not carry"):
        Calibration.from_json(replace(cal, ranks=Ranks(42, 52)).to_json())


@pytest.mark.parametrize("streamed", [False, True])
def test_too_many_functions_of_too_few_points(streamed):
    """Misses = 10 of 60: nine functions may have no score, and are among the largest."""

    def scale(few, **more):
        sizes = (1,) * few + (50,) * (60 - few)
        functions = [np.arange(1.0, m + 1) for m in sizes]
        error, ones = (iter(x) if streamed else x for x in (functions, [e**0 for e in functions]))
        return calibrate(error, ones, 0.2, 0.2, "iid", repeated="allow", **more).scale

    assert scale(9) == 44
    with pytest.raises(InfeasibleError, match=r"^10 of 60 functions have too few points") as why:
        scale(10)
    assert str(why.value) == (
        "10 of 60 functions have too few points for a score, at most 9 may with misses = 10: fix "
        "fewer misses before another set is seen, or for this one if numbers of points tell "
        "nothing of the functions. Not feasible with 60 calibration functions of 1 points each, "
        "alpha = 0.2, delta = 0.2, sampling = 'iid', misses = 10. What would be: at least 249 "
        "functions, or at least 8 points per function, "
        "or alpha of at least 0.82, or delta of at least 0.82."
    )
    with pytest.raises(InfeasibleError, match=r"^Not feasible with 60 .* 1 points.*misses = 13"):
        scale(1, misses=13)
    assert scale(9, misses=10) == 44
    with pytest.raises(InfeasibleError, match=r"^9 of 60 .* at most 8 may with misses = 9"):
        scale(9, misses=9)


def test_claims_with_weights_or_different_numbers_of_points():
    weighted = {"weighted": True, "ranks": {"point": None, "function": 55}}
    assert Calibration.from_json(claimed(**weighted)).weighted
    weighted["ranks"] = {"point": None, "function": 54}
    with pytest.raises(ValueError, match="do not carry"):
        Calibration.from_json(claimed(**weighted))
    ragged = {"points_max": 1001, "ranks": {"point": 1, "function": 55}}
    assert Calibration.from_json(claimed(**ragged)).points_max == 1001
    ragged["ranks"] = {"point": 1, "function": 54}
    with pytest.raises(ValueError, match="do not carry"):
        Calibration.from_json(claimed(**ragged))
    few = json.loads(claimed(functions=3, points_max=1001, ranks={"point": 1, "function": 3}))
    with pytest.raises(ValueError, match="do not carry"):
        Calibration.from_json(json.dumps(few))


def test_weights_with_random_points_are_no_claim():
    content = json.loads(claimed(weighted=True, ranks={"point": None, "function": 55}))
    content["guarantee"]["sampling"] = "iid"
    with pytest.raises(ValueError, match="weights go with sampling='grid', got sampling='iid'"):
        Calibration.from_json(json.dumps(content))


def test_confidence_counts_in_a_claim():
    cal = calibrate(ONES, ONES, 0.1, 0.1, confidence=0.8)
    assert cal.ranks.function == 57
    ragged = replace(cal, points_max=1001, ranks=Ranks(900, 56), scores=None)
    with pytest.raises(ValueError, match="do not carry"):
        Calibration.from_json(ragged.to_json())
    assert Calibration.from_json(replace(ragged, ranks=Ranks(900, 57)).to_json())


@pytest.mark.parametrize(
    ("sampling", "sizes"), [("grid", (30, 40) * 20), ("grid", (30,) * 40), ("iid", (30,) * 40)]
)
def test_sets_with_one_pair_are_not_solved_one_by_one(monkeypatch, sampling, sizes):
    monkeypatch.setattr(Fraction, "solve", lambda *_: pytest.fail("solved one by one"))
    scores = np.random.default_rng(0).random(40)
    splits = np.array([np.arange(20), np.arange(20, 40)])
    rule = Fraction(0.2, 0.2, sampling)
    found = rule.scales(Evidence(np.array(sizes), scores), splits)
    j = rule.ranks_for(20, 30).function
    np.testing.assert_array_equal(found, np.sort(scores[splits], axis=1)[:, j - 1])


def test_a_single_set_and_a_stream_that_keeps_all_candidates():
    rng = np.random.default_rng(2)
    error, ones = rng.standard_normal((40, 30)), np.ones((40, 30))
    rule, splits = Fraction(0.2, 0.2, "iid"), [np.arange(30)]
    alone = calibrate(error[:30], ones[:30], guarantee=rule).scale
    assert calibrate_splits(error, ones, rule, splits).tolist() == [alone]
    assert calibrate_splits(iter(error), iter(ones), rule, splits).tolist() == [alone]
