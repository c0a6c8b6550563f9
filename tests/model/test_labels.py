"""Names, coordinates, order and units of the input go to the band and to its files."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
import xarray

from uqno import UQNO
from uqno.operators import FNO
from uqno.uncertainty import Constant

Y, X = np.linspace(800.0, 0.0, 9), np.linspace(100.0, 700.0, 13)  # y descends; not square
TIME = np.array(["2026-01-01", "2026-01-03", "2026-01-04"], dtype="datetime64[ns]")


def slope(shape, seed=0):
    """Inputs that fall along the first axis of the grid and rise along the second."""
    y, x = np.meshgrid(np.linspace(1, 0, 9), np.linspace(0, 1, 13), indexing="ij")
    noise = np.random.default_rng(seed).normal(size=(*shape, 9, 13))
    return 3 * y + x + 0.1 * noise


def double(a):
    return 2 * a


@pytest.fixture(scope="module")
def model():
    a = slope((30,))
    u = 2 * a + 0.1 * np.random.default_rng(1).normal(size=a.shape)
    model = UQNO(double, Constant()).fit((a[:10, None], u[:10, None]))
    model.calibrate((a[10:, None], u[10:, None]), 0.2, 0.2)
    return model


def field(**more):
    return xarray.DataArray(
        slope((3,), seed=5),
        dims=("time", "y", "x"),
        coords={
            "time": ("time", TIME, {"long_name": "day"}),
            "y": ("y", Y, {"units": "m", "standard_name": "projection_y_coordinate"}),
            "x": ("x", X, {"units": "m"}),
            "lat": (("y", "x"), np.add.outer(Y, X) / 1e5, {"units": "degrees_north"}),
            "level": 850.0,
        },
        name="permeability",
        attrs={"units": "mD"},
        **more,
    )


def check(data, given):
    assert data["center"].dims == ("time", "y", "x")
    for name in ("time", "y", "x", "lat", "level"):
        xarray.testing.assert_identical(data[name].variable, given[name].variable)
    np.testing.assert_allclose(data["center"], 2 * given.values, rtol=1e-6)
    here = {"time": TIME[1], "y": 700.0, "x": 650.0}
    value = data["center"].sel(here).item()
    assert value == pytest.approx(2 * given.sel(here).item(), rel=1e-6)


def test_a_data_array_keeps_its_labels(model, tmp_path):
    given = field()
    band = model.predict(given)
    assert band.points == (9, 13)
    np.testing.assert_array_equal(band.coordinates[0], Y)
    check(band.to_xarray(), given)
    band.to_netcdf(tmp_path / "band.nc")
    with xarray.open_dataset(tmp_path / "band.nc") as data:
        check(data, given)
        assert "guarantee" in data.attrs
    band.to_npz(tmp_path / "band.npz")
    with np.load(tmp_path / "band.npz") as arrays:
        np.testing.assert_array_equal(arrays["y"], Y)
        np.testing.assert_array_equal(arrays["time"], TIME)


def test_one_function_and_parts_of_a_batch(model):
    given = field()
    one = model.predict(given[1])
    assert one.to_xarray()["center"].dims == ("y", "x")
    assert one.to_xarray()["time"].item() == TIME[1].astype(int)
    several = model.predict(given)
    xarray.testing.assert_allclose(several[1].to_xarray(), one.to_xarray())
    np.testing.assert_array_equal(several[1:].to_xarray()["time"], TIME[1:])


def test_any_order_of_dimensions_and_channels(model):
    given = field()
    turned = model.predict(given.transpose("y", "time", "x").rename(time="sample")).to_xarray()
    assert turned["center"].dims == ("sample", "y", "x")
    np.testing.assert_allclose(turned["center"], 2 * given.values, rtol=1e-6)
    swapped = model.predict(given.transpose("time", "x", "y")).to_xarray()
    assert swapped["center"].dims == ("time", "x", "y")
    xarray.testing.assert_allclose(
        swapped["center"].transpose("time", "y", "x").drop_attrs(),
        model.predict(given).to_xarray()["center"].drop_attrs(),
    )
    channels = model.predict(given.expand_dims("channel", axis=1)).to_xarray()
    assert channels["center"].dims == ("time", "y", "x")


def test_a_dataset_names_the_output_and_its_units(model):
    data = xarray.Dataset({"k": field(), "p": field() * 2}, attrs={"institution": "wells"})
    data["p"].attrs["units"] = "Pa"
    band = model.predict(data, inputs="k", outputs="p")
    assert (band.name, band.units) == ("p", "Pa")
    assert band.to_xarray().attrs["institution"] == "wells"
    assert band.to_xarray()["radius"].attrs["units"] == "Pa"
    assert model.predict(data, inputs="k").name == "u"


def fno_model():
    torch.manual_seed(0)
    a = slope((30,))
    model = UQNO(FNO(1, 1, modes=(4, 4), width=4, layers=1), Constant())
    model.fit((a[:10], a[:10]), epochs=1, batch_size=2, progress=False)
    model.calibrate((a[10:], a[10:]), 0.2, 0.2)
    return model


def test_another_resolution_and_points_in_the_coordinates_of_the_input():
    model, given = fno_model(), field()
    finer = model.predict(given, at=(17, 25)).to_xarray()
    np.testing.assert_allclose(finer["y"], np.linspace(800, 0, 17))
    np.testing.assert_allclose(finer["x"], np.linspace(100, 700, 25))
    np.testing.assert_array_equal(finer["time"], TIME)
    assert finer["y"].attrs["units"] == "m"
    own = model.predict(given).to_xarray()
    np.testing.assert_allclose(finer["center"][:, ::2, ::2], own["center"], atol=1e-4)
    points = np.array([[700.0, 650.0], [0.0, 100.0]])  # y, x
    there = model.predict(given, at=points)
    data = there.to_xarray()
    np.testing.assert_array_equal(data["y"], points[:, 0])
    np.testing.assert_allclose(data["center"][:, 0], own["center"].sel(y=700, x=650), atol=1e-4)
    np.testing.assert_allclose(data["center"][:, 1], own["center"].sel(y=0, x=100), atol=1e-4)
    with pytest.raises(
        ValueError, match="at reaches from 900 to 900 in y, outside the coordinates"
    ):
        model.predict(given, at=np.array([[900.0, 650.0]]))


def test_figures_and_vtk_follow_the_names(model, tmp_path):
    import matplotlib.pyplot as plt

    given = field()
    figure = model.predict(given[0]).plot()
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("x [m]", "y [m]")
    plt.close(figure)
    pyvista = pytest.importorskip("pyvista")
    model.predict(given[0]).write(tmp_path / "band.vtr")
    mesh = pyvista.read(tmp_path / "band.vtr")
    assert mesh.dimensions == (13, 9, 1)
    i = mesh.find_closest_point((650.0, 700.0, 0.0))
    expected = 2 * given[0].sel(y=700, x=650).item()
    assert mesh["center"][i] == pytest.approx(expected, rel=1e-6)


def test_a_coordinate_that_is_no_axis_stays_and_the_band_has_the_operators(model):
    given = field().assign_coords(y=("y", [f"row {i}" for i in range(9)]))
    band = model.predict(given)
    np.testing.assert_array_equal(band.coordinates[0], np.linspace(0, 1, 9))
    assert band.to_xarray()["y"].values[0] == "row 0"


def command(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", "from uqno.cli.app import main; main()", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd,
    )  # fmt: skip


def test_predict_on_the_command_line_keeps_them(tmp_path):
    model = fno_model()
    model.save(tmp_path / "model")
    given = field()
    data = xarray.Dataset({"permeability": given, "porosity": given}, attrs={"source": "survey"})
    data.to_netcdf(tmp_path / "new.nc")
    failed = command("predict", "model", "new.nc", cwd=tmp_path)
    assert failed.returncode == 2
    assert "which variables of new.nc are the inputs? It has permeability (time: 3" in failed.stderr
    done = command("predict", "model", "new.nc", "--inputs", "permeability", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["functions"] == 3
    with xarray.open_dataset(tmp_path / "band.nc") as band:
        assert band["center"].dims == ("time", "y", "x")
        for name in ("time", "y", "x", "lat", "level"):
            xarray.testing.assert_identical(band[name].variable, data[name].variable)
        expected = model.predict(given).center[:, 0]
        np.testing.assert_allclose(band["center"], expected, atol=1e-5)
