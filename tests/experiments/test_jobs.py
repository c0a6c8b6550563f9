"""Jobs wait for those they need, the longest begins first; processes die, are stopped, replaced."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from threading import Event

import pytest

from uqno.experiments import jobs as jobs_module
from uqno.experiments.jobs import Job, Workers
from uqno.stopping import Interrupt


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


# --- processes that die ---------------------------------------------------------------------------


def die(folder, name, times):
    """Kill this process, so many times; then the square of how often it was tried."""
    tried = len(list(folder.glob(f"{name}-*"))) + 1
    (folder / f"{name}-{tried}").touch()
    if tried <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(tried)


def alone(folder):
    """Goes on until another job has been tried three times, and notes each begin."""
    (folder / f"alone-{os.getpid()}").touch()
    while not (folder / "dies-3").exists():
        time.sleep(0.01)
    return "undisturbed"


def test_a_process_that_dies_is_replaced_and_no_other_is_disturbed(tmp_path, caplog):
    jobs = [
        Job("dies", die, (tmp_path, "dies", 2), work=2),
        Job("alone", alone, (tmp_path,), work=2),
        Job("after", square, (7,), needs=("dies",)),
    ]
    with Workers(2) as workers:
        results = {job.name: result for job, result in workers.completed(jobs)}
    assert results == {"dies": 9, "alone": "undisturbed", "after": 49}
    assert len(list(tmp_path.glob("alone-*"))) == 1
    assert caplog.messages == ["dies: its process ended (by signal 9); it is tried again"] * 2


def test_a_job_whose_process_dies_three_times_is_named(tmp_path):
    jobs = [Job("dies", die, (tmp_path, "dies", 99)), Job("waits", sleep_after, (tmp_path / "p",))]
    said = r"dies: its process ended 3 times .*by signal 9.*memory.*fewer workers.*it goes on"
    with pytest.raises(ChildProcessError, match=said), Workers(2) as workers:
        list(workers.completed(jobs))
    assert len(list(tmp_path.glob("dies-*"))) == 3
    if (tmp_path / "p").exists() and (pid := (tmp_path / "p").read_text()):
        assert _has_ended(int(pid))  # else it was stopped before it began


def test_a_process_that_dies_between_two_jobs_is_replaced(tmp_path):
    with Workers(1) as workers:
        ((_, first),) = workers.completed([Job("a", mark, (tmp_path / "a", "a"))])
        os.kill(first, signal.SIGKILL)
        ((_, second),) = workers.completed([Job("b", mark, (tmp_path / "b", "b"))])
    assert first != second
    assert _has_ended(first)


def test_an_error_in_begin_reaches_the_caller():
    with pytest.raises(ValueError, match="no such luck"), Workers(1, begin=fail) as workers:
        list(workers.completed([Job("a", square, (1,))]))


class TwoWords(Exception):
    """Cannot be read back: the one argument that is pickled is not enough."""

    def __init__(self, one, other):
        super().__init__(one + other)


def fail_in_two_words():
    raise TwoWords("a", "b")


def test_an_answer_that_cannot_be_read_is_no_death():
    with pytest.raises(BrokenProcessPool) as why, Workers(1) as workers:
        list(workers.completed([Job("a", fail_in_two_words)]))
    assert "TwoWords" in str(why.value.__cause__)


# --- processes that are stopped -------------------------------------------------------------------


def train(folder):
    """As a training: asked to stop, it ends between two steps and saves; a signal more is harmless.

    Until it is asked, it waits for what does not come.
    """
    with Interrupt() as interrupt:
        (folder / "begun").touch()
        while not interrupt.requested:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
        (folder / "saved").touch()
        raise KeyboardInterrupt


def refuse_to_stop(folder):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / "begun").write_text(str(os.getpid()))
    time.sleep(600)


def fail_when(file):
    while not file.exists():
        time.sleep(0.01)
    fail()


def test_trainings_save_when_another_job_fails(tmp_path):
    jobs = [Job("train", train, (tmp_path,)), Job("bad", fail_when, (tmp_path / "begun",))]
    with pytest.raises(ValueError, match="no such luck"), Workers(2) as workers:
        list(workers.completed(jobs))
    assert (tmp_path / "saved").exists()


def test_what_does_not_stop_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs_module, "GRACE", 0.2)
    jobs = [
        Job("stays", refuse_to_stop, (tmp_path,)),
        Job("bad", _fail_after, (tmp_path / "begun",)),
    ]
    with pytest.raises(ValueError, match="no such luck"), Workers(2) as workers:
        list(workers.completed(jobs))
    assert _has_ended(int((tmp_path / "begun").read_text()))


def test_what_a_terminal_sends_to_all_is_answered_by_the_parent(tmp_path):
    """A process that is asked by the terminal goes on: the parent asks it when it wants to."""
    with Workers(1) as workers:
        ((_, pid),) = workers.completed([Job("a", mark, (tmp_path / "a", "a"))])
        for number in (signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
        ((_, again),) = workers.completed([Job("b", mark, (tmp_path / "b", "b"))])
    assert again == pid
