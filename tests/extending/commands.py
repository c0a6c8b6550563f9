"""`uqno` in a process of its own, so that what an extension registers is not met by other tests."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MOST_LINES = 80


def uqno(*arguments, cwd):
    """What `uqno ARGUMENTS` printed; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", "from uqno.cli.app import main; main()", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_short(name):
    """Whether an extension keeps to the lines that are allowed."""
    return len((HERE / name).read_text(encoding="utf8").splitlines()) <= MOST_LINES
