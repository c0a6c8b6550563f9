"""Runs cases within bounds of time and memory, and says which broke the contract.

A case may end in an answer or in an exception that the documentation names: ValueError with its
subclasses, OSError for files that are not there, TypeError where Python itself says that arguments
do not fit a signature. Anything else is a failure: another exception, more than the time of a case,
more memory than the budget (the process has no more address space, so that Python says
MemoryError), an answer that the reference does not give.
"""

from __future__ import annotations

import faulthandler
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SECONDS = 10  # of processor time, for one case
WALL_SECONDS = 60  # of a clock, on a machine that does other things too
BUDGET = 2 * 2**30  # bytes beyond what is there before the first case
SOURCE = str(Path(__file__).parents[2] / "src")
# What Python says of arguments that a signature does not have.
SIGNATURE = re.compile(
    r"(unexpected keyword argument|missing \d+ required|takes \d+ positional|takes from \d+ to "
    r"|got multiple values|takes no arguments|must be strings|Can't instantiate)"
)


class TooSlowError(BaseException):
    """A case took longer than it may; no `except Exception` of the library keeps it."""


class WrongAnswerError(AssertionError):
    """An accepted case whose answer is not that of the reference."""


@dataclass
class Tally:
    """What became of the cases of one kind."""

    kind: str
    outcomes: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)
    failures: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    """{what and where: (what the first said, the numbers of the cases)}."""
    slowest: float = 0.0

    @property
    def cases(self) -> int:
        return sum(self.outcomes.values())

    def lines(self) -> Iterator[str]:
        outcomes = ", ".join(f"{n} {what}" for what, n in sorted(self.outcomes.items()))
        yield f"{self.kind}: {self.cases} cases ({outcomes}); slowest {self.slowest:.1f} s"
        yield "  of " + ", ".join(f"{name} {n}" for name, n in sorted(self.of.items()))
        for what, (said, numbers) in sorted(self.failures.items()):
            yield f"  FAILED {len(numbers)}, --first {numbers[0]}: {what}: {said}"


Case = tuple[str, Callable[[], object]]
"""What it is about, and the call."""


def is_documented(why: BaseException) -> bool:
    """Whether the contract names this exception."""
    if isinstance(why, TypeError):
        return SIGNATURE.search(str(why)) is not None
    return isinstance(why, ValueError | OSError) and not isinstance(why, UnicodeError)


@contextmanager
def limits(budget: int = BUDGET) -> Iterator[None]:
    """No more than so much memory from here on, and a signal when a case takes too long."""

    def stop(number: int, frame: object) -> None:
        raise TooSlowError(f"more than {SECONDS} s of processor time, or {WALL_SECONDS} s in all")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
    signals = (signal.SIGPROF, signal.SIGALRM)
    for number in signals:
        signal.signal(number, stop)
    sys.unraisablehook = lambda *of: None  # libraries throw objects away that are half made
    resource.setrlimit(resource.RLIMIT_AS, (used + budget, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        for number in signals:  # a late signal ends nothing
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def timer() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, SECONDS, 1)  # again: a library may swallow the first
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS, 1)
    faulthandler.dump_traceback_later(2 * WALL_SECONDS, exit=True)  # stuck in a library's C
    try:
        yield
    finally:
        for clock in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(clock, 0)
        faulthandler.cancel_dump_traceback_later()


def run(
    kind: str,
    make: Callable[[np.random.Generator], Case],
    cases: Iterable[int],
    seed: int,
    minutes: float,
    at: Path | None = None,
) -> Tally:
    """So many cases of one kind, or as many as there is time for.

    Args:
        kind: its name, which seeds it with `seed` and the number of the case.
        make: draws a case.
        cases: their numbers.
        seed: of all of them.
        minutes: after which none is begun.
        at: a file that always says which case is being run, should the process die of it.
    """
    tally = Tally(kind)
    ends = time.monotonic() + 60 * minutes
    for number in cases:
        if time.monotonic() > ends:
            break
        if at is not None:
            at.write_text(str(number))
        name, call = make(np.random.default_rng([seed, *kind.encode(), number]))
        began = time.process_time()
        outcome = _outcome(call)
        tally.slowest = max(tally.slowest, time.process_time() - began)
        tally.of[name.split(":")[0]] += 1
        if outcome in ("accepted", "refused"):
            tally.outcomes[outcome] += 1
            continue
        tally.outcomes["failed"] += 1
        place, _, said = outcome.partition(": ")
        key = f"({name.split(':')[0]}) {place}"
        tally.failures.setdefault(key, (said, []))[1].append(number)
    return tally


def _outcome(call: Callable[[], object]) -> str:
    try:
        with timer(), warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
    except (Exception, TooSlowError, SystemExit) as why:
        if is_documented(why):
            return "refused"
        return _said(why)
    return "accepted"


def _said(why: BaseException) -> str:
    """The exception and the line of ours, or of the fuzzer, that it went through last."""
    frames = traceback.extract_tb(why.__traceback__)
    ours = [f for f in frames if f.filename.startswith(SOURCE)] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}"
    return f"{type(why).__name__} at {place}: {' '.join(str(why).split())[:120]}"
