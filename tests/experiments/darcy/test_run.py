"""A whole comparison, so small that it trains in seconds: what it leaves, and that it goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from uqno import storage
from uqno.conformal import calibrate, coverage
from uqno.experiments import evidence, experiment, measuring, results, runs
from uqno.experiments.ablation import methods_of, steps
from uqno.experiments.darcy.settings import DarcySettings
from uqno.experiments.methods import METHODS, Fit, SharedOperator
from uqno.experiments.runs import Run, begin
from uqno.experiments.settings import ALL_METHODS, PUBLISHED_METHODS
from uqno.experiments.workshop import Part, Workshop, parts

TINY = DarcySettings(
    train=64,
    calibration=60,
    test=70,
    solved_at=19,
    trained_at=19,
    tested_at=19,
    modes=4,
    width=4,
    layers=2,
    epochs=1,
    members=2,
    curve_alphas=(0.1,),
    splits=20,
    ablation=True,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Every method and the ablation, in two processes."""
    folder = tmp_path_factory.mktemp("run")
    told = []
    run = begin(TINY, folder / "run", folder / "data")
    record = experiment.compare(
        run,
        preset="tiny",
        command="uqno run darcy",
        workers=2,
        progress=lambda *what: told.append(what),
    )
    return run, record, told


def test_every_method_has_its_rows(finished):
    _, record, _ = finished
    rows = {(r["method"], r["calibrated"], r["alpha"], r["sampling"]) for r in record["rows"]}
    for name in ALL_METHODS:
        for alpha in TINY.alphas:
            assert (name, True, alpha, "grid") in rows
            assert ((name, False, alpha, "none") in rows) is METHODS[name].raw
    assert ("uqno-paper", True, 0.1, "hoeffding") in rows
    for row in record["rows"]:
        if row["calibrated"] and row["feasible"]:
            assert 0 < row["p_value"] <= 1
            assert row["bandwidth"] > 0
            assert row["relative_bandwidth"] == pytest.approx(
                row["bandwidth"] / record["rms"], 1e-4
            )
            assert row["predict_seconds"] > 0
        assert row["train_seconds"] > 0


def test_a_subspace_has_no_bandwidth(finished):
    _, record, _ = finished
    (raw,) = [
        r
        for r in record["rows"]
        if r["method"] == "nppc" and not r["calibrated"] and r["alpha"] == 0.1
    ]
    assert raw["bandwidth"] is None
    assert 0 < raw["share_of_variance"] < 1
    assert raw["calibration_percentage"] == raw["share_of_variance"]


def test_the_numbers_are_those_of_the_library(finished):
    """The bandwidth of a row, again, from the model, uqno.calibrate and the recorded splits."""
    made, record, _ = finished
    model = made.model("uqno-paper")
    scored = [(e, r) for e, r, _ in model.scored(made.task.held())]
    error, uncertainty = (np.array([pair[i] for pair in scored]) for i in (0, 1))
    learn, test = measuring.random_splits(130, 60, TINY.splits, TINY.seed)
    widths = []
    for cal, new in zip(learn, test, strict=True):
        scale = calibrate(error[cal], uncertainty[cal], 0.1, 0.02).scale
        widths.append(scale * uncertainty[new].mean())
    recorded = calibrate(error[:60], uncertainty[:60], 0.1, 0.02).scale
    share = (coverage(error[60:], uncertainty[60:], recorded) >= 0.9).mean()
    (row,) = [
        r
        for r in record["rows"]
        if r["method"] == "uqno-paper" and r["sampling"] == "grid" and r["alpha"] == 0.1
    ]
    assert row["bandwidth"] == pytest.approx(np.mean(widths), rel=1e-5)
    assert row["calibration_percentage"] == pytest.approx(share, rel=1e-5)
    truth = made.task.train()
    squares = [float((truth[i]["u"].double() ** 2).mean()) for i in range(len(truth))]
    assert record["rms"] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-5)


def test_the_scores_beside_the_record_give_its_numbers_again(finished):
    made, record, _ = finished
    scores = evidence.read_scores(made.scores_file)
    assert set(scores) == set(methods_of(TINY))
    again = evidence.recomputed(record, scores)
    assert again == record
    scores["uqno"].mean_uncertainty[:] *= 1.01
    assert evidence.recomputed(record, scores)["rows"] != record["rows"]


def test_the_papers_numbers_stand_beside_its_law_alone(finished):
    made, record, _ = finished
    assert record["paper"]
    other = replace(TINY, coefficient="two-valued")
    task = Run(other, made.folder, made.data).task
    assert task.quoted == ()
    assert not {path for path, *_ in task.stores().values()} & {
        path for path, *_ in made.task.stores().values()
    }


