"""The experiment: functions, operators and models, held-out functions scored, conclusions.

Each part is whole or absent, so a run that was stopped at any instant goes on when it is called
again with the same folder. Called with more methods or other levels, it adds what is missing.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch.utils.data import Subset

from uqno.conformal.profile import concatenate, profile
from uqno.experiments import extensions, results
from uqno.experiments.ablation import methods_of
from uqno.experiments.conclusions import conclude
from uqno.experiments.explorer import FILE as EXPLORER_FILE
from uqno.experiments.jobs import Job, Workers, cores, seconds, share_cores
from uqno.experiments.methods import METHODS
from uqno.experiments.profiles import write_profile
from uqno.experiments.results import Results
from uqno.experiments.runs import WORK, Run, ScoringNote
from uqno.experiments.workshop import Part, parts
from uqno.operators import as_operator
from uqno.storage import alone, remove_file
from uqno.types import Progress, Samples


def compare(
    run: Run,
    *,
    preset: str = "",
    command: str = "",
    workers: int | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Results:
    """Do a whole comparison, or what is left of it.

    Args:
        run: what `runs.begin` returned.
        preset, command: how it was asked for, for the record.
        workers: processes; one a core by default.
        progress: is told what is done, how much of it, and of how much.

    Returns:
        The record, as it is in RUN/results.json.

    Raises:
        ValueError: another process is at work in the folder.
        ChildProcessError: the process of a job has died several times, see `jobs`.
    """
    if not run.is_done():  # a finished one is shown from a disk that cannot be written, too
        with alone(run.folder, WORK):
            if not run.is_done():  # by a process that was faster
                _compare(run, preset, command, workers or cores(), progress)
    return results.read(run.results_file)


def _compare(run: Run, preset: str, command: str, count: int, progress: Progress) -> None:
    """The comparison, in a folder that nobody else works in."""
    run.task.make_data(count, progress)
    with Workers(count, begin=_begin_worker, arguments=(count, extensions.modules())) as pool:
        train_all(run, pool, progress)
        score_all(run, pool, progress)
    progress("drawing conclusions", 0, 1)
    record = conclude(run, preset, command)
    remove_file(run.folder / EXPLORER_FILE)  # it shows other results
    results.write(run.results_file, record)


def estimate(run: Run, workers: int | None = None) -> float | None:
    """Seconds that the rest of a run will take, from a few seconds of trying each part.

    Returns:
        None where a task has no functions yet to try it with.
    """
    s, task = run.settings, run.task
    batch, one = (task.trial(role) for role in ("train", "held"))
    if batch is None or one is None:
        return None
    untrained = sum(part.work - part.behind(run.folder) for part in parts(s))
    images = max(1, len(run.workshop.symmetries))
    passes = sum(
        METHODS[name].passes(images, s.committee) * len(chunk)
        for name in methods_of(s)
        for chunk in run.chunks()
        if not run.is_scored(name, chunk)
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the processes
    try:
        making = task.seconds_to_make()
        operator = as_operator(task.network())
        training = seconds(lambda: operator(batch).sum().backward()) / s.batch_size
        with torch.no_grad():
            testing = seconds(lambda: operator(one))
    finally:
        torch.set_num_threads(threads)
    total = making + untrained * training + passes * testing
    return total / min(workers or cores(), cores())


# --- in other processes -----------------------------------------------------------------------


def _begin_worker(workers: int, modules: tuple[tuple[str, str], ...]) -> None:
    share_cores(workers)
    extensions.use_again(modules)


def train_all(run: Run, pool: Workers, progress: Progress) -> None:
    """Every part once those it needs are done, the longest first."""
    every = parts(run.settings)
    total = sum(part.work for part in every)
    done = {part.name for part in every if part.is_done(run.folder)}
    jobs = [Job(p.name, _train, (run, p), p.needs, p.work) for p in every if p.name not in done]

    def watch() -> None:
        progress("training", sum(part.behind(run.folder) for part in every), total)

    for _ in pool.completed(jobs, done, watch):
        pass
    progress("training", total, total)


def _train(run: Run, part: Part) -> None:
    part.train(run.workshop)


def score_all(run: Run, pool: Workers, progress: Progress) -> None:
    """The profile of every held-out function under every model."""
    names = methods_of(run.settings)
    jobs = [
        Job(str(run.chunk_file(name, chunk)), _score, (run, name, chunk))
        for chunk in run.chunks()
        for name in names
        if not run.is_scored(name, chunk)
    ]
    total = len(names) * run.settings.held_out
    behind = total - sum(len(job.arguments[2]) for job in jobs)
    progress("testing", behind, total)
    for _, functions in pool.completed(jobs):
        behind += functions
        progress("testing", behind, total)
    progress("testing", total, total)


def _score(run: Run, name: str, chunk: range) -> int:
    """Write the profile of some held-out functions under a method; how many they are."""
    model = run.model(name)
    data: Samples = Subset(run.held(name), chunk)  # type: ignore[arg-type]
    size = run.task.scored_at_once
    profiles, relative, predicting, began = [], [], 0.0, time.perf_counter()
    before = began
    for i, (error, uncertainty, _) in enumerate(model.scored(data, size)):
        predicting += time.perf_counter() - before
        sample = data[i]
        areas = sample["surface_weights"].numpy() if "surface_weights" in sample else None
        profiles.append(profile(error, uncertainty, run.ranks, areas, run.levels))
        relative.append(float(np.linalg.norm(error) / sample["u"].double().norm()))
        before = time.perf_counter()
    took = time.perf_counter() - began
    explained = METHODS[name].explained
    shares = None if explained is None else explained(model, data, size)
    file = run.chunk_file(name, chunk)
    ScoringNote(predicting, took, relative, shares).write(file.with_suffix(".json"))
    write_profile(file, concatenate(profiles))  # last: it marks the chunk as done
    return len(chunk)
