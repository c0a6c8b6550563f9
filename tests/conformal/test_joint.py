"""Several promises at once: the largest of scores divided by sizes that were fixed before."""

import numpy as np
import pytest

import uqno
from uqno.conformal import calibrate_jointly, guarantees
from uqno.conformal.joint import jointly, usual_size

RNG = np.random.default_rng(3)
N, M = 150, 20
ONES = np.ones((N, M))
P, T = (RNG.standard_normal((N, M)) * np.exp(RNG.standard_normal((N, 1))) for _ in range(2))
RULE = guarantees.Fraction(0.1, 0.1)


def test_the_scales_are_one_rank_of_the_largest_scores():
    sizes = {"p": 1.0, "T": 2.5}
    made = calibrate_jointly({"p": (P, ONES), "T": (T, ONES)}, sizes, RULE)
    scores = {n: uqno.conformal.function_scores(x, ONES, 18) for n, x in (("p", P), ("T", T))}
    largest = np.sort(np.maximum(scores["p"], scores["T"] / 2.5))
    j = made["p"].ranks.function
    assert j == uqno.calibrate(P, ONES, 0.1, 0.1).ranks.function
    for name, size in sizes.items():
        assert made[name].scale == pytest.approx(largest[j - 1] * size, rel=1e-14)
        assert made[name].jointly == ("p", "T")
        assert uqno.Calibration.from_json(made[name].to_json()) == made[name]
    hold = (scores["p"] <= made["p"].scale) & (scores["T"] <= made["T"].scale)
    assert hold.sum() == j  # rounding loses none
    assert made["p"].guarantee.endswith("This is promised of p and T all at once.")
    assert made["p"].promise.endswith(", p and T at once")


def test_one_variable_alone_is_the_paper_again():
    (made,) = calibrate_jointly({"p": (P, ONES)}, {"p": 1.0}, RULE).values()
    assert made.scale == pytest.approx(uqno.calibrate(P, ONES, 0.1, 0.1).scale, rel=1e-14)
    nought = calibrate_jointly({"p": (0 * P, ONES)}, {"p": 1.0}, RULE)
    assert nought["p"].scale == 0


def test_the_larger_rank_counts():
    rule = guarantees.Fraction(0.2, 0.2, "iid")
    both = {"p": (P, ONES), "T": (T[:, :8], ONES[:, :8])}
    apart = [uqno.calibrate(*x, guarantee=rule).ranks.function for x in both.values()]
    made = calibrate_jointly(both, {"p": 1.0, "T": 1.0}, rule)
    assert {one.ranks.function for one in made.values()} == {max(apart)}
    assert all(uqno.Calibration.from_json(x.to_json()) == x for x in made.values())


def test_usual_sizes():
    assert usual_size(np.arange(1, 11)) == 10
    assert usual_size([1.0, np.inf]) == 1
    assert usual_size([0.0, 0.0]) == 1
    assert usual_size([]) == 1


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"p": 1.0}, r"sizes are of \['p'\], expected one of each: \['T', 'p'\]"),
        ({"p": 1.0, "T": 0.0}, "size of T is 0.0"),
        ({"p": np.nan, "T": 1.0}, "size of p is nan"),
    ],
)
def test_sizes_that_are_none(sizes, message):
    with pytest.raises(ValueError, match=message):
        calibrate_jointly({"p": (P, ONES), "T": (T, ONES)}, sizes, RULE)


def test_parts_that_do_not_go_together():
    with pytest.raises(ValueError, match="expected as many functions"):
        calibrate_jointly({"p": (P, ONES), "T": (T[:-1], ONES[:-1])}, {"p": 1, "T": 1}, RULE)
    with pytest.raises(ValueError, match="has no scale that is a ranked score"):
        calibrate_jointly({"p": (P, ONES)}, {"p": 1}, guarantees.Nothing())
    (one,), _ = uqno.conformal.calibration.collect(P, ONES, [RULE])
    parts = {"p": (RULE, one), "q": (guarantees.Quantity(0.2), one)}
    with pytest.raises(ValueError, match="one delta and one confidence"):
        jointly(parts, {"p": 1.0, "q": 1.0})
