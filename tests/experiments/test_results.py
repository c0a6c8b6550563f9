"""The record: what is written is read again, and nothing else is taken for it."""

import json
import re

import numpy as np
import pytest

from tests.experiments.simulated import profiles, record, simulated
from uqno.experiments import measuring, results, rows
from uqno.experiments.cars.paper import PAPER as CARS
from uqno.experiments.darcy.paper import PAPER as DARCY
from uqno.experiments.scene import thinning


@pytest.fixture(scope="module")
def made():
    return record()


def test_written_and_read_alike_to_six_digits(made, tmp_path):
    path = tmp_path / "run" / "results.json"
    results.write(path, made)
    again = results.read(path)
    assert list(again) == list(made)
    for one, other in zip(made["rows"], again["rows"], strict=True):
        assert list(one) == list(other)
        for key, value in one.items():
            if isinstance(value, float):
                assert other[key] == pytest.approx(value, rel=1e-5)
            elif key not in ("interval", "usual"):
                assert other[key] == value
    shown = np.array(again["panel"]["truth"])
    np.testing.assert_allclose(shown, made["panel"]["truth"], rtol=1e-3)
    assert len(path.read_text().splitlines()) > len(made["rows"])
    assert [p.name for p in path.parent.iterdir()] == ["results.json"]
    results.write(path, again)
    assert results.read(path) == again


