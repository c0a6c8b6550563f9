"""A band says what the calibration says: membership, shares, exports and figures."""

import subprocess
import sys
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
import pyvista
import xarray
from hypothesis import given
from hypothesis import strategies as st

import uqno
from uqno import Calibration, _band_export, calibrate
from uqno.band import Band
from uqno.conformal.ranks import Ranks

CAL = Calibration(
    2.0, Ranks(9, 98), 100, 10, 10, 0.1, 0.02, "grid", created="2025-01-01T00:00:00+00:00"
)


def scaled(scale):
    return replace(CAL, scale=scale)


def rng():
    return np.random.default_rng(0)


def line(points=7, **more):
    r = rng()
    return Band(
        r.normal(size=(1, points)),
        r.uniform(0.1, 1, points),
        CAL,
        (np.linspace(0, 1, points),),
        **more,
    )


def plane(channels=1, functions=None, **more):
    r, lead = rng(), () if functions is None else (functions,)
    axes = (np.linspace(0, 1, 4), np.linspace(0, 2, 5))
    return Band(
        r.normal(size=(*lead, channels, 4, 5)), r.uniform(0.1, 1, (*lead, 4, 5)), CAL, axes, **more
    )


POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def surface(channels=1, **more):
    r = rng()
    return Band(
        r.normal(size=(channels, 4)), r.uniform(0.1, 1, 4), CAL, POINTS, triangles=FACES, **more
    )


def geometries(**more):
    r = rng()
    where = np.stack([POINTS, 2 * POINTS, 3 * POINTS])
    return Band(
        r.normal(size=(3, 1, 4)), r.uniform(0.1, 1, (3, 4)), CAL, where, triangles=FACES, **more
    )


EVERY = {
    "line": line,
    "plane": plane,
    "vectors": lambda **more: plane(channels=2, **more),
    "batch": lambda **more: plane(functions=3, **more),
    "vector batch": lambda **more: plane(channels=2, functions=3, **more),
    "surface": surface,
    "geometries": geometries,
}
every = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())


def truth_of(band, seed=1):
    """A truth that lies inside at some points and outside at others."""
    return band.center + np.random.default_rng(seed).normal(scale=2, size=band.center.shape)


def naive_inside(band, u):
    """Point by point, from the definition."""
    batch = band.is_batch
    center, spread = (band.center, band.spread) if batch else (band.center[None], band.spread[None])
    u = np.reshape(u, center.shape)
    inside = np.zeros(spread.shape, bool)
    for place in np.ndindex(spread.shape):
        f, *x = place
        vector = np.array([u[(f, c, *x)] - center[(f, c, *x)] for c in range(center.shape[1])])
        inside[place] = np.linalg.norm(vector) / spread[place] <= band.calibration.scale
    return inside if batch else inside[0]


# --- what it is ------------------------------------------------------------------------------


