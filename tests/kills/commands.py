"""What is killed: commands that write, what each leaves at its end, and what may never be seen.

A command runs in a process of its own, with `folder` for itself and `given`, made once, to read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.uncertainty import problems
from uqno import UQNO
from uqno.cli.app import main
from uqno.data.example import write_example
from uqno.data.store import FunctionStore
from uqno.experiments import experiment, jobs
from uqno.experiments.darcy.settings import PRESETS
from uqno.experiments.runs import begin
from uqno.model import files
from uqno.storage import write_npz
from uqno.training.checkpoint import read_checkpoint

Result = dict[str, str]
"""{what: a hash or a number of it}."""

RUN = {
    "train": 64, "calibration": 60, "test": 70, "solved_at": 19, "trained_at": 19, "tested_at": 19,
    "modes": 4, "width": 4, "layers": 2, "epochs": 3, "members": 2, "curve_alphas": 0.1,
    "splits": 20, "ablation": "false", "methods": "uqno-paper,constant",
}  # fmt: skip
SMALL = {**RUN, "train": 16, "batch_size": 4, "test": 5, "epochs": 2}
TIMED = ("train_seconds", "calibrate_seconds", "predict_seconds")
SAVES = 12


def uqno(*words: object) -> None:
    """The command line, in this process."""
    sys.argv = ["uqno", *map(str, words)]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def hashes(folder: Path) -> Result:
    """Of all files but those that a killed process left, which the next write there sweeps."""
    found = [p for p in sorted(folder.rglob("*")) if p.is_file() and ".uqno-" not in str(p)]
    left_out = (".lock", files.SUMS)
    return {str(p.relative_to(folder)): hash_of(p) for p in found if p.name not in left_out}


def hash_of(file: Path) -> str:
    """Of what a file says, but for when; safetensors writes the same in any order."""
    content = file.read_bytes()
    if file.suffix == ".json":
        content = json.dumps(_without_times(json.loads(content)), sort_keys=True).encode()
    if file.suffix == ".safetensors":
        read = read_checkpoint(file)
        parts = [json.dumps(read.state, sort_keys=True).encode()]
        for name, x in sorted(read.tensors.items()):
            parts += [
                f"{name} {x.dtype} {tuple(x.shape)}".encode(),
                x.reshape(-1).view(torch.uint8).numpy().tobytes(),
            ]
        content = b"".join(parts)
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Command:
    """One thing that is killed.

    Args:
        run: does it, or goes on with it: (given, folder, workers).
        result: what it left, when it has ended: (folder).
        check: after a kill, raises where something half-written is read as whole: (given, folder).
        workers: whether it has processes of its own.

    With 0 `workers` a command is a smaller one, in one process.
    """

    run: Callable[[Path, Path, int], None]
    result: Callable[[Path], Result]
    check: Callable[[Path, Path], None] = lambda given, folder: None
    workers: bool = False


# --- run and data ---------------------------------------------------------------------------------


def run(given: Path, folder: Path, workers: int) -> None:
    if workers:
        changes = [word for name, x in RUN.items() for word in ("--set", f"{name}={x}")]
        uqno("run", "darcy", "--out", folder / "run", "--data", folder / "data", "--workers",
             workers, *changes)  # fmt: skip
    else:  # without its figures, and without importing torch again in every worker
        experiment.Workers = lambda count, **more: jobs.Workers(1, "here")
        settings = PRESETS["quick"].changed([f"{name}={x}" for name, x in SMALL.items()])
        experiment.compare(begin(settings, folder / "run", folder / "data"), workers=1)


def _without_times(content: Any) -> Any:
    """JSON without what tells when and how often: a command that is given again is told of."""
    if isinstance(content, dict):
        kept = (n for n in content if n not in ("created", "circumstances", "checksum", "history"))
        return {name: _without_times(content[name]) for name in kept}
    return [_without_times(one) for one in content] if isinstance(content, list) else content


def run_result(folder: Path) -> Result:
    record = json.loads((folder / "run" / "results.json").read_text())
    rows = [{n: x for n, x in row.items() if n not in TIMED} for row in record["rows"]]
    with np.load(folder / "run" / "scores.npz") as scores:
        found = {n: hashlib.sha256(scores[n].tobytes()).hexdigest() for n in scores.files}
    models = {
        n: h for n, h in hashes(folder / "run" / "models").items() if n.endswith(".safetensors")
    }
    return {"rows": json.dumps(rows, sort_keys=True), **found, **models}


def run_check(given: Path, folder: Path) -> None:
    for model in folder.glob("run/models/*"):
        if not model.name.startswith(".uqno-"):
            files.check(model)


def data(given: Path, folder: Path, workers: int) -> None:
    uqno("data", "darcy", "--functions", 192 if workers else 48, "--resolution", 43, "--keep",
         "22,43", "--workers", workers or 1, "--out", folder / "d.zarr")  # fmt: skip


def data_check(given: Path, folder: Path) -> None:
    if (folder / "d.zarr").exists():
        store = FunctionStore.open(folder / "d.zarr")
        for sample in store.samples(22, store.available()):
            assert torch.isfinite(sample["u"]).all()


# --- models ---------------------------------------------------------------------------------------


def fit(given: Path, folder: Path, workers: int) -> None:
    torch.manual_seed(0)
    model = UQNO(problems.fno(dropout=0.2))
    more = {**problems.QUICK, "epochs": 4, "folder": folder / "fit", "resume": True}
    model.fit(problems.functions(16), seed=0, checkpoint_every=0.0, **more)
    states = [model.base.operator.state_dict(), model.uncertainty.state_dict()]
    arrays = {f"{k}.{n}": x.numpy() for k, state in enumerate(states) for n, x in state.items()}
    write_npz(folder / "weights.npz", arrays)


def make_models(given: Path) -> None:
    """Two calibrated models, a and b, for `save` and `calibrate`."""
    for k, name in enumerate("ab"):
        model = UQNO(problems.fno(dropout=0.0)).fit(problems.functions(8), seed=k, **problems.QUICK)
        model.calibrate(problems.functions(40, seed=k + 5), 0.2, 0.2)
        model.save(given / name)


def save(given: Path, folder: Path, workers: int) -> None:
    models = [UQNO.load(given / name) for name in "ab"]
    for k in range(SAVES):
        models[k % 2].save(folder / "model")
        (folder / "saved").touch()


def save_check(given: Path, folder: Path) -> None:
    """Once there was a model there is one, and it is a or b."""
    if (folder / "saved").exists():
        files.check(folder / "model")
        assert hashes(folder / "model") in [hashes(given / name) for name in "ab"]


def calibrate(given: Path, folder: Path, workers: int) -> None:
    uqno("calibrate", given / "set.npz", "--out", folder / "calibration.json", "--json")
    for k in (1, 2):
        model = UQNO.load(given / "a")
        model.calibrate(problems.functions(40, seed=9), [0.2, 0.3][:k], 0.2)
        model.save(folder / "model")


def calibrate_check(given: Path, folder: Path) -> None:
    if (folder / "calibration.json").exists():
        json.loads((folder / "calibration.json").read_text())
    if (folder / "model").exists():
        files.check(folder / "model")


# --- report ---------------------------------------------------------------------------------------


def report(given: Path, folder: Path, workers: int) -> None:
    if not (folder / "run").exists():
        shutil.copytree(given / "run", folder / "half", dirs_exist_ok=True)
        (folder / "half").rename(folder / "run")
    figures = ("--figures", folder / "figures") if workers else ()
    uqno("report", folder / "run", "--data", given / "data", *figures)


def report_result(folder: Path) -> Result:
    page = {
        n: h for n, h in hashes(folder / "run").items() if n in ("report.html", "explorer.json")
    }
    return {**page, **hashes(folder / "figures")}


COMMANDS = {
    "run": Command(run, run_result, run_check, workers=True),
    "data": Command(data, lambda folder: hashes(folder / "d.zarr"), data_check, workers=True),
    "fit": Command(fit, lambda folder: {"weights": hashes(folder)["weights.npz"]}),
    "save": Command(save, lambda folder: hashes(folder / "model"), save_check),
    "calibrate": Command(calibrate, hashes, calibrate_check),
    "report": Command(report, report_result),
}


def make_given(given: Path) -> None:
    """What commands read."""
    write_example(given / "set.npz", functions=200, points=2000)
    make_models(given)
    run(given, given, 0)
