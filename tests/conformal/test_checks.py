"""Each kind of bad input has an error of its own: the value, the bound, the remedy."""

import re
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from uqno import InfeasibleError, calibrate
from uqno.conformal import Ranks, calibrate_all, checks
from uqno.conformal.selection import LARGE

GOOD = np.ones((30, 8))


def with_value(value, at=(3, 5), shape=(30, 8)):
    array = np.ones(shape)
    array[at] = value
    return array


BAD = [
    (with_value(np.nan), GOOD, {}, "error of function 3 is nan at point 5"),
    (with_value(np.inf), GOOD, {}, "error of function 3 is inf at point 5"),
    (with_value(-np.inf), GOOD, {}, "error of function 3 is inf at point 5.*finite"),
    (GOOD, with_value(np.nan), {}, "uncertainty of function 3 is nan at point 5"),
    (GOOD, with_value(np.inf), {}, "uncertainty of function 3 is inf at point 5"),
    (GOOD, with_value(-2.0), {}, "uncertainty of function 3 is -2.0 at point 5.*softplus"),
    (with_value(np.nan, (3, 5, 1), (30, 8, 2)), GOOD, {}, "error of function 3 is nan"),
    (np.empty((0, 8)), np.empty((0, 8)), {}, "calibration set is empty"),
    ([], [], {}, "calibration set is empty"),
    (lambda: iter([]), lambda: iter([]), {}, "calibration set is empty"),
    (GOOD[:1], GOOD[:1], {}, "holds 1 function, at least 2"),
    (lambda: iter(GOOD[:1]), lambda: iter(GOOD[:1]), {}, "holds 1 function, at least 2"),
    (np.empty((5, 0)), np.empty((5, 0)), {}, "has no points"),
    ([[1.0], []] * 5, [[1.0], []] * 5, {}, "function 1 has no points"),
    (GOOD, GOOD[:, :7], {}, r"shape \(8,\), uncertainty \(7,\)"),
    (GOOD, GOOD[:20], {}, "30 of error, 20 of uncertainty"),
    (lambda: iter(GOOD), lambda: iter(GOOD[:20]), {}, "uncertainty ends after 20 functions"),
    (lambda: iter(GOOD[:20]), lambda: iter(GOOD), {}, "error ends after 20 functions"),
    (GOOD[0], GOOD[0], {}, r"shape \(8,\), expected \(functions, points\)"),
    ([1.0] * 30, [1.0] * 30, {}, "uncertainty of function 0 is a single number"),
    (3.0, GOOD, {}, "error must hold functions, got float"),
    (GOOD.astype(complex), GOOD, {}, "dtype complex128.*two components"),
    (np.full((30, 8), "x"), GOOD, {}, "expected real numbers"),
    (np.ma.masked_less(with_value(-1), 0), GOOD, {}, "masked values"),
    (GOOD, GOOD, {"alpha": 0.0}, "alpha = 0.0 must lie strictly between 0 and 1.*1/m"),
    (GOOD, GOOD, {"alpha": 1.0}, "alpha = 1.0"),
    (GOOD, GOOD, {"delta": 0}, "delta = 0 must lie"),
    (GOOD, GOOD, {"delta": 2}, "delta = 2 must lie"),
    (GOOD, GOOD, {"confidence": 0}, "confidence = 0 must lie"),
    (GOOD, GOOD, {"sampling": "all"}, "sampling = 'all' must be one of"),
    (GOOD, GOOD, {"mixed": "all"}, "mixed = 'all' must be one of"),
    (GOOD, GOOD, {"mixed": "subsample"}, "on a grid each function's coverage is known"),
    (
        lambda: iter(GOOD),
        lambda: iter(GOOD),
        {"mixed": "subsample", "sampling": "iid"},
        "smallest number of points",
    ),
    (GOOD, GOOD, {"weights": -np.ones(8)}, "weights of function 0 is -1.0 at point 0"),
    (GOOD, GOOD, {"weights": np.zeros(8)}, "sum to zero"),
    (GOOD, GOOD, {"weights": np.full(8, np.nan)}, "weights of function 0 is nan"),
    (GOOD, GOOD, {"weights": np.ones(7)}, "weights of function 0 have 7 points, expected 8"),
    (GOOD, GOOD, {"weights": list(np.ones((29, 8)))}, "weights ends after 29 functions"),
    (GOOD, GOOD, {"weights": list(np.ones((31, 8)))}, "31 of weights, 30 of uncertainty"),
    (GOOD, GOOD, {"weights": np.ones(8), "sampling": "iid"}, "weights go with sampling='grid'"),
]


