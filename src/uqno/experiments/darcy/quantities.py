"""Quantities of interest of Darcy flow on the unit square."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from uqno.types import Array


def peak(field: Array, sample: Mapping[str, Array]) -> float:
    """The largest pressure, of a field (1, H, W)."""
    return float(field.max())


def mean_flux(field: Array, sample: Mapping[str, Array]) -> float:
    """The mean over the nodes of |a ∇u|, how much flows, by central differences.

    Args:
        field: u (1, H, W) on the unit square; sample: with the coefficient `a` (1, H, W).
    """
    height, width = field.shape[1:]
    slopes = np.gradient(field[0], 1 / (height - 1), 1 / (width - 1))
    return float((np.hypot(*slopes) * sample["a"][0]).mean())
