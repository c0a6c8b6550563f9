"""From what a model predicts to the band that a user gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from uqno.band import Band
from uqno.band.checks import Coordinates
from uqno.conformal import Calibration
from uqno.types import Array, Reals
from uqno.uncertainty.contract import Prediction


def triangles_of(sample: Mapping[str, Any]) -> Array | None:
    """The triangles (faces, 3) of a sample that is a surface; None for any other."""
    triangles = sample.get("triangles")
    return None if triangles is None else np.asarray(triangles)


def on_grid(answer: Prediction, coordinates: Coordinates) -> Prediction:
    """An answer at the points of a grid, one after the other, in the shape of that grid.

    Args:
        answer: center (batch, channel, points) and uncertainty (batch, points).
        coordinates: of the grid, one array for each dimension.
    """
    shape = tuple(len(x) for x in coordinates)
    return Prediction(
        answer.center.reshape(*answer.center.shape[:2], *shape),
        answer.uncertainty.reshape(-1, *shape),
    )


def band_of(
    answer: Prediction,
    calibration: Calibration,
    coordinates: Coordinates,
    triangles: Array | None,
    weights: Tensor | None,
    scales: Reals | None,
    *,
    is_one: bool,
) -> Band:
    """The band of one function, or of all those of a batch.

    Args:
        answer: of the whole batch.
        calibration: the scale and what it guarantees.
        coordinates, triangles: as `Band` has them.
        weights: the measure of each function, (batch, *points); None where points count alike.
        scales: (batch,), or None where all have the scale of the calibration.
        is_one: whether the batch is of one function, which is given alone.
    """
    center, uncertainty = answer.center.cpu().numpy(), answer.uncertainty.cpu().numpy()
    measure = None if weights is None else weights.cpu().numpy()
    scale: float | Reals | None = scales
    if is_one:
        center, uncertainty = center[0], uncertainty[0]
        measure = None if measure is None else measure[0]
        scale = None if scales is None else float(scales[0])
    return Band(center, uncertainty, calibration, coordinates, triangles, measure, scale=scale)
