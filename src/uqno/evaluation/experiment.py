"""A run: functions, operators and models, held-out functions scored, and the record of it all.

    RUN/settings.json      what was trained; a run that trains otherwise is refused this folder
    RUN/<operator>/…       fits of the operators that methods share      (see methods.py)
    RUN/radius/…           fits of their radii
    RUN/models/<method>    the models
    RUN/profiles/…         what is kept of the held-out functions, a few dozen a file
    RUN/results.json       written last: a run that has it is done

Each part is whole or absent, so a run that was stopped at any instant goes on when it is called
again with the same folder. Called with more methods or other levels, it adds what is missing.
"""

from __future__ import annotations

import json
import multiprocessing
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from uqno._model_inputs import batches
from uqno.data import GridSamples, Recipe, generate
from uqno.data.files import write_whole
from uqno.data.generation import cores, end_with_parent
from uqno.data.split import Split
from uqno.data.store import FunctionStore
from uqno.evaluation import metrics, results
from uqno.evaluation.methods import (
    METHODS,
    Job,
    Workshop,
    epochs_done,
    jobs,
    train_seconds,
    trained,
)
from uqno.evaluation.presets import Settings
from uqno.evaluation.profile import Profile, concatenate, profile, rungs
from uqno.evaluation.results import Results
from uqno.model import UQNO
from uqno.radius import ComponentsRadius
from uqno.training.samples import Data

Reals = NDArray[np.float64]
Progress = Callable[[str, float, float], None]
"""(what is done, how much of it, of how much)."""

CHUNK = 50  # held-out functions a task
POLL = 0.5  # seconds between looks at the logs of fits
PANEL_NODES = 90  # at most so many nodes a side in the figures' fields
DELTAS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
# Settings that change no trained model: one folder may serve several of them.
AFTER_TRAINING = ("methods", "ablation", "alphas", "curve_alphas", "delta", "splits")
VERSIONS = ("uqno", "torch", "numpy", "scipy", "zarr")


