"""A record in words: what is guaranteed, for which data, whether the test set agrees, one figure.

Plain sentences for the top of a page; each says what the numbers say, good or bad.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

from uqno.conformal import words
from uqno.experiments.results import Results, Row
from uqno.experiments.table import DESIGNS, FAIL, NEAR, PASS, number, percent, verdict

TASKS: Final = {
    "darcy": "Darcy flow on the unit square: from the permeability a to the pressure u.",
    "cars": "Cars: from the shape of a car to the pressure on its surface.",
}


class Point(TypedDict):
    """One of the things to know; `state`: "good", "near", "bad", or "" for what is no verdict."""

    title: str
    text: str
    state: str


class Summary(TypedDict):
    """The top of the page."""

    headline: str
    figure: str
    """The one to remember."""
    caption: str
    points: list[Point]


def summary(results: Results) -> Summary:
    """The top of the page, of any record with a calibrated row."""
    ours = _ours(results)
    if ours is None:
        return Summary(
            headline="No calibrated band", figure="–", caption="This record has no calibrated row.",
            points=[_data(results)],
        )  # fmt: skip
    headline, figure, caption = _to_remember(results, ours, _recipe(results, ours))
    points = [_guarantee(results, ours), _data(results), _agreement(results, ours)]
    return Summary(headline=headline, figure=figure, caption=caption, points=points)


def _ours(results: Results) -> Row | None:
    """Our method by our ranks at the first α; any calibrated row where there is none."""
    calibrated = [r for r in results["rows"] if r["calibrated"]]
    own = [r for r in calibrated if r["method"] == "uqno" and r["sampling"] == "grid"]
    return next(iter(own or calibrated), None)


def _recipe(results: Results, ours: Row) -> Row | None:
    """The paper's recipe at the same level."""
    level = (ours["alpha"], ours["delta"])
    found = [
        r for r in results["rows"]
        if r["method"] == "uqno-paper" and r["sampling"] == "hoeffding"
        and (r["alpha"], r["delta"]) == level
    ]  # fmt: skip
    return found[0] if found else None


def _to_remember(results: Results, ours: Row, paper: Row | None) -> tuple[str, str, str]:
    """Headline, figure, caption."""
    level = f"α = {ours['alpha']:g}, δ = {ours['delta']:g}"
    width = ours["bandwidth"]
    if width is None:
        reason = ours["reason"] or ""
        return f"No band of {ours['label']} carries the guarantee here", "–", f"{level}. {reason}"
    told = f"mean bandwidth {number(width)}{_in_unit(results, ours)}"
    theirs = paper["bandwidth"] if paper else None
    if theirs is None or ours["method"] != "uqno":
        why = "" if paper is None else "; the paper's recipe is not feasible with these numbers"
        return "A band with a guarantee, on every new function", number(width), (
            f"mean bandwidth of {ours['label']}{_in_unit(results, ours)} at {level}{why}."
        )  # fmt: skip
    ratio, side = max(theirs / width, width / theirs), "narrower" if theirs >= width else "wider"
    return (
        f"Our band is {ratio:.1f} times {side} than the paper’s recipe, under the same guarantee",
        f"{ratio:.1f} ×",
        f"{side} than the paper’s recipe: {told} against {number(theirs)}, at {level}.",
    )


def _in_unit(results: Results, row: Row) -> str:
    unit = results["unit"]
    return "" if unit is None else f" ({number(row['bandwidth_in_unit'])} {unit['symbol']})"


def _guarantee(results: Results, ours: Row) -> Point:
    kind = "vertices" if results["task"] == "cars" else "points"
    points = f"its {results['points']} {kind}" if results["points"] else f"its {kind}"
    return Point(
        title="What is guaranteed",
        text=(
            f"With probability at least {words.rest(ours['delta'])}, the band around the "
            "prediction of a new function, drawn like the calibration functions, contains the "
            f"truth at {words.rest(ours['alpha'])} or more of {points}. This holds for any law of "
            "the functions and any operator, on average over calibration sets; it does not say "
            "which points are missed."
        ),
        state="",
    )


def _data(results: Results) -> Point:
    n = results["split"]
    side = results["settings"].get("tested_at")
    grid = f" on {side} × {side} nodes" if isinstance(side, int) else ""
    return Point(
        title="For which data",
        text=(
            f"{TASKS.get(results['task'], results['task'])} {n.get('train')} functions to train, "
            f"{n.get('calibration')} to calibrate, {n.get('test')} to test{grid}, all drawn from "
            "one law. Other data carry no promise."
        ),
        state="",
    )


def _agreement(results: Results, ours: Row) -> Point:
    """Our own numbers, then how many of all calibrated rows reach their target."""
    verdicts = [(r, verdict(r)) for r in results["rows"] if r["calibrated"]]
    known = [(r, v) for r, v in verdicts if v is not None]
    failed = [r for r, v in known if v == FAIL]
    near = sum(v == NEAR for _, v in known)
    said = _share(ours)
    if not known:
        return Point(title="Does the test set agree?", text=said, state="bad")
    reached = f"{len(known) - len(failed)} of {len(known)} calibrated rows of the table reach it"
    reached += f", {near} of them only within the interval." if near else "."
    if failed:
        reached += f" Below it: {_names(failed)}."
    state = {PASS: "good", NEAR: "near", FAIL: "bad"}[verdict(ours) or FAIL]
    answer = {"good": "Yes.", "near": "Yes, within chance.", "bad": "No."}[state]
    return Point(title="Does the test set agree?", text=f"{answer} {said} {reached}", state=state)


def _share(row: Row) -> str:
    share, ends = row["calibration_percentage"], row["interval"]
    if share is None or ends is None:
        return f"{row['label']} is infeasible here, so there is nothing to test."
    return (
        f"{percent(share)} of the test functions are covered by {row['label']}, as a mean over "
        f"random splits, with {words.percent(row['target'])} promised (exact 95 % interval of one "
        f"test set: {percent(ends[0])} to {percent(ends[1])})."
    )


def _names(rows: Sequence[Row]) -> str:
    return ", ".join(
        dict.fromkeys(f"{r['label']} ({DESIGNS[r['sampling']]}, α = {r['alpha']:g})" for r in rows)
    )
