"""The ablation: one ingredient of the recipe `uqno` after the other, each shown by a method."""

from __future__ import annotations

from dataclasses import dataclass

from uqno.experiments.measuring import BEST_T
from uqno.experiments.settings import Settings


@dataclass(frozen=True)
class Step:
    """One row of the ablation.

    Args:
        name: in files.
        label: for people.
        method: whose bands it shows.
        sampling: the design by which they are calibrated.
    """

    name: str
    label: str
    method: str
    sampling: str = "grid"


LAST = "uqno"
"""The name of the step with all ingredients."""

FIRST_STEPS = (
    Step("paper", "the paper's recipe", "uqno-paper", "hoeffding"),
    Step("best-t", "its ranks at the best t", "uqno-paper", BEST_T),
    Step("iid", "ranks for random points", "uqno-paper", "iid"),
    Step("grid", "ranks for the grid", "uqno-paper"),
    Step("out-of-fold", "+ out-of-fold residuals", "out-of-fold"),
)
VARIANTS = (
    Step("uqno-hoeffding", "ours, the paper's ranks", "uqno", "hoeffding"),
    Step("uqno-best-t", "ours, its ranks at the best t", "uqno", BEST_T),
    Step("uqno-iid", "ours, random points' ranks", "uqno", "iid"),
    Step("uqno-constant", "ours, a constant uncertainty", "constant-aided"),
    Step("paper-aided", "the paper's recipe, aided", "uqno-paper-aided"),
    Step("uqno-half", "ours, half and half split", "half-symmetric"),
    Step("uqno-half-disagreement", "the same, + disagreement", "disagreement"),
)


def steps(settings: Settings) -> tuple[Step, ...]:
    """One ingredient after the other, those that the settings have; then variants of the whole."""
    ingredients, variants = [], list(VARIANTS)
    inputs = settings.extra_inputs
    if settings.uses_symmetries:
        ingredients.append(Step("symmetries", "+ symmetries", "no-deviation"))
    if inputs:
        ingredients.append(Step("inputs", f"+ {inputs} as an input", "extra-inputs"))
    if settings.uses_symmetries and settings.deviation:
        ingredients.append(Step("deviation", "+ their deviation for E", "full-variation"))
    ingredients.append(Step("less-variation", "+ less variation of E", "one-operator"))
    if settings.committee > 1:
        ingredients.append(Step("members", "+ mean of several operators", "uqno"))
    if settings.committee > 1 and not settings.deviation:
        label = "ours, + their deviation for E"
        variants.append(Step("uqno-deviation", label, "with-deviation"))
    *before, last = ingredients
    return (*FIRST_STEPS, *before, Step(LAST, f"{last.label}: ours", "uqno"), *variants)


def methods_of(settings: Settings) -> tuple[str, ...]:
    """The methods of a run, and those that its ablation shows."""
    shown = [step.method for step in steps(settings)] if settings.ablation else []
    return tuple(dict.fromkeys((*settings.methods, *shown)))
