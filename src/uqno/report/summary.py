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
    headline, figure, caption = _to_remember(results, first)
    points = [_guarantee(results, first), _data(results), _agreement(results, first)]
    return Summary(headline=headline, figure=figure, caption=caption, points=points)


def _first_row(results: Results) -> Row | None:
    """The recipe of this library at the first α; any calibrated row where there is none."""
    calibrated = [r for r in results["rows"] if r["calibrated"]]
    own = [r for r in calibrated if r["method"] == RECIPE and r["sampling"] == "grid"]
    return next(iter(own or calibrated), None)


def _like(results: Results, first: Row, method: str) -> Row | None:
    """Another method at the same level, calibrated by the same design."""
    same = ("alpha", "delta", "sampling")
    wanted = [first[name] for name in same]  # type: ignore[literal-required]
    rows = (r for r in results["rows"] if r["method"] == method)
    return next((r for r in rows if [r[name] for name in same] == wanted), None)  # type: ignore[literal-required]


def _to_remember(results: Results, first: Row) -> tuple[str, str, str]:
    """Headline, figure, caption; ratios are to the paper's recipe with the same ranks."""
    paper = _like(results, first, PAPER_RECIPE)
    aided = _like(results, first, f"{PAPER_RECIPE}-aided")
    level = f"α = {first['alpha']:g}, δ = {first['delta']:g}"
    width = first["bandwidth"]
    if width is None:
        reason = first["reason"] or ""
        return f"No band of {first['label']} carries the guarantee here", "–", f"{level}. {reason}"
    words_of_width = f"mean bandwidth {number(width)}{_in_unit(results, first)}"
    theirs = paper["bandwidth"] if paper else None
    if theirs is None or first["method"] != RECIPE:
        why = "" if paper is None else "; the paper's recipe is not feasible with these numbers"
        return "A band with a guarantee for a new function", number(width), (
            f"mean bandwidth of {first['label']}{_in_unit(results, first)} at {level}{why}."
        )  # fmt: skip
    ratio, side = max(theirs / width, width / theirs), "narrower" if theirs >= width else "wider"
    alone = f"; ours alone has {results['aids']}" if results["aids"] else ""
    caption = (
        f"{side} than the paper’s recipe: {words_of_width} against {number(theirs)}, at {level}"
    )
    if alone and aided is not None and aided["bandwidth"] is not None:
        caption += f"; against {number(aided['bandwidth'])} where the paper’s recipe has them too"
    return (
        f"Our band is {ratio:.1f} times {side} than the paper’s recipe with the same ranks{alone}",
        f"{ratio:.1f} ×",
        f"{caption}.",
    )


def _in_unit(results: Results, row: Row) -> str:
    unit = results["unit"]
    if unit is not None:
        return f" ({number(row['bandwidth_in_unit'])} {unit['symbol']})"
    share = row["relative_bandwidth"]
    return "" if share is None else f" ({percent(share, 2)} of RMS(u))"


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
    """What the recorded split says of our own band, then of all calibrated rows."""
    verdicts = [(r, verdict(r)) for r in results["rows"] if r["calibrated"]]
    known = [(r, v) for r, v in verdicts if v is not None]
    title = "Does the test set agree?"
    if first["p_value"] is None:
        text = f"{first['label']} is infeasible here, so there is nothing to test."
        return Point(title=title, text=text, state="bad")
    agree = sum(v == PASS for _, v in known)
    others = f"{agree} of {len(known)} calibrated rows of the table agree."
    for words_of_sign, sign in (("Doubtful", NEAR), ("Not in agreement", FAIL)):
        rows = [r for r, v in known if v == sign]
        others += f" {words_of_sign}: {_names(rows)}." if rows else ""
    state = {PASS: "good", NEAR: "near", FAIL: "bad"}[verdict(first) or FAIL]
    answer = {"good": "Yes.", "near": "It is doubtful.", "bad": "No."}[state]
    text = f"{answer} {_failures(results, first)} {others}"
    return Point(title=title, text=text, state=state)


def _failures(results: Results, row: Row) -> str:
    tested, usual, p = results["split"]["test"], row["usual"], row["p_value"]
    most = "" if usual is None else f"; up to {round(tested * (1 - usual[0]))} are usual"
    chance = "" if p is None else f", and so many or more have probability {_probability(p)}"
    return (
        f"{row['failures']} of {tested} test functions of the recorded split are covered at less "
        f"than {words.rest(row['alpha'])} of their points by {row['label']}. If the promise holds, "
        f"{tested * row['delta']:g} or fewer are expected{most}{chance}."
    )


def _probability(p: float) -> str:
    return "below 0.001" if p < 0.001 else f"{p:.2g}"


def _names(rows: Sequence[Row]) -> str:
    return ", ".join(
        dict.fromkeys(f"{r['label']} ({DESIGNS[r['sampling']]}, α = {r['alpha']:g})" for r in rows)
    )
