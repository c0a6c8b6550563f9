"""Darcy flow: functions solved here, kept in zarr stores, FNO, the symmetries of the square."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from uqno.data import GridSamples
from uqno.data.store import FunctionStore
from uqno.experiments.darcy.description import DarcyDescription
from uqno.experiments.darcy.generation import Recipe, generate
from uqno.experiments.darcy.paper import PAPER
from uqno.experiments.darcy.settings import DarcySettings
from uqno.experiments.jobs import seconds
from uqno.experiments.results import Quoted
from uqno.experiments.scene import Domain, Scene, grid_scene
from uqno.experiments.task import Task
from uqno.operators import FNO
from uqno.operators.symmetry import SquareSymmetry, square
from uqno.types import Progress

DATA = Path("data")


@dataclass(frozen=True)
class DarcyTask(DarcyDescription, Task):
    """Functions are independent draws of a seed, so ranges of them are a random split."""

    settings: DarcySettings
    folder: Path
    data: Path | None

    name: ClassVar[str] = DarcyDescription.name

    @property
    def quoted(self) -> tuple[Quoted, ...]:
        """The paper's numbers, beside functions of the paper's law alone."""
        return PAPER if self.settings.coefficient == "lognormal" else ()

    @property
    def points(self) -> int:
        return self.settings.tested_at**2

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
        where = DATA if self.data is None else self.data
        return {
            role: (
                where
                / f"darcy-{s.coefficient}-{s.solved_at}-{nodes}-seed{s.seed}-{every}-{role}.zarr",
                self.recipe(nodes),
                part,
            )
            for role, (nodes, part) in parts.items()
        }

    def recipe(self, nodes: int) -> Recipe:
        """How functions are made that are kept at so many nodes a side."""
        s = self.settings
        return Recipe(s.seed, s.solved_at, keep=(nodes,), coefficient=s.coefficient)

    def make_data(self, workers: int, progress: Progress) -> None:
        s = self.settings
        chunk = gcd(s.train, 8)  # a part must end where a chunk does
        for role, (path, recipe, part) in self.stores().items():
            words = "solving" if role == "all" else f"solving, {role}"

            def tell(done: int, total: int, words: str = words) -> None:
                progress(words, done, total)

            generate(path, recipe, s.train + s.held_out, part, workers, chunk, tell)

    def seconds_to_make(self) -> float:
        s = self.settings
        unsolved = sum(_missing(path, part) for path, _, part in self.stores().values())
        recipe = self.recipe(s.solved_at)
        return unsolved * seconds(lambda: recipe.functions([0]))

    def is_made(self) -> bool:
        return all(path.exists() for path, _, _ in self.stores().values())

    def train(self, extra_inputs: bool = False) -> GridSamples:
        return self._samples("train", range(self.settings.train)).in_memory()

    def held(self, extra_inputs: bool = False) -> GridSamples:
        s = self.settings
        return self._samples("held", range(s.train, s.train + s.held_out))

    def _samples(self, role: str, chosen: range) -> GridSamples:
        stores = self.stores()
        path, recipe, _ = stores.get(role) or stores["all"]
        return FunctionStore.open(path).samples(recipe.keep[0], chosen)

    def network(self, dropout: float = 0.0, extra_inputs: bool = False) -> FNO:
        s = self.settings
        return FNO(1, 1, (s.modes, s.modes), s.width, s.layers, dropout=dropout)

    @property
    def symmetries(self) -> tuple[SquareSymmetry, ...]:
        return square()

    @property
    def scored_at_once(self) -> int:
        """Small batches of large functions: they gain nothing from company."""
        return max(1, min(16, 2**17 // self.points))

    def trial(self, role: str) -> dict[str, Tensor]:
        s = self.settings
        if role == "train":
            return {"a": torch.randn(s.batch_size, 1, s.trained_at, s.trained_at)}
        return {"a": torch.randn(1, 1, s.tested_at, s.tested_at)}

    @property
    def domain(self) -> Domain:
        side = self.settings.tested_at
        return Domain(kind="grid", nodes=[side, side], unit=None)

    def scene(self, held: int, most: int) -> Scene:
        return grid_scene(self.held()[held]["a"][0].numpy(), most)


def _missing(path: Path, part: range) -> int:
    """Functions of a store that are still to be solved."""
    if not path.exists():
        return len(part)
    store = FunctionStore.repaired(path)
    return len(part) - sum(len(store.positions(int(c))) for c in np.flatnonzero(store.done()))
