"""`uqno monitor` in the shell: what it counts, its exit code, its page."""

import json

import numpy as np
import pytest
import torch

from tests.model.analytic import ExactUncertainty, double, noisy_functions
from uqno import UQNO
from uqno.cli.app import main


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["uqno", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr()
    return stopped.value.code, said.out, said.err


def write_arrays(path, seed, number, factor=1.0, vector=False):
    rng = np.random.default_rng(seed)
    scale = np.exp(0.5 * rng.standard_normal((number, 1, 1)))
    error = factor * scale * rng.standard_normal((number, 12, 2))
    truth = rng.standard_normal((number, 12, 2))
    both = {"truth": truth, "prediction": truth - error}
    if not vector:
        both = {name: x[..., 0] for name, x in both.items()}
    np.savez(path, uncertainty=np.ones((number, 12)), **both)
    return path


@pytest.mark.parametrize("vector", [False, True])
def test_of_arrays(tmp_path, monkeypatch, capsys, vector):
    cal, state, page = (tmp_path / n for n in ("calibration.json", "state.json", "page.html"))
    held_out = write_arrays(tmp_path / "held_out.npz", 0, 200, vector=vector)
    code, _, _ = run(monkeypatch, capsys, "calibrate", held_out, "--out", cal, "--delta", "0.1")
    assert code == 0
    good = write_arrays(tmp_path / "good.npz", 1, 30, vector=vector)
    bad = write_arrays(tmp_path / "bad.npz", 2, 40, 3, vector=vector)
    code, out, err = run(monkeypatch, capsys, "monitor", cal, good, "--state", state)
    assert (code, err) == (0, "")
    assert out.startswith("30 new functions\nno alarm\n")
    code, out, _ = run(monkeypatch, capsys, "monitor", cal, good, "--state", state, "--json")
    assert (code, json.loads(out)["counted"]) == (0, 0)
    code, out, _ = run(monkeypatch, capsys, "monitor", cal, bad, "--state", state, "--page", page)
    assert code == 1
    assert "ALARM" in out
    assert "Alarm" in page.read_text(encoding="utf8")
    code, out, _ = run(monkeypatch, capsys, "monitor", cal, good, "--state", state, "--json")
    said = json.loads(out)
    assert (code, said["alarm"], said["tests"]["errors"]["functions"]) == (1, True, 70)


def test_of_a_model(tmp_path, monkeypatch, capsys):
    generator = torch.Generator().manual_seed(0)
    model = UQNO(double(), ExactUncertainty(), trained=True)
    model.fit(noisy_functions(generator, 60, 20))
    model.calibrate(noisy_functions(generator, 99, 20), 0.1, 0.1)
    monkeypatch.setattr(UQNO, "load", classmethod(lambda cls, folder: model))
    (tmp_path / "model").mkdir()
    data, state = tmp_path / "data.npz", tmp_path / "state.json"
    new = noisy_functions(generator, 12, 20)
    np.savez(data, **{n: np.stack([f[n].numpy() for f in new]) for n in ("a", "u")})
    code, out, err = run(monkeypatch, capsys, "monitor", tmp_path / "model", data, "--json",
                         "--state", state, "--without-truth")  # fmt: skip
    said = json.loads(out)
    assert (code, err) == (0, "")
    assert (said["counted"], said["tests"]["inputs"]["functions"]) == (12, 12)
    assert said["tests"]["errors"]["functions"] == 0
    code, out, _ = run(monkeypatch, capsys, "monitor", tmp_path / "model", data, "--json",
                       "--state", state)  # fmt: skip
    said = json.loads(out)
    assert (said["counted"], said["tests"]["errors"]["functions"]) == (12, 12)
    assert said["tests"]["inputs"]["functions"] == 12


def test_errors_are_one_line(tmp_path, monkeypatch, capsys):
    cal = tmp_path / "calibration.json"
    code, _, err = run(monkeypatch, capsys, "monitor", cal, cal, "--page", tmp_path / "page.txt")
    assert (code, err.count("\n")) == (2, 1)
    assert "must end in .html" in err
    code, _, err = run(monkeypatch, capsys, "monitor", cal, cal)
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be read" in err
