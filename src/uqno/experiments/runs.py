"""The folder of a run: what is trained and measured, and where it lies.

RUN/settings.json      what was trained; a run that trains otherwise is refused this folder
RUN/<operator>/…       fits of the operators that methods share      (see methods.py)
RUN/uncertainty/…           fits of their uncertainties
RUN/models/<method>    the models
RUN/profiles/…         what is kept of the held-out functions, a few dozen a file
RUN/results.json       written last: a run that has it is done
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.conformal.planning import plan
from uqno.conformal.profile import Profile, concatenate, profile_ranks
from uqno.experiments import measuring, results
from uqno.experiments.methods import METHODS, Job, Workshop, epochs_done, needed, sees_more
from uqno.experiments.presets import OLDER, Settings
from uqno.experiments.profiles import read_profile
from uqno.experiments.registry import task_of
from uqno.experiments.task import Task
from uqno.model import UQNO
from uqno.storage import read_json, write_text
from uqno.types import Samples

CHUNK = 50  # held-out functions a task
DELTAS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
# Settings that change no trained model: one folder may serve several of them.
AFTER_TRAINING = ("methods", "ablation", "alphas", "curve_alphas", "delta", "splits")


@dataclass(frozen=True)
class Run:
    """Settings, and where they are worked out; data: where functions are, if not at home."""

    settings: Settings
    folder: Path
    data: Path | None = None

    @property
    def task(self) -> Task:
        """What is compared on; kept by the process, not sent to others with the run."""
        return task_of(self.settings, self.folder, self.data)

    # --- training -----------------------------------------------------------------------------

    def workshop(self) -> Workshop:
        return Workshop(self.task, self.folder)

    def done(self, job: Job) -> bool:
        """Models are saved last; an operator is done when its last fit is."""
        kind, name = job.name.split("/", 1)
        if kind == "model":
            return (self.folder / "models" / name / "model.json").is_file()
        return self.progress([job]) >= job.work

    def progress(self, these: Iterable[Job]) -> int:
        """Functions times epochs that are behind us."""
        return sum(
            work.functions * epochs_done(self.folder / fit)
            for job in these
            for fit, work in job.fits.items()
        )

    # --- held-out functions -------------------------------------------------------------------

    def held(self, name: str) -> Samples:
        """The held-out functions as a method sees them."""
        return self.task.held(sees_more(needed(METHODS[name], self.settings)[0]))

    def chunks(self) -> list[range]:
        n = self.settings.held_out
        return [range(i, min(i + CHUNK, n)) for i in range(0, n, CHUNK)]

    def chunk_file(self, name: str, chunk: range) -> Path:
        return self.folder / "profiles" / name / f"{chunk.start:05d}.npz"

    def is_scored(self, name: str, chunk: range) -> bool:
        """Whether the profile is there, with all the ranks and levels that are asked for now."""
        file = self.chunk_file(name, chunk)
        if not file.is_file():
            return False
        held = read_profile(file)
        same_levels = held.area is None or held.area.alphas.tolist() == self.levels
        return same_levels and np.array_equal(held.ranks, self.ladder)

    def profile(self, name: str) -> Profile:
        return concatenate([read_profile(self.chunk_file(name, c)) for c in self.chunks()])

    def told(self, name: str) -> list[dict[str, Any]]:
        """What scoring a chunk told beside its profile: seconds, and for nppc `explained`."""
        files = (self.chunk_file(name, c).with_suffix(".json") for c in self.chunks())
        return [read_json(file, f"remove it and {file.stem}.npz, and run again") for file in files]

    @property
    def levels(self) -> list[float]:
        """Every α that a row or a figure is of."""
        return sorted({*self.settings.alphas, *self.settings.curve_alphas})

    @cached_property
    def ladder(self) -> NDArray[np.int64]:
        """The ranks that profiles keep: all that any row or figure will ask for."""
        s, points = self.settings, self.task.points
        levels = {(a, d) for a in self.levels for d in (s.delta, *DELTAS)}
        return profile_ranks(points, measuring.ranks_needed(points, s.calibration, sorted(levels)))


def is_done(made: Run) -> bool:
    """Whether the folder has the results of these very settings."""
    finished = made.folder / "results.json"
    return finished.is_file() and results.read(finished)["settings"] == made.settings.record()


def claim(made: Run) -> None:
    """Write down what is trained in the folder; refuse one where something else was."""
    file = made.folder / "settings.json"
    wanted, functions = made.settings.record(), made.task.identity()
    if file.is_file():
        try:
            content = json.loads(file.read_text(encoding="utf8"))
            found = content["settings"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{file} is damaged: remove {made.folder} or choose another") from None
        different = {
            key: (found.get(key, OLDER.get(key)), value)
            for key, value in wanted.items()
            if found.get(key, OLDER.get(key)) != value and key not in AFTER_TRAINING
        }
        if different:
            raise ValueError(
                f"{made.folder} is a run with other settings (found, wanted): {different}; choose "
                "another folder with --out, or remove it"
            )
        before = content.get("data", {})
        if functions is not None and before.get("sha256") != functions["sha256"]:
            raise ValueError(
                f"{made.folder} is a run on other data, those of {before.get('source')}: choose "
                "another folder with --out, or give the data with --data"
            )
        return
    _refuse_infeasible(made)
    content = {"settings": wanted, "started": now(), "split": made.task.split().record()}
    content |= {} if functions is None else {"data": functions}
    made.folder.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(content))


def _refuse_infeasible(made: Run) -> None:
    """Say before hours of training that no band could be calibrated after them."""
    s = made.settings
    for alpha in s.alphas:
        planned = plan(alpha, s.delta, s.calibration, made.task.points)
        if not planned.feasible:
            raise ValueError(f"{planned} Change calibration, alphas or delta with --set.")


def loaded(made: Run, name: str) -> UQNO:
    """A trained model, read; its training functions are not."""
    return made.workshop().model(name)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
