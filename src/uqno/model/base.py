"""The base as it is given: an operator, and whether it is trained."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from uqno.operators import NeuralOperator, Operator


def as_base(base: Callable[..., Tensor], trained: bool | None) -> Operator:
    """The base as an operator; a trained module of the user's is taken as it is."""
    if isinstance(base, Operator):
        return base
    if trained or (trained is None and not isinstance(base, NeuralOperator)):
        return Operator(base, normalise=(), output=None)
    return Operator(base)


def checked_members(members: int, trained: bool) -> int:
    """The number of operators that a fit trains, if there can be so many."""
    if members < 1 or (members > 1 and trained):
        raise ValueError(
            f"members = {members} must be at least 1, and 1 for a base that is trained: give "
            "several by UQNO([crossfit(...), crossfit(..., seed=1), ...])"
        )
    return members


def is_trained(base: Callable[..., Tensor], operator: Operator) -> bool:
    """A `NeuralOperator` says it by its normalisers; others are taken as trained."""
    return operator.is_normalised if operator.is_registered else True
