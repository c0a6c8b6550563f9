"""One λ̂ for each group is what the group's functions give by themselves."""

import json

import numpy as np
import pytest

import uqno
from tests.extending.own_expected_share import ExpectedShare
from uqno.conformal import Calibration, GroupedCalibration, by_group, guarantees
from uqno.conformal.calibration import calibrate_groups, collect_groups
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.groups import GroupCollector, Remembered, Some, largest_of
from uqno.conformal.guarantees.contract import Facts
from uqno.conformal.membership import memberships, names_of
from uqno.conformal.profile import concatenate, profile, profile_ranks
from uqno.conformal.scores import blocks
from uqno.conformal.stream import FunctionStream, Stream

RNG = np.random.default_rng(0)
N, M = 240, 30
ERROR = RNG.standard_normal((N, M)) * np.exp(RNG.standard_normal((N, 1)))
ONES = np.ones((N, M))
LABELS = np.array(["van", "estate", "saloon"])[RNG.integers(0, 3, N)]


def alone(mask, **options):
    return uqno.calibrate(ERROR[mask], ONES[mask], **options)


def same(one: Calibration, other: Calibration) -> None:
    assert (one.scale, one.ranks, one.functions, one.rule) == (
        other.scale, other.ranks, other.functions, other.rule,
    )  # fmt: skip
    np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.1, "delta": 0.1},
        {"alpha": 0.2, "delta": 0.1, "sampling": "iid"},
        {"alpha": 0.2, "delta": 0.2, "confidence": 0.9},
        {"guarantee": guarantees.Nothing()},
        {"guarantee": guarantees.Quantity(0.1)},
    ],
)
def test_each_group_is_calibrated_as_if_alone(options):
    made = uqno.calibrate(ERROR, ONES, groups=LABELS, **options)
    assert list(made) == ["estate", "saloon", "van"]
    assert len(made) == 3
    for name in made:
        same(made[name], alone(name == LABELS, **options))
        assert made[name].group == name


def test_weights_streams_profiles_and_lists():
    weights = RNG.uniform(size=(N, M))
    made = uqno.calibrate(ERROR, ONES, 0.1, 0.1, weights=weights, groups=LABELS)
    van = LABELS == "van"
    same(made["van"], alone(van, alpha=0.1, delta=0.1, weights=weights[van]))
    streamed = uqno.calibrate(
        FunctionStream((e, E, None) for e, E in zip(ERROR, ONES, strict=True)),
        alpha=0.1, delta=0.1, groups=[*LABELS],
    )  # fmt: skip
    same(streamed["van"], alone(van, alpha=0.1, delta=0.1))
    ranks = profile_ranks(M)
    kept = concatenate([profile(e, E, ranks) for e, E in zip(ERROR, ONES, strict=True)])
    same(uqno.calibrate(kept, None, 0.1, 0.1, groups=LABELS)["van"], streamed["van"])
    sizes = RNG.integers(20, M, N)
    mixed = [e[:m] for e, m in zip(ERROR, sizes, strict=True)]
    ones = [np.ones(m) for m in sizes]
    drawn = uqno.calibrate(mixed, ones, 0.3, 0.2, "iid", groups=LABELS)
    listed = [i for i in range(N) if van[i]]
    same(drawn["van"], uqno.calibrate([mixed[i] for i in listed], [ones[i] for i in listed],
                                      0.3, 0.2, "iid"))  # fmt: skip
    by_draw = uqno.calibrate(mixed, ones, 0.3, 0.2, "iid", mixed="subsample", groups=LABELS, seed=1)
    assert by_draw["van"].functions == van.sum()
    iterators = uqno.calibrate(iter(ERROR), iter(ONES), 0.3, 0.2, "iid", groups=LABELS)
    assert iterators["van"].functions == van.sum()


def test_several_guarantees_in_one_pass():
    rules = [guarantees.Fraction(a, 0.1) for a in (0.3, 0.05, 0.1)]
    for rule, made in zip(rules, calibrate_groups(ERROR, ONES, rules, LABELS), strict=True):
        same(made["saloon"], alone(LABELS == "saloon", guarantee=rule))
    grown: list = []
    collectors = [GroupCollector(rule, Facts(None, None, False), grown, True) for rule in rules]
    assert collectors[0].ranks(M) is None
    with pytest.raises(ValueError, match="none of the 0 functions"):
        collectors[0].evidences()
    with pytest.raises(NotImplementedError):
        collectors[0].evidence()


