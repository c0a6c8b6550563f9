"""What a method of a comparison is: one record, known to tables, figures and page by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uqno.experiments.methods.operators import Fit, SharedOperator
from uqno.model import UQNO
from uqno.types import Samples
from uqno.uncertainty import Uncertainty
from uqno.uncertainty.contract import Feature

if TYPE_CHECKING:
    from uqno.experiments.settings import Settings
    from uqno.experiments.workshop import Workshop

__all__ = ["METHODS", "Fit", "Method", "no_fit", "uncertainty_fit"]

METHODS: dict[str, Method] = {}
"""Every method that has been defined, by its name."""


def no_fit(settings: Settings) -> Mapping[str, Fit]:
    """The fits of a method that trains nothing but the operators that it shares."""
    return {}


def uncertainty_fit(settings: Settings) -> Mapping[str, Fit]:
    """The fit of a method that trains one network on the errors of all training functions."""
    return {"uncertainty": Fit(settings.train, settings.uncertainty_epochs)}


def _no_features(workshop: Workshop) -> tuple[Feature, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method: how it is called and shown, what it trains, and how its model is made.

    Defining one registers it in `METHODS`.

    Args:
        name: in settings and files.
        label: for people, in tables and figures.
        reference: where it comes from.
        operators: the shared operators that it needs with these settings; the first is its base.
        uncertainty: its estimator of E, not yet fitted.
        make: its model before `fit`, from the trained operators and the estimator.
        fits: what it trains beside the operators, {folder of a fit: what it takes}.
        passes: networks that a prediction takes, from the number of images that symmetries give
            and the number of operators of a committee; for an estimate of the time.
        colour, marker: in figures, as matplotlib writes them.
        features: what E sees beside its inputs, if that is not saved with the model.
        raw: whether the paper's table, or anyone, would use it without calibration.
        samplings: the designs by which its rows are calibrated.
        uncertainty_of: the name of another method whose trained uncertainty it takes.
        aided: whether it is another method with what the recipe `uqno` has; such are rows of
            tables, and are not drawn.
        explained: for a subspace, which has no width: the share of the error energy of each
            function that lies in it, from (model, functions, batch size).
    """

    name: str
    label: str
    reference: str
    operators: Callable[[Settings], tuple[SharedOperator, ...]]
    uncertainty: Callable[[Settings], Uncertainty]
    make: Callable[[Workshop, Uncertainty], UQNO]
    fits: Callable[[Settings], Mapping[str, Fit]] = no_fit
    passes: Callable[[int, int], int] = field(default=lambda images, operators: 1)
    colour: str = "#bbbbbb"
    marker: str = "h"
    features: Callable[[Workshop], tuple[Feature, ...]] = _no_features
    raw: bool = False
    samplings: tuple[str, ...] = ("grid",)
    uncertainty_of: Callable[[Settings], str] | None = None
    aided: bool = False
    explained: Callable[[UQNO, Samples, int], list[float]] | None = None

    def __post_init__(self) -> None:
        if self.name in METHODS:
            raise ValueError(
                f"there is a method {self.name!r} already, {METHODS[self.name].label}: choose "
                "another name"
            )
        METHODS[self.name] = self

    @property
    def module(self) -> str:
        """The module that defines it, for other processes to import."""
        return self.make.__module__

    def base(self, settings: Settings) -> SharedOperator:
        """The operator whose answer is the center of its band."""
        return self.operators(settings)[0]

    def look(self) -> dict[str, Any]:
        """How it is called and drawn, as JSON-able values."""
        return {
            "name": self.name,
            "label": self.label,
            "colour": self.colour,
            "marker": self.marker,
            "reference": self.reference,
            "aided": self.aided,
        }
