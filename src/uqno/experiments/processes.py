"""Processes that share the work of a run, and how long a piece of it takes."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import torch

from uqno.experiments.darcy.generation import cores, end_with_parent


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    # Spawned, not forked: a fork of a process with torch's threads may hang.
    executor = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin_worker,
        initargs=(max(1, cores() // workers),),
    )
    try:
        yield executor
    except BaseException:
        for process in list((executor._processes or {}).values()):
            process.terminate()  # a fit would go on for minutes; its checkpoint is safe
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _begin_worker(threads: int) -> None:
    end_with_parent()
    torch.set_num_threads(threads)


def seconds(work: Callable[[], object]) -> float:
    """Of the second call: the first one also loads and plans."""
    work()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