@dataclass(frozen=True)
class Run:
    """Settings, and where they are worked out."""

    settings: Settings
    folder: Path
    data: Path

    # --- data ---------------------------------------------------------------------------------

    def stores(self) -> dict[str, tuple[Path, Recipe, range]]:
        """{role: (store, recipe, its functions)}; one store where all have one resolution."""
        s = self.settings
        every = s.train + s.held_out
        parts = {
            "train": (s.trained_at, range(s.train)),
            "held": (s.tested_at, range(s.train, every)),
        }
        if s.trained_at == s.tested_at:
            parts = {"all": (s.trained_at, range(every))}
        return {
            role: (
                self.data / f"darcy-{s.solved_at}-{kept}-seed{s.seed}-{every}-{role}.zarr",
                Recipe(seed=s.seed, resolution=s.solved_at, keep=(kept,)),
                part,
            )
            for role, (kept, part) in parts.items()
        }

    def make_data(self, workers: int, progress: Progress) -> None:
        s = self.settings
        chunk = gcd(s.train, 8)  # a part must end where a chunk does
        for role, (path, recipe, part) in self.stores().items():
            words = "solving" if role == "all" else f"solving, {role}"

            def tell(done: int, total: int, words: str = words) -> None:
                progress(words, done, total)

            generate(path, recipe, s.train + s.held_out, part, workers, chunk, tell)

    def samples(self, role: str) -> GridSamples:
        """Functions to "train" on or "held" out, at the resolution they are used at."""
        s = self.settings
        stores = self.stores()
        path, recipe, _ = stores.get(role) or stores["all"]
        chosen = range(s.train) if role == "train" else range(s.train, s.train + s.held_out)
        return FunctionStore.open(path).samples(recipe.keep[0], chosen)

    def split(self) -> Split:
        """The recorded split: functions are independent draws, so ranges of them are random."""
        s = self.settings
        ends = np.cumsum([0, s.train // 2, s.train - s.train // 2, s.calibration, s.test])
        parts = [tuple(range(a, b)) for a, b in pairwise(ends)]
        return Split(s.train + s.held_out, s.seed, *parts)

    # --- training -----------------------------------------------------------------------------

    def workshop(self) -> Workshop:
        return Workshop(self.settings, self.folder, self.samples("train").in_memory())

    def done(self, job: Job) -> bool:
        """Models are saved last; an operator is done when its last fit is."""
        kind, name = job.name.split("/", 1)
        if kind == "model":
            return (self.folder / "models" / name / "model.json").is_file()
        return self.progress([job]) >= job.work * self.settings.epochs

    def progress(self, these: Iterable[Job]) -> int:
        """Functions times epochs that are behind us."""
        return sum(
            functions * epochs_done(self.folder / fit)
            for job in these
            for fit, functions in job.fits.items()
        )

    # --- held-out functions -------------------------------------------------------------------

    def chunks(self) -> list[range]:
        n = self.settings.held_out
        return [range(i, min(i + CHUNK, n)) for i in range(0, n, CHUNK)]

    def chunk_file(self, name: str, chunk: range) -> Path:
        return self.folder / "profiles" / name / f"{chunk.start:05d}.npz"

    def is_scored(self, name: str, chunk: range) -> bool:
        """Whether the profile is there, with all the ranks that are asked for now."""
        file = self.chunk_file(name, chunk)
        return file.is_file() and np.array_equal(Profile.load(file).ranks, self.ladder)

    def profile(self, name: str) -> Profile:
        return concatenate([Profile.load(self.chunk_file(name, c)) for c in self.chunks()])

    def told(self, name: str) -> list[dict[str, Any]]:
        """What scoring a chunk told beside its profile: seconds, and for nppc `explained`."""
        files = (self.chunk_file(name, c).with_suffix(".json") for c in self.chunks())
        return [json.loads(file.read_text(encoding="utf8")) for file in files]

    @cached_property
    def ladder(self) -> NDArray[np.int64]:
        """The ranks that profiles keep: all that any row or figure will ask for."""
        s = self.settings
        points = s.tested_at**2
        levels = {(a, d) for a in (*s.alphas, *s.curve_alphas) for d in (s.delta, *DELTAS)}
        return rungs(points, metrics.ranks_needed(points, s.calibration, sorted(levels)))


def run(
    settings: Settings,
    folder: str | Path,
    *,
    data: str | Path = "data",
    preset: str = "",
    command: str = "",
    workers: int | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Results:
    """Do the whole comparison, or what is left of it, and return its record."""
    made = Run(settings, Path(folder), Path(data))
    finished = made.folder / "results.json"
    claim(made)
    if is_done(made):
        return results.read(finished)
    workers = workers or cores()
    made.make_data(workers, progress)
    with pool(workers) as executor:
        train_all(made, executor, workers, progress)
        score_all(made, executor, progress)
    progress("drawing conclusions", 0, 1)
    record = conclude(made, preset, command)
    (made.folder / "explorer.json").unlink(missing_ok=True)  # it is of other results
    results.write(finished, record)
    return results.read(finished)


def is_done(made: Run) -> bool:
    """Whether the folder has the results of these very settings."""
    finished = made.folder / "results.json"
    return finished.is_file() and results.read(finished)["settings"] == made.settings.record()


def claim(made: Run) -> None:
    """Write down what is trained in the folder; refuse one where something else was."""
    file = made.folder / "settings.json"
    wanted = made.settings.record()
    if file.is_file():
        try:
            found = json.loads(file.read_text(encoding="utf8"))["settings"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{file} is damaged: remove {made.folder} or choose another") from None
        different = {
            key: (found.get(key), value)
            for key, value in wanted.items()
            if found.get(key) != value and key not in AFTER_TRAINING
        }
        if different:
            raise ValueError(
                f"{made.folder} is a run with other settings (found, wanted): {different}; choose "
                "another folder with --out, or remove it"
            )
        return
    content = {"settings": wanted, "started": now(), "split": made.split().record()}
    made.folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, lambda aside: aside.write_text(json.dumps(content), encoding="utf8"))


def estimate(made: Run, workers: int | None = None) -> float:
    """Seconds that the rest of a run will take, from a few seconds of trying each part."""
    s = made.settings
    unsolved = sum(_missing(*store) for store in made.stores().values())
    every = jobs(s)
    untrained = sum(job.work for job in every) * s.epochs - made.progress(every)
    passes = sum(
        METHODS[name].passes * len(chunk)
        for name in trained(s)
        for chunk in made.chunks()
        if not made.is_scored(name, chunk)
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the processes
    try:
        solving = _seconds(
            lambda: Recipe(resolution=s.solved_at, keep=(s.solved_at,)).functions([0])
        )
        network = Workshop(s, made.folder, ()).network()
        a = torch.randn(s.batch_size, 1, s.trained_at, s.trained_at)
        training = _seconds(lambda: network(a).sum().backward()) / s.batch_size
        large = torch.randn(1, 1, s.tested_at, s.tested_at)
        with torch.no_grad():
            testing = _seconds(lambda: network(large))
    finally:
        torch.set_num_threads(threads)
    total = unsolved * solving + untrained * training + passes * testing
    return total / min(workers or cores(), cores())


def _missing(path: Path, recipe: Recipe, part: range) -> int:
    """Functions of a store that are still to be solved."""
    if not path.exists():
        return len(part)
    store = FunctionStore.open(path)
    return len(part) - sum(len(store.positions(int(c))) for c in np.flatnonzero(store.done()))


def _seconds(work: Callable[[], object]) -> float:
    """Of the second call: the first one also loads and plans."""
    work()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# --- processes --------------------------------------------------------------------------------


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    # Spawned, not forked: a fork of a process with torch's threads may hang.
    executor = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin_worker,
        initargs=(max(1, cores() // workers),),
    )
    try:
        yield executor
    except BaseException:
        for process in list((executor._processes or {}).values()):
            process.terminate()  # a fit would go on for minutes; its checkpoint is safe
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _begin_worker(threads: int) -> None:
    end_with_parent()
    torch.set_num_threads(threads)


def train_all(made: Run, executor: ProcessPoolExecutor, workers: int, progress: Progress) -> None:
    """Every job once those it needs are done, the longest first."""
    every = jobs(made.settings)
    total = sum(job.work for job in every) * made.settings.epochs
    done = {job.name for job in every if made.done(job)}
    waiting = sorted((j for j in every if j.name not in done), key=lambda j: -j.work)
    running: dict[Future[None], str] = {}
    while waiting or running:
        ready = [j for j in waiting if done.issuperset(j.needs)]
        for job in ready[: workers - len(running)]:
            waiting.remove(job)
            running[executor.submit(_train, made, job)] = job.name
        progress("training", made.progress(every), total)
        for future in wait(running, timeout=POLL, return_when=FIRST_COMPLETED).done:
            future.result()
            done.add(running.pop(future))
    progress("training", total, total)


def _train(made: Run, job: Job) -> None:
    job.run(made.workshop())


def score_all(made: Run, executor: ProcessPoolExecutor, progress: Progress) -> None:
    """The profile of every held-out function under every model."""
    names = trained(made.settings)
    tasks = [(name, chunk) for chunk in made.chunks() for name in names]
    missing = [task for task in tasks if not made.is_scored(*task)]
    running = {executor.submit(_score, made, *task): task for task in missing}
    functions = len(names) * made.settings.held_out
    behind = functions - sum(len(chunk) for _, chunk in missing)
    while running:
        progress("testing", behind, functions)
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            future.result()
            behind += len(running.pop(future)[1])
    progress("testing", functions, functions)


def _score(made: Run, name: str, chunk: range) -> None:
    model = loaded(made, name)
    ranks = made.ladder
    data = made.samples("held").subset(chunk)
    # Small batches of large functions: they gain nothing from company.
    size = max(1, min(16, 2**17 // made.settings.tested_at**2))
    parts, predicting, began = [], 0.0, time.perf_counter()
    before = began
    for error, radius, _ in model.scored(data, size):
        predicting += time.perf_counter() - before
        parts.append(profile(error, radius, ranks))
        before = time.perf_counter()
    file = made.chunk_file(name, chunk)
    file.parent.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {"predict": predicting, "all": time.perf_counter() - began}
    if isinstance(model.radius, ComponentsRadius):
        told["explained"] = _explained(model, model.radius, data, size)
    beside = file.with_suffix(".json")
    write_whole(beside, lambda aside: aside.write_text(json.dumps(told), encoding="utf8"))
    concatenate(parts).save(file)  # last: it marks the chunk as done


@torch.no_grad()
def _explained(model: UQNO, radius: ComponentsRadius, data: Data, size: int) -> list[float]:
    """The share of each function's error energy that lies in the subspace of nppc."""
    shares = [
        radius.explained(model.base, batch, batch["u"])
        for _, batch in batches(model.base.operator, data, size)
    ]
    return [float(share) for share in torch.cat(shares)]


def loaded(made: Run, name: str) -> UQNO:
    """A trained model, read; its training functions are not."""
    return Workshop(made.settings, made.folder, made.samples("train")).model(name)


# --- results ----------------------------------------------------------------------------------


def conclude(made: Run, preset: str, command: str) -> Results:
    """All numbers and all that figures are drawn from."""
    s = made.settings
    profiles = {name: made.profile(name) for name in trained(s)}
    shown = {name: profiles[name] for name in s.methods}
    started = json.loads((made.folder / "settings.json").read_text(encoding="utf8"))["started"]
    swept = {
        (name, alpha): metrics.sweep(
            shown[name], alpha, DELTAS, calibration=s.calibration, splits=s.splits, seed=s.seed
        )
        for name in s.methods
        for alpha in s.curve_alphas
    }
    first_test = s.calibration
    panel, section = pictures(made, shown, first_test)
    return Results(
        format=results.FORMAT,
        format_version=results.VERSION,
        task="darcy",
        preset=preset,
        command=command,
        started=started,
        finished=now(),
        settings=s.record(),
        versions={"python": platform.python_version(), **{v: version(v) for v in VERSIONS}},
        machine=f"{platform.machine()}, {cores()} cores",
        split={"train": s.train, "calibration": s.calibration, "test": s.test},
        rows=rows(made, shown),
        ablation=ablation(made, profiles) if s.ablation else [],
        curves=[results.curve(name, some) for (name, _), some in swept.items()],
        targets=[results.targets(name, some) for (name, _), some in swept.items()],
        panel=panel,
        section=section,
        paper=results.quoted("darcy"),
    )


def rows(made: Run, profiles: dict[str, Profile]) -> list[results.Row]:
    """Each method raw, where anyone would use it so, and calibrated, at every α."""
    s, found = made.settings, []
    for name, held in profiles.items():
        told = made.told(name)
        explained = np.array([share for part in told for share in part.get("explained", ())])
        more: dict[str, Any] = {
            "train_seconds": train_seconds(made.folder, name, s),
            "calibrate_seconds": sum(p["all"] for p in told) / s.held_out * s.calibration,
            "predict_seconds": sum(p["predict"] for p in told) / s.held_out,
            "share_of_variance": float(explained.mean()) if explained.size else None,
        }
        for alpha in s.alphas:
            if METHODS[name].raw:
                measured = metrics.raw(held, alpha, s.delta)
                if explained.size:
                    measured = _subspace(measured, explained)
                found.append(results.row(name, measured, **more))
            for sampling in ("hoeffding", "grid") if name == "uqno-paper" else ("grid",):
                measured = _calibrated(made, held, alpha, sampling)
                found.append(results.row(name, measured, **more))
    return found


def _subspace(measured: metrics.Measured, explained: Reals) -> metrics.Measured:
    """A subspace has no width; the paper calls a function covered by the share of its error
    energy inside."""
    share = float((explained >= 1 - measured.alpha).mean())
    return metrics.Measured(
        alpha=measured.alpha,
        delta=measured.delta,
        sampling=measured.sampling,
        calibrated=False,
        feasible=True,
        calibration_percentage=share,
        interval=metrics.exact_interval(share, explained.size),
        coverage=float(explained.mean()),
    )


def _calibrated(made: Run, held: Profile, alpha: float, sampling: str) -> metrics.Measured:
    s = made.settings
    return metrics.calibrated(
        held, alpha, s.delta, sampling, calibration=s.calibration, splits=s.splits, seed=s.seed
    )


LADDER = (
    # (name, what it is, model, ranks): one ingredient after the other, then each left out alone.
    ("paper", "the paper's recipe", "uqno-paper", "hoeffding"),
    ("best-t", "its ranks at the best t", "uqno-paper", metrics.BEST_T),
    ("iid", "ranks for random points", "uqno-paper", "iid"),
    ("grid", "ranks for the grid", "uqno-paper", "grid"),
    ("out-of-fold", "+ out-of-fold residuals", "out-of-fold", "grid"),
    ("symmetries", "+ symmetries", "no-spread", "grid"),
    ("spread", "+ their spread for E", "full-variation", "grid"),
    ("ours", "+ less variation of E: ours", "uqno", "grid"),
    ("ours-hoeffding", "ours, the paper's ranks", "uqno", "hoeffding"),
    ("ours-best-t", "ours, its ranks at the best t", "uqno", metrics.BEST_T),
    ("ours-iid", "ours, random points' ranks", "uqno", "iid"),
    ("ours-constant", "ours, a constant radius", "constant-symmetric", "grid"),
    ("ours-half", "ours, half and half split", "half-symmetric", "grid"),
    ("ours-half-disagreement", "the same, + disagreement", "disagreement", "grid"),
)


def ablation(made: Run, profiles: dict[str, Profile]) -> list[results.Ablated]:
    """What each ingredient contributes, at every α; the ratio is to the paper's recipe.

    Where its ranks are infeasible, to the same with ranks for the grid.
    """
    found = []
    for alpha in made.settings.alphas:
        recipes = {
            name: (label, _calibrated(made, profiles[model], alpha, sampling))
            for name, label, model, sampling in LADDER
        }
        found += results.ablated(recipes, "paper" if recipes["paper"][1].feasible else "grid")
    return found


def pictures(
    made: Run, profiles: dict[str, Profile], which: int
) -> tuple[results.Panel, results.Section]:
    """One test function, chosen by its place alone, under every method; and a cut through ours."""
    s, alpha = made.settings, made.settings.alphas[0]
    sample = made.samples("held")[which]
    nodes = sample["u"].shape[-1]
    step = max(1, -(-(nodes - 1) // PANEL_NODES))
    while (nodes - 1) % step:  # both ends of a side are shown
        step += 1
    methods, cut, prediction = [], None, None
    for name, held in profiles.items():
        measured = _calibrated(made, held, alpha, "grid")
        raw = not measured.feasible or measured.scale is None
        scale = 1.0 if measured.scale is None else measured.scale
        model = loaded(made, name)
        estimate = model.estimate(sample)
        center = estimate.center[0, 0].double().numpy()
        radius = estimate.radius[0].double().numpy()
        error = np.abs(sample["u"][0].double().numpy() - center)
        radius *= scale
        methods.append(
            results.PanelMethod(
                method=name,
                label=results.LABELS[name],
                calibrated=not raw,
                error=error[::step, ::step].tolist(),
                radius=radius[::step, ::step].tolist(),
                coverage=float((error <= radius).mean()),
            )
        )
        if prediction is None or name == "uqno":
            prediction, cut = center, (center[nodes // 2], radius[nodes // 2])
    if prediction is None or cut is None:
        raise ValueError("no methods to show: settings.methods is empty")
    truth = sample["u"][0].double().numpy()
    panel = results.Panel(
        alpha=alpha,
        delta=s.delta,
        input=sample["a"][0, ::step, ::step].tolist(),
        truth=truth[::step, ::step].tolist(),
        prediction=prediction[::step, ::step].tolist(),
        methods=methods,
    )
    middle, half = cut
    section = results.Section(
        x=np.linspace(0, 1, nodes)[::step].tolist(),
        truth=truth[nodes // 2, ::step].tolist(),
        center=middle[::step].tolist(),
        lower=(middle - half)[::step].tolist(),
        upper=(middle + half)[::step].tolist(),
    )
    return panel, section


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
