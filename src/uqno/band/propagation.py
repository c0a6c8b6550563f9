"""A quantity through a band that holds at every point: its range over all functions in the band."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uqno.band.band import Band
from uqno.conformal.functionals import Interval, holds_everywhere, linear_bounds, monotone_bounds
from uqno.types import Reals


def linear_interval(band: Band, weights: Any) -> Interval:
    """The range of q(u) = Σ w u over the functions in a band.

    Args:
        band: of one function or several, which promises every point.
        weights: w, of the shape of one function's `center`; without the channel for a scalar one.

    Raises:
        ValueError: the band may miss points, or the weights have another shape.
    """
    _check(band)
    shape = (band.channels, *band.points)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != shape and (band.channels, *w.shape) != (1, *shape[1:]):
        raise ValueError(f"weights have shape {w.shape}, expected {shape}, that of the center")
    if not np.isfinite(w).all():
        raise ValueError("weights must be finite numbers")
    center, radius = _flat(band)
    return _interval(band, *linear_bounds(center, radius, w.reshape(band.channels, -1)))


def monotone_interval(
    band: Band, functional: Callable[[Reals], Any], rising: Any = True
) -> Interval:
    """The range of a quantity that rises, or falls, with every value of a scalar function.

    Args:
        band: of one function, which promises every point.
        functional: q of the values (*points), such as their largest.
        rising: whether it rises with a value; or for each of them, (*points).

    Raises:
        ValueError: the band may miss points, or is of several functions or components; or the
            functional is not monotone as is said.
    """
    _check(band)
    if band.is_batch or band.channels > 1:
        raise ValueError(
            "a monotone functional is of one scalar function: take band[i], or a linear functional"
        )
    center, radius = _flat(band)

    def flat(values: Reals) -> Any:
        return functional(values.reshape(band.points))

    return _interval(band, *monotone_bounds(flat, center[0], radius, np.ravel(rising)))


def _check(band: Band) -> None:
    if not holds_everywhere(band.calibration):
        raise ValueError(
            f"the band may miss points ({band.promise}), and at those the values are unbounded: "
            "calibrate at every point, on a grid of m points with alpha < 1/m, or give the "
            "quantity its own interval with UQNO.calibrate(functionals=...)"
        )


def _flat(band: Band) -> tuple[Reals, Reals]:
    """center (…, channel, points) and radius (…, points), in float64."""
    ahead = (len(band),) if band.is_batch else ()
    center = band.center.reshape(*ahead, band.channels, -1).astype(np.float64)
    return center, band.radius.reshape(*ahead, -1).astype(np.float64)


def _interval(band: Band, center: Reals, lower: Reals, upper: Reals) -> Interval:
    said = f"It lies between these bounds wherever the band holds. {band.guarantee}"
    return Interval(center, lower, upper, band.calibration, said)
