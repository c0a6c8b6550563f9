"""A run whose models are simulated: what the explorer asks of one, without any training."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from tests.experiments.simulated import CALIBRATION, CURVES, DELTA, HELD, SIDE, profiles, simulated
from tests.experiments.simulated import smooth as smooth_fields
from uqno.experiments import measuring
from uqno.experiments.darcy.settings import DarcySettings
from uqno.experiments.darcy.task import DarcyTask
from uqno.experiments.exploring import explorer
from uqno.experiments.settings import PUBLISHED_METHODS

SETTINGS = DarcySettings(
    train=400,
    calibration=CALIBRATION,
    test=HELD - CALIBRATION,
    solved_at=SIDE,
    trained_at=SIDE,
    tested_at=SIDE,
    delta=DELTA,
    curve_alphas=CURVES,
)


@cache
def truths():
    """Inputs and solutions of the held-out functions, (HELD, SIDE, SIDE) each."""
    rng = np.random.default_rng(7)
    inputs = np.where(smooth_fields(rng, SIDE, HELD) > 0, 12.0, 3.0)
    return inputs, 0.01 * smooth_fields(rng, SIDE, HELD)


@cache
def fields(method):
    """Signed error and uncertainty of a method, (HELD, SIDE, SIDE) each."""
    error, uncertainty = simulated(method)
    sign = np.sign(smooth_fields(np.random.default_rng(8), SIDE, HELD))
    return sign * error, uncertainty


class SimulatedTask(DarcyTask):
    def held(self, extra_inputs=False):
        inputs, solutions = truths()
        return [
            {"a": torch.tensor(a)[None], "u": torch.tensor(u)[None], "held": i}
            for i, (a, u) in enumerate(zip(inputs, solutions, strict=True))
        ]


@dataclass(frozen=True)
class SimulatedRun:
    folder: Path = Path("nowhere")
    settings: DarcySettings = field(default=SETTINGS)

    def profile(self, name):
        ranks = measuring.ranks_needed(SIDE**2, CALIBRATION, [(a, DELTA) for a in CURVES])
        return profiles(*fields(name), ranks)

    def held(self, name):
        return self.task.held()

    def model(self, name):
        """A model that knows its errors."""

        def uncalibrated(sample):
            error, uncertainty = (torch.tensor(f[sample["held"]]) for f in fields(name))
            center = (sample["u"] - error)[None]
            return SimpleNamespace(center=center, uncertainty=uncertainty[None])

        return SimpleNamespace(uncalibrated=uncalibrated)

    @property
    def task(self):
        return SimulatedTask(self.settings, self.folder, None)


@cache
def made_explorer(methods=PUBLISHED_METHODS):
    """The explorer of the simulated run; shared by the tests, so never changed."""
    return explorer(SimulatedRun(settings=replace(SETTINGS, methods=methods)))
