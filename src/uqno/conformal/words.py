"""Numbers in sentences that a person quotes: every digit true, no bound on the wrong side."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from uqno.types import Share

if TYPE_CHECKING:
    from uqno.conformal.planning import Plan


def percent(share: Share) -> str:
    """A share as a percentage with every digit, for what is quoted must be true.

    >>> percent(0.98), percent(Fraction(1, 3))
    ('98 %', '1/3')
    """
    exact = Fraction(str(share))
    rest_of_tens = exact.denominator
    for factor in (2, 5):
        while rest_of_tens % factor == 0:
            rest_of_tens //= factor
    if rest_of_tens != 1:  # no decimal number is this share
        return str(exact)
    decimal = 100 * Decimal(exact.numerator) / Decimal(exact.denominator)
    return f"{decimal.normalize():f} %"


def rest(share: Share) -> str:
    """What is left of a share: 0.02 → '98 %'."""
    return percent(1 - Fraction(str(share)))


def ordinal(i: int) -> str:
    """1 → '1st', 12 → '12th'."""
    suffix = "th" if i % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(i % 10, "th")
    return f"{i}{suffix}"


def rounded_up(x: float, digits: int = 3) -> str:
    """A few digits, never below x: a bound that is quoted still works. A share stays below 1."""
    d = Decimal(repr(float(x)))
    step = Decimal(1).scaleb(d.adjusted() - digits + 1)
    up = d.quantize(step, rounding=ROUND_CEILING).normalize()
    return rounded_up(x, digits + 3) if d < 1 <= up else f"{up:f}"


def about_points(sampling: str, mixed: str, by_tail: bool, least: int, most: int) -> str:
    """What a promise supposes of the points of functions, to be added to its sentence.

    Args:
        sampling, mixed: of `guarantees.Fraction`.
        by_tail: whether the rule is the same for functions of any number of points.
        least, most: the numbers of points of the calibration functions.
    """
    finely = ", that how finely a function is observed is part of its draw"
    if sampling == "grid":
        return finely if least != most else ""
    drawn = ", that each function's points are independent draws from the domain"
    if by_tail:
        return drawn + finely
    at_least = f"a new one is observed at no fewer than {least} points"
    if mixed == "subsample":
        return f"{drawn} and their number tells nothing of the function, or {at_least}"
    if least != most:
        return f"{drawn}{finely} and {at_least}"
    return f"{drawn} and their number, {least}, was fixed beforehand or is the new one's too"


# --- of guarantees about a share of the domain ----------------------------------------------------


def promise_of_share(
    alpha: Share,
    delta: Share,
    confidence: Share | None,
    functions: int,
    scale: float,
    domain: str,
    supposing: str,
) -> str:
    """The whole sentence of an (α, δ) guarantee.

    Args:
        alpha, delta, confidence: its levels.
        functions: n; scale: λ̂.
        domain: what the share is of.
        supposing: ", if …", what it supposes beside the law of the functions.
    """
    inside = (
        f"the band of {rounded_up(scale, 6)} × uncertainty around the prediction covers at least "
        f"{rest(alpha)} of {domain}"
    )
    n = f"the n = {functions} calibration functions"
    if confidence is None:
        said = (
            f"With probability at least {rest(delta)} over the draw of {n} and of a new function "
            f"exchangeable with them, {inside}"
        )
    else:
        said = (
            f"With confidence {percent(confidence)} in the draw of {n}, for at least {rest(delta)} "
            f"of new functions drawn independently from the same law {inside}"
        )
    unsaid = "about this calibration set alone, " if confidence is None else ""
    return (
        f"{said}, given that prediction and uncertainty were made without these functions"
        f"{supposing}; nothing is promised {unsaid}about which points are missed, about functions "
        "picked for their input, or about data of another kind."
    )


def short_promise(alpha: Share, delta: Share, confidence: Share | None, domain: str) -> str:
    """An (α, δ) guarantee in one line."""
    part = f"covers ≥ {rest(alpha)} of {domain}"
    if confidence is None:
        return f"{part} with probability ≥ {rest(delta)}"
    return f"{part} for ≥ {rest(delta)} of new functions, confidence {percent(confidence)}"


def plan_of_share(alpha: Share, delta: Share, confidence: Share | None, plan: Plan) -> str:
    """Whether an (α, δ) guarantee is feasible, how, and if not, what would be."""
    given = (
        f"{plan.functions} calibration functions of {plan.points} points each, guarantee "
        f"'{plan.rule.name}', alpha = {float(alpha):g}, delta = {float(delta):g}"
    )
    if confidence is not None:
        given += f", confidence = {float(confidence):g}"
    if plan.ranks is not None and plan.ranks.point is not None:
        return (
            f"Feasible with {given}: the score of a function is its "
            f"{ordinal(plan.ranks.point)} smallest ratio of {plan.points}, the scale the "
            f"{ordinal(plan.ranks.function)} smallest score of {plan.functions}."
        )
    plural = {"functions": "functions", "points": "points per function"}
    remedies = [
        f"at least {int(least)} {plural[name]}"
        if name in plural
        else f"{name} of at least {rounded_up(least)}"
        for name, least in plan.smallest.items()
        if least and not (name in plural and least <= getattr(plan, name))
    ]
    instead = ", or ".join(remedies) or "no single change; change several at once"
    return f"Not feasible with {given}. What would be: {instead}."
