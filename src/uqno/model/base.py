"""The base as it is given: an operator, and whether it is trained."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

from torch import Tensor

from uqno.conformal import checks
from uqno.operators import NeuralOperator, Operator
from uqno.uncertainty import Quantile, Uncertainty


def as_base(base: Callable[..., Tensor], trained: bool | None) -> Operator:
    """The base as an operator; a trained module of the user's is taken as it is."""
    if isinstance(base, Operator):
        return base
    if not callable(base):
        raise ValueError(
            f"base = {checks.shown(base)} must be an operator, a torch module or a callable"
        )
    if trained or (trained is None and not isinstance(base, NeuralOperator)):
        return Operator(base, normalise=(), output=None)
    return Operator(base)


def as_uncertainty(given: Uncertainty | None) -> Uncertainty:
    """The estimator of E; the paper's where none is given."""
    if given is not None and not isinstance(given, Uncertainty):
        raise ValueError(
            f"uncertainty = {checks.shown(given)} must be an estimator, such as "
            "uqno.uncertainty.Quantile()"
        )
    return Quantile() if given is None else given


def checked_members(members: Any, trained: bool) -> int:
    """The number of operators that a fit trains, if there can be so many."""
    whole = isinstance(members, Integral) and not isinstance(members, bool)
    if not whole or members < 1 or (members > 1 and trained):
        raise ValueError(
            f"members = {checks.shown(members)} must be at least 1, and 1 for a base that is "
            "trained: give several by UQNO([crossfit(...), crossfit(..., seed=1), ...])"
        )
    return int(members)


def is_trained(base: Callable[..., Tensor], operator: Operator) -> bool:
    """A `NeuralOperator` says it by its normalisers; others are taken as trained."""
    return operator.is_normalised if operator.is_registered else True
