"""A band says what the calibration says: radius, membership, shares, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.band.bands import (
    CAL,
    FACES,
    POINTS,
    every,
    geometries,
    line,
    plane,
    rng,
    scaled,
    surface,
    truth_of,
)
from uqno import calibrate
from uqno.band import Band
from uqno.conformal.guarantees import Fraction


def naive_inside(band, u):
    """Point by point, from the definition."""
    batch = band.is_batch
    center, uncertainty = (
        (band.center, band.uncertainty) if batch else (band.center[None], band.uncertainty[None])
    )
    u = np.reshape(u, center.shape)
    inside = np.zeros(uncertainty.shape, bool)
    for place in np.ndindex(uncertainty.shape):
        f, *x = place
        vector = np.array([u[(f, c, *x)] - center[(f, c, *x)] for c in range(center.shape[1])])
        scale = np.broadcast_to(band.applied_scale, len(center))[f]
        inside[place] = np.linalg.norm(vector) / uncertainty[place] <= scale
    return inside if batch else inside[0]


# --- what it is ------------------------------------------------------------------------------


@every
def test_radius_and_ends(make):
    band = make()
    np.testing.assert_array_equal(band.radius, 2.0 * band.uncertainty)
    assert band.guarantee == CAL.guarantee
    if band.channels == 1:
        center = band.center.reshape(band.uncertainty.shape)
        np.testing.assert_array_equal(band.lower, center - band.radius)
        np.testing.assert_array_equal(band.upper, center + band.radius)
    else:
        for end in ("lower", "upper"):
            with pytest.raises(ValueError, match="ball of radius `radius` around `center`"):
                getattr(band, end)


def test_the_promise_has_the_digits_of_the_guarantee():
    cal = replace(CAL, rule=Fraction(0.07, 0.07))
    promise = replace(plane(), calibration=cal).promise
    assert promise.startswith("covers ≥ 93 % of")
    assert promise.endswith("≥ 93 %")


def test_shapes_tell_a_batch_from_channels():
    """(3, 3, 3) may be three functions or three channels: the coordinates decide."""
    x = np.arange(3.0)
    one = Band(np.ones((3, 3, 3)), np.ones((3, 3)), CAL, (x, x))
    many = Band(np.ones((3, 3, 3)), np.ones((3, 3)), CAL, (x,))
    assert not one.is_batch
    assert (one.channels, one.points) == (3, (3, 3))
    assert many.is_batch
    assert (many.channels, many.points, len(many)) == (3, (3,), 3)


def test_bandwidth_is_the_mean_over_points_then_functions():
    assert plane().bandwidth == pytest.approx(2 * plane().uncertainty.mean())
    w = rng().uniform(size=(4, 5))
    expected = 2 * np.mean([np.average(s, weights=w) for s in plane(functions=3).uncertainty])
    assert plane(functions=3, weights=w).bandwidth == pytest.approx(expected)
    own = np.stack([w, 1 - w, np.eye(4, 5)])
    expected = 2 * np.mean(
        [np.average(s, weights=v) for s, v in zip(plane(functions=3).uncertainty, own, strict=True)]
    )
    assert plane(functions=3, weights=own).bandwidth == pytest.approx(expected)


@pytest.mark.parametrize("weights", [None, np.eye(4, 5), np.stack([np.eye(4, 5)] * 3)])
def test_a_function_of_a_batch(weights):
    batch = plane(channels=2, functions=3, weights=weights, name="v", component_names=("a", "b"))
    u = truth_of(batch)
    for i, one in enumerate(batch):
        assert not one.is_batch
        assert (one.name, one.component_names) == ("v", ("a", "b"))
        np.testing.assert_array_equal(one.center, batch.center[i])
        np.testing.assert_array_equal(one.contains(u[i]), batch.contains(u)[i])
        assert one.coverage(u[i]) == batch.coverage(u)[i]
    np.testing.assert_array_equal(batch[-1].uncertainty, batch.uncertainty[2])
    assert len(batch[1:]) == 2
    np.testing.assert_array_equal(batch[1:].center, batch.center[1:])
    with pytest.raises(IndexError, match="function 3 is not among the 3"):
        batch[3]


def test_geometries_of_a_batch_go_with_their_function():
    np.testing.assert_array_equal(geometries()[1].coordinates, 2 * POINTS)
    np.testing.assert_array_equal(geometries()[1:].coordinates, np.stack([2 * POINTS, 3 * POINTS]))


def test_one_function_is_no_batch():
    with pytest.raises(TypeError, match="no length"):
        len(plane())
    with pytest.raises(TypeError, match="no parts"):
        plane()[0]


def test_repr_is_short_and_says_what_matters():
    text = repr(plane(functions=3, units="Pa", name="p"))
    assert "Band of p [Pa]: 3 functions, 4 × 5 grid" in text
    assert "covers ≥ 90 % of the function's grid points with probability ≥ 98 %" in text
    assert len(text.splitlines()) == 4
    assert "surface of 4 points and 4 triangles" in repr(surface())
    assert "2 components" in repr(plane(channels=2))
    confident = replace(line(), calibration=replace(CAL, rule=Fraction(0.1, 0.02, confidence=0.95)))
    assert "for ≥ 98 % of new functions, confidence 95 %" in repr(confident)


# --- a scale for each function ----------------------------------------------------------------

SCALES = np.array([0.5, 2.0, 3.0])


@pytest.mark.parametrize("weights", [None, np.eye(4, 5), np.stack([np.eye(4, 5)] * 3)])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_scale_for_each_function(channels, weights):
    """The batch is the bands of its functions, each with its own scale in the calibration."""
    batch = plane(channels, functions=3, weights=weights, scale=SCALES)
    u = truth_of(batch)
    common = replace(batch, scale=None)
    each = [replace(common[i], calibration=scaled(float(s))) for i, s in enumerate(SCALES)]
    inside = np.stack([one.contains(u[i]) for i, one in enumerate(each)])
    assert 0 < inside.mean() < 1
    np.testing.assert_array_equal(batch.contains(u), inside)
    np.testing.assert_array_equal(batch.contains(u), naive_inside(batch, u))
    np.testing.assert_array_equal(batch.radius, np.stack([one.radius for one in each]))
    shares = np.array([one.coverage(u[i]) for i, one in enumerate(each)])
    np.testing.assert_array_equal(batch.coverage(u), shares)
    assert batch.bandwidth == pytest.approx(np.mean([one.bandwidth for one in each]), rel=1e-14)
    if channels == 1:
        np.testing.assert_array_equal(batch.lower, np.stack([one.lower for one in each]))
        np.testing.assert_array_equal(batch.upper, np.stack([one.upper for one in each]))
    for i, one in enumerate(batch):
        assert one.applied_scale == SCALES[i]
        np.testing.assert_array_equal(one.radius, each[i].radius)
    np.testing.assert_array_equal(batch[1:].applied_scale, SCALES[1:])
    np.testing.assert_array_equal(batch[1:].contains(u[1:]), inside[1:])


def test_a_scale_in_single_precision_and_of_all_functions():
    band = plane(functions=3)
    low = replace(band, uncertainty=band.uncertainty.astype(np.float32), scale=SCALES)
    assert low.radius.dtype == np.float32
    np.testing.assert_array_equal(low[1].radius, low.radius[1])
    assert replace(band, scale=np.float64(3)).applied_scale == 3
    np.testing.assert_array_equal(replace(band, scale=3).radius, 3 * band.uncertainty)
    assert replace(band, calibration=scaled(5.0)).applied_scale == 5  # None follows the calibration


# --- against the truth -----------------------------------------------------------------------


@every
def test_contains_against_the_definition(make):
    band = make()
    u = truth_of(band)
    inside = band.contains(u)
    assert 0 < inside.mean() < 1
    np.testing.assert_array_equal(inside, naive_inside(band, u))
    if band.channels == 1:
        np.testing.assert_array_equal(band.contains(u.reshape(band.uncertainty.shape)), inside)


@every
@pytest.mark.parametrize("weighted", [False, True])
def test_coverage_against_the_definition(make, weighted):
    band = make()
    weights = rng().uniform(size=band.points)
    band = replace(band, weights=weights) if weighted else band
    u = truth_of(band)
    inside = band.contains(u).reshape(-1, weights.size)
    naive = np.average(inside, axis=1, weights=weights.ravel() if weighted else None)
    if band.is_batch:
        np.testing.assert_allclose(band.coverage(u), naive, rtol=1e-14)
    else:
        assert isinstance(band.coverage(u), float)
        assert band.coverage(u) == pytest.approx(naive[0], rel=1e-14)


single = st.floats(2.0**-20, 2.0**20, width=32)


@given(single, single, single)
def test_the_calibration_point_itself_is_inside(u, center, uncertainty):
    """λ̂ is one of the float64 ratios. Comparing the error with λ̂ · E, or a difference rounded to
    the float32 of the arrays, would lose some of them."""
    scale = abs(u - center) / uncertainty
    arrays = np.float32([[center]]), np.float32([uncertainty])
    assert Band(*arrays, scaled(scale), ([0.0],)).contains(np.float32([[u]])).all()
    if scale > 0:
        less = scaled(float(np.nextafter(scale, 0)))
        assert not Band(*arrays, less, ([0.0],)).contains(np.float32([[u]])).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 2])
def test_bands_of_the_calibration_functions_cover_what_the_calibration_found(dtype, channels):
    """The j-th best function is covered to its k-th point, exactly, in either precision."""
    r = rng()
    center = r.normal(size=(60, channels, 30)).astype(dtype)
    u = (center + r.normal(size=center.shape)).astype(dtype)
    uncertainty = r.uniform(0.5, 2, (60, 30)).astype(dtype)
    error = np.moveaxis(np.subtract(u, center, dtype=np.float64), 1, -1)
    cal = calibrate(error, uncertainty, alpha=0.1, delta=0.1)
    band = Band(center, uncertainty, cal, (np.arange(30.0),))
    assert band.center.dtype == band.radius.dtype == dtype
    np.testing.assert_array_equal(band.coverage(u), cal.coverage(error, uncertainty))
    enough = np.count_nonzero(band.contains(u).sum(axis=1) >= cal.ranks.point)
    assert enough == cal.ranks.function


def test_a_zero_uncertainty_contains_only_the_center():
    band = Band([[1.0, 1.0]], [0.0, 0.0], CAL, ([0.0, 1.0],))
    np.testing.assert_array_equal(band.contains([[1.0, 1.1]]), [True, False])


def test_padding_of_weight_zero_does_not_count():
    padded = geometries(weights=np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]))
    u = truth_of(padded)
    assert padded.coverage(u)[2] == padded.contains(u)[2, :2].mean()


def test_truths_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"u has shape \(1, 4, 6\).*center \(1, 4, 5\)"):
        plane().contains(np.zeros((1, 4, 6)))
    with pytest.raises(ValueError, match="expected the same"):
        plane(channels=2).coverage(np.zeros((4, 5)))
    bad = plane().center.copy()
    bad[0, 1, 1] = np.nan
    with pytest.raises(ValueError, match="nan at point 6"):
        plane().contains(bad)


# --- what is refused -------------------------------------------------------------------------

X = (np.arange(3.0),)
ONE, ONES = np.ones((1, 3)), np.ones(3)
REFUSED = {
    "negative uncertainty": (
        lambda: Band(ONE, [1, -0.5, 1], CAL, X),
        r"uncertainty is -0.5 at \[1\] \(1 such of 3\).*≥ 0.*softplus",
    ),
    "infinite uncertainty": (
        lambda: Band(ONE, [1, np.inf, 1], CAL, X),
        r"uncertainty is inf at \[1\]",
    ),
    "nan center": (lambda: Band([[1, np.nan, 1]], ONES, CAL, X), r"center is nan at \[0, 1\]"),
    "complex": (lambda: Band(ONE * 1j, ONES, CAL, X), "center of the band has dtype complex128"),
    "no channel": (lambda: Band(ONES, ONES, CAL, X), r"center has shape \(3,\).*\(channel, 3\)"),
    "batch without channel": (
        lambda: Band(np.ones((2, 3)), np.ones((2, 3)), CAL, X),
        r"expected \(2, channel, 3\)",
    ),
    "other points": (
        lambda: Band(np.ones((1, 4)), np.ones(4), CAL, X),
        r"uncertainty has shape \(4,\).*\(3,\) for one function, \(functions, 3\)",
    ),
    "empty": (lambda: Band(np.ones((0, 1, 3)), np.ones((0, 3)), CAL, X), "at least one function"),
    "a bare axis": (lambda: Band(ONE, ONES, CAL, np.arange(3.0)), r"a line of points is the grid"),
    "unsorted": (lambda: Band(ONE, ONES, CAL, ([0.0, 2, 1],)), r"coordinates\[0\].*increase"),
    "curved grid": (lambda: Band(ONE, ONES, CAL, (np.ones((3, 3)),)), "scattered points"),
    "four dimensions": (lambda: Band(ONE, ONES, CAL, X * 4), "of 4 dimensions: .* 1 to 3"),
    "nan coordinates": (lambda: Band(ONE, ONES, CAL, ([0, np.nan, 1],)), "must be finite"),
    "geometries of another number": (
        lambda: Band(ONE, ONES, CAL, np.ones((2, 3, 2))),
        "coordinates of 2 geometries",
    ),
    "no calibration": (
        lambda: Band(ONE, ONES, 2.0, X),
        "uqno.Calibration, got float: pass the result",
    ),
    "triangles on a grid": (lambda: line(triangles=FACES), "leave them out on a grid"),
    "triangles from 1": (
        lambda: replace(surface(), triangles=FACES + 1),
        "name points 1 … 4, expected 0 … 3: count from 0",
    ),
    "quadrilaterals": (
        lambda: replace(surface(), triangles=np.zeros((2, 4), int)),
        r"expected \(faces, 3\)",
    ),
    "float triangles": (lambda: replace(surface(), triangles=FACES * 1.0), "float64: expected"),
    "weights of another shape": (
        lambda: plane(weights=np.ones((5, 4))),
        r"weights have shape \(5, 4\), expected \(4, 5\)",
    ),
    "negative weights": (lambda: line(3, weights=[1, -1, 1]), "weights is -1.0 at"),
    "zero weights": (lambda: line(3, weights=np.zeros(3)), "sum to zero"),
    "infinite scale": (lambda: line(scale=np.inf), r"scale is inf at \[0\].*finite and ≥ 0"),
    "negative scale": (
        lambda: plane(functions=3, scale=[1.0, -1.0, 1.0]),
        r"scale is -1.0 at \[1\] \(1 such of 3\)",
    ),
    "nan scale of the calibration": (
        lambda: replace(line(), calibration=scaled(np.nan)),
        "scale is nan",
    ),
    "scales of another number": (
        lambda: plane(functions=3, scale=[1.0, 2.0]),
        r"scale has shape \(2,\): expected a single number, or of shape \(3,\)",
    ),
    "scales of one function": (lambda: line(scale=[1.0]), "expected a single number$"),
    "component names": (lambda: plane(component_names=("a", "b")), "expected 1 names"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
