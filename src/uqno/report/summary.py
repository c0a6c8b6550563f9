"""A record in words: what is guaranteed, for which data, whether the test set agrees, one figure.

Plain sentences for the top of a page; each says what the numbers say, good or bad.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from uqno.conformal import words
from uqno.experiments.results import Results, Row
from uqno.experiments.table import DESIGNS, FAIL, NEAR, PASS, number, percent, verdict

RECIPE, PAPER_RECIPE = "uqno", "uqno-paper"  # whose band comes first, and is compared with


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
    first = _first_row(results)
    if first is None:
        return Summary(
            headline="No calibrated band", figure="–", caption="This record has no calibrated row.",
            points=[_data(results)],
        )  # fmt: skip
    headline, figure, caption = _to_remember(results, first, _recipe(results, first))
    points = [_guarantee(results, first), _data(results), _agreement(results, first)]
    return Summary(headline=headline, figure=figure, caption=caption, points=points)


def _first_row(results: Results) -> Row | None:
    """The recipe of this library at the first α; any calibrated row where there is none."""
    calibrated = [r for r in results["rows"] if r["calibrated"]]
    own = [r for r in calibrated if r["method"] == RECIPE and r["sampling"] == "grid"]
    return next(iter(own or calibrated), None)


def _recipe(results: Results, first: Row) -> Row | None:
    """The paper's recipe at the same level."""
    level = (first["alpha"], first["delta"])
    rows = [
        r for r in results["rows"]
        if r["method"] == PAPER_RECIPE and r["sampling"] == "hoeffding"
        and (r["alpha"], r["delta"]) == level
    ]  # fmt: skip
    return rows[0] if rows else None


def _to_remember(results: Results, first: Row, paper: Row | None) -> tuple[str, str, str]:
    """Headline, figure, caption."""
    level = f"α = {first['alpha']:g}, δ = {first['delta']:g}"
    width = first["bandwidth"]
    if width is None:
        reason = first["reason"] or ""
        return f"No band of {first['label']} carries the guarantee here", "–", f"{level}. {reason}"
    words_of_width = f"mean bandwidth {number(width)}{_in_unit(results, first)}"
    theirs = paper["bandwidth"] if paper else None
    if theirs is None or first["method"] != RECIPE:
        why = "" if paper is None else "; the paper's recipe is not feasible with these numbers"
        return "A band with a guarantee, on every new function", number(width), (
            f"mean bandwidth of {first['label']}{_in_unit(results, first)} at {level}{why}."
        )  # fmt: skip
    ratio, side = max(theirs / width, width / theirs), "narrower" if theirs >= width else "wider"
    return (
        f"Our band is {ratio:.1f} times {side} than the paper’s recipe, under the same guarantee",
        f"{ratio:.1f} ×",
        f"{side} than the paper’s recipe: {words_of_width} against {number(theirs)}, at {level}.",
    )


def _in_unit(results: Results, row: Row) -> str:
    unit = results["unit"]
    return "" if unit is None else f" ({number(row['bandwidth_in_unit'])} {unit['symbol']})"


def _guarantee(results: Results, first: Row) -> Point:
    kind = "vertices" if results["domain"]["kind"] == "surface" else "points"
    points = f"its {results['points']} {kind}" if results["points"] else f"its {kind}"
    return Point(
        title="What is guaranteed",
        text=(
            f"With probability at least {words.rest(first['delta'])}, the band around the "
            "prediction of a new function, drawn like the calibration functions, contains the "
            f"truth at {words.rest(first['alpha'])} or more of {points}. This holds for any law of "
            "the functions and any operator, on average over calibration sets; it does not say "
            "which points are missed."
        ),
        state="",
    )


def _data(results: Results) -> Point:
    n = results["split"]
    domain = results["domain"]
    sides = " × ".join(str(side) for side in domain["nodes"])
    grid = f" on {sides} nodes" if domain["kind"] == "grid" else ""
    return Point(
        title="For which data",
        text=(
            f"{results['title']} {n.get('train')} functions to train, "
            f"{n.get('calibration')} to calibrate, {n.get('test')} to test{grid}, all drawn from "
            "one law. Other data carry no promise."
        ),
        state="",
    )


def _agreement(results: Results, first: Row) -> Point:
    """Our own numbers, then how many of all calibrated rows reach their target."""
    verdicts = [(r, verdict(r)) for r in results["rows"] if r["calibrated"]]
    known = [(r, v) for r, v in verdicts if v is not None]
    failed = [r for r, v in known if v == FAIL]
    near = sum(v == NEAR for _, v in known)
    said = _share(first)
    if not known:
        return Point(title="Does the test set agree?", text=said, state="bad")
    reached = f"{len(known) - len(failed)} of {len(known)} calibrated rows of the table reach it"
    reached += f", {near} of them only within the interval." if near else "."
    if failed:
        reached += f" Below it: {_names(failed)}."
    state = {PASS: "good", NEAR: "near", FAIL: "bad"}[verdict(first) or FAIL]
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
