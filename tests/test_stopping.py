"""Signals: which are heard, when they wait, and what is said; real commands are in tests/cli."""

import os
import signal
import sys

import pytest

from uqno.stopping import SIGNALS, Interrupt, listening


def never(listener):
    pytest.fail("left at once")


def send(number):
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def heard():
    """As in a terminal; a shell's background job ignores Ctrl-C, `nohup` SIGHUP."""
    usual = dict.fromkeys(SIGNALS, signal.SIG_DFL)
    usual[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, usual[number]) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "name", "code"),
    [
        (signal.SIGINT, "Ctrl-C", 130),
        (signal.SIGTERM, "SIGTERM", 143),
        (signal.SIGHUP, "SIGHUP", 129),
    ],
)
def test_each_signal_stops_like_ctrl_c(number, name, code):
    with listening(never) as listener:
        with pytest.raises(KeyboardInterrupt):
            send(number)
        assert str(listener) == f"stopped by {name}: files are whole, go on with the same command"
        assert listener.code == code
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def ask(interrupt, times):
    """Send so many signals while an interrupt is entered."""
    with interrupt:
        for _ in range(times):
            send(signal.SIGTERM)
            assert interrupt.requested


@pytest.mark.parametrize(("times", "said"), [(1, "too late"), (2, "^$")])
def test_the_first_request_waits_and_the_second_does_not(times, said):
    with listening(never), Interrupt() as outer:
        with pytest.raises(KeyboardInterrupt, match=said):
            ask(Interrupt("too late"), times)
        assert not outer.requested


def test_what_is_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with listening(never) as listener:
        send(signal.SIGHUP)
        assert listener.by is None
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_an_import_is_left_without_an_exception_in_it(tmp_path, monkeypatch):
    """Within torch's import an exception would abort the process; `leave` does not return."""
    (tmp_path / "sends_sigterm.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nraise AssertionError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def leave(listener):
        left.append(str(listener))
        raise SystemExit

    left = []
    with listening(leave), pytest.raises(SystemExit):
        import sends_sigterm  # noqa: F401
    assert left == ["stopped by SIGTERM: files are whole, go on with the same command"]
    assert "sends_sigterm" not in sys.modules
