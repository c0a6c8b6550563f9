"""What E learns from: training functions as operators see them that were not trained on them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Subset

from uqno.model.inputs import batches
from uqno.operators import Operator
from uqno.operators.padding import unpadded
from uqno.storage import write_text
from uqno.training import CrossFit, crossfit
from uqno.training.samples import derived_seed
from uqno.types import Samples
from uqno.uncertainty import Base, Residuals


def as_crossfits(base: Any) -> tuple[CrossFit, ...]:
    """The base as what `crossfit` found, once or several times; empty if it is something else."""
    if isinstance(base, CrossFit):
        return (base,)
    if not isinstance(base, Sequence):
        return ()
    if not base or not all(isinstance(one, CrossFit) for one in base):
        raise ValueError(
            f"a base of several must be what crossfit found, each, got "
            f"{[type(one).__name__ for one in base]}"
        )
    return tuple(base)


def train_folds(
    operator: Operator, train: Samples, folds: int, members: int, options: dict[str, Any]
) -> tuple[CrossFit, ...]:
    """Train `operator` on all of `train` and copies of it on all folds but one; then as many
    other members, each from new weights, on other folds, in a folder of its own."""

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
    """Every training function as those operators see it that were not trained on it."""
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
    """The functions with Ĝ and the features that E sees, without padding."""
    base.ready()
    centers: list[Tensor] = []
    features: list[Tensor] = []
    for _, batch in batches(base, data):
        center, feature = base.view(batch)
        centers += unpadded(center.cpu(), batch)
        features += unpadded(feature.cpu(), batch)
    return Residuals(data, centers, features)


def refuse_other_functions(file: Path, seen: Sequence[str], resume: bool) -> None:
    """A fit goes on with its own functions, for these are the ones refused in calibration."""
    wanted = json.dumps({"sha256": hashlib.sha256("".join(seen).encode()).hexdigest()})
    begun = any(file.parent.rglob("last.safetensors"))
    if begun and file.is_file() and file.read_text(encoding="utf8") != wanted:
        raise ValueError(
            f"{file.parent} was trained on other functions: go on with the same ones, or give "
            "another folder"
        )
    if not begun or (resume and not file.is_file()):
        write_text(file, wanted)
