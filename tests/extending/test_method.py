"""An estimator from outside the package has its row, its colour and its bands in a comparison."""

import pytest

from tests.extending.commands import HERE, is_short, uqno
from uqno.experiments import results

CHANGES = [
    *("train=64", "calibration=60", "test=60", "solved_at=19", "trained_at=19", "tested_at=19"),
    *("modes=4", "width=4", "layers=1", "epochs=1", "curve_alphas=0.1", "splits=10"),
    *("methods=proportional,constant", "ablation=false"),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """(folder of the run, what the command printed)."""
    folder = tmp_path_factory.mktemp("own-estimator")
    changes = [part for change in CHANGES for part in ("--set", change)]
    use = ("--use", HERE / "own_estimator.py")
    arguments = ("run", *use, "darcy", *changes, "--out", "run", "--workers", 2)
    return folder / "run", uqno(*arguments, cwd=folder)


def test_it_is_one_short_file():
    assert is_short("own_estimator.py")


def test_it_has_its_rows(finished):
    folder, printed = finished
    assert "Share of the answer" in printed
    record = results.read(folder / "results.json")
    rows = [row for row in record["rows"] if row["method"] == "proportional"]
    assert {row["sampling"] for row in rows} == {"none", "grid"}
    for row in rows:
        assert row["bandwidth"] > 0
        assert not row["calibrated"] or 0 < row["p_value"] <= 1


def test_it_has_its_colour_in_figures_and_page(finished):
    folder, _ = finished
    record = results.read(folder / "results.json")
    (look,) = [look for look in record["methods"] if look["name"] == "proportional"]
    assert (look["colour"], look["marker"]) == ("#7b3294", "<")
    assert "#7b3294" in (folder / "figures" / "bandwidth.svg").read_text(encoding="utf8")
    page = (folder / "report.html").read_text(encoding="utf8")
    assert '"proportional":"#7b3294"' in page
    shown = [method["label"] for method in record["panel"]["methods"]]
    assert shown == ["Share of the answer", "Constant"]
