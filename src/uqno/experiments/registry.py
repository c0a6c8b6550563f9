"""The task that settings belong to."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from uqno.experiments.cars.task import CarTask
from uqno.experiments.darcy.task import DarcyTask
from uqno.experiments.presets import CarSettings, DarcySettings, Settings
from uqno.experiments.task import Task


@lru_cache(maxsize=2)  # a process keeps the functions that it has in memory
def task_of(settings: Settings, folder: Path, data: Path | None) -> Task:
    """The task of a run in `folder`; data: where its functions are, the task's own by default."""
    if isinstance(settings, CarSettings):
        return CarTask(settings, folder, data)
    if isinstance(settings, DarcySettings):
        return DarcyTask(settings, folder, data)
    raise ValueError(f"{type(settings).__name__} belongs to no task")