@every
def test_radius_and_ends(make):
    band = make()
    np.testing.assert_array_equal(band.radius, 2.0 * band.spread)
    assert band.guarantee == CAL.guarantee
    if band.channels == 1:
        center = band.center.reshape(band.spread.shape)
        np.testing.assert_array_equal(band.lower, center - band.radius)
        np.testing.assert_array_equal(band.upper, center + band.radius)
    else:
        for end in ("lower", "upper"):
            with pytest.raises(ValueError, match="ball of radius `radius` around `center`"):
                getattr(band, end)


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
    assert plane().bandwidth == pytest.approx(2 * plane().spread.mean())
    w = rng().uniform(size=(4, 5))
    expected = 2 * np.mean([np.average(s, weights=w) for s in plane(functions=3).spread])
    assert plane(functions=3, weights=w).bandwidth == pytest.approx(expected)
    own = np.stack([w, 1 - w, np.eye(4, 5)])
    expected = 2 * np.mean(
        [np.average(s, weights=v) for s, v in zip(plane(functions=3).spread, own, strict=True)]
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
    np.testing.assert_array_equal(batch[-1].spread, batch.spread[2])
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
    told = repr(plane(functions=3, units="Pa", name="p"))
    assert "Band of p [Pa]: 3 functions, 4 × 5 grid" in told
    assert "covers ≥ 90 % of the function's grid points with probability ≥ 98 %" in told
    assert len(told.splitlines()) == 4
    assert "surface of 4 points and 4 triangles" in repr(surface())
    assert "2 components" in repr(plane(channels=2))
    confident = replace(line(), calibration=replace(CAL, confidence=0.95))
    assert "for ≥ 98 % of new functions, confidence 95 %" in repr(confident)


# --- against the truth -----------------------------------------------------------------------


@every
def test_contains_against_the_definition(make):
    band = make()
    u = truth_of(band)
    inside = band.contains(u)
    assert 0 < inside.mean() < 1
    np.testing.assert_array_equal(inside, naive_inside(band, u))
    if band.channels == 1:
        np.testing.assert_array_equal(band.contains(u.reshape(band.spread.shape)), inside)


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
def test_the_calibration_point_itself_is_inside(u, center, spread):
    """λ̂ is one of the float64 ratios. Comparing the error with λ̂ · E, or a difference rounded to
    the float32 of the arrays, would lose some of them."""
    scale = abs(u - center) / spread
    arrays = np.float32([[center]]), np.float32([spread])
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
    spread = r.uniform(0.5, 2, (60, 30)).astype(dtype)
    error = np.moveaxis(np.subtract(u, center, dtype=np.float64), 1, -1)
    cal = calibrate(error, spread, alpha=0.1, delta=0.1)
    band = Band(center, spread, cal, (np.arange(30.0),))
    assert band.center.dtype == band.radius.dtype == dtype
    np.testing.assert_array_equal(band.coverage(u), cal.coverage(error, spread))
    enough = np.count_nonzero(band.contains(u).sum(axis=1) >= cal.ranks.point)
    assert enough == cal.ranks.function


def test_a_zero_spread_contains_only_the_prediction():
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
    "negative spread": (
        lambda: Band(ONE, [1, -0.5, 1], CAL, X),
        r"spread is -0.5 at \[1\] \(1 such of 3\).*≥ 0.*softplus",
    ),
    "infinite spread": (lambda: Band(ONE, [1, np.inf, 1], CAL, X), r"spread is inf at \[1\]"),
    "nan center": (lambda: Band([[1, np.nan, 1]], ONES, CAL, X), r"center is nan at \[0, 1\]"),
    "complex": (lambda: Band(ONE * 1j, ONES, CAL, X), "center of the band has dtype complex128"),
    "no channel": (lambda: Band(ONES, ONES, CAL, X), r"center has shape \(3,\).*\(channel, 3\)"),
    "batch without channel": (
        lambda: Band(np.ones((2, 3)), np.ones((2, 3)), CAL, X),
        r"expected \(2, channel, 3\)",
    ),
    "other points": (
        lambda: Band(np.ones((1, 4)), np.ones(4), CAL, X),
        r"spread has shape \(4,\).*\(3,\) for one function, \(functions, 3\)",
    ),
    "empty": (lambda: Band(np.ones((0, 1, 3)), np.ones((0, 3)), CAL, X), "at least one function"),
    "a bare axis": (lambda: Band(ONE, ONES, CAL, np.arange(3.0)), r"a line of points is the grid"),
    "decreasing": (lambda: Band(ONE, ONES, CAL, ([2.0, 1, 0],)), r"coordinates\[0\].*increase"),
    "curved grid": (lambda: Band(ONE, ONES, CAL, (np.ones((3, 3)),)), "scattered points"),
    "four dimensions": (lambda: Band(ONE, ONES, CAL, X * 4), "of 4 dimensions: .* 1 to 3"),
    "nan coordinates": (lambda: Band(ONE, ONES, CAL, ([0, np.nan, 1],)), "must be finite"),
    "geometries of another number": (
        lambda: Band(ONE, ONES, CAL, np.ones((2, 3, 2))),
        "coordinates of 2 geometries",
    ),
    "no calibration": (lambda: Band(ONE, ONES, 2.0, X), "uqno.Calibration, got float"),
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
    "component names": (lambda: plane(component_names=("a", "b")), "expected 1 names"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- exports ---------------------------------------------------------------------------------

DIMS = {
    "line": ("x",),
    "plane": ("x", "y"),
    "vectors": ("component", "x", "y"),
    "batch": ("function", "x", "y"),
    "vector batch": ("function", "component", "x", "y"),
    "surface": ("point",),
    "geometries": ("function", "point"),
}


@pytest.mark.parametrize("kind", EVERY)
def test_xarray(kind):
    band = EVERY[kind](units="Pa")
    data = band.to_xarray()
    assert data["prediction"].dims == DIMS[kind]
    np.testing.assert_array_equal(data["prediction"], band.center.reshape(data["prediction"].shape))
    assert data["radius"].dims == tuple(d for d in DIMS[kind] if d != "component")
    np.testing.assert_array_equal(data["radius"], band.radius)
    assert ("lower" in data) == ("upper" in data) == (band.channels == 1)
    if band.channels == 1:
        np.testing.assert_array_equal(data["lower"], band.lower)
        np.testing.assert_array_equal(data["upper"], band.upper)
    for name in ("prediction", "radius"):
        assert data[name].attrs["units"] == "Pa"
        assert data[name].attrs["long_name"]
    attrs = data.attrs
    assert attrs["Conventions"].startswith("CF-")
    assert attrs["guarantee"] == band.guarantee
    assert (attrs["alpha"], attrs["delta"], attrs["scale"]) == (0.1, 0.02, 2.0)
    assert (attrs["sampling"], attrs["uqno_version"]) == ("grid", uqno.__version__)
    assert Calibration.from_json(attrs["calibration"]) == CAL


def test_xarray_names_the_dimensions_in_their_order():
    """Dimension 0 of the grid is x, as column 0 of scattered points is."""
    band = plane()
    data = band.to_xarray()
    np.testing.assert_array_equal(data["x"], band.coordinates[0])
    assert data["prediction"].sel(x=1, y=0.5) == band.center[0, 3, 1]
    x = (np.arange(2.0), np.arange(3.0), np.arange(4.0))
    solid = Band(np.ones((1, 2, 3, 4)), np.ones((2, 3, 4)), CAL, x)
    assert solid.to_xarray()["radius"].dims == ("x", "y", "z")
    assert surface().to_xarray()["z"].values.tolist() == [0, 0, 0, 1]
    assert geometries().to_xarray()["y"].dims == ("function", "point")


@pytest.mark.parametrize("kind", EVERY)
def test_netcdf_reads_back_what_was_written(kind, tmp_path):
    band = EVERY[kind](units="Pa", name="p")
    band = replace(band, weights=np.ones(band.points))
    if band.channels == 2:
        band = replace(band, component_names=("east", "north"))
    band.to_netcdf(tmp_path / "band.nc")
    with xarray.open_dataset(tmp_path / "band.nc") as found:
        xarray.testing.assert_identical(found.load(), band.to_xarray())
    assert [f.name for f in tmp_path.iterdir()] == ["band.nc"]


@pytest.mark.parametrize("kind", EVERY)
def test_npz_holds_the_band_without_pickles(kind, tmp_path):
    band = EVERY[kind](units="Pa", name="p")
    band = replace(band, weights=np.ones(band.points))
    band.to_npz(tmp_path / "band.npz")
    with np.load(tmp_path / "band.npz", allow_pickle=False) as found:
        columns = [found[n] for n in "xyz" if n in found]
        again = Band(
            found["prediction"].reshape(band.center.shape),
            found["spread"],
            Calibration.from_json(str(found["calibration"])),
            tuple(columns) if band.is_grid else np.stack(columns, axis=-1),
            triangles=found.get("triangles"),
            weights=found["weights"],
            name=str(found["name"]),
            units=str(found["units"]),
        )
        np.testing.assert_array_equal(found["radius"], band.radius)
    assert repr(again) == repr(band)
    u = truth_of(band)
    np.testing.assert_array_equal(again.contains(u), band.contains(u))


def test_vtk_of_a_surface(tmp_path):
    band = surface(weights=np.arange(1.0, 5))
    band.to_vtk(tmp_path / "car.vtp")
    found = pyvista.read(tmp_path / "car.vtp")
    np.testing.assert_array_equal(found.points, POINTS)
    np.testing.assert_array_equal(found.regular_faces, FACES)
    np.testing.assert_array_equal(found.point_data["prediction"], band.center[0])
    for name in ("radius", "lower", "upper", "spread", "weights"):
        np.testing.assert_array_equal(found.point_data[name], getattr(band, name))
    assert str(found.field_data["guarantee"][0]) == band.guarantee.replace("×", "x")
    assert found.field_data["scale"][0] == 2.0
    assert [f.name for f in tmp_path.iterdir()] == ["car.vtp"]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_vtk_of_scattered_points(d, tmp_path):
    where = POINTS[:, :d]
    vectors = Band(rng().normal(size=(2, 4)), np.ones(4), CAL, where)
    vectors.to_vtk(tmp_path / "points.vtp")
    found = pyvista.read(tmp_path / "points.vtp")
    assert found.n_verts == 4
    np.testing.assert_array_equal(found.points[:, :d], where)
    assert not found.points[:, d:].any()
    np.testing.assert_array_equal(found.point_data["prediction"], vectors.center.T)
    assert "lower" not in found.point_data


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("channels", [1, 3])
def test_vtk_of_a_grid(d, channels, tmp_path):
    """Every value stands at its own place, whatever order VTK stores them in."""
    axes = tuple(np.cumsum(rng().uniform(1, 2, n)) for n in (2, 3, 4)[:d])
    shape = tuple(map(len, axes))
    band = Band(rng().normal(size=(channels, *shape)), rng().uniform(size=shape), CAL, axes)
    band.to_vtk(tmp_path / "grid.vtr")
    found = pyvista.read(tmp_path / "grid.vtr")
    assert found.n_points == band.spread.size
    for point, radius, prediction in zip(
        found.points, found["radius"], found["prediction"], strict=True
    ):
        place = tuple(int(np.abs(x - p).argmin()) for x, p in zip(axes, point, strict=False))
        assert radius == band.radius[place]
        np.testing.assert_array_equal(np.atleast_1d(prediction), band.center[(..., *place)])


def test_vtk_without_pyvista_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(ImportError, match=r'pip install "uqno\[mesh\]"'):
        surface().to_vtk(tmp_path / "car.vtp")


def test_files_of_the_wrong_kind_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .vtr"):
        plane().to_vtk(tmp_path / "a.vtp")
    with pytest.raises(ValueError, match=r"must end in .vtp"):
        surface().to_vtk(tmp_path / "a.vtr")
    with pytest.raises(ValueError, match=r"a VTK file holds one function, the band 3.*band\[0\]"):
        geometries().to_vtk(tmp_path / "a.vtp")
    with pytest.raises(ValueError, match=r"must end in .npz"):
        plane().to_npz(tmp_path / "a.nc")
    with pytest.raises(ValueError, match=r"must end in .nc"):
        plane().to_netcdf(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".nc", ".npz", ".vtp"])
def test_a_failed_write_leaves_the_old_file(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"band{suffix}"
    write = {".nc": Band.to_netcdf, ".npz": Band.to_npz, ".vtp": Band.to_vtk}[suffix]
    write(surface(), path)
    old = path.read_bytes()

    def fail(*args, **more):
        raise OSError("disk full")

    monkeypatch.setattr(xarray.Dataset, "to_netcdf", fail)
    monkeypatch.setattr(_band_export.np, "savez", fail)
    monkeypatch.setattr(pyvista.PolyData, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        write(replace(surface(), name="other"), path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


# --- figures ---------------------------------------------------------------------------------


def panels(figure):
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def test_line_figure_marks_what_lies_outside():
    band = line(40, name="q", units="m")
    u = truth_of(band)
    (ax,) = panels(band.plot(u))
    drawn = {artist.get_label(): artist for artist in ax.lines}
    np.testing.assert_array_equal(drawn["prediction"].get_ydata(), band.center[0])
    np.testing.assert_array_equal(drawn["truth"].get_ydata(), u[0])
    marked = drawn["truth outside the band"].get_xdata()
    np.testing.assert_array_equal(marked, band.coordinates[0][~band.contains(u)])
    edge = ax.collections[0].get_paths()[0].vertices
    assert edge[:, 1].max() == band.upper.max()
    assert edge[:, 1].min() == band.lower.min()
    assert ax.get_ylabel() == "q [m]"
    assert f"{100 * band.coverage(u):g} % covered" == ax.get_title()


def test_line_figure_of_points_in_any_order_and_of_vectors():
    x = rng().permutation(10) / 10
    vectors = Band(rng().normal(size=(2, 10)), np.ones(10), CAL, x[:, np.newaxis])
    (ax,) = panels(vectors.plot())
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.sort(x))
    length = np.linalg.norm(vectors.center, axis=0)[np.argsort(x)]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), length)
    (ax,) = panels(vectors.plot(component=1))
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), vectors.center[1][np.argsort(x)])


