"""The recipe of this library, and the one of the paper that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from uqno.experiments.methods.contract import Method, uncertainty_fit
from uqno.experiments.methods.operators import Fit, SharedOperator, committee
from uqno.model import UQNO
from uqno.uncertainty import Quantile

if TYPE_CHECKING:
    from uqno.experiments.settings import Settings

NO_FLOOR = 1e-3
"""The paper's recipe has no floor; an uncertainty must be positive, so it has this share of the
mean error."""
PAPER = (
    "Ma, Azizzadenesheli and Anandkumar (2024), Calibrated Uncertainty Quantification for Operator "
    "Learning via Conformal Prediction"
)


def half_fit(settings: Settings) -> Mapping[str, Fit]:
    """One network on the errors of the second half of the training functions."""
    return {"uncertainty": Fit(settings.train - settings.train // 2, settings.uncertainty_epochs)}


def paper_uncertainty(settings: Settings) -> Quantile:
    """The paper's E: no floor, and as much variation as the network gives it."""
    return Quantile(floor=NO_FLOOR, power=1.0)


UQNO_RECIPE = Method(
    name="uqno",
    label="UQNO (ours)",
    reference=(
        f"{PAPER}; with out-of-fold residuals of all training functions, symmetries, inputs that "
        "the task knows of, the mean of several operators where functions are few, their "
        "deviation for E, and less variation of E"
    ),
    colour="#0072b2",
    marker="o",
    operators=committee,
    uncertainty=lambda settings: Quantile(),
    make=lambda workshop, uncertainty: UQNO(
        [workshop.crossfit(operator) for operator in committee(workshop.settings)],
        uncertainty,
        symmetries=workshop.symmetries,
        deviation=workshop.settings.deviation,
    ),
    fits=uncertainty_fit,
    passes=lambda images, operators: (operators + 1) * images,
    raw=True,
)

PAPER_RECIPE = Method(
    name="uqno-paper",
    label="UQNO (paper)",
    reference=PAPER,
    colour="#56b4e9",
    marker="s",
    operators=lambda settings: (SharedOperator("half"),),
    uncertainty=paper_uncertainty,
    make=lambda workshop, uncertainty: UQNO(workshop.operator(SharedOperator("half")), uncertainty),
    fits=half_fit,
    passes=lambda images, operators: 2,
    raw=True,
    samplings=("hoeffding", "grid"),
)
