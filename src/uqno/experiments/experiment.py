"""The experiment: functions, operators and models, held-out functions scored, conclusions.

Each part is whole or absent, so a run that was stopped at any instant goes on when it is called
again with the same folder. Called with more methods or other levels, it adds what is missing.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Subset

from uqno.conformal.profile import concatenate, profile
from uqno.experiments import results
from uqno.experiments.conclusions import conclude
from uqno.experiments.darcy.generation import cores
from uqno.experiments.methods import METHODS, Job, jobs, trained
from uqno.experiments.presets import Settings
from uqno.experiments.processes import pool, seconds
from uqno.experiments.profiles import write_profile
from uqno.experiments.results import Results
from uqno.experiments.runs import Run, claim, is_done, loaded
from uqno.model import UQNO
from uqno.model.inputs import batches
from uqno.operators import as_operator
from uqno.storage import write_text
from uqno.types import Progress, Samples
from uqno.uncertainty import Components

POLL = 0.5  # seconds between looks at the logs of fits


def run(
    settings: Settings,
    folder: str | Path,
    *,
    data: str | Path | None = None,
    preset: str = "",
    command: str = "",
    workers: int | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Results:
    """Do the whole comparison, or what is left of it, and return its record."""
    made = Run(settings, Path(folder), None if data is None else Path(data))
    finished = made.folder / "results.json"
    claim(made)
    if is_done(made):
        return results.read(finished)
    workers = workers or cores()
    made.task.make_data(workers, progress)
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
    s, task = made.settings, made.task
    every = jobs(s)
    untrained = sum(job.work for job in every) - made.progress(every)
    images = max(1, len(made.workshop().symmetries))
    passes = sum(
        METHODS[name].passes(images, s.committee) * len(chunk)
        for name in trained(s)
        for chunk in made.chunks()
        if not made.is_scored(name, chunk)
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the processes
    try:
        making = task.seconds_to_make()
        operator = as_operator(task.network())
        batch, one = (task.trial(role) for role in ("train", "held"))
        training = seconds(lambda: operator(batch).sum().backward()) / s.batch_size
        with torch.no_grad():
            testing = seconds(lambda: operator(one))
    finally:
        torch.set_num_threads(threads)
    total = making + untrained * training + passes * testing
    return total / min(workers or cores(), cores())


# --- processes --------------------------------------------------------------------------------


def train_all(made: Run, executor: ProcessPoolExecutor, workers: int, progress: Progress) -> None:
    """Every job once those it needs are done, the longest first."""
    every = jobs(made.settings)
    total = sum(job.work for job in every)
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
    data: Samples = Subset(made.held(name), chunk)  # type: ignore[arg-type]
    size = made.task.scored_at_once
    parts, misses, predicting, began = [], [], 0.0, time.perf_counter()
    before = began
    for i, (error, uncertainty, _) in enumerate(model.scored(data, size)):
        predicting += time.perf_counter() - before
        sample = data[i]
        areas = sample["surface_weights"].numpy() if "surface_weights" in sample else None
        parts.append(profile(error, uncertainty, made.ladder, areas, made.levels))
        misses.append(float(np.linalg.norm(error) / sample["u"].double().norm()))
        before = time.perf_counter()
    file = made.chunk_file(name, chunk)
    file.parent.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {"predict": predicting, "all": time.perf_counter() - began}
    told["relative_error"] = misses
    if isinstance(model.uncertainty, Components):
        told["explained"] = _explained(model, model.uncertainty, data, size)
    beside = file.with_suffix(".json")
    write_text(beside, json.dumps(told))
    write_profile(file, concatenate(parts))  # last: it marks the chunk as done


@torch.no_grad()
def _explained(model: UQNO, uncertainty: Components, data: Samples, size: int) -> list[float]:
    """The share of each function's error energy that lies in the subspace of nppc."""
    shares = [
        uncertainty.explained(model.base, batch, batch["u"])
        for _, batch in batches(model.base, data, size)
    ]
    return [float(share) for share in torch.cat(shares)]