def test_plane_figure_shows_prediction_radius_error_and_what_is_covered():
    band = plane(name="p", units="Pa")
    u = truth_of(band)
    figure = band.plot(u)
    shown = panels(figure)
    share = band.coverage(u)
    assert [ax.get_title() for ax in shown] == [
        "prediction",
        "radius",
        "error",
        f"{100 * share:g} % covered",
    ]
    wanted = [band.center[0], band.radius, np.abs(u - band.center)[0], band.contains(u)]
    for ax, values in zip(shown, wanted, strict=True):
        np.testing.assert_array_equal(ax.collections[0].get_array(), values.T)  # x to the right
    norms = [ax.collections[0].norm for ax in shown]
    assert (norms[1].vmin, norms[1].vmax) == (norms[2].vmin, norms[2].vmax)
    assert [ax.get_title() for ax in panels(band.plot())] == ["prediction", "radius"]
    labels = [ax.get_ylabel() for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert labels == ["p [Pa]", "± p [Pa]", "|error| [Pa]", ""]


def test_all_but_one_point_is_not_called_everything():
    n = 40_000
    band = Band(np.zeros((1, n)), np.ones(n), CAL, (np.arange(float(n)),))
    u = np.zeros((1, n))
    assert panels(band.plot(u))[0].get_title() == "100 % covered"
    u[0, 0] = 3
    assert panels(band.plot(u))[0].get_title() == "99.99 % covered"


def test_surface_figure_gives_each_point_its_own_colour():
    band = surface()
    u = truth_of(band)
    inside = band.contains(u)
    assert 0 < inside.sum() < 4
    *_, covered = panels(band.plot(u))
    (cells,) = covered.collections
    assert len(cells._faces) == 3 * len(FACES)
    rgb = cells._facecolor3d[:, :3]
    is_orange = rgb[:, 0] > rgb[:, 2]
    corner = np.concatenate([FACES[:, j] for j in range(3)])
    np.testing.assert_array_equal(is_orange, ~inside[corner])
    for cell, point in zip(cells._faces, corner, strict=True):
        np.testing.assert_array_equal(np.asarray(cell)[0], POINTS[point])
    parts = [0.5 * np.linalg.norm(np.cross(c[2] - c[0], c[3] - c[1])) for c in cells._faces]
    whole = [0.5 * np.linalg.norm(np.cross(b - a, c - a)) for a, b, c in (POINTS[f] for f in FACES)]
    np.testing.assert_allclose(parts, np.tile(np.divide(whole, 3), 3))


def test_a_batch_has_a_row_a_function_and_at_most_three():
    batch = plane(functions=5)
    u = truth_of(batch)
    shown = panels(batch.plot(u))
    assert len(shown) == 12
    assert shown[4].get_title() == "function 1: prediction"
    assert shown[7].get_title() == f"{100 * batch.coverage(u)[1]:g} % covered"
    assert len(panels(plane(functions=2).plot())) == 4
    assert "functions 0 to 2 of 5" in batch.plot().get_suptitle()


FIGURES = {
    **EVERY,
    "points of a plane": lambda: Band(np.ones((1, 4)), np.ones(4), CAL, POINTS[:, :2]),
    "triangles of a plane": lambda: Band(
        np.ones((1, 4)), np.ones(4), CAL, POINTS[:, :2], triangles=FACES
    ),
    "points of space": lambda: Band(np.ones((1, 4)), np.ones(4), CAL, POINTS),
}


@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES.keys())
@pytest.mark.parametrize("with_truth", [False, True])
def test_every_kind_of_figure_is_drawn(make, with_truth, tmp_path):
    band = make()
    figure = band.plot(truth_of(band) if with_truth else None)
    assert band.promise in figure.get_suptitle()
    png = figure._repr_png_()
    assert png.startswith(b"\x89PNG")
    (tmp_path / "figure.png").write_bytes(png)
    picture = matplotlib.image.imread(tmp_path / "figure.png")
    assert (picture[..., :3] < 0.9).any(axis=-1).mean() > 0.02


def test_figures_that_cannot_be_drawn_are_refused():
    x = (np.arange(2.0),) * 3
    solid = Band(np.ones((1, 2, 2, 2)), np.ones((2, 2, 2)), CAL, x)
    with pytest.raises(ValueError, match="not a 3-D grid: export it with to_vtk"):
        solid.plot()
    with pytest.raises(ValueError, match="component = 2 must lie in 0 … 1"):
        plane(channels=2).plot(component=2)
    with pytest.raises(ValueError, match="up = 'w'"):
        surface().plot(up="w")
    with pytest.raises(ValueError, match="expected the same"):
        plane().plot(np.zeros((3, 3)))


def test_plotting_touches_no_pyplot():
    code = (
        "import sys; from tests.test_band import line, plane, surface\n"
        "for band in (line(), plane(), surface()): band.plot(band.center)._repr_png_()\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
