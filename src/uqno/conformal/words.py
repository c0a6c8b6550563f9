"""The sentences that a person quotes: what is promised, what is not, what would be feasible."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqno.conformal.calibration import Calibration
    from uqno.conformal.planning import Plan

DOMAIN = {
    "grid": "the function's grid points",
    "weighted": "the function's domain, measured by the weights",
    "iid": "the function's domain",
    "hoeffding": "the function's domain",
}


def percent(share: float) -> str:
    """0.98 → '98 %': every digit of the decimal, for what is quoted must be true."""
    return _percent(Decimal(str(share)))


def rest(share: float) -> str:
    """0.02 → '98 %'."""
    return _percent(1 - Decimal(str(share)))


def _percent(share: Decimal) -> str:
    return f"{(100 * share).normalize():f} %"


def ordinal(i: int) -> str:
    suffix = "th" if i % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(i % 10, "th")
    return f"{i}{suffix}"


def rounded_up(x: float, digits: int = 3) -> str:
    """A few digits, never below x: a bound that is quoted still works. A share stays below 1."""
    d = Decimal(repr(float(x)))
    step = Decimal(1).scaleb(d.adjusted() - digits + 1)
    up = d.quantize(step, rounding=ROUND_CEILING).normalize()
    return rounded_up(x, digits + 3) if d < 1 <= up else f"{up:f}"


def plan(p: Plan) -> str:
    have = (
        f"{p.functions} calibration functions of {p.points} points each, alpha = {p.alpha:g}, "
        f"delta = {p.delta:g}, sampling = '{p.sampling}'"
    )
    if p.confidence is not None:
        have += f", confidence = {p.confidence:g}"
    if p.ranks is not None and p.ranks.point is not None:
        return (
            f"Feasible with {have}: the score of a function is its {ordinal(p.ranks.point)} "
            f"smallest ratio of {p.points}, the scale the {ordinal(p.ranks.function)} smallest "
            f"score of {p.functions}; then, with probability at least {rest(p.delta)}, the "
            f"band covers at least {rest(p.alpha)} of {DOMAIN[p.sampling]}."
        )
    remedies = []
    if p.smallest_functions is not None:
        remedies.append(f"at least {p.smallest_functions} functions")
    if p.smallest_points is not None and p.sampling != "grid":
        remedies.append(f"at least {p.smallest_points} points per function")
    if p.smallest_alpha:
        remedies.append(f"alpha of at least {rounded_up(p.smallest_alpha)}")
    if p.smallest_delta is not None:
        remedies.append(f"delta of at least {rounded_up(p.smallest_delta)}")
    if p.sampling == "hoeffding":
        remedies.append("sampling = 'iid', whose exact tails need fewer points")
    told = ", or ".join(remedies) if remedies else "no single change; change several at once"
    return f"Not feasible with {have}. What would be: {told}."


def guarantee(c: Calibration) -> str:
    """One sentence to quote: what is promised, on what condition, and what is not."""
    inside = (
        f"the band of {rounded_up(c.scale, 6)} × uncertainty around the prediction covers at least "
        f"{rest(c.alpha)} of {DOMAIN['weighted' if c.weighted else c.sampling]}"
    )
    n = f"n = {c.functions} calibration functions"
    if c.confidence is None:
        said = (
            f"With probability at least {rest(c.delta)} over the draw of the {n} and of a "
            f"new function exchangeable with them, {inside}"
        )
        unsaid = "about this calibration set alone, "
    else:
        said = (
            f"With confidence {percent(c.confidence)} in the draw of the {n}, for at least "
            f"{rest(c.delta)} of new functions drawn independently from the same law "
            f"{inside}"
        )
        unsaid = ""
    said += ", given that prediction and uncertainty were made without these functions"
    if c.sampling != "grid":
        said += ", that each function's points are independent draws from the domain"
    if c.points != c.points_max and c.mixed == "own":
        said += ", that how finely a function is observed is part of its draw"
        if c.sampling != "grid":
            said += f" and a new one is observed at no fewer than {c.points} points"
    if c.sampling == "grid":
        unsaid += "about other points than those functions are calibrated at, "
    return (
        f"{said}, whatever the law and however good the model; nothing is promised {unsaid}about "
        "which points are missed, about functions picked for their input, or about data of "
        "another kind."
    )
