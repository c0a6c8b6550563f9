"""Commands that are stopped: one line, an exit code, whole files, no process left, and on they go.

Real processes, which have far more to do than the test waits for: none can end too early, however
slow the machine is.
"""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.experiments.darcy.test_generation import children, is_alive
from uqno.data.store import FunctionStore
from uqno.experiments.darcy import Recipe
from uqno.storage import alone

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes in /proc")

# A shell's background job ignores Ctrl-C, `nohup` SIGHUP, and their children inherit it.
MAIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
from uqno.cli.app import main
if __name__ == "__main__":
    main()
"""
LATEST = 600  # seconds after which a test fails: hours of what a machine does in one
CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}


def start(*arguments, main=MAIN):
    return subprocess.Popen(
        [sys.executable, "-c", main, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(holds, process):
    until = time.monotonic() + LATEST
    while not holds():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.2)


def stop(process, number, send=os.kill):
    """Send a signal; the last line on stderr, when neither it nor a process below it is left."""
    below = descendants(process.pid)
    assert below, "it has workers"
    send(process.pid, number)
    said = process.communicate(timeout=LATEST)[1]
    assert process.returncode == CODES[number], said
    assert "Traceback" not in said
    until = time.monotonic() + LATEST
    while any(is_alive(pid) for pid in below):
        assert time.monotonic() < until, "processes are left"
        time.sleep(0.05)
    return [line for line in said.splitlines() if not line.endswith("%")]


def descendants(pid):
    found = children(pid)
    return [*found, *(below for child in found for below in descendants(child))]


def made(path):
    """How many chunks the store has; none before it is there."""
    return int(FunctionStore.open(path).done().sum()) if path.exists() else 0


def test_functions_are_stopped_twice_and_go_on(tmp_path):
    path = tmp_path / "d.zarr"
    command = ("data", "darcy", "--functions", 5_000, "--resolution", 127, "--keep", 127,
               "--workers", 2, "--out", path)  # fmt: skip
    stops = (
        (signal.SIGTERM, os.kill, "SIGTERM"),
        (signal.SIGHUP, os.killpg, "SIGHUP"),  # a terminal that is closed tells the whole group
    )
    for number, send, name in stops:
        before = made(path)
        process = start(*command)
        wait_until(lambda before=before: made(path) > before, process)
        assert stop(process, number, send) == [
            f"uqno: stopped by {name}: files are whole, go on with the same command"
        ]
    store = FunctionStore.open(path)
    assert 2 <= store.done().sum() < len(store.done())
    last = int(np.flatnonzero(store.done())[-1])
    ours = Recipe(resolution=127, keep=(127,)).functions(store.positions(last))[127]
    samples = store.samples(127, store.positions(last))
    theirs = [np.stack([sample[name][0].numpy() for sample in samples]) for name in ("a", "u")]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.astype(np.float32), other)


SMALLEST = {
    "train": 8, "calibration": 60, "test": 2, "solved_at": 19, "trained_at": 19, "tested_at": 19,
    "modes": 2, "width": 2, "layers": 1, "batch_size": 1, "epochs": 1_000_000,
    "methods": "uqno-paper", "ablation": "false", "curve_alphas": 0.1, "splits": 2,
}  # fmt: skip


def test_a_run_that_is_stopped_has_checkpoints_and_another_one_is_refused_its_folder(tmp_path):
    settings = [word for name, x in SMALLEST.items() for word in ("--set", f"{name}={x}")]
    command = ("run", "darcy", "--workers", 1, "--out", tmp_path / "run", "--data",
               tmp_path / "data", *settings)  # fmt: skip
    process = start(*command)
    fit = tmp_path / "run" / "operators" / "half"
    wait_until((fit / "log.csv").exists, process)
    other = start(*command)
    assert other.communicate(timeout=LATEST)[1].splitlines()[-1] == (
        f"uqno: another process has a run in {tmp_path / 'run'}: let it finish or stop it, or "
        "choose another folder"
    )
    assert other.returncode == 2
    assert stop(process, signal.SIGINT, os.killpg) == [
        "uqno: stopped by Ctrl-C: files are whole, go on with the same command"
    ]
    assert len((fit / "log.csv").read_text().splitlines()) > 1
    assert (fit / "last.safetensors").exists()
    with alone(tmp_path / "run", "a run"):
        pass


def test_a_command_that_is_stopped_while_it_imports_says_so_too(tmp_path):
    file = tmp_path / "sends_sigterm.py"
    file.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    process = start("run", "--use", file, "darcy", "--settings")
    said = process.communicate(timeout=LATEST)[1]
    assert process.returncode == 143
    assert said == "uqno: stopped by SIGTERM: files are whole, go on with the same command\n"