def test_aided_methods_have_what_ours_has(finished):
    made, record, _ = finished
    looks = {look["name"]: look for look in record["methods"]}
    assert [name for name, look in looks.items() if look["aided"]] == list(ALL_METHODS[9:])
    for name in ALL_METHODS:
        symmetric = len(made.model(name).base.symmetries) == 8
        assert symmetric == (name == "uqno" or METHODS[name].aided)
    assert {curve["method"] for curve in record["curves"]} == set(PUBLISHED_METHODS)
    assert [m["method"] for m in record["panel"]["methods"]] == list(PUBLISHED_METHODS)
    assert record["aids"] == "symmetries"


def test_the_ablation_goes_from_the_paper_to_ours(finished):
    _, record, _ = finished
    names = [row["name"] for row in record["ablation"] if row["alpha"] == 0.1]
    assert names == [step.name for step in steps(TINY)]
    by_name = {row["name"]: row for row in record["ablation"] if row["alpha"] == 0.1}
    (ours,) = [
        r for r in record["rows"] if r["method"] == "uqno" and r["alpha"] == 0.1 and r["calibrated"]
    ]
    assert by_name["uqno"]["bandwidth"] == ours["bandwidth"]
    assert not by_name["paper"]["feasible"]  # 361 points are too few for Hoeffding's bound
    expected = by_name["grid"]["bandwidth"] / ours["bandwidth"]
    assert by_name["uqno"]["ratio"] == pytest.approx(expected, rel=1e-5)


def test_calibration_and_test_functions_are_not_trained_on(finished):
    made, _, _ = finished
    split = json.loads((made.folder / "settings.json").read_text())["split"]
    roles = [set(split[role]) for role in ("base", "residual", "calibration", "test")]
    assert sum(map(len, roles)) == len(set().union(*roles)) == 64 + 130
    held = made.task.held()
    for name in methods_of(TINY):
        made.model(name).calibrate(held, 0.1, 0.02)  # refuses what it has seen


def test_progress_reaches_the_end_of_every_stage(finished):
    *_, told = finished
    for stage in ("solving", "training", "testing"):
        last = [(done, total) for what, done, total in told if what == stage][-1]
        assert last[0] == last[1] > 0


def test_a_finished_run_is_read(finished, monkeypatch):
    made, record, _ = finished
    monkeypatch.setattr(experiment, "Workers", None)  # nothing is to be computed
    assert experiment.compare(made) == record


def test_a_finished_run_answers_for_other_levels_without_training(finished, monkeypatch):
    made, record, _ = finished
    asked = replace(TINY, alphas=(0.2,), methods=("uqno-paper", "constant"), ablation=False)
    monkeypatch.setattr(Part, "train", None)  # nothing is to be trained
    other = experiment.compare(begin(asked, made.folder, made.data), workers=1)
    assert {row["alpha"] for row in other["rows"]} == {0.2}
    again = experiment.compare(made, workers=1)
    assert again["rows"][1]["bandwidth"] == record["rows"][1]["bandwidth"]


def test_another_run_in_the_same_folder_is_refused(finished):
    made, _, _ = finished
    with pytest.raises(ValueError, match=r"'epochs': \(1, 2\).*another folder"):
        begin(replace(TINY, epochs=2), made.folder, made.data)


def test_the_estimate_falls_as_the_run_goes_on(finished, tmp_path):
    made, _, _ = finished
    fresh = Run(TINY, tmp_path / "run", tmp_path / "data")
    assert experiment.estimate(fresh, 1) > 0
    assert experiment.estimate(made, 1) == 0


def test_two_stores_where_the_test_is_finer(tmp_path):
    settings = replace(TINY, trained_at=10, methods=("constant",), ablation=False)
    made = Run(settings, tmp_path / "run", tmp_path / "data")
    made.task.make_data(1, lambda *what: None)
    train, held = made.task.train(), made.task.held()
    assert train[0]["u"].shape == (1, 10, 10)
    assert held[0]["u"].shape == (1, 19, 19)
    assert (len(train), len(held)) == (64, 130)
    same = Run(replace(settings, trained_at=19), tmp_path / "run", tmp_path / "data")
    same.task.make_data(1, lambda *what: None)
    # Function i is the same one, whatever store it is in.
    np.testing.assert_array_equal(same.task.train()[5]["u"][:, ::2, ::2], train[5]["u"])
    np.testing.assert_array_equal(same.task.held()[7]["u"], held[7]["u"])


