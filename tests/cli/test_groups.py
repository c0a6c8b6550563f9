"""Groups and shifts from the shell: variables of the file tell them."""

import json

import numpy as np
import pytest
import xarray

import uqno
from tests.cli.test_app import run
from uqno.conformal import GroupedCalibration
from uqno.data.calibration_file import open_calibration
from uqno.data.calibrations import read_calibration
from uqno.data.example import example

ARRAYS = example(200, 40)
ERROR = ARRAYS["truth"].astype(float) - ARRAYS["prediction"]
RNG = np.random.default_rng(0)
BODY = RNG.choice(["van", "estate"], 200)
RATIO = RNG.uniform(0.5, 2, 200)


@pytest.fixture
def folder(tmp_path):
    np.savez(tmp_path / "set.npz", **ARRAYS, body=BODY, ratio=RATIO, pair=np.ones((200, 2)))
    return tmp_path


def test_a_scale_for_each_group(folder):
    done = run("calibrate", "set.npz", "--delta", 0.05, "--groups", "body", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    made = GroupedCalibration.from_json((folder / "calibration.json").read_text())
    assert made == uqno.calibrate(ERROR, ARRAYS["uncertainty"], 0.1, 0.05, groups=BODY)
    assert json.loads(done.stdout)["words"]["van"] == made["van"].guarantee


def test_in_words_and_with_a_shift(folder):
    done = run("calibrate", "set.npz", "--delta", 0.05, "--groups", "body", cwd=folder)
    assert "van" in done.stdout
    assert "in group" not in done.stderr
    done = run("calibrate", "set.npz", "--delta", 0.05, "--shift", "ratio", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "effective number" in " ".join(done.stdout.split())
    made = read_calibration(folder / "calibration.json")
    assert made == uqno.calibrate(ERROR, ARRAYS["uncertainty"], 0.1, 0.05, shift=RATIO)


@pytest.mark.parametrize(
    ("name", "message"),
    [("kind", "kind is not there, expected one value"), ("pair", r"pair has shape \(200, 2\)")],
)
def test_variables_that_tell_no_group(folder, name, message):
    with (
        pytest.raises(ValueError, match=message),
        open_calibration(folder / "set.npz", beside=[name]),
    ):
        pass


def test_labels_of_netcdf_are_text(folder):
    variables = {n: (("function", "x"), x) for n, x in ARRAYS.items()}
    dataset = xarray.Dataset({**variables, "body": ("function", BODY)})
    dataset.to_netcdf(folder / "set.nc")
    with open_calibration(folder / "set.nc", beside=["body"]) as data:
        assert data.beside["body"].tolist() == BODY.tolist()