@pytest.mark.parametrize(
    ("error", "uncertainty", "more", "said"), BAD, ids=[re.sub(r"\W+", " ", b[3]) for b in BAD]
)
def test_bad_input(error, uncertainty, more, said):
    error, uncertainty = (x() if callable(x) else x for x in (error, uncertainty))
    with pytest.raises(ValueError, match=said) as raised:
        calibrate(error, uncertainty, **{"alpha": 0.1, "delta": 0.1, **more})
    assert not isinstance(raised.value, InfeasibleError)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"weights": []}, "weights are empty"),
        ({"weights": 1.0}, "one number a point, got 1.0"),
        ({"ranks": (3, 28)}, "must be a uqno.conformal.Ranks"),
        ({"ranks": Ranks(8, 29), "weights": np.ones(8)}, "leave ranks out"),
        ({"ranks": Ranks(8, 29.0)}, "ranks.function = 29.0 must be a whole number"),
        ({"ranks": Ranks(7.9, 29)}, "ranks.point = 7.9 must be a whole number"),
        ({"weights": np.array([1e308] * 7 + [1.0])}, "have an infinite sum: divide them"),
    ],
)
def test_bad_weights_and_ranks(more, said):
    with pytest.raises(ValueError, match=said):
        calibrate(GOOD, GOOD, 0.1, 0.1, **more)


def test_no_levels():
    with pytest.raises(ValueError, match="no guarantee to calibrate for"):
        calibrate_all(GOOD, GOOD, [])


