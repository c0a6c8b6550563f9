"""kill −9 at random moments: then the same command again and again, until it has ended.

    python -m tests.kills --record benchmarks/results/kills.json    17 kills a command, half an hour
    python -m tests.kills --kills 2 --small                         smaller commands, in one process

What a command leaves must be what it leaves undisturbed, and between kill and resumption nothing
half-written may be read as whole (see `commands`). Half of the kills of commands that have workers
hit one of those instead, and then the command itself goes on.

Each process is forked from this one, which has imported everything and computed nothing: so kills
come at random moments of the work, and not of the imports.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.experiments.darcy.test_generation import children
from tests.kills.commands import COMMANDS, Command, make_given

SERIES = 4  # kills of a command before it may end
LATEST = 900  # seconds after which a command is said to hang


def forked(work: Callable[[], None], log: Path) -> int:
    """A child that does the work; what it prints goes to a file."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with log.open("a") as out:
            for stream in (1, 2):
                os.dup2(out.fileno(), stream)
            work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def has_ended(child: int) -> bool:
    """Whether a child has ended, by itself and without an error."""
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid and status:
        raise SystemExit(f"a command ended with status {status}: see its log")
    return bool(pid)


def wait(child: int, seconds: float = LATEST) -> bool:
    """Whether a child has ended within so many seconds."""
    until = time.monotonic() + seconds
    while not (ended := has_ended(child)) and time.monotonic() < until:
        time.sleep(0.002)
    return ended


def to_the_end(work: Callable[[], None], log: Path) -> float:
    """Seconds that a command takes undisturbed."""
    began = time.monotonic()
    if not wait(forked(work, log)):
        raise SystemExit(f"a command hangs: see {log}")
    return time.monotonic() - began


def workers_of(child: int) -> list[int]:
    """The workers of a command, without Python's own helper."""
    found = []
    for pid in children(child):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        found += [pid] if "spawn_main" in words else []
    return found


class Killing:
    """One command, killed again and again.

    Args:
        name: of the command.
        scratch: a folder.
        workers: of the command; 0 for none.
        draw: random numbers.
    """

    def __init__(self, name: str, scratch: Path, workers: int, draw: random.Random) -> None:
        self.command: Command = COMMANDS[name]
        self.given, self.scratch, self.draw = scratch / "given", scratch / name, draw
        self.workers, self.log = workers, scratch / f"{name}.log"
        self.counts: Counter[str] = Counter()
        self.round = 0
        self.folder = self._fresh()
        self.seconds = to_the_end(self._work, self.log)
        self.expected = self.command.result(self.folder)
        if not self.expected:
            raise SystemExit(f"{name} left nothing")
        self.folder = self._fresh()

    def _fresh(self) -> Path:
        self.round += 1
        folder = self.scratch / str(self.round)
        folder.mkdir(parents=True)
        return folder

    def _work(self) -> None:
        self.command.run(self.given, self.folder, self.workers)

    def kill(self, at_most: int) -> None:
        """Kill the command at random moments, so many times or until it is faster.

        Then it ends, in its undisturbed results.
        """
        for _ in range(at_most):
            child = forked(self._work, self.log)
            if wait(child, self.draw.uniform(0, self.seconds)):
                return self._compare()  # it was faster
            if self.command.workers and self.workers and self.draw.random() < 0.5:
                return self._kill_worker(child)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self.counts["kills"] += 1
            self.command.check(self.given, self.folder)
        to_the_end(self._work, self.log)
        self._compare()

    def _kill_worker(self, child: int) -> None:
        workers = workers_of(child)
        if workers:
            os.kill(self.draw.choice(workers), signal.SIGKILL)
            self.counts["kills"] += 1
            self.counts["kills of workers"] += 1
        if not wait(child):
            raise SystemExit(f"a command hangs: see {self.log}")
        self._compare()

    def _compare(self) -> None:
        found = self.command.result(self.folder)
        if found != self.expected:
            different = {
                n for n in {**found, **self.expected} if found.get(n) != self.expected.get(n)
            }
            raise SystemExit(f"{self.folder}: other results than undisturbed: {sorted(different)}")
        self.counts["ends"] += 1
        left = list(self.folder.rglob(".uqno-*"))
        self.counts["ends with asides left"] += bool(left)
        shutil.rmtree(self.folder)
        self.folder = self._fresh()


def write(record: Path, name: str, killing: Killing, small: bool) -> None:
    """Add the counts of a command, so far, to a file."""
    there = json.loads(record.read_text()) if record.exists() else {}
    seconds = round(killing.seconds, 1)
    there[name] = {**killing.counts, "seconds undisturbed": seconds, "small": small}
    record.write_text(json.dumps(there, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", help=f"all by default: {', '.join(COMMANDS)}")
    parser.add_argument("--kills", type=int, default=17, help="of each command")
    parser.add_argument("--small", action="store_true", help="without workers and figures")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="a JSON file, to which commands are added")
    asked = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="uqno-kills-"))
    (scratch / "given").mkdir()
    to_the_end(lambda: make_given(scratch / "given"), scratch / "given.log")
    total = 0
    for name in asked.commands or COMMANDS:
        draw = random.Random(f"{asked.seed} {name}")
        killing = Killing(name, scratch, 0 if asked.small else 2, draw)
        while killing.counts["kills"] < asked.kills:
            killing.kill(min(SERIES, asked.kills - killing.counts["kills"]))
            if asked.record is not None:
                write(asked.record, name, killing, asked.small)
        total += killing.counts["kills"]
        print(f"{name}: {dict(killing.counts)}", flush=True)
    shutil.rmtree(scratch)
    print(f"{total} kills; every command ended in its undisturbed results")


if __name__ == "__main__":
    main()
