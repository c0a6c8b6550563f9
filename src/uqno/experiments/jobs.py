"""Work in several processes: the one interface for everything in the experiments that starts any.

A `Job` is a function with arguments, the names of the jobs that it needs, and how much work it is.
`Workers` does jobs as soon as those that they need are done, the longest first, and hands over
each result when it is there:

    with Workers(4) as workers:
        for job, result in workers.completed(jobs):
            ...

Processes are spawned, end with their parent, and are stopped when the `with` block is left by an
exception (Ctrl-C among them).
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures import ThreadPoolExecutor as ThreadPool
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

POLL = 0.5
"""Seconds between two calls of `watch` while jobs are running."""

Kind = Literal["processes", "threads", "here"]


@dataclass(frozen=True)
class Job:
    """One piece of work.

    Args:
        name: by which other jobs need it; no two jobs have the same.
        call: what is done. In another process, a function at the top level of a module.
        arguments: of `call`; in another process, they are pickled.
        needs: names of the jobs that must be done before.
        work: how long it takes, in any unit that all jobs share.
    """

    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    needs: tuple[str, ...] = ()
    work: float = 1.0


class Workers:
    """Does jobs, several at a time; a context manager.

    Args:
        count: jobs at a time, at least 1.
        kind: "processes" for work in Python, "threads" for jobs that wait for other programs,
            "here" for one job after the other in this process.
        begin: is called in every new process before its first job, with `arguments`.
        arguments: of `begin`.
    """

    def __init__(
        self,
        count: int,
        kind: Kind = "processes",
        begin: Callable[..., None] | None = None,
        arguments: tuple[Any, ...] = (),
    ) -> None:
        if count < 1:
            raise ValueError(f"workers = {count} must be at least 1")
        self.count = 1 if kind == "here" else count
        self.kind = kind
        self.begin = (begin, arguments)
        self._executor: Executor | None = None

    def __enter__(self) -> Workers:
        if self.kind == "threads":
            self._executor = ThreadPool(self.count)
        elif self.kind == "processes":
            # Spawned, not forked: a fork of a process with torch's or BLAS's threads may hang.
            self._executor = ProcessPoolExecutor(
                self.count,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_begin_process,
                initargs=self.begin,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._executor is None:
            return
        if kind is not None and isinstance(self._executor, ProcessPoolExecutor):
            for process in list((self._executor._processes or {}).values()):
                process.terminate()  # a job could go on for minutes
        self._executor.shutdown(wait=True, cancel_futures=True)

    def completed(
        self,
        jobs: Sequence[Job] | Callable[[], Sequence[Job]],
        done: Iterable[str] = (),
        watch: Callable[[], None] | None = None,
    ) -> Iterator[tuple[Job, Any]]:
        """Do all jobs.

        Args:
            jobs: the jobs; or a function that returns those that are wanted now, asked again
                after every result has been handed over. Jobs that were done are not done again.
            done: names of jobs that were done before.
            watch: is called now and then while jobs are running, to look at what they write.

        Yields:
            Each job with its result, in the order in which they end.

        Raises:
            ValueError: what is left needs jobs that nobody does.
        """
        wanted = jobs if callable(jobs) else lambda: jobs
        finished, running = set(done), dict[Future[Any], Job]()
        while True:
            busy = {job.name for job in running.values()}
            waiting = [j for j in wanted() if j.name not in finished and j.name not in busy]
            ready = [job for job in waiting if finished.issuperset(job.needs)]
            for job in sorted(ready, key=lambda j: -j.work)[: self.count - len(running)]:
                running[self._submitted(job)] = job
            if not running:
                if waiting:
                    raise ValueError(
                        f"{waiting[0].name} needs {waiting[0].needs}: not all are among the jobs"
                    )
                return
            if watch is not None:
                watch()
            timeout = None if watch is None else POLL
            for future in wait(running, timeout=timeout, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                result = future.result()
                finished.add(job.name)
                yield job, result

    def _submitted(self, job: Job) -> Future[Any]:
        if self._executor is not None:
            return self._executor.submit(job.call, *job.arguments)
        if self.kind != "here":
            raise ValueError("workers have not begun: use them in a `with` block")
        future: Future[Any] = Future()
        future.set_result(job.call(*job.arguments))
        return future


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_cores(workers: int) -> None:
    """Give torch in this process its share of the cores; a `begin` of that many workers."""
    import torch  # not where jobs do without it

    torch.set_num_threads(max(1, cores() // workers))


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes, at its second call: the first one also loads and plans."""
    work()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _begin_process(begin: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    _end_with_parent()
    if begin is not None:
        begin(*arguments)


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever: it ends instead."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
