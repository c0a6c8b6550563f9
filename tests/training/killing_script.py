"""Trains in a child process that is killed at random moments and resumed, until it is done.

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

OPTIONS = {"dropout": 0.2, "epochs": 25, "resume": True}


def start(out: Path) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            train(out, **OPTIONS)
            code = 0
        finally:
            os._exit(code)
    return child


def killed(out: Path, delay: float) -> bool:
    """Whether the kill came before the end."""
    child = start(out)
    last = out / "run" / "last.safetensors"
    before = last.stat().st_mtime_ns if last.exists() else 0
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:  # until there is a step to interrupt
        if last.exists() and last.stat().st_mtime_ns != before:
            break
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    out, draw = Path(sys.argv[1]), random.Random(0)
    kills = sum(killed(out, draw.uniform(0, 0.1)) for _ in range(10))
    status = os.waitpid(start(out), 0)[1]
    (out / "kills").write_text(str(kills))
    sys.exit(os.waitstatus_to_exitcode(status))
