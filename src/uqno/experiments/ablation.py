"""The ablation: one ingredient of ours after the other, and which model shows each."""

from __future__ import annotations

from uqno.experiments.measuring import BEST_T
from uqno.experiments.presets import Settings

Step = tuple[str, str, str, str]
"""Of the ablation: its name, what it is, the model, the ranks."""

TO_OUT_OF_FOLD: tuple[Step, ...] = (
    ("paper", "the paper's recipe", "uqno-paper", "hoeffding"),
    ("best-t", "its ranks at the best t", "uqno-paper", BEST_T),
    ("iid", "ranks for random points", "uqno-paper", "iid"),
    ("grid", "ranks for the grid", "uqno-paper", "grid"),
    ("out-of-fold", "+ out-of-fold residuals", "out-of-fold", "grid"),
)
VARIANTS: tuple[Step, ...] = (
    ("ours-hoeffding", "ours, the paper's ranks", "uqno", "hoeffding"),
    ("ours-best-t", "ours, its ranks at the best t", "uqno", BEST_T),
    ("ours-iid", "ours, random points' ranks", "uqno", "iid"),
    ("ours-constant", "ours, a constant uncertainty", "constant-symmetric", "grid"),
    ("ours-half", "ours, half and half split", "half-symmetric", "grid"),
    ("ours-half-disagreement", "the same, + disagreement", "disagreement", "grid"),
)


def ladder(settings: Settings) -> tuple[Step, ...]:
    """One ingredient after the other, those that these settings have; then variants of ours."""
    ingredients, variants = [], list(VARIANTS)
    if settings.uses_symmetries:
        ingredients.append(("symmetries", "+ symmetries", "no-deviation"))
    if settings.more_inputs:
        ingredients.append(("inputs", f"+ {settings.more_inputs} as an input", "more-inputs"))
        told = f"the paper's recipe, + {settings.more_inputs}"
        variants.append(("paper-inputs", told, "paper-more-inputs", "hoeffding"))
    if settings.uses_symmetries and settings.deviation:
        ingredients.append(("deviation", "+ their deviation for E", "full-variation"))
    ingredients.append(("less-variation", "+ less variation of E", "single"))
    if settings.committee > 1:
        ingredients.append(("members", "+ mean of several operators", "uqno"))
    if settings.committee > 1 and not settings.deviation:
        variants.append(
            ("ours-deviation", "ours, + their deviation for E", "with-deviation", "grid")
        )
    *before, (_, last, _) = ingredients
    return (
        *TO_OUT_OF_FOLD,
        *((*step, "grid") for step in before),
        ("ours", f"{last}: ours", "uqno", "grid"),
        *variants,
    )