def test_tensors_in_lists():
    import torch

    tensors = [torch.ones(5)] * 30
    assert calibrate(tensors, tensors, 0.1, 0.1).scale == 1.0
    trained = [torch.ones(5, requires_grad=True)] * 30
    with pytest.raises(ValueError, match=r"cannot be read as an array.*detach"):
        calibrate(trained, tensors, 0.1, 0.1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_error_in_a_large_function(value):
    error, uncertainty = np.ones((30, LARGE + 1), np.float32), np.ones((30, LARGE + 1), np.float32)
    error[7, 11] = value
    with pytest.raises(ValueError, match=r"error of function 7 is .* at point 11"):
        calibrate(error, uncertainty, 0.1, 0.1)
    with pytest.raises(ValueError, match=r"error of function 7 is .* at point 11"):
        calibrate(iter(error), iter(uncertainty), 0.1, 0.1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_bad_radius_in_a_large_function(value):
    error, uncertainty = np.ones((30, LARGE + 1), np.float32), np.ones((30, LARGE + 1), np.float32)
    uncertainty[7, 11] = value
    with pytest.raises(ValueError, match=r"uncertainty of function 7 is .* at point 11"):
        calibrate(error, uncertainty, 0.1, 0.1)


@pytest.mark.parametrize("sampling", ["grid", "iid", "hoeffding"])
@pytest.mark.parametrize("streamed", [False, True])
def test_too_few_functions(sampling, streamed):
    error = iter(GOOD) if streamed else GOOD
    uncertainty = iter(GOOD) if streamed else GOOD
    with pytest.raises(InfeasibleError, match="Not feasible with 30 calibration functions of 8"):
        calibrate(error, uncertainty, 0.1, 0.01, sampling)


def test_infeasible_with_mixed_sizes():
    lists = [np.ones(m) for m in (8, 9) * 15]
    with pytest.raises(InfeasibleError, match="Not feasible with 30 calibration functions of 8"):
        calibrate(lists, lists, 0.1, 0.02, "iid")


def test_no_finite_scale():
    uncertainty = GOOD.copy()
    uncertainty[:10] = 0
    with pytest.raises(InfeasibleError, match=r"more than 2 of 30 functions have zero uncertainty"):
        calibrate(GOOD, uncertainty, 0.1, 0.1)


def test_integer_and_boolean_input_is_fine():
    whole = calibrate(GOOD.astype(int) * 3, GOOD.astype(np.uint8), 0.1, 0.1)
    assert whole.scale == 3.0
    assert calibrate(GOOD.astype(bool), GOOD, 0.1, 0.1).scale == 1.0


def test_foreign_byte_order_and_strides():
    rng = np.random.default_rng(0)
    error, uncertainty = rng.normal(size=(40, 30)), rng.uniform(1, 2, (40, 30))
    expected = calibrate(error, uncertainty, 0.1, 0.1)
    assert calibrate(error.astype(">f8"), np.asfortranarray(uncertainty), 0.1, 0.1) == expected
    assert calibrate(error[:, ::-1], uncertainty[:, ::-1], 0.1, 0.1) == expected


# --- one by one, with the whole text where values stand in it --------------------------------


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (
            lambda: checks.finite_error("f", with_value(np.nan)),
            "error of f is nan at point 29 (1 such of 240); errors must be finite: leave out the "
            "failed simulations or the masked points",
        ),
        (
            lambda: checks.finite_uncertainty("f", with_value(np.inf)),
            "uncertainty of f is inf at point 29 (1 such of 240); it must be a finite number ≥ 0",
        ),
        (
            lambda: checks.finite_uncertainty("f", -GOOD),
            "uncertainty of f is -1.0 at point 0 (240 such of 240); it must be ≥ 0: use a positive "
            "function of the network's output, such as softplus",
        ),
        (
            lambda: checks.weights("f", [np.inf, 1], 2),
            "weights of f is inf at point 0 (1 such of 2); weights must be finite numbers ≥ 0",
        ),
        (
            lambda: checks.weights("f", [1, -1], 2),
            "weights of f is -1.0 at point 1 (1 such of 2); weights are areas or shares: none may "
            "be negative",
        ),
        (
            lambda: checks.weights("f", [0, 0], 2),
            "weights of f sum to zero: at least one point must count",
        ),
        (lambda: checks.weights("f", [1, 1], 3), "weights of f have 2 points, expected 3"),
        (
            lambda: checks.weights("f", [1e308] * 9, 9),
            "weights of f have an infinite sum: divide them by the largest",
        ),
        (
            lambda: checks.share("alpha", 0),
            "alpha = 0 must lie strictly between 0 and 1; to cover every point of a grid of m "
            "points take any alpha below 1/m",
        ),
        (
            lambda: checks.share("alpha", 1),
            "alpha = 1 must lie strictly between 0 and 1; for example alpha=0.1",
        ),
        (
            lambda: checks.share("delta", "1/0"),
            "delta = '1/0' must lie strictly between 0 and 1; for example delta=0.1",
        ),
        (
            lambda: checks.share("delta", 0),
            "delta = 0 must lie strictly between 0 and 1; for example delta=0.1",
        ),
        (
            lambda: checks.count("n", 1, least=2),
            "n = 1 must be a whole number, at least 2 and at most 10^12",
        ),
        (lambda: checks.sampling("x"), "sampling = 'x' must be one of grid, iid, hoeffding"),
        (lambda: checks.mixed("x", "iid"), "mixed = 'x' must be one of own, subsample"),
        (
            lambda: checks.own_ranks(3),
            "ranks = 3 must be a uqno.conformal.Ranks(point, function)",
        ),
        (
            lambda: checks.own_ranks(Ranks(0, 1)),
            "ranks.point = 0 must be a whole number, at least 1 and at most 10^12",
        ),
        (
            lambda: checks.own_ranks(Ranks(1, 0)),
            "ranks.function = 0 must be a whole number, at least 1 and at most 10^12",
        ),
        (
            lambda: checks.indices_of("splits", np.array([0, 9]), 9),
            "splits name functions 0 … 9, expected 0 … 8",
        ),
        (
            lambda: checks.sorted_scores([2.0, 1.0], 2),
            "scores in the calibration have shape (2,), expected 2 numbers ≥ 0 in rising order",
        ),
        (lambda: checks.sorted_scores(3, 2), "scores in the calibration must be numbers"),
        (
            lambda: checks.named_arrays("x" * 100),
            f"details = '{'x' * 59} in the calibration must be an object",
        ),
        (
            lambda: checks.holds_functions("error", GOOD[0], (8,)),
            "error has shape (8,), expected (functions, points): one row per function; reshape a "
            "single point per function to (functions, 1)",
        ),
        (
            lambda: checks.shapes("f", (3,), ()),
            "uncertainty of f is a single number, expected one array of points per function; for "
            "one point per function use shape (functions, 1)",
        ),
        (lambda: checks.shapes("f", (3, 0), (3,)), "f has no points: error (3, 0), "
         "uncertainty (3,)"),
        (
            lambda: checks.shapes("f", (3, 2), (2,)),
            "error of f has shape (3, 2), uncertainty (2,): expected the same shape, or one more "
            "last axis in the error for the components of a vector",
        ),
        (
            lambda: checks.ends_together("weights", 3, True),
            "weights ends after 3 functions and the others go on: expected as many functions in "
            "each",
        ),
        (
            lambda: checks.point_rank(np.array([0, 3]), 5, "f"),
            "point rank [0 3] must lie in 1 … 5, the number of points of f",
        ),
        (
            lambda: checks.scale_for_each(np.ones(3), 2),
            "scale has 3 values, expected one number, or one for each function",
        ),
        (
            lambda: checks.same_number(error=3, weights=2),
            "expected as many functions in each, got 3 of error, 2 of weights",
        ),
        (
            lambda: checks.real("error", "f", np.array(["x"])),
            "error of f has dtype <U1, expected real numbers",
        ),
        (
            lambda: checks.real("error", "f", np.array([1j])),
            "error of f has dtype complex128, expected real numbers; pass real and imaginary part "
            "as two components",
        ),
        (
            lambda: checks.weights_design("iid"),
            "weights go with sampling='grid', got sampling='iid': points drawn from μ already "
            "carry μ; leave weights out, or treat the points as the domain with 'grid'",
        ),
    ],
)  # fmt: skip
def test_the_whole_message(check, said):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared as a whole
        check()
    assert str(raised.value) == said


