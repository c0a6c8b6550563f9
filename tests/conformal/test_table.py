"""The table of docs/guarantees.md says what the code does: each cell is run.

`python -m tests.conformal.test_table` writes the table anew.
"""

import inspect
from pathlib import Path

import numpy as np
import pytest

import uqno
from uqno import guarantees

PAGE = Path(__file__).parent.parent.parent / "docs" / "guarantees.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->"
# How one of each is asked for. A guarantee that is not here has no row, and the test says so.
ASKED = {
    "fraction": {"alpha": 0.1, "delta": 0.1},
    "expected": {"alpha": 0.1},
    "everywhere": {"delta": 0.1},
    "curve": {"delta": 0.1},
    "chosen": {"alpha": 0.1, "delta": 0.2},
    "continuum": {"alpha": 0.1, "delta": 0.1, "error_change": 0.01, "uncertainty_change": 0.01},
    "strata": {"alpha": 0.1, "delta": 0.1},
    "without-replacement": {"alpha": 0.1, "delta": 0.1, "of": 4000},
    "quantity": {"delta": 0.1},
}
OTHERWISE = {"nothing", "shifted"}  # promises nothing; is the column of shifts
SAMPLINGS = ("grid", "iid", "hoeffding")
OWN = "its own"
N, POINTS = 120, 400


def columns():
    """What is combined with each guarantee and sampling; groups and shift where they exist."""
    known = inspect.signature(uqno.calibrate).parameters
    more = {"alone": {}, "weights": {"weights": np.linspace(1, 2, POINTS)}}
    more["confidence"] = {"confidence": 0.8}
    if "groups" in known:
        more["groups"] = {"groups": ["one", "other"] * (N // 2)}
    if "shift" in known:
        more["shift"] = {"shift": np.ones(N)}
    return more


def samplings(name):
    """How functions may be observed: the designs, or the one that a guarantee is for."""
    parameters = inspect.signature(guarantees.GUARANTEES[name]).parameters
    return SAMPLINGS if "sampling" in parameters else (OWN,)


def answer(name, sampling, more):
    """None if it is calibrated, else why not."""
    error = np.random.default_rng(0).standard_normal((N, POINTS))
    calibrating = dict(more)
    if name == "quantity":  # one number of each function
        error, calibrating = (
            error[:, :1],
            {n: x[:1] if n == "weights" else x for n, x in more.items()},
        )
    settings = ASKED[name] if sampling == OWN else {**ASKED[name], "sampling": sampling}
    settings = dict(settings)
    if "confidence" in more:
        settings["confidence"] = calibrating.pop("confidence")
    kind = guarantees.GUARANTEES[name]
    if "confidence" in more and "confidence" not in inspect.signature(kind).parameters:
        return "it is a promise on average over calibration sets: there is no confidence to set"
    try:
        uqno.calibrate(error, np.ones_like(error), guarantee=kind(**settings), **calibrating)
    except ValueError as why:
        return str(why)
    return None


def table():
    more, notes, lines = columns(), [], []
    lines.append(f"| guarantee | sampling | {' | '.join(more)} |")
    lines.append(f"| --- | --- |{' --- |' * len(more)}")
    for name in ASKED:
        for sampling in samplings(name):
            cells = []
            for extra in more.values():
                why = answer(name, sampling, extra)
                if why is not None and why not in notes:
                    notes.append(why)
                cells.append("yes" if why is None else f"no ({notes.index(why) + 1})")
            lines.append(f"| {name} | {sampling} | {' | '.join(cells)} |")
    said = "".join(f"{i}. {why}\n" for i, why in enumerate(notes, 1))
    return "\n".join(lines) + "\n\n" + said


def test_the_table_says_what_the_code_does():
    text = PAGE.read_text(encoding="utf8")
    shown = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert shown == table(), "run python -m tests.conformal.test_table"


def test_every_guarantee_has_its_rows():
    own = {
        name for name, kind in guarantees.GUARANTEES.items() if kind.__module__.startswith("uqno.")
    }
    assert own - OTHERWISE == set(ASKED)


@pytest.mark.parametrize("name", ASKED)
def test_alone_everything_is_there(name):
    assert answer(name, samplings(name)[0], {}) is None


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(text[:start] + table() + text[end:], encoding="utf8")
