"""The experiment: functions, operators and models, held-out functions scored, conclusions.

Each part is whole or absent, so a run that was stopped at any instant goes on when it is called
again with the same folder. Called with more methods or other levels, it adds what is missing.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from uqno._model_inputs import batches
from uqno.data import Recipe
from uqno.data.files import write_whole
from uqno.data.generation import cores, end_with_parent
from uqno.data.store import FunctionStore
from uqno.evaluation import results
from uqno.evaluation.conclusions import conclude
from uqno.evaluation.methods import METHODS, Job, Workshop, jobs, trained
from uqno.evaluation.presets import Settings
from uqno.evaluation.profile import concatenate, profile
from uqno.evaluation.results import Results
from uqno.evaluation.runs import Progress, Run, claim, is_done, loaded
from uqno.model import UQNO
from uqno.radius import ComponentsRadius
from uqno.training.samples import Data

POLL = 0.5  # seconds between looks at the logs of fits


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
