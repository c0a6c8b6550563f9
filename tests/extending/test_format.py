"""An export format that is written outside the package is found by bands and by the shell."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.band.bands import geometries, line, plane, surface
from tests.extending import own_format
from uqno import UQNO
from uqno.operators import FNO


def read(path):
    head, *lines = path.read_text("utf8").splitlines()
    rows = np.array([[float(x) for x in row.split(",")] for row in lines])
    return dict(zip(head.split(", "), rows.T, strict=True))


def test_it_is_short():
    assert len(Path(own_format.__file__).read_text("utf8").splitlines()) <= 80


@pytest.mark.parametrize("make", [line, plane, surface, lambda: plane(functions=3), geometries])
def test_a_band_is_written_by_its_suffix(make, tmp_path):
    band = make()
    band.write(tmp_path / "band.csv")
    table = read(tmp_path / "band.csv")
    for name in ("center", "radius", "uncertainty", "lower", "upper"):
        np.testing.assert_array_equal(table[name], getattr(band, name).ravel())
    last = band[-1] if band.is_batch else band
    where = last.coordinates if last.is_grid else last.coordinates.T
    assert [table[axis][-1] for axis in "xyz"[: len(where)]] == [x[-1] for x in where]
    assert [f.name for f in tmp_path.iterdir()] == ["band.csv"]


def test_what_it_cannot_hold_is_refused_before_the_old_file_is_touched(tmp_path):
    line().write(tmp_path / "band.csv")
    old = (tmp_path / "band.csv").read_text("utf8")
    with pytest.raises(ValueError, match="not 2 components"):
        plane(channels=2).write(tmp_path / "band.csv")
    assert (tmp_path / "band.csv").read_text("utf8") == old


def test_the_shell_finds_it(tmp_path):
    torch.manual_seed(0)
    base = FNO(1, 1, (4,), width=4, layers=1)
    functions = [{"a": torch.rand(1, 16), "u": torch.rand(1, 16)} for _ in range(30)]
    model = UQNO(base).fit(functions[:8], epochs=1, batch_size=2)
    model.calibrate(functions[8:], alpha=0.2, delta=0.2)
    model.save(tmp_path / "model")
    a = functions[0]["a"].numpy()
    np.savez(tmp_path / "a.npz", a=a)
    names = [str(tmp_path / name) for name in ("model", "a.npz", "band.csv")]
    command = [sys.executable, "-c", "from uqno.cli.app import main; main()"]
    command += ["predict", names[0], names[1], "--out", names[2]]
    unknown = subprocess.run(command, capture_output=True, text=True)
    assert unknown.returncode == 2
    assert "band.csv must end in" in unknown.stderr
    subprocess.run([*command, "--use", own_format.__file__], check=True, capture_output=True)
    np.testing.assert_allclose(read(tmp_path / "band.csv")["radius"], model.predict(a).radius)
