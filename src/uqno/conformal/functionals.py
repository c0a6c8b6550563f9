"""Intervals of quantities of interest: what they are, their uncertainty R, and bounds by a band.

Two ways lead to the interval of a quantity q(u). It is calibrated by itself, with the rule
`guarantees.Quantity` and an uncertainty R that is learned here from residuals of training
functions. Or it follows from a band that holds at every point: q is linear or monotone, and takes
its bounds over the band. Through a band that may miss points there is none: those are unbounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from uqno.conformal import checks, told
from uqno.conformal.record import Calibration
from uqno.types import Reals

LEVEL: Final = 0.9
"""Which quantile of the residuals R follows."""
FEWEST: Final = 20
"""With fewer residuals R is a constant."""
FLOOR: Final = 0.1
"""R is at least this share of the constant that alone would do."""
# A bound that is rounded outwards, by far more than the sum of a million products loses.
ROUNDING: Final = 1e-9


@dataclass(frozen=True, eq=False)
class Interval:
    """A quantity of a new function, with what is promised of it.

    Args:
        center: the prediction: a number, or (d,) for a quantity of several; with a leading axis of
            functions for those of a batch.
        lower, upper: the ends, alike.
        calibration: what the interval follows from; it holds the guarantee.
        guarantee: what is promised, to quote.
    """

    center: Reals
    lower: Reals
    upper: Reals
    calibration: Calibration
    guarantee: str

    def contains(self, value: Any) -> bool | np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether a value lies in the interval: all its numbers, for a quantity of several."""
        given = np.asarray(value, dtype=np.float64)
        if given.shape != np.shape(self.center):
            raise ValueError(
                f"the value has shape {given.shape}, the quantity {np.shape(self.center)}: "
                "expected the same"
            )
        inside = (given >= self.lower) & (given <= self.upper)
        return inside if inside.ndim else bool(inside)

    def __getitem__(self, which: int | slice) -> Interval:
        """The interval of one function of a batch, or of a slice of them."""
        center, lower, upper = (x[which] for x in (self.center, self.lower, self.upper))
        return Interval(center, lower, upper, self.calibration, self.guarantee)


# --- R, from residuals ----------------------------------------------------------------------------


def learn_uncertainty(residuals: Any, features: Any) -> Reals:
    """R = Σ_k c_k φ_k, the quantile regression of |residual| on features ≥ 0, with every c_k ≥ 0.

    Args:
        residuals: (n,) of the quantity on training functions that the operator has not seen.
        features: (n, f), numbers ≥ 0 that hint at the size of the residual.

    Returns:
        c, (1 + f,): of the constant 1, which is positive, and of each feature. With fewer than 20
        residuals, and where features tell nothing, the constant alone.

    Raises:
        ValueError: a value is not finite, or the numbers of functions differ.

    Reference:
        R. Koenker, G. Bassett: Regression Quantiles (1978).
    """
    r = np.abs(told.features("residuals", np.reshape(residuals, (-1, 1)))[:, 0])
    phi = np.abs(told.features("features", features))
    checks.same_number(residuals=len(r), features=len(phi))
    alone = float(np.quantile(r, LEVEL, method="higher"))
    alone = alone if alone > 0 else 1.0
    constant = np.append(alone, np.zeros(phi.shape[1]))
    size = phi.mean(axis=0)
    if len(r) < FEWEST or not size.any():
        return constant
    scaled = np.column_stack([np.ones(len(r)), phi / np.where(size > 0, size, 1)])
    n, f = scaled.shape
    # min Σ τ u + (1 − τ) v with scaled · c + u − v = r / alone and u, v ≥ 0
    cost = np.concatenate([np.zeros(f), np.full(n, LEVEL), np.full(n, 1 - LEVEL)])
    matrix = sparse.hstack([sparse.csr_array(scaled), sparse.eye_array(n), -sparse.eye_array(n)])
    bounds: list[tuple[float, float | None]] = [(0, None)] * (f + 2 * n)
    bounds[:f] = [(FLOOR, None), *((0, None if s > 0 else 0) for s in size)]
    solved = linprog(cost, A_eq=matrix.tocsr(), b_eq=r / alone, bounds=bounds, method="highs")
    if solved.x is None:
        return constant
    c = np.maximum(solved.x[:f], 0) * alone
    c[1:] /= np.where(size > 0, size, 1)
    return np.asarray(c)


def uncertainty_of(coefficients: Reals, features: Reals) -> Reals:
    """R > 0 of functions with these features, (…, f) → (…)."""
    return np.asarray(coefficients[0] + np.abs(features) @ coefficients[1:])


# --- bounds by a band that holds everywhere -------------------------------------------------------


def holds_everywhere(calibration: Calibration) -> bool:
    """Whether a band promises every point: `Everywhere`, or a share that is less than a point."""
    rule: Any = calibration.rule
    if rule.name == "everywhere":
        return True
    if rule.name != "fraction" or rule.sampling != "grid" or calibration.weighted:
        return False
    return Fraction(str(rule.alpha)) < Fraction(1, calibration.points_max)


def linear_bounds(center: Reals, radius: Reals, weights: Reals) -> tuple[Reals, Reals, Reals]:
    """(Σ w c, and that ∓ Σ |w| r) over all u with ‖u(x) − c(x)‖ ≤ r(x), rounded outwards.

    Args:
        center: (…, channel, points); radius: (…, points).
        weights: w of the functional, (channel, points).
    """
    middle = np.asarray((weights * center).sum(axis=(-2, -1)))
    half = (np.linalg.norm(weights, axis=-2) * radius).sum(axis=-1)
    half = half + ROUNDING * (half + (np.abs(weights * center)).sum(axis=(-2, -1)))
    return middle, middle - half, middle + half


def monotone_bounds(
    functional: Callable[[Reals], Any], center: Reals, radius: Reals, rising: Any = True
) -> tuple[Reals, Reals, Reals]:
    """(q(c), and the smallest and largest q over the band) for q monotone in every value.

    Args:
        functional: q of the values (points,) of a scalar function.
        center: (points,); radius: (points,).
        rising: whether q rises with a value, or for each of them, (points,); otherwise it falls.
    """
    sign = np.where(rising, 1.0, -1.0)
    ends = [functional(center + s * sign * radius) for s in (0, -1, 1)]
    middle, lower, upper = (np.asarray(x, dtype=np.float64) for x in ends)
    if (lower > middle).any() or (middle > upper).any():
        raise ValueError(
            f"the functional goes from {lower} over {middle} to {upper} as its values rise: it is "
            "not monotone in the direction that `rising` says"
        )
    return middle, lower, upper
