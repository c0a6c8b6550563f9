"""What is read back from xarray and NetCDF is the band."""

from dataclasses import replace

import numpy as np
import pytest
import xarray

import uqno
from tests.band.bands import CAL, EVERY, geometries, plane, surface, truth_of
from uqno import Calibration, calibrate
from uqno.band import Band
from uqno.data.calibration_file import open_calibration

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
    assert data["center"].dims == DIMS[kind]
    np.testing.assert_array_equal(data["center"], band.center.reshape(data["center"].shape))
    assert data["radius"].dims == tuple(d for d in DIMS[kind] if d != "component")
    np.testing.assert_array_equal(data["radius"], band.radius)
    assert ("lower" in data) == ("upper" in data) == (band.channels == 1)
    if band.channels == 1:
        np.testing.assert_array_equal(data["lower"], band.lower)
        np.testing.assert_array_equal(data["upper"], band.upper)
    for name in ("center", "radius"):
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
    assert data["center"].sel(x=1, y=0.5) == band.center[0, 3, 1]
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
    with xarray.open_dataset(tmp_path / "band.nc") as written:
        xarray.testing.assert_identical(written.load(), band.to_xarray())
    assert [f.name for f in tmp_path.iterdir()] == ["band.nc"]


@pytest.mark.parametrize("channels", [1, 2])
def test_what_is_written_means_the_same_when_it_is_calibrated_with(channels, tmp_path):
    """`uncertainty` and `weights` of a band file are those that `uqno calibrate` reads."""
    band = plane(channels, functions=60, weights=np.random.default_rng(3).uniform(size=(4, 5)))
    u = truth_of(band)
    band.to_netcdf(tmp_path / "band.nc")
    with xarray.open_dataset(tmp_path / "band.nc") as written:
        data = written.load().rename(center="prediction")
    dims = data["prediction"].dims
    data["truth"] = (dims, u.reshape(data["prediction"].shape))
    order = ("function", "x", "y", *(["component"] if channels > 1 else []))
    data = data[["prediction", "truth", "uncertainty", "weights"]].transpose(*order)
    data.to_netcdf(tmp_path / "set.nc")
    with open_calibration(tmp_path / "set.nc") as file:
        again = calibrate(file.error, file.uncertainty, 0.1, 0.1, weights=file.weights)
    error = band.error(u)
    expected = calibrate(error, band.uncertainty, 0.1, 0.1, weights=band.weights)
    assert again.ranks == expected.ranks
    assert again.scale == pytest.approx(expected.scale, rel=1e-12)
