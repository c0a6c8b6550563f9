"""What E learns from: training functions as operators see them that were not trained on them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Subset

from uqno.model.inputs import batches
from uqno.operators import Operator
from uqno.operators.padding import unpadded
from uqno.training import CrossFit, crossfit, fit
from uqno.training.samples import derived_seed
from uqno.types import Samples
from uqno.uncertainty import Base, Residuals


def as_crossfits(base: Any) -> tuple[CrossFit, ...]:
    """The base as what `crossfit` returned, once or several times; empty if it is something else.

    Raises:
        ValueError: it is a sequence, and not all of it came from `crossfit`.
    """
    if isinstance(base, CrossFit):
        return (base,)
    if not isinstance(base, Sequence):
        return ()
    if not base or not all(isinstance(one, CrossFit) for one in base):
        raise ValueError(
            f"a base of several must be what crossfit returned, each, got "
            f"{[type(one).__name__ for one in base]}"
        )
    return tuple(base)


def checked_folds(members: int, folds: int | None) -> None:
    """Refuse a committee without folds."""
    if members > 1 and folds is None:
        raise ValueError(f"members = {members} needs crossfit=2 or more folds, not None")


def train_base(
    base: Base, train: Samples, folds: int | None, members: int, options: dict[str, Any]
) -> tuple[Base, Residuals]:
    """Train Ĝ, and give what E learns from: residuals of functions that Ĝ has not seen.

    Args:
        base: Ĝ, not trained; train: the training functions.
        folds: how many; None for Ĝ on the first half and the residuals of the second.
        members, options: as in `train_folds`.
    """
    if folds is None:
        half = len(train) // 2
        fit(base.operator, Subset(train, range(half)), **options)  # type: ignore[arg-type]
        return base, residuals_of(base, Subset(train, range(half, len(train))))  # type: ignore[arg-type]
    crossfits = train_folds(base.operator, train, folds, members, options)
    base = replace(base, others=tuple(one.operator for one in crossfits[1:]))
    return base, out_of_fold(base, train, crossfits)


def train_folds(
    operator: Operator, train: Samples, folds: int, members: int, options: dict[str, Any]
) -> tuple[CrossFit, ...]:
    """Train an operator and the other members of its committee, each with its folds.

    Args:
        operator: is trained on all of `train`, and copies of it on all folds but one.
        train: the training functions.
        folds: how many, at least 2.
        members: of the committee, with `operator`. The others begin with new weights and have
            other folds, and a folder of their own.
        options: the arguments of `uqno.training.crossfit`, with `seed` and `folder`.

    Returns:
        What `crossfit` returned for each member, that of `operator` first.

    Raises:
        ValueError: another operator of this kind cannot be built.
    """

    def new_member() -> Operator:
        return operator.another("pass UQNO([crossfit(...), crossfit(..., seed=1), ...])")

    if members > 1:
        new_member()  # what cannot be built is refused before anything is trained
    untrained = copy.deepcopy(operator)
    fits = [crossfit(lambda: copy.deepcopy(untrained), train, folds=folds, **options)]
    operator.load_state_dict(fits[0].operator.state_dict())
    operator.eval()
    for k in range(1, members):
        folder = options["folder"]
        own = {
            **options,
            "seed": derived_seed(options["seed"], "member", k),
            "folder": None if folder is None else folder / f"member-{k}",
        }
        fits.append(crossfit(new_member, train, folds=folds, **own))
    return tuple(fits)


def out_of_fold(base: Base, train: Samples, fits: Sequence[CrossFit]) -> Residuals:
    """Every training function as those operators see it that were not trained on it.

    Args:
        base: Ĝ, with the symmetries and features of the model.
        train: the functions that `fits` were trained on, in the same order.
        fits: of each member of a committee.

    Raises:
        ValueError: there are more or fewer functions than `fits` were trained on.
    """
    for one in fits:
        if len(one.assignment) != len(train):
            raise ValueError(
                f"{len(train)} training functions, but the folds were made of "
                f"{len(one.assignment)}: give the functions that crossfit was given"
            )
    centers: dict[int, Tensor] = {}
    features: dict[int, Tensor] = {}
    left_out = list(zip(*(one.assignment for one in fits), strict=True))
    for folds in sorted(set(left_out)):
        alike = [i for i, each in enumerate(left_out) if each == folds]
        operator, *others = (f.fold_operators[k] for f, k in zip(fits, folds, strict=True))
        unseeing = replace(base, operator=operator, others=tuple(others))
        part = residuals_of(unseeing, Subset(train, alike))  # type: ignore[arg-type]
        centers |= zip(alike, part.centers, strict=True)
        features |= zip(alike, part.features, strict=True)
    order = range(len(train))
    return Residuals(train, [centers[i] for i in order], [features[i] for i in order])


@torch.no_grad()
def residuals_of(base: Base, data: Samples) -> Residuals:
    """Functions with Ĝ and the features that E sees, without padding.

    Args:
        base: Ĝ, not trained on these functions.
        data: samples with their truth `u`.
    """
    base.ready()
    centers: list[Tensor] = []
    features: list[Tensor] = []
    for _, batch in batches(base, data):
        center, feature = base.view(batch)
        centers += unpadded(center.cpu(), batch)
        features += unpadded(feature.cpu(), batch)
    return Residuals(data, centers, features)
