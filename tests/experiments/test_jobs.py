"""Jobs wait for those they need, the longest begins first, and none outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from threading import Event

import pytest

from uqno.experiments.jobs import Job, Workers


def square(x):
    return x * x


def mark(file, text):
    file.write_text(text)
    return os.getpid()


def fail():
    raise ValueError("no such luck")


def sleep_after(file):
    file.write_text(str(os.getpid()))
    time.sleep(600)


@pytest.mark.parametrize("kind", ["processes", "threads", "here"])
def test_every_job_is_done_once(kind):
    jobs = [Job(f"{x}", square, (x,)) for x in range(5)]
    with Workers(2, kind) as workers:
        results = {job.name: result for job, result in workers.completed(jobs)}
    assert results == {f"{x}": x * x for x in range(5)}


def test_jobs_wait_for_those_they_need_and_the_longest_begins_first():
    jobs = [
        Job("last", square, (1,), needs=("short", "long"), work=100),
        Job("short", square, (1,), work=1),
        Job("long", square, (1,), work=10),
        Job("free", square, (1,), needs=("before",), work=5),
    ]
    with Workers(1, "here") as workers:
        order = [job.name for job, _ in workers.completed(jobs, done={"before"})]
    assert order == ["long", "free", "short", "last"]


def test_what_nobody_does_is_named():
    with (
        Workers(1, "here") as workers,
        pytest.raises(ValueError, match=r"a needs .*'nobody'.*among the jobs"),
    ):
        list(workers.completed([Job("a", square, (1,), needs=("nobody",))]))
    with pytest.raises(ValueError, match="workers = 0 must be at least 1"):
        Workers(0)


def test_jobs_that_are_wanted_may_change():
    wanted, order = [1], []
    with Workers(2, "threads") as workers:
        for job, result in workers.completed(lambda: [Job(str(x), square, (x,)) for x in wanted]):
            order.append((job.name, result))
            if len(wanted) < 3:
                wanted.append(len(wanted) + 1)
    assert order == [("1", 1), ("2", 4), ("3", 9)]


def test_watch_is_called_while_jobs_run():
    free = Event()
    with Workers(1, "threads") as workers:
        done = list(workers.completed([Job("a", free.wait, (60,))], watch=free.set))
    assert done[0][1] is True


def test_processes_are_others_and_begin_is_called_in_each(tmp_path):
    begin = (mark, (tmp_path / "begun", "begun"))
    jobs = [Job("a", mark, (tmp_path / "done", "done"))]
    with Workers(1, "processes", *begin) as workers:
        ((_, pid),) = workers.completed(jobs)
    assert pid != os.getpid()
    assert (tmp_path / "begun").read_text() == "begun"


def test_an_error_reaches_the_caller_and_ends_the_others(tmp_path):
    jobs = [
        Job("long", sleep_after, (tmp_path / "pid",)),
        Job("bad", _fail_after, (tmp_path / "pid",)),
    ]
    with pytest.raises(ValueError, match="no such luck"), Workers(2) as workers:
        list(workers.completed(jobs))
    assert _has_ended(int((tmp_path / "pid").read_text()))


def _fail_after(file):
    while not file.is_file() or not file.read_text():
        time.sleep(0.01)
    fail()


SCRIPT = """
import sys
from pathlib import Path
from tests.experiments.test_jobs import Job, Workers, sleep_after
if __name__ == "__main__":
    with Workers(1) as workers:
        list(workers.completed([Job("a", sleep_after, (Path(sys.argv[1]),))]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_their_parent(how, tmp_path):
    script, pid = tmp_path / "go.py", tmp_path / "pid"
    script.write_text(SCRIPT)
    paths = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    parent = subprocess.Popen(
        [sys.executable, str(script), str(pid)],
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while not pid.is_file() or not pid.read_text():
        assert parent.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(parent.pid, how)
    parent.wait(60)
    assert _has_ended(int(pid.read_text()))


def _has_ended(pid):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