def test_labels_that_come_while_functions_are_read():
    grown = []

    def functions():
        for e, label in zip(ERROR, LABELS.tolist(), strict=True):
            grown.append((label,))
            yield e, np.ones(M), None

    rule = guarantees.Fraction(0.1, 0.1)
    (found,), _ = collect_groups(FunctionStream(functions()), None, [rule], grown, grows=True)
    for name, evidence in found.items():
        assert rule.solve(evidence).scale == alone(name == LABELS, alpha=0.1, delta=0.1).scale


def test_guarantees_that_see_all_ratios_and_ask_for_names():
    made = uqno.calibrate(ERROR, ONES, guarantee=ExpectedShare(alpha=0.2), groups=LABELS)
    for name in made:
        same(made[name], alone(name == LABELS, guarantee=ExpectedShare(alpha=0.2)))
    (block,) = blocks(Stream(ERROR[:4], ONES[:4]))
    some = Some(block, Remembered(block), np.array([0, 2]))
    assert list(some.names()) == ["function 0", "function 2"]
    assert len(some) == 2
    some.expect(np.array([3]))
    np.testing.assert_array_equal(
        some.scores(np.array([3]))[:, 0], np.sort(np.abs(ERROR[[0, 2]]), axis=1)[:, 2]
    )


def test_ranks_that_are_lower_than_expected_are_looked_up_again():
    """Two streamed guarantees of independent points ask for different ranks of the same block."""
    rules = [guarantees.Fraction(a, 0.2, "iid") for a in (0.1, 0.5)]
    stream = FunctionStream((e, E, None) for e, E in zip(ERROR, ONES, strict=True))
    for rule, made in zip(rules, calibrate_groups(stream, None, rules, LABELS), strict=True):
        one = FunctionStream(
            (e, np.ones(M), None) for e, g in zip(ERROR, LABELS, strict=True) if g == "van"
        )
        same(made["van"], uqno.calibrate(one, guarantee=rule))


def test_classes_that_overlap_take_the_largest_scale():
    large = np.abs(ERROR).mean(axis=1) > 1
    marks = {"large": large, "first": np.arange(N) < 100}
    made = uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=marks)
    for name, inside in marks.items():
        same(made[name], alone(inside, alpha=0.1, delta=0.1))
    assert made[{"large", "first"}].scale == max(c.scale for c in made.values())
    both = [{"large"} if x else None for x in large]
    same(uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=both)["large"], made["large"])
    tuples = [("large",) if x else () for x in large]
    same(uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=tuples)["large"], made["large"])
    scales = made.scales([("large", "first"), "first"])
    assert scales.tolist() == [made["large"].scale, made["first"].scale]


def test_coverage_by_group_shows_the_worst():
    made = uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=LABELS)
    shares = made.coverage(ERROR, ONES, LABELS)
    for name, share in shares.items():
        np.testing.assert_array_equal(
            share, made[name].coverage(ERROR[name == LABELS], ONES[name == LABELS])
        )
    percentages = {name: (share >= 0.9).mean() for name, share in shares.items()}
    assert min(percentages.values()) >= 0.9
    assert by_group(np.arange(3), ["b", "a", "b"])["b"].tolist() == [0, 2]


def test_they_are_read_again(tmp_path):
    made = uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=LABELS)
    again = GroupedCalibration.from_json(made.to_json())
    assert dict(again) == dict(made)
    assert again == made
    assert json.loads(made.to_json(scores=False))["groups"][0]["scores"] is None
    assert Calibration.from_json(made["van"].to_json()) == made["van"]
    assert made["van"].guarantee.startswith("For new functions of group 'van', from those of it")
    assert made["van"].promise.endswith("in group 'van'")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "no JSON"),
        ("[]", "expected JSON with format"),
        ('{"format": "uqno.calibration by group", "version": 2}', "and 2"),
        ('{"format": "uqno.calibration by group", "version": 1}', "must hold a list"),
        ('{"format": "uqno.calibration by group", "version": 1, "groups": []}', "must hold a list"),
    ],
)
def test_other_files_are_refused(content, message):
    with pytest.raises(ValueError, match=message):
        GroupedCalibration.from_json(content)


