"""How work is stopped: SIGTERM and SIGHUP do what Ctrl-C does, and none comes at a bad moment.

Ctrl-C raises KeyboardInterrupt wherever the program is. While an `Interrupt` is entered, the first
request only sets `requested`: a training ends itself between two steps, where its weights are
consistent, and writes a checkpoint. The second request interrupts at once.

    with listening(leave) as listener:  the command line: three signals, one way to stop
        ...
    listen_as_worker(), then do(call)   a process of `uqno.experiments.jobs`: its parent stops it

While modules are imported, both leave without an exception: inside torch's import, a
KeyboardInterrupt would abort the process.

A terminal sends its signals to a whole group of processes, and so do `timeout` and batch systems.
Workers are deaf to those that the parent answers for all; of SIGTERM they hear the first.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn

SIGNALS = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""What stops a command: Ctrl-C, `kill` and batch systems, a terminal that is closed."""

_entered: list[Interrupt] = []  # the last one is the innermost
_is_listening = False
_at_work = False  # in a worker


class Interrupt:
    """While entered, the first Ctrl-C sets `requested`; the second one interrupts at once.

    What `listening` or `listen_as_worker` hears counts as Ctrl-C.

    Args:
        late: what KeyboardInterrupt says when the request came too late to stop this.
    """

    def __init__(self, late: str = "interrupted") -> None:
        self.requested = False
        self._late = late

    def __enter__(self) -> Interrupt:
        # Python delivers signals to the main thread only, and refuses handlers elsewhere.
        self._mine = threading.current_thread() is threading.main_thread()
        if self._mine:
            _entered.append(self)
            self._hears = not _is_listening
            if self._hears:
                self._before = signal.signal(signal.SIGINT, _request)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mine:
            if self._hears:
                signal.signal(signal.SIGINT, self._before)
            _entered.remove(self)
        if self.requested and kind is None:  # too late to stop this, but not what comes next
            raise KeyboardInterrupt(self._late)


def _request(number: int, frame: FrameType | None) -> None:
    if not _entered or _entered[-1].requested:
        raise KeyboardInterrupt
    _entered[-1].requested = True


class Listener:
    """Which signal stopped a command, if one did."""

    by: signal.Signals | None = None

    @property
    def code(self) -> int:
        """The exit code that says so: 128 and the number of the signal."""
        return 128 + (self.by or signal.SIGINT)

    def __str__(self) -> str:
        name = "Ctrl-C" if self.by in (None, signal.SIGINT) else self.by.name
        return f"stopped by {name}: files are whole, go on with the same command"


@contextmanager
def listening(leave: Callable[[Listener], NoReturn]) -> Iterator[Listener]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does.

    A signal that is ignored stays so: `nohup` and the background jobs of a shell ask for it.
    In another thread than the main one, which hears no signals, nothing changes.

    Args:
        leave: ends the process at once, without an exception; called during an import.
    """
    global _is_listening
    listener, before = Listener(), {}

    def hear(number: int, frame: FrameType | None) -> None:
        listener.by = listener.by or signal.Signals(number)
        if _is_importing(frame):
            leave(listener)
        _request(number, frame)

    if threading.current_thread() is threading.main_thread():
        before = {n: signal.getsignal(n) for n in SIGNALS}
        before = {n: old for n, old in before.items() if old not in (signal.SIG_IGN, None)}
    was, _is_listening = _is_listening, _is_listening or bool(before)
    try:
        for number in before:
            signal.signal(number, hear)
        yield listener
    finally:
        for number, old in before.items():
            signal.signal(number, old)
        _is_listening = was


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


# --- in a worker ----------------------------------------------------------------------------------


def listen_as_worker() -> None:
    """Stop this process at its first SIGTERM: at once between jobs, else as `do` says."""
    global _is_listening
    _is_listening = True
    signal.signal(signal.SIGTERM, _stop_worker)
    for number in SIGNALS:
        if number != signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)


def _stop_worker(number: int, frame: FrameType | None) -> None:
    if not _at_work or _is_importing(frame):
        _leave()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to the group and by the parent: once
    _request(number, frame)


def do(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A job of a worker; asked to stop, the job ends as by Ctrl-C and the process with it."""
    global _at_work
    try:
        _at_work = True
        return call(*arguments)
    except KeyboardInterrupt:
        _leave()
    finally:
        _at_work = False


def _leave() -> NoReturn:
    """End without a word: the parent knows."""
    os._exit(128 + signal.SIGTERM)