def test_parts_cover_what_methods_need():
    every = {part.name: part for part in parts(DarcySettings())}
    for part in every.values():
        assert set(part.needs) <= set(every)
    assert every["operator folds"].fits == {
        "operators/folds/fold-0": (1000, 25),
        "operators/folds/fold-1": (1000, 25),
        "operators/folds/final": (2000, 25),
    }
    assert "model no-deviation" not in {
        part.name for part in parts(replace(DarcySettings(), ablation=False))
    }


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("deviation", [True, False])
@pytest.mark.parametrize("committee", [1, 2, 5])
def test_the_ablation_shows_models_that_are_trained_and_differ(symmetric, deviation, committee):
    settings = replace(
        DarcySettings(),
        symmetric=symmetric,
        deviation=deviation,
        committee=committee,
        ablation=True,
    )
    rows = steps(settings)
    bands = [(step.method, step.sampling) for step in rows]
    assert len(set(bands)) == len(rows)
    shown = {step.method for step in rows}
    assert shown <= set(methods_of(settings)) <= shown | set(settings.methods)
    names = [step.name for step in rows]
    assert len(set(names)) == len(names)
    assert ("symmetries" in names) == symmetric
    (last,) = [step for step in rows if step.name == "uqno"]
    assert last.label.endswith(": ours")


def test_without_symmetries_operators_that_differ_in_them_are_trained_once():
    settings = replace(DarcySettings(), symmetric=False, committee=3)
    every = {part.name: part for part in parts(settings)}
    assert not [part for part in every.values() if part.operator and part.operator.symmetric]
    committee = tuple(f"operator folds{k}" for k in ("", "-2", "-3"))
    assert every["model uqno"].needs == committee
    assert every["model nppc"].needs == committee[:1]


def test_networks_of_errors_have_epochs_of_their_own(tmp_path):
    settings = replace(
        TINY, epochs=4, uncertainty_share=0.5, methods=("uqno-paper", "ensemble"), ablation=False
    )
    every = {part.name: part for part in parts(settings)}
    assert every["model uqno-paper"].fits == {"uncertainty/uqno-paper/uncertainty": (32, 2)}
    assert {fit.epochs for fit in every["model ensemble"].fits.values()} == {4}
    run = Run(settings, tmp_path / "run", tmp_path / "data")
    run.task.make_data(1, lambda *what: None)
    for name in ("operator half", "model uqno-paper"):
        part = every[name]
        assert not part.is_done(run.folder)
        part.train(run.workshop)
        assert part.is_done(run.folder)
        assert part.behind(run.folder) == part.work


def test_two_numbers_give_two_operators(tmp_path):
    run = Run(replace(TINY, methods=("uqno-paper",)), tmp_path / "run", tmp_path / "data")
    run.task.make_data(1, lambda *what: None)
    workshop = Workshop(run.task, tmp_path / "a")
    both = [workshop.operator(SharedOperator("half", symmetric=True, number=k)) for k in (1, 2)]
    weights = [next(operator.parameters()).detach() for operator in both]
    assert not np.allclose(*weights)


SCRIPT = """
import json, sys
if __name__ == "__main__":  # workers import this file too
    from uqno.experiments import experiment
    from uqno.experiments.darcy.settings import DarcySettings
    from uqno.experiments.runs import begin

    run, data, workers, settings = sys.argv[1:]
    settings = DarcySettings.from_record(json.loads(settings))
    experiment.compare(begin(settings, run, data), workers=int(workers))
"""
KILLED = replace(TINY, methods=("uqno-paper", "constant"), ablation=False, epochs=3)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_results(tmp_path):
    """kill -9 of the process group twice; then the results are those of a run left alone.

    Most of the time goes into importing torch in new processes, so there are two workers once.
    """
    Run(KILLED, tmp_path / "alone", tmp_path / "data").task.make_data(1, lambda *what: None)
    script = tmp_path / "go.py"
    script.write_text(SCRIPT)
    settings = json.dumps(KILLED.record())
    for marker, workers in (("operators/half/log.csv", 2), ("models/constant/model.json", 1)):
        command = [script, tmp_path / "run", tmp_path / "data", workers, settings]
        process = subprocess.Popen([sys.executable, *map(str, command)], start_new_session=True)
        until = time.monotonic() + 600  # on a busy machine
        try:
            while not (tmp_path / "run" / marker).exists():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert not (tmp_path / "run" / "results.json").exists()
    resumed, alone = (
        experiment.compare(begin(KILLED, tmp_path / name, tmp_path / "data"), workers=1)
        for name in ("run", "alone")
    )
    timed = ("train_seconds", "calibrate_seconds", "predict_seconds")
    for one, other in zip(resumed["rows"], alone["rows"], strict=True):
        assert {k: v for k, v in one.items() if k not in timed} == {
            k: v for k, v in other.items() if k not in timed
        }
    assert results.read(tmp_path / "run" / "results.json") == resumed


