"""Methods that the ablation alone shows: the recipe `uqno` with and without each ingredient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqno.experiments.methods.contract import Method, uncertainty_fit
from uqno.experiments.methods.operators import SharedOperator, committee, enriched, plain
from uqno.experiments.methods.recipes import half_fit
from uqno.model import UQNO
from uqno.uncertainty import Disagreement, Quantile, Uncertainty
from uqno.uncertainty.contract import Feature

if TYPE_CHECKING:
    from uqno.experiments.settings import Settings
    from uqno.experiments.workshop import Workshop

HERE = "an ablation of the recipe uqno"


def full_variation(settings: Settings) -> Quantile:
    """The paper's E, with a floor."""
    return Quantile(power=1.0)


def only_symmetric(settings: Settings) -> SharedOperator:
    """The operator of the recipe without extra inputs."""
    return enriched(settings, extra_inputs=False)


def second_operator(workshop: Workshop) -> tuple[Feature, ...]:
    """How much a second operator of other random numbers differs from the base, for E to see."""
    return (Disagreement(workshop.operator(enriched(workshop.settings, "half", 2))),)


def around_one(workshop: Workshop, uncertainty: Uncertainty) -> UQNO:
    """The recipe with one operator."""
    settings = workshop.settings
    return UQNO(
        workshop.crossfit(enriched(settings)),
        uncertainty,
        symmetries=workshop.symmetries,
        deviation=settings.deviation,
    )


def owner_of_one(settings: Settings) -> str:
    """The method that is the recipe with one operator: `uqno` itself where it has one."""
    return "uqno" if settings.committee == 1 else "one-operator"


ONE_OPERATOR = Method(
    name="one-operator",
    label="One operator",
    reference=HERE,
    operators=lambda settings: (enriched(settings),),
    uncertainty=lambda settings: Quantile(),
    make=around_one,
    fits=uncertainty_fit,
    passes=lambda images, operators: 2 * images,
)

OUT_OF_FOLD = Method(
    name="out-of-fold",
    label="Out-of-fold residuals",
    reference=HERE,
    operators=lambda settings: (plain(settings),),
    uncertainty=full_variation,
    make=lambda workshop, uncertainty: UQNO(
        workshop.crossfit(plain(workshop.settings)), uncertainty
    ),
    fits=uncertainty_fit,
    passes=lambda images, operators: 2,
)

NO_DEVIATION = Method(
    name="no-deviation",
    label="Symmetries",
    reference=HERE,
    operators=lambda settings: (only_symmetric(settings),),
    uncertainty=full_variation,
    make=lambda workshop, uncertainty: UQNO(
        workshop.crossfit(only_symmetric(workshop.settings)),
        uncertainty,
        symmetries=workshop.symmetries,
        deviation=False,
    ),
    fits=uncertainty_fit,
    passes=lambda images, operators: 2 * images,
)

EXTRA_INPUTS = Method(
    name="extra-inputs",
    label="Symmetries and extra inputs",
    reference=HERE,
    operators=lambda settings: (enriched(settings),),
    uncertainty=full_variation,
    make=lambda workshop, uncertainty: UQNO(
        workshop.crossfit(enriched(workshop.settings)),
        uncertainty,
        symmetries=workshop.symmetries,
        deviation=False,
    ),
    fits=uncertainty_fit,
    passes=lambda images, operators: 2 * images,
)

WITH_DEVIATION = Method(
    name="with-deviation",
    label="With the deviation for E",
    reference=HERE,
    operators=committee,
    uncertainty=lambda settings: Quantile(),
    make=lambda workshop, uncertainty: UQNO(
        [workshop.crossfit(operator) for operator in committee(workshop.settings)],
        uncertainty,
        symmetries=workshop.symmetries,
    ),
    fits=uncertainty_fit,
    passes=lambda images, operators: (operators + 1) * images,
)

FULL_VARIATION = Method(
    name="full-variation",
    label="Full variation of E",
    reference=HERE,
    operators=lambda settings: (enriched(settings),),
    uncertainty=full_variation,
    make=lambda workshop, uncertainty: UQNO(
        workshop.crossfit(enriched(workshop.settings)), uncertainty, symmetries=workshop.symmetries
    ),
    passes=lambda images, operators: 2 * images,
    uncertainty_of=owner_of_one,
)

HALF_SYMMETRIC = Method(
    name="half-symmetric",
    label="Half and half split",
    reference=HERE,
    operators=lambda settings: (enriched(settings, "half"),),
    uncertainty=lambda settings: Quantile(),
    make=lambda workshop, uncertainty: UQNO(
        workshop.operator(enriched(workshop.settings, "half")),
        uncertainty,
        symmetries=workshop.symmetries,
    ),
    fits=half_fit,
    passes=lambda images, operators: 2 * images,
)

DISAGREEMENT = Method(
    name="disagreement",
    label="Half and half split, disagreement",
    reference=HERE,
    operators=lambda settings: (enriched(settings, "half"), enriched(settings, "half", 2)),
    uncertainty=lambda settings: Quantile(),
    make=lambda workshop, uncertainty: UQNO(
        workshop.operator(enriched(workshop.settings, "half")),
        uncertainty,
        symmetries=workshop.symmetries,
        features=second_operator(workshop),
    ),
    fits=half_fit,
    passes=lambda images, operators: 2 * images + 1,
    features=second_operator,
)
