"""A task from outside the package is offered, run in worker processes, shown and reported."""

import json

import numpy as np
import pytest

from tests.extending.commands import HERE, is_short, uqno
from uqno.experiments import results
from uqno.experiments.explorer import read_explorer
from uqno.experiments.packing import unpacked

USE = ("--use", HERE / "own_task.py")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """(folder of the run, what the command printed)."""
    folder = tmp_path_factory.mktemp("own-task")
    arguments = ("run", *USE, "gradient", "--out", "run", "--workers", 2)
    return folder / "run", uqno(*arguments, cwd=folder)


def test_it_is_one_short_file():
    assert is_short("own_task.py")


def test_its_presets_and_settings_are_offered(tmp_path):
    assert "gradient" in uqno("run", *USE, "--help", cwd=tmp_path)
    assert "tiny, rough" in uqno("run", *USE, "gradient", "--help", cwd=tmp_path)
    changes = ("--preset", "rough", "--set", "epochs=3", "--settings")
    shown = json.loads(uqno("run", *USE, "gradient", *changes, cwd=tmp_path))
    assert (shown["roughness"], shown["epochs"], shown["train"]) == (4.0, 3, 16)


def test_table_figures_and_page(finished):
    folder, printed = finished
    assert "UQNO (ours)" in printed
    assert "Constant" in printed
    record = results.read(folder / "results.json")
    assert (record["task"], record["points"], record["paper"]) == ("gradient", 144, [])
    assert record["command"].startswith("uqno run --use")
    for row in record["rows"]:
        assert row["bandwidth"] > 0
        assert not row["calibrated"] or 0 < row["p_value"] <= 1
    assert (folder / "table.md").read_text(encoding="utf8").startswith("# Gradient, preset tiny")
    for name in ("comparison", "bandwidth", "tradeoff", "targets", "band"):
        assert (folder / "figures" / f"{name}.png").stat().st_size > 1000
    page = (folder / "report.html").read_text(encoding="utf8")
    assert "from a potential a on the unit square to its gradient u" in page


def test_vectors_are_shown_by_their_magnitude(finished):
    """Band and truth in the pictures are those of ‖u‖; the error is the norm of the difference."""
    folder, _ = finished
    panel = results.read(folder / "results.json")["panel"]
    truth, prediction = (np.array(panel[name]) for name in ("truth", "prediction"))
    assert truth.shape == (12, 12)
    assert (truth >= 0).all()
    error = np.array(panel["methods"][0]["error"])
    assert (error >= np.abs(truth - prediction) - 1e-3 * error.max()).all()
    stored = read_explorer(folder / "explorer.json")
    one = stored["functions"][0]
    view = one["views"]["uqno"]
    fields = [unpacked(stored["fields"][view[name]]) for name in ("residual", "magnitude")]
    length = unpacked(stored["fields"][one["truth"]])
    assert (fields[0] >= np.abs(length - fields[1]) - 1e-3 * fields[0].max()).all()


def test_a_report_is_made_again_with_or_without_the_extension(finished):
    folder, _ = finished
    before = (folder / "report.html").read_bytes()
    uqno("report", folder, cwd=folder)
    assert (folder / "report.html").read_bytes() == before
    (folder / "explorer.json").unlink()
    uqno("report", folder, cwd=folder)
    assert not (folder / "explorer.json").exists()  # nobody knows the task
    uqno("report", *USE, folder, cwd=folder)
    assert (folder / "report.html").read_bytes() == before
