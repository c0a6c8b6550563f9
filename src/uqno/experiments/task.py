"""What a comparison asks of a task: its functions, its network, and how a function is shown.

A task is a subclass of `Task` with a name; it is registered by being defined, and is then offered
by `uqno run`. The tasks of this library are folders beside this file, each with a `task.py` and a
`description.py`, which has of the task what the command line needs without torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

import numpy as np
from torch import Tensor, nn

from uqno.data.split import Split
from uqno.experiments.description import TaskDescription, known_tasks
from uqno.experiments.results import Quoted, Unit
from uqno.experiments.scene import Domain, Scene
from uqno.experiments.settings import Settings
from uqno.operators import as_operator
from uqno.operators.symmetry import Symmetry
from uqno.types import Progress, Samples


class Identity(TypedDict):
    """What tells the functions of a task from others."""

    source: str | None
    """Where they came from; None for those of the task's own."""
    sha256: str


class Task(TaskDescription, ABC):
    """All that differs between one comparison and another.

    Args:
        settings: an instance of `settings_type`.
        folder: of the run, for what the task wants to keep.
        data: where functions are; None for the task's own place.
    """

    def __init__(self, settings: Settings, folder: Path, data: Path | None = None) -> None:
        self.settings, self.folder, self.data = settings, folder, data

    # --- functions ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def points(self) -> int:
        """Points of every held-out function."""

    @property
    def unit(self) -> Unit | None:
        """The unit of the functions, and what a bandwidth of 1 is in it; None for pure numbers."""
        return None

    @property
    def quoted(self) -> tuple[Quoted, ...]:
        """The numbers that the paper has for functions like these; none by default."""
        return ()

    def identity(self) -> Identity | None:
        """What tells the functions from others, if the settings do not."""
        return None

    @abstractmethod
    def make_data(self, workers: int, progress: Progress) -> None:
        """Make what is missing of the functions."""

    def seconds_to_make(self) -> float:
        """How long one process would take for that, from trying it."""
        return 0.0

    @abstractmethod
    def is_made(self) -> bool:
        """Whether there are functions to look at, without making any."""

    @abstractmethod
    def train(self, extra_inputs: bool = False) -> Samples:
        """Functions to train on, quick to read again and again.

        Args:
            extra_inputs: with the inputs that the recipe `uqno` alone sees, if the task has any.
        """

    @abstractmethod
    def held(self, extra_inputs: bool = False) -> Samples:
        """Functions to calibrate and test with, in this order; see `train`."""

    @property
    def total(self) -> int:
        """Functions that are used."""
        return self.settings.train + self.settings.held_out

    @property
    def functions(self) -> int:
        """Functions that there are to choose from."""
        return self.total

    def order(self) -> Sequence[int]:
        """Those to train on, to calibrate and to test with, in this order."""
        return range(self.total)

    def split(self) -> Split:
        """The recorded split; the paper's recipe has one half of the training functions for Ĝ."""
        s, order = self.settings, self.order()
        ends = np.cumsum([0, s.train // 2, s.train - s.train // 2, s.calibration, s.test])
        roles = [tuple(order[a:b]) for a, b in pairwise(ends)]
        return Split(self.functions, s.seed, *roles)

    def rms(self) -> float:
        """The root mean square of the training functions, over all points."""
        data, total = self.train(), 0.0
        for i in range(len(data)):
            total += float(data[i]["u"].double().square().mean())
        return float((total / len(data)) ** 0.5)

    # --- networks -----------------------------------------------------------------------------

    @abstractmethod
    def network(self, dropout: float = 0.0, extra_inputs: bool = False) -> nn.Module:
        """The untrained module that all methods share, with or without extra inputs."""

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The symmetries of the problem, the identity first; none by default."""
        return ()

    @property
    def scored_at_once(self) -> int:
        """Held-out functions in one batch."""
        return self.settings.batch_size

    def trial(self, role: str) -> dict[str, Tensor] | None:
        """A batch like those to "train" on, or one "held"-out function, to measure times with.

        By default of real functions; None where they are not made yet.
        """
        if not self.is_made():
            return None
        operator = as_operator(self.network())
        data, count = (
            (self.train(), self.settings.batch_size) if role == "train" else (self.held(), 1)
        )
        return dict(operator.collate([data[0]] * count))

    # --- pictures -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """Where functions live."""

    @abstractmethod
    def scene(self, held: int, most: int) -> Scene:
        """How held-out function `held` is shown, with at most `most` nodes a side."""


def task_type(name: str) -> type[Task]:
    """The task of a name.

    Raises:
        ValueError: there is none of it.
    """
    tasks = known_tasks()
    if name not in tasks:
        raise ValueError(
            f"task = {name!r} is not known: expected one of {', '.join(tasks)}; one of your own "
            "is known once its module has been imported (--use)"
        )
    if not issubclass(tasks[name], Task):  # described, and defined in the module beside
        import_module(f"{tasks[name].__module__.rpartition('.')[0]}.task")
    defined = tasks[name]
    if not issubclass(defined, Task):
        raise TypeError(f"task {name!r} is described in {defined.__module__} and defined nowhere")
    return defined


@lru_cache(maxsize=2)  # a process keeps the functions that it has in memory
def task_of(settings: Settings, folder: Path, data: Path | None) -> Task:
    """The task that settings belong to, of a run in `folder`."""
    return task_type(settings.task)(settings, folder, data)
