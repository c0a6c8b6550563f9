"""What the comparison asks of a task: its functions, its network, and how a function is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from uqno.data.split import Split
from uqno.experiments.explorer import Domain
from uqno.experiments.presets import Settings
from uqno.experiments.results import Unit
from uqno.operators.symmetry import Symmetry
from uqno.types import Array, Progress, Samples


@dataclass(frozen=True)
class Scene:
    """Where the values of one function are, for pictures.

    thin: a field (*points) → the part of it that is shown, (x, y) on a grid, (n,) on a surface
    input: thinned as well; None where the input is the surface itself
    points (n, 3), triangles (t, 3): of a surface; along the car, to its side, up
    cut_at, cut: coordinates along a line through the function, and a field → its values there
    """

    thin: Callable[[Array], Array]
    cut_at: Array
    cut: Callable[[Array], Array]
    input: Array | None = None
    points: Array | None = None
    triangles: Array | None = None


class Task(ABC):
    """All that differs between one comparison and another."""

    name: ClassVar[str]
    settings: Settings

    # --- functions ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def points(self) -> int:
        """Of every held-out function."""

    @property
    def unit(self) -> Unit | None:
        """Of the functions, and what a bandwidth of 1 is in it; None for pure numbers."""
        return None

    def identity(self) -> dict[str, Any] | None:
        """What tells the functions from others, if the settings do not."""
        return None

    @abstractmethod
    def make_data(self, workers: int, progress: Progress) -> None:
        """Make what is missing of the functions."""

    @abstractmethod
    def seconds_to_make(self) -> float:
        """How long one process would take for that, from trying it."""

    @abstractmethod
    def is_made(self) -> bool:
        """Whether there are functions to look at, without making any."""

    @abstractmethod
    def train(self, ours: bool = False) -> Samples:
        """Functions to train on, quick to read again and again; with the inputs of ours alone."""

    @abstractmethod
    def held(self, ours: bool = False) -> Samples:
        """Functions to calibrate and test with, in this order; with the inputs of ours alone."""

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
        parts = [tuple(order[a:b]) for a, b in pairwise(ends)]
        return Split(self.functions, s.seed, *parts)

    # --- networks -----------------------------------------------------------------------------

    @abstractmethod
    def network(self, dropout: float = 0.0, ours: bool = False) -> nn.Module:
        """The untrained module that all methods share; for the inputs of ours alone."""

    @property
    @abstractmethod
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Of the problem, the identity first."""

    @property
    @abstractmethod
    def scored_at_once(self) -> int:
        """Held-out functions in one batch."""

    @abstractmethod
    def trial(self, role: str) -> dict[str, Tensor]:
        """A batch like those to "train" on, or one "held"-out function, to measure times with."""

    # --- pictures -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """Where functions live."""

    @abstractmethod
    def scene(self, held: int, most: int) -> Scene:
        """How held-out function `held` is shown, with at most so many nodes a side."""
