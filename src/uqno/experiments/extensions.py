"""Tasks and methods from outside the package: loading the files that define them.

    uqno run --use my_task.py my-task

A file or module registers what it defines by being imported. Other processes of a run import the
same ones, since what a run trains must be known there too.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from uqno.experiments.description import TASKS
from uqno.experiments.methods import METHODS

PACKAGE = "uqno."


def use(source: str) -> ModuleType:
    """Import a user's file or module, once.

    Args:
        source: a path that ends in .py, or the dotted name of a module.

    Raises:
        ValueError: there is no such file or module.
    """
    if not source.endswith(".py"):
        sys.path[:0] = [] if "" in sys.path else [""]  # as `python -m` has it
        try:
            return import_module(source)
        except ModuleNotFoundError as why:
            raise ValueError(f"--use {source}: {why}; give a file.py or a module") from None
    path = Path(source).resolve()
    if not path.is_file():
        raise ValueError(f"--use {source} does not exist")
    return _loaded(path.stem, path)


def modules() -> tuple[tuple[str, str], ...]:
    """(name, file) of the modules outside the package that have defined a task or a method."""
    owners = [task.__module__ for task in TASKS.values()]
    owners += [method.module for method in METHODS.values()]
    outside = (n for n in owners if not n.startswith(PACKAGE) and n != "__main__")
    return tuple((n, str(sys.modules[n].__file__)) for n in dict.fromkeys(outside))


def use_again(known: tuple[tuple[str, str], ...]) -> None:
    """Import in this process what `modules` named in another."""
    for name, file in known:
        if name not in sys.modules:
            if find_spec(name.partition(".")[0]) is None:
                _loaded(name, Path(file))
            else:
                import_module(name)


def _loaded(name: str, path: Path) -> ModuleType:
    """The module in a file, by its name alone, so that what it defines can be pickled."""
    known = sys.modules.get(name)
    if known is not None and Path(known.__file__ or "").resolve() == path:
        return known
    if known is not None or find_spec(name) is not None:
        raise ValueError(f"--use {path}: there is another module {name!r}; rename the file")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"--use {path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
