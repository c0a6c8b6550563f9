"""Other methods of uncertainty, each with the operator and the calibration that all have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from uqno.experiments.methods.contract import Method, uncertainty_fit
from uqno.experiments.methods.operators import Fit, plain, with_dropout
from uqno.model import UQNO
from uqno.model.inputs import batches
from uqno.types import Samples
from uqno.uncertainty import (
    Components,
    Constant,
    Dropout,
    Ensemble,
    Laplace,
    MeanField,
    PerturbedPair,
    Uncertainty,
)

if TYPE_CHECKING:
    from uqno.experiments.settings import Settings
    from uqno.experiments.workshop import Workshop


def around_plain(workshop: Workshop, uncertainty: Uncertainty) -> UQNO:
    """Fitted to out-of-fold residuals of the plain operator."""
    return UQNO(workshop.crossfit(plain(workshop.settings)), uncertainty)


def inside_plain(workshop: Workshop, uncertainty: Uncertainty) -> UQNO:
    """Made of the plain operator itself, without out-of-fold residuals."""
    return UQNO(workshop.crossfit(plain(workshop.settings)).operator, uncertainty)


def member_fits(settings: Settings) -> Mapping[str, Fit]:
    """Members of an ensemble, each an operator like the base."""
    work = Fit(settings.train, settings.epochs)
    return {f"uncertainty/member-{k}": work for k in range(1, settings.members)}


def pair_fit(settings: Settings) -> Mapping[str, Fit]:
    """The second operator of a pair."""
    return {"uncertainty/member-1": Fit(settings.train, settings.epochs)}


@torch.no_grad()
def explained(model: UQNO, data: Samples, size: int) -> list[float]:
    """The share of each function's error energy that lies in the subspace of components."""
    if not isinstance(model.uncertainty, Components):
        raise ValueError(f"{type(model.uncertainty).__name__} has no subspace: expected Components")
    shares = [
        model.uncertainty.explained(model.base, batch, batch["u"])
        for _, batch in batches(model.base, data, size)
    ]
    return [float(share) for share in torch.cat(shares)]


MC_DROPOUT = Method(
    name="mc-dropout",
    label="MC dropout",
    reference="Gal and Ghahramani (2016), Dropout as a Bayesian Approximation",
    colour="#d55e00",
    marker="^",
    operators=lambda settings: (with_dropout(settings),),
    uncertainty=lambda settings: Dropout(),
    make=lambda workshop, uncertainty: UQNO(
        workshop.operator(with_dropout(workshop.settings)), uncertainty
    ),
    passes=lambda images, operators: 10,
    raw=True,
)

LAPLACE = Method(
    name="laplace",
    label="Laplace",
    reference="Daxberger et al. (2021), Laplace Redux; Weber et al. (2024) for neural operators",
    colour="#009e73",
    marker="D",
    operators=lambda settings: (plain(settings),),
    uncertainty=lambda settings: Laplace(),
    make=inside_plain,
    passes=lambda images, operators: 2,
    raw=True,
)

NPPC = Method(
    name="nppc",
    label="NPPC",
    reference="Nehme et al. (2023), Uncertainty Quantification via Neural Posterior Principal "
    "Components",
    colour="#cc79a7",
    marker="v",
    operators=lambda settings: (plain(settings),),
    uncertainty=lambda settings: Components(),
    make=around_plain,
    fits=uncertainty_fit,
    passes=lambda images, operators: 4,
    raw=True,
    explained=explained,
)

ENSEMBLE = Method(
    name="ensemble",
    label="Deep ensemble",
    reference="Lakshminarayanan et al. (2017), Simple and Scalable Predictive Uncertainty "
    "Estimation using Deep Ensembles",
    colour="#e69f00",
    marker="P",
    operators=lambda settings: (plain(settings),),
    uncertainty=lambda settings: Ensemble(settings.members),
    make=inside_plain,
    fits=member_fits,
    passes=lambda images, operators: 5,
    raw=True,
)

PERTURBED_PAIR = Method(
    name="perturbed-pair",
    label="Perturbed pair",
    reference="a second operator, trained on labels with noise",
    colour="#f0e442",
    marker="X",
    operators=lambda settings: (plain(settings),),
    uncertainty=lambda settings: PerturbedPair(settings.noise),
    make=inside_plain,
    fits=pair_fit,
    passes=lambda images, operators: 2,
    raw=True,
)

CONSTANT = Method(
    name="constant",
    label="Constant",
    reference="split conformal prediction with the same radius everywhere",
    colour="#000000",
    marker="p",
    operators=lambda settings: (plain(settings),),
    uncertainty=lambda settings: Constant(),
    make=around_plain,
)

MEAN_FIELD = Method(
    name="mean-field",
    label="Mean error field",
    reference="the mean error of the training functions, point by point",
    colour="#888888",
    marker="*",
    operators=lambda settings: (plain(settings),),
    uncertainty=lambda settings: MeanField(),
    make=around_plain,
)
