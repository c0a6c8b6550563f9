"""A task of one's own: from a potential on the unit square to its gradient, two components."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from uqno.experiments.scene import Domain, Scene, grid_scene
from uqno.experiments.settings import Settings, bounded
from uqno.experiments.task import Task
from uqno.operators import FNO

SIDE = 12


@dataclass(frozen=True, kw_only=True)
class GradientSettings(Settings):
    task: ClassVar[str] = "gradient"

    train: int = 16
    calibration: int = bounded(30, least=2)
    test: int = 12
    epochs: int = 1
    batch_size: int = 4
    width: int = 4
    layers: int = 1
    learning_rate: float = bounded(5e-3, positive=True)
    alphas: tuple[float, ...] = bounded((0.1,), share=True)
    delta: float = bounded(0.1, share=True)
    curve_alphas: tuple[float, ...] = bounded((0.1, 0.2), share=True)
    splits: int = 20
    methods: tuple[str, ...] = ("uqno", "constant")
    ablation: bool = False
    roughness: float = bounded(2.0, positive=True)


class GradientTask(Task):
    name = "gradient"
    title = "Gradients: from a potential a on the unit square to its gradient u."
    settings_type = GradientSettings
    presets: ClassVar = {"tiny": GradientSettings(), "rough": GradientSettings(roughness=4.0)}
    points = SIDE**2

    @cached_property
    def samples(self) -> list[dict[str, torch.Tensor]]:
        rng = np.random.default_rng(self.settings.seed)
        waves = np.cos(np.pi * np.outer(np.arange(1, 4), np.linspace(0, 1, SIDE)))
        weights = rng.normal(size=(self.total, 3, 3)) / self.settings.roughness
        potentials = np.einsum("nij,ix,jy->nxy", weights, waves, waves)
        gradients = np.stack(np.gradient(potentials, 1 / (SIDE - 1), axis=(1, 2)), axis=1)
        pairs = zip(potentials[:, None], gradients, strict=True)
        return [{"a": torch.tensor(a).float(), "u": torch.tensor(u).float()} for a, u in pairs]

    def make_data(self, workers, progress):
        progress("drawing potentials", self.total, self.total)

    def is_made(self):
        return True

    def train(self, extra_inputs=False):
        return self.samples[: self.settings.train]

    def held(self, extra_inputs=False):
        return self.samples[self.settings.train :]

    def network(self, dropout=0.0, extra_inputs=False):
        s = self.settings
        return FNO(1, 2, (4, 4), s.width, s.layers, dropout=dropout)

    @property
    def domain(self):
        return Domain(kind="grid", nodes=[SIDE, SIDE], unit=None)

    def scene(self, held, most) -> Scene:
        return grid_scene(self.held()[held]["a"][0].numpy(), most)
