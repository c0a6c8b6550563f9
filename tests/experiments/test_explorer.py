"""What a page explores is what the run measured: the same scales, the same fields."""

import json

import numpy as np
import pytest

import uqno
from tests.experiments.simulated import CALIBRATION, DELTA, HELD, SIDE
from tests.experiments.simulated_run import SimulatedRun, fields, made_explorer, truths
from uqno.experiments.darcy.settings import DarcySettings
from uqno.experiments.explorer import read_explorer
from uqno.experiments.exploring import (
    NODES,
    alpha_stops,
    chosen,
    delta_stops,
    ranks_of,
    write_explorer,
)
from uqno.experiments.packing import Shelf, packed, unpacked
from uqno.experiments.runs import reopen
from uqno.experiments.scene import thinning
from uqno.experiments.settings import PUBLISHED_METHODS


@pytest.fixture(scope="module")
def made():
    return made_explorer()


def test_scales_are_those_of_calibrate(made):
    for method in made["methods"]:
        error, uncertainty = (
            f[:CALIBRATION].reshape(CALIBRATION, -1) for f in fields(method["method"])
        )
        scores = unpacked(method["scores"])
        assert scores.shape == (HELD, len(made["alphas"]))
        for alpha in (0.1, 0.02, 0.05):
            column = made["alphas"].index(alpha)
            assert made["exact"][column]
            for delta in (0.02, 0.1):
                rank = CALIBRATION + 1 - int((CALIBRATION + 1) * delta)
                scale = np.sort(scores[:CALIBRATION, column])[rank - 1]
                wanted = uqno.calibrate(error, uncertainty, alpha=alpha, delta=delta).scale
                assert scale == pytest.approx(wanted, rel=1e-6)


def test_a_rank_is_never_below_the_one_that_the_rule_asks_for(made):
    asked = [int(np.ceil(round(SIDE**2 * (1 - a), 9))) for a in made["alphas"]]
    for taken, wanted, exact in zip(made["ranks"], asked, made["exact"], strict=True):
        assert taken in made["rungs"]
        assert taken >= wanted
        assert exact == (taken == wanted)
    assert ranks_of(10, np.array([1, 5, 10]), [0.5, 0.4]) == ([5, 10], [True, False])


def test_fields_come_back_to_half_a_step(made):
    inputs, solutions = truths()
    for shown in made["functions"]:
        held = shown["held"]
        assert held >= CALIBRATION, "only test functions are shown"
        np.testing.assert_array_equal(unpacked(made["fields"][shown["input"]]), inputs[held])
        for name, view in shown["views"].items():
            error, uncertainty = (f[held] for f in fields(name))
            for place, wanted in ((view["residual"], error), (view["uncertainty"], uncertainty)):
                stored = made["fields"][place]
                step = (stored["high"] - stored["low"]) / 65535
                np.testing.assert_allclose(unpacked(stored), wanted, atol=0.51 * step, rtol=1e-12)
        truth = made["fields"][shown["truth"]]
        np.testing.assert_allclose(unpacked(truth), solutions[held], atol=1e-6)


def test_best_median_and_worst_come_first_then_from_better_to_worse(made):
    places = [f["place"] for f in made["functions"]]
    assert places[:3] == ["best", "median", "worst"]
    assert len(places) == len(set(places)) == 25
    held = SimulatedRun().profile("uqno")
    column = made["alphas"].index(0.1)
    scale = np.sort(unpacked(made["methods"][0]["scores"])[:CALIBRATION, column])[-2]
    coverage = held.coverage(scale)[:, 0]
    best, median, worst, *rest = (coverage[f["held"]] for f in made["functions"])
    assert best == coverage[CALIBRATION:].max()
    assert worst == coverage[CALIBRATION:].min()
    assert median == pytest.approx(np.median(coverage[CALIBRATION:]), abs=0.01)
    assert rest == sorted(rest, reverse=True)


def test_few_functions_are_all_shown():
    assert chosen(np.array([0.5, 0.9]), np.array([2.0, 1.0])) == [(1, "best"), (0, "worst")]
    assert [name for _, name in chosen(np.ones(3), np.arange(3.0))] == ["best", "median", "worst"]


def test_the_run_s_own_levels_are_stops_of_the_sliders():
    assert {0.1, 0.07, 0.123} <= set(alpha_stops((0.123, 0.1)))
    stops, own = delta_stops(0.0125)
    assert own == 12500
    assert own in stops
    assert delta_stops(1 / 3)[1] == 333333  # to the millionth below: on the safe side


def test_thinning_keeps_both_ends():
    for nodes in (2, 3, 43, 64, 65, 85, 128, 421, 422):
        step = thinning(nodes, NODES)
        assert (nodes - 1) % step == 0
        assert (nodes - 1) // step + 1 <= 64


def test_packing():
    assert packed(np.full((2, 3), 0.1), "uint16")["data"] == ""
    assert unpacked(packed(np.full((2, 3), 0.1), "uint16")).tolist() == [[0.1] * 3] * 2
    assert unpacked(packed([1.5, np.inf])).tolist() == [1.5, np.inf]
    with pytest.raises(ValueError, match="not finite"):
        packed([1.0, np.nan], "uint8")
    corners = packed([[0, 1, 65535]], "index16")
    assert (corners["low"], corners["high"], corners["shape"]) == (0, 65535, [1, 3])
    assert unpacked(corners).tolist() == [[0, 1, 65535]]
    for wrong in (-1, 65536, 0.5, np.nan):
        with pytest.raises(ValueError, match="index16 holds whole numbers"):
            packed([wrong], "index16")
    shelf = Shelf()
    assert [shelf.put(np.arange(3) * x) for x in (1, 2, 1)] == [0, 1, 0]
    assert len(shelf.fields) == 2


def test_methods_that_predict_alike_share_fields(made):
    count = sum(2 + 2 * len(f["views"]) for f in made["functions"])
    assert len(made["fields"]) < count  # the constant uncertainty, at least, is stored once


def test_it_is_written_whole_and_read_again(tmp_path):
    told = []
    run = SimulatedRun(tmp_path)
    path = write_explorer(run, lambda *said: told.append(said), count=3)
    assert [f.name for f in tmp_path.iterdir()] == ["explorer.json"]
    assert told[-1][1:] == (3 * len(PUBLISHED_METHODS) - 1, 3 * len(PUBLISHED_METHODS))
    found = read_explorer(path)
    assert found is not None
    assert len(found["functions"]) == 3
    assert found["delta"] == DELTA * 1_000_000
    before = path.read_bytes()
    write_explorer(run, count=4)  # it is there: kept
    assert path.read_bytes() == before


def test_foreign_files_are_refused_by_name(tmp_path):
    path = tmp_path / "explorer.json"
    assert read_explorer(path) is None
    for content, why in [
        ("{", "not whole JSON"),
        ("[]", "not an explorer file"),
        ('{"format": "uqno explorer", "format_version": 99}', "newer"),
        ('{"format": "uqno explorer", "format_version": 1}', "lacks task"),
    ]:
        path.write_text(content)
        with pytest.raises(ValueError, match=why):
            read_explorer(path)


def test_a_run_without_models_or_data_is_not_reopen(tmp_path):
    assert reopen(tmp_path, tmp_path) is None
    settings = DarcySettings().record()
    (tmp_path / "settings.json").write_text(json.dumps({"settings": settings}))
    assert reopen(tmp_path, tmp_path) is None
