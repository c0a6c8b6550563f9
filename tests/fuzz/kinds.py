"""The kinds of cases, and how many `make fuzz` runs of each."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tests.fuzz import api
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


KINDS = {
    "calibrations": Kind(6_000, _calibrations),
    "arguments": Kind(16_000, _abused),
}


@contextmanager
def workplace() -> Iterator[None]:
    """A folder of its own, which is removed; nothing is logged."""
    before = os.getcwd()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="uqno-fuzz-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            logging.disable(logging.NOTSET)
