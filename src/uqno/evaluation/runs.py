"""The folder of a run: what is trained and measured, and where it lies.

RUN/settings.json      what was trained; a run that trains otherwise is refused this folder
RUN/<operator>/…       fits of the operators that methods share      (see methods.py)
RUN/radius/…           fits of their radii
RUN/models/<method>    the models
RUN/profiles/…         what is kept of the held-out functions, a few dozen a file
RUN/results.json       written last: a run that has it is done

"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.data import GridSamples, Recipe, generate
from uqno.data.files import write_whole
from uqno.data.split import Split
from uqno.data.store import FunctionStore
from uqno.evaluation import metrics, results
from uqno.evaluation.methods import Job, Workshop, epochs_done
from uqno.evaluation.presets import Settings
from uqno.evaluation.profile import Profile, concatenate, rungs
from uqno.model import UQNO

Progress = Callable[[str, float, float], None]
"""(what is done, how much of it, of how much)."""

CHUNK = 50  # held-out functions a task
DELTAS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
# Settings that change no trained model: one folder may serve several of them.
AFTER_TRAINING = ("methods", "ablation", "alphas", "curve_alphas", "delta", "splits")


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


def loaded(made: Run, name: str) -> UQNO:
    """A trained model, read; its training functions are not."""
    return Workshop(made.settings, made.folder, made.samples("train")).model(name)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
