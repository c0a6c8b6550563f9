"""The kinds of cases, and how many `make fuzz` runs of each."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.fuzz import api, commands, files
from tests.fuzz.harness import Case


@dataclass(frozen=True)
class Kind:
    """A kind of cases: how many, and what draws one once all is prepared."""

    cases: int
    prepare: Callable[[], Callable[[np.random.Generator], Case]]


def _calibrations() -> Callable[[np.random.Generator], Case]:
    return api.calibration


def _abused() -> Callable[[np.random.Generator], Case]:
    api.prepare()
    return api.abused


def _commands() -> Callable[[np.random.Generator], Case]:
    commands.prepare()
    return commands.command


def _files() -> Callable[[np.random.Generator], Case]:
    files.prepare()
    return files.damaged


KINDS = {
    "calibrations": Kind(6_000, _calibrations),
    "arguments": Kind(16_000, _abused),
    "commands": Kind(1_100, _commands),
    "files": Kind(2_400, _files),
}


@contextmanager
def workplace() -> Iterator[None]:
    """A folder of its own, which is removed; nothing is logged."""
    before = os.getcwd()
    logging.disable(logging.CRITICAL)
    memory = Path("/dev/shm")  # where every forced write is quick
    where = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="uqno-fuzz-", dir=where) as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            logging.disable(logging.NOTSET)
