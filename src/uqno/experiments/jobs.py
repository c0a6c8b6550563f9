"""Work in several processes: the one interface for everything in the experiments that starts any.

A `Job` is a function with arguments, the names of the jobs that it needs, and how much work it is.
`Workers` does jobs as soon as those that they need are done, the longest first, and hands over
each result when it is there:

    with Workers(4) as workers:
        for job, result in workers.completed(jobs):
            ...

Processes are spawned and end with their parent. When the `with` block is left by an exception,
Ctrl-C among them, they are asked to stop, which lets a training write its checkpoint, and killed if
they take long.

*A process that dies*, as when the memory of the machine is exhausted, is replaced, and its job is
done again from the start or from its checkpoint. So jobs must be such that doing one again is no
harm. Each process does one job at a time, so a death is that of one job and disturbs no other.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.reduction import ForkingPickler
from types import TracebackType
from typing import Any, Literal

from uqno import stopping

log = logging.getLogger(__name__)

POLL = 0.5
"""Seconds between two calls of `watch` while jobs are running."""
ATTEMPTS = 3
"""How often a job is begun whose process dies."""
GRACE = 10.0
"""Seconds that processes have to stop when they are asked to."""

Kind = Literal["processes", "threads", "here"]
Begin = tuple[Callable[..., None] | None, tuple[Any, ...]]
"""What is called in a new process, and with which arguments."""


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
        self.begin: Begin = (begin, arguments)
        self._threads: ThreadPoolExecutor | None = None
        self._processes: list[_Process] | None = None

    def __enter__(self) -> Workers:
        if self.kind == "threads":
            self._threads = ThreadPoolExecutor(self.count)
        elif self.kind == "processes":
            self._processes = []
            with _blocked():  # a helper of Python's, which would die of a terminal that is closed
                resource_tracker.ensure_running()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
        if kind is not None:
            _stop(self._processes or [])
        for process in self._processes or []:
            process.executor.shutdown(wait=True, cancel_futures=True)
        self._threads = self._processes = None

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
            ChildProcessError: a job's process has died `ATTEMPTS` times.
        """
        wanted = jobs if callable(jobs) else lambda: jobs
        finished, running = set(done), dict[Future[Any], Job]()
        deaths = Counter[str]()
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
                dead = self._freed(future)
                if dead is not None:
                    deaths[job.name] += 1
                    _report(dead, job, deaths[job.name])
                    continue
                result = future.result()
                finished.add(job.name)
                yield job, result

    def _submitted(self, job: Job) -> Future[Any]:
        if self._threads is not None:
            return self._threads.submit(job.call, *job.arguments)
        if self._processes is not None:
            for process in [p for p in self._processes if p.future is None]:
                with suppress(BrokenProcessPool):
                    return process.submit(job, self.begin)
                self._processes.remove(process)  # it died while it was idle
            with stopping.Interrupt():  # or one could be begun that nobody knows of
                self._processes.append(_Process())
                return self._processes[-1].submit(job, self.begin)
        if self.kind != "here":
            raise ValueError("workers have not begun: use them in a `with` block")
        future: Future[Any] = Future()
        future.set_result(job.call(*job.arguments))
        return future

    def _freed(self, future: Future[Any]) -> _Process | None:
        """Take a job that has ended from its process, which is returned if it has died."""
        processes = self._processes or []
        for process in processes:
            if process.future is future:
                process.future = None
                error = future.exception()
                # An answer that cannot be read is an error with a cause.
                if isinstance(error, BrokenProcessPool) and error.__cause__ is None:
                    processes.remove(process)
                    return process
        return None


def _report(dead: _Process, job: Job, deaths: int) -> None:
    """Say that the process of a job has died.

    Raises:
        ChildProcessError: the job has had all its attempts.
    """
    how = dead.end()
    if deaths < ATTEMPTS:
        log.warning("%s: its process ended (%s); it is tried again", job.name, how)
        return
    raise ChildProcessError(
        f"{job.name}: its process ended {deaths} times before it was done (the last time {how}): "
        "most often the memory of the machine is exhausted; run again with fewer workers, smaller "
        "settings or more memory, it goes on"
    )


class _Process:
    """A process, and the one job at a time that it does."""

    def __init__(self) -> None:
        # Spawned, not forked: a fork of a process with torch's or BLAS's threads may hang.
        self.executor = ProcessPoolExecutor(
            1, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_process
        )
        self.future: Future[Any] | None = None
        self.process: multiprocessing.process.BaseProcess | None = None

    def submit(self, job: Job, begin: Begin) -> Future[Any]:
        """Begin a job.

        Raises:
            BrokenProcessPool: the process has died since its last one.
        """
        # A process that is not yet deaf to Ctrl-C would answer it with a traceback of its own.
        with _blocked():
            # Packed, for what `begin` loads must be there when the job is unpacked.
            packed = bytes(ForkingPickler.dumps((job.call, job.arguments)))
            future = self.executor.submit(_do, begin, packed)
        self.future = future
        if self.process is None:
            self.process = next(iter((self.executor._processes or {}).values()), None)
        return future

    def end(self) -> str:
        """Wait for the end of a process that has died; how it ended."""
        self.executor.shutdown(wait=True)
        code = None if self.process is None else self.process.exitcode
        return f"by signal {-code}" if code is not None and code < 0 else f"with code {code}"


def _stop(processes: list[_Process]) -> None:
    """Ask processes to stop, and kill them if they take long or Ctrl-C comes again."""
    running = [p.process for p in processes if p.process is not None]
    with stopping.Interrupt() as interrupt:
        for process in running:
            process.terminate()
        until = time.monotonic() + GRACE
        while any(process.is_alive() for process in running):
            if time.monotonic() > until or interrupt.requested:
                for process in running:
                    process.kill()
            time.sleep(0.02)


@contextmanager
def _blocked() -> Iterator[None]:
    """Hold back what a terminal sends, here for a moment and in a process begun now for ever."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    numbers = [number for number in stopping.SIGNALS if number != signal.SIGTERM]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


# --- in a process ---------------------------------------------------------------------------------

_has_begun = False


def _begin_process() -> None:
    stopping.listen_as_worker()
    _end_with_parent()


def _do(begin: Begin, packed: bytes) -> Any:
    return stopping.do(_begin_and_call, (begin, packed))


def _begin_and_call(begin: Begin, packed: bytes) -> Any:
    """An error of `begin` is one of the job: as an initializer's, nobody would be told it."""
    global _has_begun
    if not _has_begun and begin[0] is not None:
        begin[0](*begin[1])
    _has_begun = True
    call, arguments = ForkingPickler.loads(packed)
    return call(*arguments)


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever: it ends instead."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