def test_what_is_no_record_is_refused_by_name(made, tmp_path):
    path = tmp_path / "results.json"
    results.write(path, made)
    text = path.read_text()
    newer = json.dumps({**json.loads(text), "format_version": 3})
    lacking = json.loads(text)
    del lacking["rows"][1]["bandwidth"]
    for content, why in [
        (text[: len(text) // 2], "truncated"),
        ("[1, 2]", "expected 'uqno results', got 'list'"),
        ('{"format": "uqno.calibration"}', "got 'uqno.calibration'"),
        (newer, "format_version 3.*update uqno"),
        (json.dumps(lacking), r"rows\[1\] lacks bandwidth"),
        ('{"format": "uqno results", "format_version": 1}', "the record lacks task"),
        (
            '{"format": "uqno results", "format_version": 1, "rows": 3, "settings": []}',
            "lacks task",
        ),
        (json.dumps({**json.loads(text), "rows": [1]}), r"rows\[0\] must be an object, got int"),
        (json.dumps({**json.loads(text), "rows": 3}), "rows must be a list, got int"),
        (json.dumps({**json.loads(text), "paper": None}), "paper must be a list, got NoneType"),
        (json.dumps({**json.loads(text), "settings": None}), "settings must be an object"),
        (re.sub('"bandwidth":[^,]*', '"bandwidth":"wide"', text, count=1), "is 'wide', expected a"),
        (re.sub('"bandwidth":[^,]*', '"bandwidth":NaN', text, count=1), "is nan, expected a num"),
    ]:
        path.write_text(content)
        with pytest.raises(ValueError, match=f"results.json.*{why}"):
            results.read(path)
    with pytest.raises(ValueError, match="does not exist"):
        results.read(tmp_path / "none.json")


def test_what_json_cannot_hold_is_refused_before_the_file_is_touched(made, tmp_path):
    path = tmp_path / "results.json"
    path.write_text("old")
    bad = {**made, "rows": [{**made["rows"][0], "coverage": float("nan")}]}
    with pytest.raises(ValueError, match="nan cannot be written"):
        results.write(path, bad)
    assert path.read_text() == "old"


def test_a_row_says_what_was_measured():
    held = profiles(*simulated("uqno", count=100), measuring.ranks_needed(484, 50, [(0.1, 0.1)]))
    found = measuring.calibrated(held, 0.1, 0.1, calibration=50, splits=3)
    row = rows.row("nppc", found, "NPPC", share_of_variance=0.15, predict_seconds=2.0)
    assert (row["label"], row["target"], row["share_of_variance"]) == ("NPPC", 0.9, 0.15)
    assert (row["bandwidth"], row["p_value"]) == (found.bandwidth, found.p_value)
    assert row["relative_bandwidth"] is None
    sized = rows.row("nppc", found, "NPPC", rms=0.5)
    assert sized["relative_bandwidth"] == pytest.approx(2 * found.bandwidth)
    in_unit = rows.row("nppc", found, "NPPC", unit={"symbol": "Pa", "size": 3.0})
    assert in_unit["relative_bandwidth"] == found.bandwidth
    assert in_unit["bandwidth_in_unit"] == pytest.approx(3 * found.bandwidth)
    assert (row["train_seconds"], row["predict_seconds"]) == (None, 2.0)
    assert set(row) == set(results.Row.__annotations__)


def test_the_ablation_counts_from_the_reference():
    def band(sampling, bandwidth):
        feasible = bandwidth is not None
        return measuring.Measured(0.1, 0.02, sampling, True, feasible, bandwidth=bandwidth)

    recipes = {
        "paper": ("the paper's", "uqno-paper", band("hoeffding", 9.0)),
        "grid": ("the same, other ranks", "uqno-paper", band("grid", 6.0)),
        "uqno": ("ours", "uqno", band("grid", 2.0)),
        "uqno-hoeffding": ("ours, their ranks", "uqno", band("hoeffding", 3.0)),
        "not": ("none", "uqno", band("grid", None)),
        "iid": ("no such row of theirs", "uqno", band("iid", 2.5)),
    }
    ratios = {a["name"]: a["ratio"] for a in rows.ablated(recipes)}
    assert ratios == {
        "paper": 1.0, "grid": 1.0, "uqno": 3.0, "uqno-hoeffding": 3.0, "not": None, "iid": None,
    }  # fmt: skip
    assert {a["ratio"] for a in rows.ablated(recipes, "constant")} == {None}


def test_curves_keep_what_is_infeasible_as_nothing_and_targets_leave_it_out():
    good = measuring.Measured(
        0.1, 0.05, "grid", True, True, bandwidth=2.0, calibration_percentage=0.96,
        usual=(0.9, 0.99),
    )  # fmt: skip
    none = measuring.Measured(0.1, 0.001, "grid", True, False)
    assert rows.curve("uqno", [none, good])["bandwidth"] == [None, 2.0]
    found = rows.targets("uqno", [none, good])
    assert (found["target"], found["actual"]) == ([0.95], [0.96])
    assert (found["low"], found["high"]) == ([0.9], [0.99])


@pytest.mark.parametrize(("nodes", "most"), [(421, 90), (421, 64), (43, 64), (62, 10), (90, 90)])
def test_a_thinned_side_keeps_both_ends(nodes, most):
    step = thinning(nodes, most)
    kept = np.arange(nodes)[::step]
    assert kept[-1] == nodes - 1
    assert len(kept) <= most
    smaller = [s for s in range(1, step) if (nodes - 1) % s == 0]
    assert all(len(range(0, nodes, s)) > most for s in smaller)


def test_the_papers_table():
    assert len(DARCY) == len(CARS) == 8
    darcy = {(r["method"], r["alpha"]): r for r in DARCY}
    assert darcy["uqno-paper", 0.1]["bandwidth"] == 0.00045
    assert darcy["uqno-paper", 0.02]["bandwidth"] == 0.00062
    assert darcy["nppc", 0.1]["bandwidth"] is None
    assert darcy["mc-dropout", 0.02]["calibration_percentage"] == 0.994
    # The paper's own words: 1.52 and 76.1 times tighter than MC dropout and Laplace at 0.1.
    theirs = darcy["uqno-paper", 0.1]["bandwidth"]
    assert darcy["mc-dropout", 0.1]["bandwidth"] / theirs == pytest.approx(1.53, abs=0.011)
    assert darcy["laplace", 0.1]["bandwidth"] / theirs == pytest.approx(76.1, rel=0.01)
    assert {r["alpha"] for r in CARS} == {0.04, 0.12}
    for row in (*DARCY, *CARS):  # the paper calibrated its own method alone
        assert (row["sampling"] == "hoeffding") == (row["method"] == "uqno-paper")
