"""The words at the top say what the numbers say, good or bad."""

import pytest

from tests.experiments.simulated import record
from uqno.conformal import plan
from uqno.report import planner
from uqno.report.summary import summary


@pytest.fixture(scope="module")
def made():
    return record()


def changed(made, method, sampling, **values):
    rows = [
        {**r, **values} if (r["method"], r["sampling"]) == (method, sampling) else r
        for r in made["rows"]
    ]
    return {**made, "rows": rows}


def bandwidth(made, method, sampling):
    found = [r for r in made["rows"] if (r["method"], r["sampling"]) == (method, sampling)]
    return found[0]["bandwidth"]


def test_the_figure_to_remember_is_the_ratio_to_the_papers_recipe(made):
    ours, theirs = bandwidth(made, "uqno", "grid"), 3e-3
    with_paper = changed(made, "uqno-paper", "grid", bandwidth=theirs)
    said = summary(with_paper)
    assert said["figure"] == f"{theirs / ours:.1f} ×"
    assert f"{theirs / ours:.1f} times narrower" in said["headline"]
    assert "with the same ranks; ours alone has symmetries" in said["headline"]
    assert "α = 0.1, δ = 0.02" in said["caption"]
    aided = [
        {**r, "method": "uqno-paper-aided", "bandwidth": 2 * ours}
        for r in made["rows"]
        if (r["method"], r["sampling"]) == ("uqno-paper", "grid")
    ]
    with_aided = summary({**with_paper, "rows": [*with_paper["rows"], *aided]})
    assert with_aided["caption"].endswith("where the paper’s recipe has them too.")
    assert "ours alone" not in summary({**with_paper, "aids": ""})["headline"]


def test_a_wider_band_is_called_wider(made):
    said = summary(changed(made, "uqno-paper", "grid", bandwidth=1e-6))
    assert "wider" in said["headline"]
    assert "wider" in said["caption"]


def test_without_the_papers_recipe_the_bandwidth_is_the_figure(made):
    said = summary(changed(made, "uqno-paper", "grid", bandwidth=None))
    assert said["figure"] == "{:.2e}".format(bandwidth(made, "uqno", "grid")).replace("e-0", "e-")
    assert "not feasible" in said["caption"]


def test_an_infeasible_guarantee_is_not_praised(made):
    none = dict(bandwidth=None, calibration_percentage=None, p_value=None, reason="Too few.")
    said = summary(changed(made, "uqno", "grid", **none))
    assert said["headline"].startswith("No band")
    assert "Too few." in said["caption"]
    assert said["points"][2]["state"] == "bad"


def test_the_test_set_may_disagree(made):
    low = dict(calibration_percentage=0.9, failures=10, p_value=1e-5)
    agreed = summary(changed(made, "uqno", "grid", **low))["points"][2]
    assert agreed["state"] == "bad"
    assert agreed["text"].startswith("No.")
    assert "10 of 100 test functions of the recorded split" in agreed["text"]
    assert "probability below 0.001" in agreed["text"]
    assert "Not in agreement: UQNO (ours)" in agreed["text"]
    near = dict(calibration_percentage=0.94, failures=6, p_value=0.02)
    doubtful = summary(changed(made, "uqno", "grid", **near))["points"][2]
    assert doubtful["state"] == "near"
    assert "Doubtful: UQNO (ours)" in doubtful["text"]
    good = summary(changed(made, "uqno", "grid", failures=2, p_value=0.4))["points"][2]
    assert good["text"].startswith("Yes.")


def test_guarantee_and_data_name_their_numbers(made):
    texts = [
        p["text"]
        for p in summary({**made, "points": 576, "domain": {"kind": "grid", "nodes": [24, 24]}})[
            "points"
        ]
    ]
    assert "at least 98 %" in texts[0]
    assert "90 % or more of its 576 points" in texts[0]
    assert "120 to calibrate, 100 to test on 24 × 24 nodes" in texts[1]


def test_a_record_without_rows_has_a_top_too(made):
    assert summary({**made, "rows": []})["headline"] == "No calibrated band"


def test_the_planner_says_what_plan_says():
    found = planner.needed(0.1, 0.02)
    assert found["grid"] == plan(0.1, 0.02, 10, 100, "grid").smallest["functions"]
    for sampling in ("iid", "hoeffding"):
        curve = found[sampling]
        assert curve
        for n, m in curve[::5]:
            assert plan(0.1, 0.02, n, m, sampling).feasible
            assert plan(0.1, 0.02, n, 100, sampling).smallest["points"] == m
            assert m == 1 or not plan(0.1, 0.02, n, m - 1, sampling).feasible


def test_the_chart_has_the_levels_of_the_run():
    levels = {(p["alpha"], p["delta"]) for p in planner.chart((0.07,), (0.03,))}
    assert {(0.07, 0.03), (0.1, 0.02)} <= levels