def test_what_is_good_comes_back():
    assert checks.share("alpha", 0.1) == Fraction(1, 10)
    assert checks.count("n", np.int64(3)) == 3
    assert type(checks.count("n", np.int64(3))) is int
    assert checks.count("n", 10**12) == 10**12
    assert checks.count("n", 1) == 1
    assert checks.count("seed", 0, least=0) == 0
    assert checks.mixed("subsample", "iid") == "subsample"
    assert checks.mixed("own", "grid") == "own"
    assert checks.functions(2) == 2
    assert checks.shapes("f", (3,), (3,)) is False
    assert checks.shapes("f", (3, 2), (3,)) is True
    checks.own_ranks(Ranks(1, 1))
    for half in (SimpleNamespace(point=1), SimpleNamespace(function=1)):
        with pytest.raises(ValueError, match=r"must be a uqno.conformal.Ranks\(point, function\)"):
            checks.own_ranks(half)
    checks.weights_design("grid")
    checks.indices_of("splits", np.array([0, 8]), 9)
    checks.point_rank(np.array([1, 5]), 5, "f")
    checks.scale_for_each(np.array(1.0), 5)
    checks.scale_for_each(np.ones(5), 5)
    checks.scale_for_each(np.ones(5), 3, at_least=True)
    checks.same_number(error=3)
    with pytest.raises(ValueError, match="in rising order"):
        checks.sorted_scores([1, 3, 2], 3)
    np.testing.assert_array_equal(checks.sorted_scores([0, 1, 1, None], 4), [0, 1, 1, np.inf])
    np.testing.assert_array_equal(checks.weights("f", [[0, 1], [2, 3]], 4), [0, 1, 2, 3])
    assert checks.weights("f", np.ones(2, np.float32), 2).dtype == np.float64
    single, double = (np.float16, np.float32), (int, bool, np.uint8, ">f8")
    for given, wanted in [(x, np.float32) for x in single] + [(x, np.float64) for x in double]:
        assert checks.real("error", "f", np.ones(2, given)).dtype == wanted
    same = np.ones(3)
    assert checks.real("error", "f", same) is same
    unmasked = np.ma.masked_less(np.ones(3), 0)
    assert checks.real("error", "f", unmasked).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="functions = 1000000000001 must"):
        checks.count("functions", 10**12 + 1)
    for bad in (-1.0, np.nan, [1.0, -1.0], [[1.0]]):
        with pytest.raises(ValueError, match="scale = "):
            checks.scale(bad)
    assert checks.scale(0).shape == ()
    assert checks.scale([0, 1]).dtype == np.float64
