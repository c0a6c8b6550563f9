"""Trains in a child process that is killed and resumed again and again, until it is done.

The kills come at chosen moments, around the writing of each file, and then at random ones.
A process of its own, because a child is forked from a clean one: importing torch anew for each
would take longer than all the training.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from training_script import train

EPOCHS = 8
OPTIONS = {"dropout": 0.2, "epochs": EPOCHS, "resume": True}
# (file, how many times it is written before, when it is killed). The first epoch always has a best.
MOMENTS = [
    ("last.safetensors", 0, "half written"),
    ("last.safetensors", 2, "written"),
    ("best.safetensors", 0, "renamed"),
    ("log.csv", 0, "written"),
    ("log.csv", 0, "renamed"),
    ("last.safetensors", 3, "renamed"),
]
RANDOM_KILLS = 3


def kill_at(name: str, before: int, when: str) -> None:
    """From now on, this process kills itself at a moment of writing a file (see `MOMENTS`)."""
    rename, left = os.replace, before

    def renaming(source: Path, target: Path) -> None:
        nonlocal left
        if Path(target).name != name or left:
            left -= Path(target).name == name
            return rename(source, target)
        if when == "half written":
            os.truncate(source, os.path.getsize(source) // 2)
        elif when == "renamed":
            rename(source, target)
        os.kill(os.getpid(), signal.SIGKILL)

    os.replace = renaming


def start(out: Path, moment: tuple[str, int, str] | None = None) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if moment is not None:
                kill_at(*moment)
            train(out, **OPTIONS)
            code = 0
        finally:
            os._exit(code)
    return child


def was_killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def killed_at(out: Path, moment: tuple[str, int, str]) -> bool:
    return was_killed(os.waitpid(start(out, moment), 0)[1])


def killed_after(out: Path, delay: float) -> bool:
    """Whether the kill came before the end; `delay` counts from the first step on."""
    last = out / "run" / "last.safetensors"
    before = last.stat().st_mtime_ns
    child = start(out)
    while last.stat().st_mtime_ns == before:  # until there is a step to interrupt
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return was_killed(status)
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return was_killed(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    out, draw = Path(sys.argv[1]), random.Random(0)
    kills = [killed_at(out, moment) for moment in MOMENTS]
    kills += [killed_after(out, draw.uniform(0, 0.1)) for _ in range(RANDOM_KILLS)]
    status = os.waitpid(start(out), 0)[1]
    (out / "kills").write_text(" ".join(str(int(kill)) for kill in kills))
    sys.exit(os.waitstatus_to_exitcode(status))