def test_groups_without_or_with_the_same_name_are_refused():
    made = uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=LABELS)
    content = json.loads(made.to_json())
    content["groups"][0]["group"] = "van"
    with pytest.raises(ValueError, match="names that differ"):
        GroupedCalibration.from_json(json.dumps(content))
    del content["groups"][0]["group"]
    with pytest.raises(ValueError, match="names that differ"):
        GroupedCalibration.from_json(json.dumps(content))
    content["groups"][0]["group"] = 3
    with pytest.raises(ValueError, match="group = 3 in the calibration must be text"):
        GroupedCalibration.from_json(json.dumps(content))
    content["groups"][0] |= {"group": "estate", "jointly": "all"}
    with pytest.raises(ValueError, match="jointly = 'all' in the calibration must be a list"):
        GroupedCalibration.from_json(json.dumps(content))


# --- bad input ---------------------------------------------------------------------------------


def test_groups_that_are_too_small_are_all_named():
    labels = np.where(np.arange(N) < 5, "rare", "usual")
    labels[5:9] = "odd"
    said = r"'odd' has 4 functions and needs 19; 'rare' has 5 functions and needs 19\. Add"
    with pytest.raises(InfeasibleError, match=said):
        uqno.calibrate(ERROR, ONES, 0.1, 0.05, groups=labels)
    stream = FunctionStream((e, E, None) for e, E in zip(ERROR, ONES, strict=True))
    with pytest.raises(InfeasibleError, match=said):
        uqno.calibrate(stream, alpha=0.1, delta=0.05, groups=labels)
    one = ["single", *["usual"] * (N - 1)]
    for rule in (guarantees.Nothing(), guarantees.Fraction(0.1, 0.1, "iid")):
        with pytest.raises(InfeasibleError, match="'single' has 1 functions and needs"):
            uqno.calibrate(iter(ERROR), iter(ONES), guarantee=rule, groups=one)
    zero = np.where(LABELS[:, None] == "van", 0.0, ONES)
    with pytest.raises(InfeasibleError, match=r"group 'van': more than .* zero uncertainty"):
        uqno.calibrate(ERROR, zero, 0.1, 0.1, groups=LABELS)


def test_points_that_no_number_of_functions_helps():
    with pytest.raises(InfeasibleError, match="cannot do with any number of them"):
        uqno.calibrate(
            ERROR[:, :2], ONES[:, :2], 0.001, 0.05, "hoeffding", groups=LABELS
        )  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["van"] * 3, "groups tell of 3 functions, and there are 240"),
        ("van", "must hold one label for each function"),
        (7, "must hold one label for each function"),
        ([1.5] * N, "group 1.5 must be a text"),
        ([""] * N, "group '' must be a text"),
        ([None] * N, "none of the 240 functions is in a group"),
        ({"van": [1] * N}, "dtype int64: expected one boolean"),
        ({"van": [[True]]}, r"shape \(1, 1\)"),
        ({"van": [True], "estate": [True, False]}, "expected as many functions"),
        ({}, "groups tell of 0 functions"),
    ],
)
def test_groups_that_do_not_match(groups, message):
    with pytest.raises(ValueError, match=message):
        uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=groups)


def test_streams_of_other_lengths_than_their_labels():
    for labels in (LABELS[:-1], [*LABELS, "van"]):
        stream = FunctionStream((e, E, None) for e, E in zip(ERROR, ONES, strict=True))
        with pytest.raises(ValueError, match="groups tell of"):
            uqno.calibrate(stream, alpha=0.1, delta=0.1, groups=labels)


def test_a_group_that_was_not_calibrated_has_no_scale():
    made = uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=LABELS)
    with pytest.raises(ValueError, match="group 'truck' is not among the calibrated ones"):
        made["truck"]
    with pytest.raises(ValueError, match="group None is not among"):
        largest_of(tuple(made.values()), ())


def test_labels_of_whole_numbers_are_names():
    assert names_of(np.int64(3)) == ("3",)
    assert memberships(np.array([1, 2])) == [("1",), ("2",)]
    assert memberships([{"b", "a"}, ["a"], None]) == [("a", "b"), ("a",), ()]
    with pytest.raises(ValueError, match="shift= weighs one set"):
        uqno.calibrate(ERROR, ONES, 0.1, 0.1, groups=LABELS, shift=np.ones(N))
