"""What `inspect` says of data sets with known faults."""

import json

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

import uqno
from tests.data.test_opening import write_darcy
from uqno.cli.app import app
from uqno.data.inspection import inspect

DAY = np.timedelta64(1, "D")


def dataset(functions=120):
    rng = np.random.default_rng(0)
    k = rng.normal(size=(functions, 9, 13))
    dims = ("time", "y", "x")
    return xarray.Dataset(
        {"k": (dims, k, {"units": "mD"}), "p": (dims, (k**2).astype("f4"), {"units": "Pa"})},
        coords={
            "time": np.datetime64("2026-01-01", "ns") + np.arange(functions) * DAY,
            "y": ("y", np.linspace(800, 0, 9), {"units": "m"}),
            "x": ("x", np.linspace(0, 1, 13) ** 2),
        },
    )


@pytest.fixture
def faulty(tmp_path):
    data = dataset()
    data["p"][3, 2, 2] = np.nan
    data["p"][5, 0, 0] = np.inf
    data["k"][7], data["p"][7] = data["k"][2], data["p"][2]
    data.to_netcdf(tmp_path / "flow.nc")
    return tmp_path / "flow.nc"


def test_what_is_there(faulty):
    seen = inspect(faulty, "k", "p")
    assert (seen.functions, seen.grid) == (120, {"y": 9, "x": 13})
    k, p = seen.variables
    assert (k.role, k.units, k.shape, k.missing) == ("input", "mD", (120, 9, 13), 0)
    assert (p.role, p.dtype, p.missing) == ("output", "float32", 2)
    assert np.isfinite(p.largest)
    time, y, x = seen.coordinates
    assert (time.first, time.last) == ("2026-01-01", "2026-04-30")
    assert (y.first, y.last, y.units, y.order) == ("800", "0", "m", "descends")
    assert x.order == "ascends, uneven"
    assert seen.duplicates == [(2, 7)]
    assert any("p has values that are NaN or infinite, 2 in all" in s for s in seen.problems)
    assert any("functions occur twice, 1 in all (2 and 7)" in s for s in seen.problems)


def test_the_split_leaves_enough_to_calibrate_and_promises_are_those_of_plan(tmp_path):
    dataset().to_netcdf(tmp_path / "flow.nc")
    seen = inspect(tmp_path / "flow.nc", "k", "p")
    assert seen.split == {"training": 47, "calibration": 49, "test": 24}
    assert sum(seen.split.values()) == 120
    assert not seen.problems
    for one in seen.promises:
        plan = uqno.plan(one.alpha, one.delta, 49, 117, "grid", one.confidence)
        assert (one.feasible, one.needed) == (plan.feasible, plan.smallest["functions"])
    assert {p.feasible for p in seen.promises} == {True, False}
    many = inspect(tmp_path / "flow.nc", "k", "p", delta=0.2)
    assert many.split["calibration"] == 24


def test_too_few_functions_and_a_constant_output(tmp_path):
    data = dataset(8)
    data["p"][:] = 4.0
    data.to_netcdf(tmp_path / "few.nc")
    said = inspect(tmp_path / "few.nc", "k", "p").problems
    assert any("p is 4 everywhere: there is nothing to learn" in s for s in said)
    assert any("4 calibration functions cannot carry" in s and "needs 49" in s for s in said)


def test_roles_that_are_not_known_are_asked_for_and_values_looked_at(faulty):
    seen = inspect(faulty)
    assert seen.functions == 0
    assert "which variables" in seen.problems[0]
    assert seen.variables[1].missing == 2
    with pytest.raises(ValueError, match="no variable 'q'"):
        inspect(faulty, "q", "p")


def test_layouts_and_two_files(tmp_path):
    write_darcy(tmp_path / "darcy.hdf5")
    seen = inspect(tmp_path / "darcy.hdf5")
    assert (seen.layout, seen.inputs, seen.outputs) == ("PDEBench", ("nu",), ("tensor",))
    rng = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", rng.normal(size=(20, 1, 5, 7)))
    np.save(tmp_path / "u.npy", rng.normal(size=(20, 1, 5, 7)))
    two = inspect((tmp_path / "a.npy", tmp_path / "u.npy"))
    assert (two.functions, list(two.grid.values())) == (20, [5, 7])
    assert [v.role for v in two.variables] == ["input", "output"]


def test_a_mesh(tmp_path):
    points = np.random.default_rng(0).normal(size=(40, 3))
    np.savez(tmp_path / "car.npz", points=points, triangles=np.zeros((70, 3), int))
    seen = inspect(tmp_path / "car.npz")
    assert (seen.kind, seen.grid) == ("mesh", {"points": 40, "triangles": 70})


def test_on_the_command_line(faulty):
    arguments = ["inspect", str(faulty), "--inputs", "k", "--outputs", "p"]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})
    assert shown.exit_code == 0, shown.output
    lines = [line for line in shown.output.splitlines() if str(faulty) not in line]
    assert max(map(len, lines)) <= 80
    for words in ("120 functions on a grid of 9 × 13 (y, x): k → p", "descends", "49 calibration"):
        assert words in shown.output
    record = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert record["duplicates"] == [[2, 7]]
    assert record["grid"] == {"y": 9, "x": 13}
    assert CliRunner().invoke(app, ["inspect", "a.nc", "b.nc", "c.nc"]).exit_code == 1
