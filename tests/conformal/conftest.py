"""Tests of the mathematics: none sees what another has computed, and none runs for ever."""

import os
import signal

import pytest

from uqno.conformal import ranks
from uqno.conformal.ranks import candidate_ranks, default_ranks

# Seconds of computing that `make mutants` gives a test: some mutants loop without end.
MUTANT_SECONDS = 4.0


@pytest.fixture(autouse=True)
def empty_caches():
    default_ranks.cache_clear()
    candidate_ranks.cache_clear()
    ranks._smallest_held.cache_clear()


@pytest.fixture(autouse=True)
def no_endless_mutant():
    if os.environ.get("MUTANT_UNDER_TEST", "") in ("", "stats", "fail"):
        yield
        return

    def stop(*_):
        raise RuntimeError(f"the mutant was still running after {MUTANT_SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MUTANT_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
