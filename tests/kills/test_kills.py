"""A few kills of each command; `python -m tests.kills` does many."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="commands are forked")
def test_killed_at_random_moments_every_command_ends_in_its_results(tmp_path):
    command = [sys.executable, "-m", "tests.kills", "--small", "--kills", "1"]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    told = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path)},
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "6 kills; every command ended in its undisturbed results" in told.stdout
