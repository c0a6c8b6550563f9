"""The commands that are stopped, and what each of them must not lose."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from matplotlib.figure import Figure

from tests.faults.disk import Tree, is_aside
from uqno import UQNO, storage
from uqno.conformal import calibrate
from uqno.data.calibrations import read_calibration
from uqno.data.store import FunctionStore
from uqno.experiments import experiment, jobs, results
from uqno.experiments.darcy import generation
from uqno.experiments.darcy.task import DarcyTask
from uqno.experiments.task import task_of
from uqno.model import files
from uqno.report import figures
from uqno.training.checkpoint import read_checkpoint
from uqno.uncertainty import Constant

Result = Any
ANEW = "copy it again, or remove it and run the generation again$"  # of a description of a store
NONE = "$^"  # a pattern that nothing fits


def nothing(root: Path) -> None:
    """Before the command, no more than an empty folder."""


def no_promise(before: Tree, after: Tree) -> None:
    """There is nothing that the command could lose."""


@dataclass(frozen=True)
class Command:
    """A command, and how to tell that it did what it should.

    Args:
        name: of the command.
        run: does it in a folder.
        result: what it led to, without times.
        prepare: fills the folder with what is there before it is called.
        stopped: is called on the disk of a stop or a power cut before the command runs on it
            again, and fails if something is read that is half-written, or is lost.
        kept: (disk before, disk after, result of the whole) fails if work was done twice.
        settings: patches for all of it, such as a system that cannot exchange folders.
        may_say: what the command may say instead of doing its work.
        damaged: (files that come back damaged, one at a time, from the disk of a finished command;
            files that are gone before), as patterns.
    """

    name: str
    run: Callable[[Path], object]
    result: Callable[[Path], Result]
    prepare: Callable[[Path], object] = nothing
    stopped: Callable[[Path], object] = nothing
    kept: Callable[[Tree, Tree], object] = no_promise
    settings: tuple[Callable[[], Any], ...] = ()
    may_say: str | None = None
    damaged: tuple[tuple[str, str], ...] = ()

    @contextmanager
    def set(self) -> Iterator[None]:
        """With the patches that every command and this one have."""
        with ExitStack() as entered:
            entered.enter_context(patch.object(storage, "BETWEEN_RENAMES", 0.002))
            for setting in self.settings:
                entered.enter_context(setting())
            yield


def uqno_command(*arguments: object) -> None:
    """`uqno …`, in this process; its errors are raised."""
    from uqno.cli.app import app

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        code = app([str(a) for a in arguments], standalone_mode=False)
    assert not code, code


def without_exchange() -> Any:
    return patch.object(storage, "exchange", lambda one, other: False)


# --- UQNO.save ---------------------------------------------------------------------------------


def _samples(count: int, seed: int) -> list[dict[str, Any]]:
    import torch

    generator = torch.Generator().manual_seed(seed)
    return [{"a": torch.randn(1, 8, generator=generator),
             "u": torch.randn(1, 8, generator=generator)} for _ in range(count)]  # fmt: skip


def _model(alpha: float) -> UQNO:
    model = UQNO(lambda a: a, Constant()).fit(_samples(5, 0))
    model.calibrate(_samples(40, 1), alpha, 0.2)
    return model


OLD, NEW = 0.3, 0.2


class Saving:
    """Saves one model over another; both are made once."""

    def __init__(self) -> None:
        self.models: dict[float, UQNO] = {}

    def model(self, alpha: float) -> UQNO:
        if alpha not in self.models:
            self.models[alpha] = _model(alpha)
        return self.models[alpha]

    def prepare(self, root: Path) -> None:
        self.model(NEW)
        self.model(OLD).save(root / "up" / "model")

    def run(self, root: Path) -> None:
        self.model(NEW).save(root / "up" / "model")

    def result(self, root: Path) -> Result:
        folder = root / "up" / "model"
        loaded = UQNO.load(folder, base=lambda a: a)
        tensors = {p.name: {n: t.numpy().tobytes() for n, t in read_checkpoint(p).tensors.items()}
                   for p in folder.glob("*.safetensors")}  # fmt: skip
        beside = [p.name for p in folder.parent.iterdir()]
        return loaded.calibrations, tensors, (folder / "model.json").read_bytes(), beside

    def a_model(self, root: Path) -> None:
        """The old or the new one."""
        loaded = UQNO.load(root / "up" / "model", base=lambda a: a)
        assert loaded.calibrations in [self.model(a).calibrations for a in (OLD, NEW)]

    def without_a_moment(self, root: Path) -> None:
        assert (root / "up" / "model" / "model.json").is_file(), "a moment without a model"
        self.a_model(root)

    def none_or_whole(self, root: Path) -> None:
        if (root / "up" / "model").exists():
            loaded = UQNO.load(root / "up" / "model", base=lambda a: a)
            assert loaded.calibrations == self.model(NEW).calibrations


def saving() -> list[Command]:
    one = Saving()
    common: dict[str, Any] = {"run": one.run, "result": one.result}
    over = {**common, "prepare": one.prepare}
    return [
        Command("save", stopped=one.none_or_whole, **common),
        Command("save over a model", stopped=one.without_a_moment, **over),
        Command("save over a model, without an exchange of folders", stopped=one.a_model,
                settings=(without_exchange,), **over),
    ]  # fmt: skip


# --- uqno data darcy ----------------------------------------------------------------------------

FUNCTIONS, NODES = 18, 9  # of which 16 are in the first chunk


def make_store(root: Path) -> None:
    uqno_command("data", "darcy", "--functions", FUNCTIONS, "--resolution", NODES, "--keep",
                 f"5,{NODES}", "--workers", 1, "--out", root / "data" / "d.zarr")  # fmt: skip


def store_content(root: Path) -> Result:
    store = FunctionStore.open(root / "data" / "d.zarr")
    arrays = {r: [x.tobytes() for x in store.samples(r).arrays()] for r in store.resolutions}
    return arrays, store.done().tolist(), sorted(p.name for p in (root / "data").iterdir())


def a_store_or_none(root: Path) -> None:
    """What is marked is whole."""
    path = root / "data" / "d.zarr"
    if path.exists():
        store = FunctionStore.open(path)
        for resolution in store.resolutions:
            for values in store.samples(resolution, store.available()).arrays():
                assert np.isfinite(values).all()


@contextmanager
def functions_are_made_once() -> Iterator[None]:
    """No function of a chunk that is marked is solved again."""
    make = generation._make_chunk

    def once(path: Path, recipe: Any, chunk: int) -> int:
        assert not FunctionStore.open(path).done()[chunk], f"chunk {chunk} is made twice"
        return make(path, recipe, chunk)

    with patch.object(generation, "_make_chunk", once):
        yield


def storing() -> list[Command]:
    return [
        Command("data darcy", run=make_store, result=store_content, stopped=a_store_or_none,
                settings=(functions_are_made_once,), damaged=((".", NONE),),
                may_say=ANEW),
    ]  # fmt: skip


# --- uqno run, uqno report ------------------------------------------------------------------------

TIMES = ("train_seconds", "calibrate_seconds", "predict_seconds")
SMALL = {
    "train": 16, "calibration": 6, "test": 3, "solved_at": 9, "trained_at": 9, "tested_at": 9,
    "modes": 2, "width": 2, "layers": 1, "epochs": 1, "batch_size": 4, "alphas": 0.2,
    "curve_alphas": 0.2, "delta": 0.2, "splits": 3,
}  # fmt: skip


@contextmanager
def in_this_process() -> Iterator[None]:
    """Jobs one after the other, here; without what takes long: drawing figures, and reading
    functions more than once."""
    here = partial(jobs.Workers, kind="here")
    drawn = {"bandwidth": lambda results: Figure(figsize=(1, 1))}
    read = cache(lambda task, role, chosen: _samples_of(task, role, chosen).in_memory())
    with (
        patch.object(experiment, "Workers", here),
        patch.object(experiment, "estimate", lambda *_: None),
        patch.object(DarcyTask, "_samples", lambda *which: read(*which)),
        patch.object(figures, "FIGURES", drawn),
        patch.object(figures, "render", lambda figure, to, kind: _write_short(to)),
    ):
        yield


_samples_of = DarcyTask._samples


def _write_short(to: Any) -> None:
    to.write("<svg/>" if isinstance(to, StringIO) else b"a picture")


@dataclass
class Comparing:
    """A comparison of some methods, on functions that are made before."""

    methods: tuple[str, ...]
    again: float | None = None
    made: dict[Path, dict[str, bytes]] = field(default_factory=dict)

    def settings(self, **changed: object) -> list[str]:
        values = {**SMALL, "methods": ",".join(self.methods), **changed}
        return [part for k, v in values.items() for part in ("--set", f"{k}={v}")]

    def prepare(self, root: Path) -> None:
        """The functions; where it is run again, also the run before, at other levels."""
        task_of.cache_clear()
        if self.again is None:
            total = SMALL["train"] + SMALL["calibration"] + SMALL["test"]
            name = f"darcy-lognormal-9-9-seed0-{total}-all.zarr"
            recipe = generation.Recipe(0, 9, keep=(9,), coefficient="lognormal")
            generation.generate(root / "data" / name, recipe, total, chunk=8)
        else:
            self.call(root, alphas=self.again)

    def run(self, root: Path) -> None:
        self.call(root)

    def call(self, root: Path, **changed: object) -> None:
        task_of.cache_clear()
        uqno_command("run", "darcy", *self.settings(**changed), "--out", root / "run", "--data",
                     root / "data", "--workers", 1)  # fmt: skip

    def report(self, root: Path) -> None:
        task_of.cache_clear()
        uqno_command("report", root / "run", "--figures", root / "run" / "figures", "--data",
                     root / "data")  # fmt: skip

    def finished(self, root: Path) -> None:
        """A finished run, the report of which was lost."""
        Comparing(self.methods).prepare(root)
        self.run(root)
        for name in ("explorer.json", "report.html"):
            (root / "run" / name).unlink()
        shutil.rmtree(root / "run" / "figures")

    def result(self, root: Path) -> Result:
        folder = root / "run"
        record: dict[str, Any] = dict(results.read(folder / "results.json"))
        rows = [{k: v for k, v in r.items() if k not in TIMES} for r in record["rows"]]
        for name in ("rows", "started", "finished"):
            del record[name]
        explorer = json.loads((folder / "explorer.json").read_text())
        # What a whole model was trained from is not needed any more, nor is a second copy.
        spared = r"\.damaged|^\.|/\.|^operators/|^uncertainty/|^settings\.copy"
        names = (str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
        files = sorted(name for name in names if not re.search(spared, name))
        page = (folder / "report.html").read_text()
        assert page.rstrip().endswith("</html>")
        table = (folder / "table.md").read_text() if (folder / "table.md").is_file() else ""
        started = json.loads((folder / "settings.json").read_text())
        del started["started"]
        return (rows, record, explorer, (folder / "scores.npz").read_bytes(), files,
                len(table.splitlines()), started)  # fmt: skip

    def written_whole(self, root: Path) -> None:
        """What is there can be read."""
        folder = root / "run"
        for name in self.methods:
            if (folder / "models" / name).exists():
                files.check(folder / "models" / name)
        if (folder / "results.json").exists():
            results.read(folder / "results.json")
        for file in folder.rglob("*"):
            if is_aside(str(file)):
                continue
            if file.suffix == ".json":
                json.loads(file.read_text())
            elif file.suffix in (".npz", ".npy"):
                np.load(file, allow_pickle=False)


def nothing_twice(before: Tree, after: Tree) -> None:
    """Models, finished fits and profiles that were there are the same, to the byte: a second fit
    would have taken another time."""
    for path, content in before.items():
        part = path.partition("/")[2].partition("/")[0]
        if content is None or part not in ("models", "operators", "uncertainty", "profiles"):
            continue
        if path.endswith(".safetensors") or path.endswith(".npz"):
            assert after.get(path) == content, f"{path} was made again"


def comparing() -> list[Command]:
    plain, both = Comparing(("constant",)), Comparing(("uqno-paper", "constant"))
    again = Comparing(("constant",), again=0.3)
    common: dict[str, Any] = {"settings": (in_this_process,), "kept": nothing_twice,
                              "stopped": both.written_whole, "may_say": ANEW}  # fmt: skip
    last = r"^run/(results\.json|explorer|report|table|figures)"
    others = r"^(data|run/(settings|scores|models|operators|uncertainty|profiles))"
    # The last ones while the run is finished, the others before it was.
    damaged = ((last + r"|^run/scores|^run/settings", NONE), (others, last))
    return [
        Command("run", run=plain.run, result=plain.result, prepare=plain.prepare, damaged=damaged,
                **common),
        Command("run of two methods", run=both.run, result=both.result, prepare=both.prepare,
                damaged=damaged, **common),
        Command("run again at other levels", run=again.run, result=again.result,
                prepare=lambda root: (plain.prepare(root), again.prepare(root)), **common),
        Command("report", run=plain.report, result=plain.result, prepare=plain.finished,
                damaged=((r"^run/(explorer|report|figures)", NONE),), **common),
    ]  # fmt: skip


# --- uqno calibrate -----------------------------------------------------------------------------

FEW, MANY = 60, 10_050  # scores of more than 10 000 functions lie beside the calibration


def _arrays(count: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(count, 4)).astype(np.float32)
    return {"truth": truth, "prediction": np.zeros_like(truth),
            "uncertainty": 1 + rng.random((count, 4)).astype(np.float32)}  # fmt: skip


@dataclass(frozen=True)
class Calibrating:
    """`uqno calibrate`, over the calibration of other functions or none."""

    functions: int
    before: int | None = None

    def prepare(self, root: Path) -> None:
        np.savez(root / "new.npz", **_arrays(self.functions, 1))
        if self.before is not None:
            np.savez(root / "old.npz", **_arrays(self.before, 0))
            self._call(root, "old.npz")

    def run(self, root: Path) -> None:
        self._call(root, "new.npz")

    def _call(self, root: Path, name: str) -> None:
        uqno_command("calibrate", root / name, "--alpha", 0.3, "--delta", 0.1, "--out",
                     root / "c" / "calibration.json")  # fmt: skip

    def result(self, root: Path) -> Result:
        read = read_calibration(root / "c" / "calibration.json")
        return (read.scale, read.rule, read.functions, read.scores.tobytes(),
                (root / "c" / "calibration.json").is_file())  # fmt: skip

    def old_or_new(self, root: Path) -> None:
        """The calibration that is there is that of the one file or of the other."""
        path = root / "c" / "calibration.json"
        if self.before is None and not path.exists():
            return
        read = read_calibration(path)
        sets = [(self.functions, 1)] + ([] if self.before is None else [(self.before, 0)])
        found = [self._calibration(*one) for one in sets]
        assert any(read.scale == c.scale and np.array_equal(read.scores, c.scores) for c in found)

    @staticmethod
    def _calibration(count: int, seed: int) -> Any:
        data = _arrays(count, seed)
        error = data["truth"].astype(float)
        return calibrate(error, data["uncertainty"], 0.3, 0.1, "grid")


def calibrating() -> list[Command]:
    found = []
    for functions, before in ((FEW, None), (MANY, None), (FEW, FEW), (MANY, MANY), (FEW, MANY),
                              (MANY, FEW)):  # fmt: skip
        one = Calibrating(functions, before)
        over = "" if before is None else f" over one of {before}"
        found.append(
            Command(
                f"calibrate with {functions} functions{over}",
                run=one.run,
                result=one.result,
                prepare=one.prepare,
                stopped=one.old_or_new,
            )
        )
    return found  # fmt: skip


def every() -> list[Command]:
    return [*saving(), *storing(), *comparing(), *calibrating()]
