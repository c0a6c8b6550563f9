"""The other methods, aided: with the symmetries and extra inputs that the recipe `uqno` has.

What a recipe gains by knowing more of the problem says nothing about its uncertainty. So every
method is compared twice: as it was published, and with all that `uqno` is given, where it can
have it. As the uncertainty of `uqno` has a floor, a deviation or a mean error is then also raised
by a constant, which is chosen on the training functions (`Offset`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uqno.experiments.methods import baselines, recipes
from uqno.experiments.methods.contract import Method
from uqno.experiments.methods.operators import SharedOperator, committee, enriched
from uqno.model import UQNO
from uqno.uncertainty import Offset, Uncertainty

if TYPE_CHECKING:
    from uqno.experiments.settings import Settings
    from uqno.experiments.workshop import Workshop


def around_aided(workshop: Workshop, uncertainty: Uncertainty) -> UQNO:
    """Fitted to out-of-fold residuals of the operators of the recipe `uqno`."""
    settings = workshop.settings
    operators = [workshop.crossfit(operator) for operator in committee(settings)]
    return _with_symmetries(workshop, operators, uncertainty)


def inside_aided(workshop: Workshop, uncertainty: Uncertainty) -> UQNO:
    """Made of one operator of the recipe `uqno` itself, without out-of-fold residuals."""
    operator = workshop.crossfit(enriched(workshop.settings)).operator
    return _with_symmetries(workshop, operator, uncertainty)


def around_half(workshop: Workshop, uncertainty: Uncertainty) -> UQNO:
    """The paper's split: the operator on one half of the training functions, E on the other."""
    operator = workshop.operator(enriched(workshop.settings, "half"))
    return _with_symmetries(workshop, operator, uncertainty)


def inside_dropout(workshop: Workshop, uncertainty: Uncertainty) -> UQNO:
    """Made of an operator with dropout."""
    operator = workshop.operator(dropout_operator(workshop.settings))
    return _with_symmetries(workshop, operator, uncertainty)


def _with_symmetries(workshop: Workshop, base: Any, uncertainty: Uncertainty) -> UQNO:
    symmetries, deviation = workshop.symmetries, workshop.settings.deviation
    return UQNO(base, uncertainty, symmetries=symmetries, deviation=deviation)


def dropout_operator(settings: Settings) -> SharedOperator:
    """The operator of MC dropout with the symmetries and the extra inputs."""
    return replace(enriched(settings, "all"), dropout=True)


def aided(
    method: Method,
    make: Callable[[Workshop, Uncertainty], UQNO],
    operators: Callable[[Settings], tuple[SharedOperator, ...]] = lambda s: (enriched(s),),
    *,
    offset: bool = False,
    passes: Callable[[int, int], int] = lambda images, operators: 2 * images,
) -> Method:
    """A method with what the recipe `uqno` has, named after it and drawn in its colour.

    Args:
        method: as it was published.
        make: its model, as in `Method`.
        operators: those that it needs, as in `Method`.
        offset: whether its uncertainty is raised by a constant.
        passes: networks that a prediction takes, as in `Method`.
    """

    def uncertainty(settings: Settings) -> Uncertainty:
        own = method.uncertainty(settings)
        return Offset(own) if offset else own

    return replace(
        method,
        name=f"{method.name}-aided",
        label=f"{method.label}, aided",
        reference=f"{method.reference}; with the symmetries and extra inputs of the recipe uqno"
        + (", and a constant added to its uncertainty" if offset else ""),
        operators=operators,
        uncertainty=uncertainty,
        make=make,
        passes=passes,
        raw=False,
        explained=None,
        aided=True,
    )


PAPER_AIDED = aided(
    recipes.PAPER_RECIPE, around_half, lambda settings: (enriched(settings, "half"),)
)
DROPOUT_AIDED = aided(
    baselines.MC_DROPOUT,
    inside_dropout,
    lambda settings: (dropout_operator(settings),),
    offset=True,
    passes=lambda images, operators: 10 * images,
)
LAPLACE_AIDED = aided(baselines.LAPLACE, inside_aided, offset=True)
NPPC_AIDED = aided(
    baselines.NPPC,
    around_aided,
    committee,
    offset=True,
    passes=lambda images, operators: operators * images + 3,
)
ENSEMBLE_AIDED = aided(
    baselines.ENSEMBLE,
    inside_aided,
    offset=True,
    passes=lambda images, operators: 5 * images,
)
PAIR_AIDED = aided(baselines.PERTURBED_PAIR, inside_aided, offset=True)
CONSTANT_AIDED = aided(
    baselines.CONSTANT, around_aided, committee, passes=lambda images, operators: operators * images
)
MEAN_FIELD_AIDED = aided(
    baselines.MEAN_FIELD,
    around_aided,
    committee,
    offset=True,
    passes=lambda images, operators: operators * images,
)
