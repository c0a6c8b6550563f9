"""The command line as a person meets it: real processes, exit codes, one-line errors."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import uqno
from uqno.data.example import example, write_example
from uqno.data.store import FunctionStore


def run(*arguments, cwd=None, columns=80):
    return subprocess.run(
        [sys.executable, "-c", "from uqno.cli.app import main; main()", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd,
        env={**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"},
    )  # fmt: skip


def test_plan_in_words_and_as_json():
    arguments = ("plan", "--alpha", 0.1, "--delta", 0.02, "--functions", 500, "--points", 1849,
                 "--sampling", "iid")  # fmt: skip
    words = run(*arguments)
    assert words.returncode == 0
    assert "1681st" in words.stdout
    assert max(map(len, words.stdout.splitlines())) <= 80
    found = json.loads(run(*arguments, "--json").stdout)
    assert found["feasible"]
    assert found["ranks"] == {"point": 1681, "function": 492}


def test_a_report_needs_a_finished_run(tmp_path):
    told = run("report", tmp_path)
    assert told.returncode == 2
    assert "results.json does not exist: `uqno run` writes it" in " ".join(told.stderr.split())


def test_a_report_is_written_into_the_folder_of_the_run(tmp_path):
    from tests.experiments.simulated import record
    from uqno.experiments import results

    results.write(tmp_path / "results.json", record(("uqno", "laplace")))
    told = run("report", tmp_path, "--figures", tmp_path / "figures", "--json")
    assert told.returncode == 0, told.stderr
    written = json.loads(told.stdout)["out"]
    assert written[0] == str(tmp_path / "report.html")
    assert {os.path.splitext(path)[1] for path in written[1:]} == {".png", ".svg"}
    assert all(os.path.getsize(path) > 1000 for path in written)


def test_an_infeasible_plan_is_an_answer():
    told = run("plan", "--functions", 40)
    assert told.returncode == 0
    assert "Not feasible" in told.stdout
    assert "49" in told.stdout


@pytest.mark.parametrize("sampling", ["grid", "iid", "hoeffding"])
def test_calibrate_writes_what_the_library_computes(sampling, tmp_path):
    write_example(tmp_path / "set.npz", functions=200, points=300)
    done = run("calibrate", "set.npz", "--alpha", 0.2, "--delta", 0.05, "--sampling", sampling,
               cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = uqno.Calibration.from_json((tmp_path / "calibration.json").read_text())
    arrays = example(200, 300)
    error = arrays["truth"].astype(float) - arrays["prediction"]
    assert found == uqno.calibrate(error, arrays["uncertainty"], 0.2, 0.05, sampling)
    assert found.guarantee in " ".join(done.stdout.split())


def test_calibrate_as_json(tmp_path):
    write_example(tmp_path / "set.npz", functions=60, points=20)
    done = run("calibrate", "set.npz", "--delta", 0.1, "--confidence", 0.9, "--out", "a/b.json",
               "--json", cwd=tmp_path)  # fmt: skip
    found = json.loads(done.stdout)
    assert found["guarantee"]["confidence"] == 0.9
    assert "confidence 90 %" in found["words"]
    assert json.loads((tmp_path / "a" / "b.json").read_text())["scale"] == found["scale"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "--alpha", 2), "alpha = 2.0 must lie strictly between 0 and 1"),
        (("plan", "--alpha", "x"), "--alpha"),
        (("plan", "--sampling", "all"), "'grid', 'iid', 'hoeffding'"),
        (("nothing",), "No such command 'nothing'"),
        (("calibrate",), "file"),
        (("calibrate", "missing.npz"), "missing.npz does not exist"),
        (("calibrate", "set.npz", "--delta", 0.001), "Not feasible with 60"),
        (("calibrate", "bad.npz"), "error of function 1 is nan"),
        (("calibrate", "set.npz", "--delta", 0.1, "--out", "set.npz/x.json"), "set.npz"),
        (("data", "example", "--out", "x.txt"), "must end in .npz"),
    ],
)
def test_errors_are_one_line_on_stderr_with_exit_code_2(arguments, said, tmp_path):
    write_example(tmp_path / "set.npz", functions=60, points=20)
    arrays = example(60, 20)
    arrays["truth"][1, 3] = np.nan
    np.savez(tmp_path / "bad.npz", **arrays)
    failed = run(*arguments, cwd=tmp_path)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert said in failed.stderr
    assert failed.stderr.startswith("uqno: ")
    assert failed.stderr.count("\n") == 1
    assert not (tmp_path / "calibration.json").exists()


def test_help_names_every_command():
    told = run("--help").stdout
    for command in ("plan", "calibrate", "data"):
        assert command in told
    assert run().stdout == told
    assert run("--version").stdout == f"uqno {uqno.__version__}\n"


@pytest.mark.parametrize(
    ("command", "default"),
    [
        ("run darcy", "(runs/TASK-PRESET)"),
        ("run darcy", "(data)"),
        ("run cars", "(the set that comes with"),
        ("report", "(in the run, or in the"),
    ],
)
def test_help_tells_defaults_that_are_words(command, default):
    assert default in run(*command.split(), "--help").stdout


def test_markup_in_a_file_name_is_printed_as_it_is(tmp_path):
    write_example(tmp_path / "set.npz", functions=60, points=20)
    done = run("calibrate", "set.npz", "--delta", 0.1, "--out", "[red]x[-red].json", cwd=tmp_path)
    assert "[red]x[-red].json" in done.stdout


SMALL = [
    *("train=64", "calibration=60", "test=60", "solved_at=19", "trained_at=19", "tested_at=19"),
    *("modes=4", "width=4", "layers=2", "epochs=1", "curve_alphas=0.1", "splits=10"),
    "methods=uqno-paper,constant",
]


def test_a_run_ends_in_a_table_and_figures_and_says_when_it_is_done(tmp_path):
    changes = [part for change in SMALL for part in ("--set", change)]
    arguments = ("run", "darcy", "--preset", "quick", *changes, "--out", "run")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "about" in done.stdout
    assert "Constant" in done.stdout
    lines = [line for line in done.stdout.splitlines() if "file:" not in line]
    assert max(map(len, lines)) <= 80
    assert "training 100 %" in done.stderr
    assert "report   file:///" in done.stdout
    for name in ("results.json", "table.md", "report.html", "figures/band.svg"):
        assert (tmp_path / "run" / name).is_file()
    record = json.loads((tmp_path / "run" / "results.json").read_text())
    assert record["command"].startswith("uqno run darcy --preset quick --set train=64")
    again = run(*arguments, cwd=tmp_path)
    assert again.returncode == 0
    assert "run is done; remove it to run it again" in again.stdout
    assert "Constant" in again.stdout
    other = run(*arguments, "--set", "epochs=2", cwd=tmp_path)
    assert other.returncode == 2
    assert "other settings" in other.stderr


def test_input_is_not_overwritten(tmp_path):
    file = tmp_path / "held.npz"
    file.write_bytes(b"precious")
    for arguments in (
        ["calibrate", file, "--out", file],
        ["predict", tmp_path, file, "--out", file],
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert "is the file that is read: choose another name" in done.stderr
    assert file.read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "darcy", "--set", "epoch=3"], "the nearest are epochs"),
        (["run", "darcy", "--preset", "huge"], "quick, standard, paper"),
        (["data", "cars", "--figure", "a.pdf"], "a name that ends in .png or .svg"),
        (["data", "cars", "--pack", "cars.dat"], "a name that ends in .npz"),
        (["run", "cars", "--preset", "huge"], "quick, standard, paper"),
        (["run", "cars", "--set", "latents=8,6,6"], "the nearest are latent"),
        (["run", "cars", "--data", "none.npz"], "none.npz does not exist; make it with: uqno data"),
        (["data", "darcy", "--keep", "a,b"], "resolutions joined by commas"),
        (["data", "darcy", "--resolution", "43", "--keep", "20"], "not among those"),
    ],
)
def test_bad_settings_are_one_line(arguments, said, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_settings_can_be_looked_at(tmp_path):
    shown = run("run", "darcy", "--preset", "paper", "--set", "epochs=3", "--settings")
    assert json.loads(shown.stdout)["epochs"] == 3
    assert json.loads(shown.stdout)["tested_at"] == 421
    shown = run("run", "cars", "--set", "latent=20,8,8", "--set", "modes=6,4,4", "--settings")
    assert json.loads(shown.stdout)["latent"] == [20, 8, 8]


def test_cars_are_made_and_packed(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from tests.experiments.cars import fake
    from uqno.cli.app import app

    fake.install(monkeypatch.setattr)
    arguments = ["data", "cars", "--cars", "2", "--workers", "1", "--seed", "3"]
    arguments += ["--out", str(tmp_path / "cars"), "--pack", str(tmp_path / "cars.npz")]
    arguments += ["--figure", str(tmp_path / "cars.svg")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "2 cars in" in result.output
    assert "1 refused" in result.output
    assert (tmp_path / "cars.npz").is_file()


def test_darcy_functions_are_made_and_made_once(tmp_path):
    arguments = ("data", "darcy", "--functions", 3, "--resolution", 19, "--keep", "10,19",
                 "--workers", 1, "--out", "d.zarr")  # fmt: skip
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 functions at 10,19 in d.zarr" in done.stdout
    assert run(*arguments, cwd=tmp_path).returncode == 0
    store = FunctionStore.open(tmp_path / "d.zarr")
    assert store.samples(10)[2]["u"].shape == (1, 10, 10)
