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
}
SAMPLINGS = ("grid", "iid", "hoeffding")
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


def answer(name, sampling, more):
    """None if it is calibrated, else why not."""
    error = np.random.default_rng(0).standard_normal((N, POINTS))
    settings = {**ASKED[name], "sampling": sampling}
    calibrating = dict(more)
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
        for sampling in SAMPLINGS:
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
    assert own - {"nothing"} == set(ASKED)


@pytest.mark.parametrize("name", ASKED)
def test_on_a_grid_everything_is_there(name):
    assert answer(name, "grid", {}) is None


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf8")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(text[:start] + table() + text[end:], encoding="utf8")
