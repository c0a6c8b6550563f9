"""What is read back from xarray, NetCDF, .npz and VTK is the band."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import pyvista
import xarray

import uqno
from tests.band.bands import CAL, EVERY, FACES, POINTS, geometries, plane, rng, surface, truth_of
from uqno import Calibration
from uqno.band import Band, export

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
            found["uncertainty"],
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
    for name in ("radius", "lower", "upper", "uncertainty", "weights"):
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
    assert found.n_points == band.uncertainty.size
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
    monkeypatch.setattr(export.np, "savez", fail)
    monkeypatch.setattr(pyvista.PolyData, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        write(replace(surface(), name="other"), path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]
