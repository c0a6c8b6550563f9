"""Sentences of guarantees that promise a share of the domain with a probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqno.conformal.words import ordinal, percent, rest, rounded_up
from uqno.types import Share

if TYPE_CHECKING:
    from uqno.conformal.planning import Plan


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
