"""What the command line says of a task: its name, its title and its presets, without torch.

A task of one's own says these in its subclass of `uqno.experiments.task.Task`, which is a
description too. The tasks of this library say them in a module of their own, `description.py`, and
their subclass of `Task`, in the `task.py` beside it, is imported when a comparison is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from uqno.experiments.settings import Settings

TASKS: dict[str, type[TaskDescription]] = {}
"""Every task that has been described or defined, by its name; `known_tasks` looks for those of this
library."""


class TaskDescription:
    """What a task is called, and the settings that it offers.

    A subclass with a name is registered in `TASKS` by being defined; the task that derives from
    a description and has its name takes its place there.
    """

    name: ClassVar[str]
    """In commands and files."""
    title: ClassVar[str]
    """What is predicted from what, a sentence."""
    settings_type: ClassVar[type[Settings]]
    presets: ClassVar[Mapping[str, Settings]]
    """Settings by name; the first is what a command takes by default."""
    data_help: ClassVar[tuple[str, str]] = ("Where functions are kept.", "data")
    """What --data is, and its default in words."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        name = cls.__dict__.get("name")
        if name is None:
            return
        known = TASKS.get(name)
        if known is not None and not cls._may_replace(known):
            raise ValueError(
                f"there is a task {name!r} already, {known.__module__}.{known.__qualname__}: "
                "choose another name"
            )
        TASKS[name] = cls

    @classmethod
    def _may_replace(cls, known: type[TaskDescription]) -> bool:
        """Whether `known` is this class, imported before, or a mere description of it."""
        same = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
        return same or (TaskDescription in known.__bases__ and issubclass(cls, known))

    @classmethod
    def preset(cls, name: str | None = None, changes: Iterable[str] = ()) -> Settings:
        """The settings of a preset, with changes.

        Args:
            name: a key of `presets`; the first by default.
            changes: `key=value` each.

        Raises:
            ValueError: the preset or a key is not known, or a value is none for its key.
        """
        name = next(iter(cls.presets)) if name is None else name
        if name not in cls.presets:
            raise ValueError(f"preset {name!r} is not known: choose from {', '.join(cls.presets)}")
        return cls.presets[name].changed(changes)


@cache
def _look_for_tasks() -> None:
    """Import the descriptions of this library: every folder here that has a `description.py`."""
    for file in sorted(Path(__file__).parent.glob("*/description.py")):
        import_module(f"{__package__}.{file.parent.name}.description")


def known_tasks() -> Mapping[str, type[TaskDescription]]:
    """Every task by its name, those of this library and those that have been defined elsewhere."""
    _look_for_tasks()
    return TASKS
