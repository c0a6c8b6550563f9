"""Checks of what guarantees are asked for: expected X, got Y, do Z."""

from __future__ import annotations

import numbers
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from uqno.conformal import checks
from uqno.types import Sampling


def grid_or_iid(guarantee: str, value: str) -> Sampling:
    """The ways of observing functions that have no point rank."""
    design = checks.sampling(value)
    if design == "hoeffding":
        raise ValueError(
            f"sampling = {value!r} is a rule for the ranks of the paper's guarantee, which "
            f"guarantee {guarantee!r} has not: take 'iid' for points drawn from the domain"
        )
    return design


def grid_only(guarantee: str, value: str, why: str) -> Sampling:
    """A promise that holds for points that are the domain alone."""
    design = checks.sampling(value)
    if design != "grid":
        raise ValueError(
            f"guarantee {guarantee!r} is for sampling='grid', got {value!r}: {why}; take "
            "guarantees.Fraction for points drawn from the domain, or treat the points as the "
            "domain with 'grid'"
        )
    return design


def detail(name: str, details: Any) -> float:
    """A number ≥ 0 among the details of a calibration from a file."""
    value = details.get(name)
    if value is None or value.shape != () or not 0 <= value < np.inf:
        raise ValueError(f"details of the calibration must hold a number {name} ≥ 0, got {value}")
    return float(value)


def only_levels(guarantee: str, given: Any, known: tuple[str, ...]) -> None:
    """Levels to be chosen after looking are among those that the guarantee leaves open."""
    unknown = sorted(set(given) - set(known))
    if unknown or not given:
        raise ValueError(
            f"guarantee {guarantee!r} leaves the choice of {' and '.join(known)} to the reader, "
            f"got {', '.join(unknown) or 'none'}: pass such as at({known[0]}=0.05)"
        )


def no_alphas_beside_shape(alphas: Any) -> None:
    if alphas is not None:
        raise ValueError(
            "give either alphas, a list to choose from, or shape, for any alpha: one of the two"
        )


def among(name: str, value: Fraction, listed: tuple[Fraction, ...]) -> None:
    if value not in listed:
        raise ValueError(
            f"{name} = {float(value):g} is not among {[float(x) for x in listed]}: calibrate with "
            f"it in {name}s, or choose one of these"
        )


def shape_of_curve(levels: tuple[Fraction, ...], values: Any) -> None:
    """Levels that rise, and as many numbers > 0 that do not."""
    if not levels or len(levels) != len(values):
        raise ValueError(
            f"a shape has {len(levels)} levels and {len(values)} values: give one value for each "
            "of at least one level"
        )
    if any(a >= b for a, b in pairwise(levels)):
        raise ValueError(f"the levels of a shape must rise, got {[float(x) for x in levels]}")
    for level, value in zip(levels, values, strict=True):
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number or not 0 < value < np.inf:
            raise ValueError(
                f"the shape is {value!r} at alpha = {float(level):g}, expected a finite number "
                "> 0: leave the level out, or make it of residuals that are not zero"
            )
    if any(a < b for a, b in pairwise(values)):
        raise ValueError(
            f"the values of a shape must not rise with alpha, got {list(values)}: less is missed "
            "by a wider band"
        )
