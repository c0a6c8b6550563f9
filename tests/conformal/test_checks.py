"""Each kind of bad input has an error of its own: the value, the bound, the remedy."""

import numpy as np
import pytest

from uqno import InfeasibleError, calibrate
from uqno.conformal import Ranks, calibrate_all
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
    ("error", "uncertainty", "more", "said"), BAD, ids=[b[3][:40] for b in BAD]
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