def test_parts_that_came_back_damaged_are_set_aside_and_made_again(tmp_path):
    """After a power cut: the same command ends in the same results, and nothing is thrown away."""
    settings = replace(TINY, methods=("uqno-paper", "constant"), ablation=False)
    run = begin(settings, tmp_path / "run", tmp_path / "data")
    before = experiment.compare(run, workers=1)
    (store,) = run.data.glob("*.zarr")
    damaged = [
        run.folder / "settings.json",
        run.folder / "results.json",
        run.folder / "models/uqno-paper/base.safetensors",
        run.folder / "models/constant/model.json",
        next(run.folder.glob("uncertainty/uqno-paper/**/last.safetensors")),
        run.chunk_file("constant", run.chunks()[0]),
        run.chunk_file("uqno-paper", run.chunks()[1]).with_suffix(".json"),
        next(store.rglob("solutions/c/0/0/0")),
    ]
    for file in damaged:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    (run.folder / "models/constant/model.json").unlink()
    again = experiment.compare(begin(settings, run.folder, run.data), workers=1)
    for one, other in zip(before["rows"], again["rows"], strict=True):
        for name in ("method", "alpha", "scale", "bandwidth", "calibration_percentage"):
            assert one.get(name) == other.get(name)
    aside = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.damaged")}
    assert len(aside) == 10  # a profile goes with its note, and a note with its profile
    assert {"run/settings.json.damaged", "run/models/constant.damaged"} <= aside
    assert run.is_done()


def test_settings_without_a_copy_are_refused(tmp_path):
    run = begin(TINY, tmp_path / "run", tmp_path / "data")
    content = run.settings_file.read_text()
    for damage in (lambda: run.settings_file.write_text(""), run.settings_file.unlink):
        damage()
        begin(TINY, tmp_path / "run", tmp_path / "data")
        assert run.settings_file.read_text() == content, "from its copy"
    run.settings_file.write_text("")
    run.settings_copy.unlink()
    with pytest.raises(ValueError, match=r"settings\.json is damaged .*choose another"):
        begin(TINY, tmp_path / "run", tmp_path / "data")


def test_two_runs_in_one_folder(tmp_path, monkeypatch):
    """One has the lock, the other one says so, and trains nothing."""
    run = begin(TINY, tmp_path / "run", tmp_path / "data")
    monkeypatch.setattr(experiment, "Workers", None)
    with (
        storage.alone(run.folder, "a run"),
        pytest.raises(ValueError, match=r"another process has a run in .*run: let it finish"),
    ):
        experiment.compare(begin(TINY, run.folder, run.data))


def test_of_two_that_claim_a_folder_one_is_refused(tmp_path, monkeypatch):
    """Both find it empty; the slower one must not put its settings over those of the other."""
    claim = runs._claimed
    other = replace(TINY, epochs=2)

    def slower(run, identity):
        with pytest.raises(ValueError, match="another process has a run"):
            begin(other, run.folder, run.data)
        return claim(run, identity)

    monkeypatch.setattr(runs, "_claimed", slower)
    begin(TINY, tmp_path / "run", tmp_path / "data")
    monkeypatch.setattr(runs, "_claimed", claim)
    started = runs._started
    calls = iter([lambda run: None])  # looked before the other one claimed it
    monkeypatch.setattr(runs, "_started", lambda run: next(calls, started)(run))
    with pytest.raises(ValueError, match=r"'epochs': \(1, 2\)"):
        begin(other, tmp_path / "run", tmp_path / "data")
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["settings"]["epochs"] == 1


def test_a_row_of_a_log_that_is_cut_is_none(tmp_path):
    whole = "epoch,step,learning_rate,training_loss,validation_loss,seconds\n1,4,0.1,0.5,,0.25\n"
    part = Part("operator half", (), {"fit": Fit(10, 1)})
    (tmp_path / "fit").mkdir()
    for cut in range(1, 30):
        (tmp_path / "fit" / "log.csv").write_text(whole[:-cut])
        assert not part.is_done(tmp_path)
    (tmp_path / "fit" / "log.csv").write_bytes(bytes(len(whole)))
    assert not part.is_done(tmp_path)
    (tmp_path / "fit" / "log.csv").write_text(whole)
    assert part.is_done(tmp_path)
