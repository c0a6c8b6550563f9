"""The folder of a run: what is trained and measured, and where it lies.

RUN/settings.json      what was trained; a run that trains otherwise is refused this folder
RUN/settings.copy.json the same again, should a disk lose the first
RUN/operators/…        fits of the operators that methods share      (see methods/operators.py)
RUN/uncertainty/…      fits of the methods' uncertainties
RUN/models/<method>    the models
RUN/profiles/…         what is kept of the held-out functions, a few dozen a file
RUN/scores.npz         scores and mean uncertainties, from which bandwidths and verdicts follow
RUN/results.json       written last: a run that has it is done

What came back damaged from a disk is set aside by name (NAME.damaged) and made again by the same
command: models and profiles from what they were made of, settings from their copy.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from uqno.conformal import plan
from uqno.conformal.profile import Profile, concatenate, profile_ranks
from uqno.experiments import measuring, results
from uqno.experiments.methods import METHODS
from uqno.experiments.profiles import is_archive, read_profile
from uqno.experiments.settings import Settings
from uqno.experiments.task import Identity, Task, task_of, task_type
from uqno.experiments.workshop import Workshop
from uqno.model import UQNO
from uqno.storage import DamagedError, alone, as_path, read_json, set_aside, write_json
from uqno.types import Integers, Samples

log = logging.getLogger(__name__)

CHUNK = 50  # held-out functions that are scored in one job
DELTAS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
WORK = "a run"  # that a folder is locked for
# Settings that change no trained model: one folder may serve several of them.
AFTER_TRAINING = ("methods", "ablation", "alphas", "curve_alphas", "delta", "splits")


@dataclass(frozen=True)
class ScoringNote:
    """What is noted beside the profile of a chunk of held-out functions.

    Args:
        predict_seconds: time of the predictions.
        all_seconds: time of predictions and scores.
        relative_error: ‖u − Ĝ(a)‖ / ‖u‖ of each function.
        explained: of each function, for a method that gives a subspace (see `Method.explained`).
    """

    predict_seconds: float
    all_seconds: float
    relative_error: list[float]
    explained: list[float] | None = None

    def write(self, file: Path) -> None:
        """As JSON."""
        write_json(file, asdict(self))

    @classmethod
    def read(cls, file: Path) -> ScoringNote:
        """What `write` wrote; a ValueError says what to do with a damaged file."""
        remedy = f"remove it and {file.stem}.npz, and run again"
        content = read_json(file, remedy)
        try:
            return cls(**content)
        except TypeError as why:
            raise DamagedError(f"{file} is damaged ({why}): {remedy}") from None


@dataclass(frozen=True)
class Run:
    """Settings, and where they are worked out; `begin` makes one and claims its folder.

    Args:
        settings: of any task.
        folder: of the run.
        data: where the functions are; None for the task's own place.
    """

    settings: Settings
    folder: Path
    data: Path | None = None

    @property
    def task(self) -> Task:
        """What is compared on; each process has its own, it is not sent with the run."""
        return task_of(self.settings, self.folder, self.data)

    @property
    def workshop(self) -> Workshop:
        """Where operators and models are trained."""
        return Workshop(self.task, self.folder)

    @property
    def results_file(self) -> Path:
        return self.folder / "results.json"

    @property
    def scores_file(self) -> Path:
        return self.folder / "scores.npz"

    @property
    def settings_file(self) -> Path:
        return self.folder / "settings.json"

    @property
    def settings_copy(self) -> Path:
        return self.folder / "settings.copy.json"

    def is_done(self) -> bool:
        """Whether the folder has the results of these very settings, and their scores."""
        file = self.results_file
        if not file.is_file():
            return False
        try:
            read_json(file, "run again")
        except DamagedError:
            set_aside(file)
            return False
        same = results.read(file)["settings"] == self.settings.record()
        return same and is_archive(self.scores_file)

    def model(self, name: str) -> UQNO:
        """The trained model of a method, read from its folder."""
        return self.workshop.model(name)

    # --- held-out functions -------------------------------------------------------------------

    def held(self, name: str) -> Samples:
        """The held-out functions as a method sees them."""
        return self.task.held(METHODS[name].base(self.settings).extra_inputs)

    def chunks(self) -> list[range]:
        """The held-out functions, as they are scored together."""
        n = self.settings.held_out
        return [range(i, min(i + CHUNK, n)) for i in range(0, n, CHUNK)]

    def chunk_file(self, name: str, chunk: range) -> Path:
        """The profile of a chunk under a method; its note lies beside it, as .json."""
        return self.folder / "profiles" / name / f"{chunk.start:05d}.npz"

    def is_scored(self, name: str, chunk: range) -> bool:
        """Whether the profile is there, with all the ranks and levels that are asked for now."""
        file = self.chunk_file(name, chunk)
        if not file.is_file():
            return False
        note = file.with_suffix(".json")
        try:
            there = read_profile(file)
            ScoringNote.read(note)
        except DamagedError:
            for part in (file, note):
                if part.exists():
                    set_aside(part)
            return False
        same_levels = there.area is None or there.area.alphas.tolist() == self.levels
        return same_levels and np.array_equal(there.ranks, self.ranks)

    def profile(self, name: str) -> Profile:
        """All held-out functions under a method, the calibration functions first."""
        return concatenate([read_profile(self.chunk_file(name, c)) for c in self.chunks()])

    def notes(self, name: str) -> list[ScoringNote]:
        """What was noted beside the profiles of a method, chunk by chunk."""
        files = (self.chunk_file(name, c).with_suffix(".json") for c in self.chunks())
        return [ScoringNote.read(file) for file in files]

    @property
    def levels(self) -> list[float]:
        """Every α that a row or a figure has."""
        return sorted({*self.settings.alphas, *self.settings.curve_alphas})

    @cached_property
    def ranks(self) -> Integers:
        """The point ranks that profiles keep: all that any row or figure will ask for."""
        s, points = self.settings, self.task.points
        levels = {(a, d) for a in self.levels for d in (s.delta, *DELTAS)}
        return profile_ranks(points, measuring.ranks_needed(points, s.calibration, sorted(levels)))


# --- claiming a folder ----------------------------------------------------------------------------


def begin(settings: Settings, folder: str | Path, data: str | Path | None = None) -> Run:
    """The run of these settings in a folder, which is claimed for what they train.

    Raises:
        ValueError: something else was trained in the folder, another process is claiming it, or no
            band could be calibrated.
    """
    run = Run(settings, Path(folder), None if data is None else Path(data))
    identity = run.task.identity()
    started = _started(run)
    if started is None:
        _refuse_infeasible(run)
        with alone(run.folder, WORK):
            started = _started(run) or _claimed(run, identity)
    _refuse_other(run, started, identity)
    return run


def _claimed(run: Run, identity: Identity | None) -> dict[str, Any]:
    """Claim a folder, for good: what is written there says what is trained in it."""
    content = {
        "task": run.settings.task,
        "settings": run.settings.record(),
        "started": now(),
        "split": run.task.split().record(),
        "data": identity,
    }
    write_json(run.settings_file, content)
    write_json(run.settings_copy, content)
    return read_json(run.settings_file, f"remove {run.folder} or choose another")


def _started(run: Run) -> dict[str, Any] | None:
    """What the folder says was begun in it, by its copy where a disk lost it; None if nothing was.

    Raises:
        DamagedError: neither can be read.
    """
    remedy = f"remove {run.folder} or choose another"
    if not run.settings_file.is_file() and not run.settings_copy.is_file():
        return None
    try:
        return read_json(run.settings_file, remedy)
    except DamagedError:
        if not run.settings_copy.is_file():
            raise
    content = read_json(run.settings_copy, remedy)
    if run.settings_file.exists():
        set_aside(run.settings_file)
    write_json(run.settings_file, content)
    return content


def _refuse_other(run: Run, content: Mapping[str, Any], identity: Identity | None) -> None:
    """Refuse a folder in which other settings or other functions were trained."""
    try:
        before, functions = content["settings"], content["data"]
        task, wanted = content["task"], run.settings.record()
        source, sha256 = (
            (None, None) if functions is None else (functions["source"], functions["sha256"])
        )
        different = {
            key: (before.get(key), wanted.get(key))
            for key in {**wanted, **before}
            if before.get(key) != wanted.get(key) and key not in AFTER_TRAINING
        }
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{run.settings_file} is damaged: remove {run.folder} or choose another"
        ) from None
    if task != run.settings.task:
        different = {"task": (task, run.settings.task)}
    if different:
        raise ValueError(
            f"{run.folder} is a run with other settings (there, wanted): {different}; choose "
            "another folder with --out, or remove it"
        )
    if identity is not None and sha256 != identity["sha256"]:
        raise ValueError(
            f"{run.folder} is a run on other data, those of {source}: choose another folder with "
            "--out, or give the data with --data"
        )


def _refuse_infeasible(run: Run) -> None:
    """Say before hours of training that no band could be calibrated after them."""
    s = run.settings
    for alpha in s.alphas:
        planned = plan(alpha, s.delta, s.calibration, run.task.points)
        if not planned.feasible:
            raise ValueError(f"{planned} Change calibration, alphas or delta with --set.")


def reopen(folder: str | Path, data: str | Path | None = None) -> Run | None:
    """The finished run of a folder, for more to be made of it.

    Args:
        folder: of the run.
        data: where its functions are, if neither in its folder nor in the task's own place.

    Returns:
        The run; None where its models, its functions or its task are gone.

    Raises:
        ValueError: `data` was given and has other functions, or none.
    """
    folder = Path(folder)
    if not (folder / "settings.json").is_file() or not (folder / "results.json").is_file():
        return None
    record = results.read(folder / "results.json")
    source = data
    if data is None:
        started = read_json(folder / "settings.json", f"remove {folder}, and run again")
        source = _inside(folder, started)
    try:
        settings = task_type(record["task"]).settings_type.from_record(record["settings"])
        run = begin(settings, folder, source)
        there = run.task.is_made()
    except (ValueError, OSError):  # its task or its data have gone, or are others now
        if data is not None:
            raise
        return None
    if data is not None and not there:
        raise ValueError(f"{data} does not have the functions of the run {folder}")
    files = [run.folder / "models" / name / "model.json" for name in settings.methods]
    files += [run.chunk_file(name, c) for name in settings.methods for c in run.chunks()]
    return run if there and all(file.exists() for file in files) else None


def _inside(folder: Path, started: Mapping[str, Any]) -> Path | None:
    """Where the functions of a run lie, if in its folder; None for the task's own place.

    A run may come from anyone, so that no other path in its files is followed.
    """
    data = started.get("data")
    source = data.get("source") if isinstance(data, Mapping) else None
    if not isinstance(source, str) or not source:
        return None
    try:
        path = (folder / as_path(source)).resolve()
        if path.is_relative_to(folder.resolve()):
            return path
    except (ValueError, OSError):
        pass
    log.warning("%s is a run on %.200r: give --data to look at its functions", folder, source)
    return None


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
