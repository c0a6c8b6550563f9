"""Small bands of every kind, for the tests."""

from dataclasses import replace

import numpy as np
import pytest

from uqno import Calibration
from uqno.band import Band
from uqno.conformal import Ranks
from uqno.conformal.guarantees import Fraction

CAL = Calibration(
    scale=2.0,
    rule=Fraction(0.1, 0.02),
    functions=100,
    points=10,
    points_max=10,
    ranks=Ranks(9, 99),
    created="2025-01-01T00:00:00+00:00",
)


def scaled(scale):
    return replace(CAL, scale=scale)


def rng():
    return np.random.default_rng(0)


def line(points=7, **more):
    r = rng()
    return Band(
        r.normal(size=(1, points)),
        r.uniform(0.1, 1, points),
        CAL,
        (np.linspace(0, 1, points),),
        **more,
    )


def plane(channels=1, functions=None, **more):
    r, lead = rng(), () if functions is None else (functions,)
    axes = (np.linspace(0, 1, 4), np.linspace(0, 2, 5))
    return Band(
        r.normal(size=(*lead, channels, 4, 5)), r.uniform(0.1, 1, (*lead, 4, 5)), CAL, axes, **more
    )


POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def surface(channels=1, **more):
    r = rng()
    return Band(
        r.normal(size=(channels, 4)), r.uniform(0.1, 1, 4), CAL, POINTS, triangles=FACES, **more
    )


def geometries(**more):
    r = rng()
    where = np.stack([POINTS, 2 * POINTS, 3 * POINTS])
    return Band(
        r.normal(size=(3, 1, 4)), r.uniform(0.1, 1, (3, 4)), CAL, where, triangles=FACES, **more
    )


EVERY = {
    "line": line,
    "plane": plane,
    "vectors": lambda **more: plane(channels=2, **more),
    "batch": lambda **more: plane(functions=3, **more),
    "vector batch": lambda **more: plane(channels=2, functions=3, **more),
    "surface": surface,
    "geometries": geometries,
}
every = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())


def truth_of(band, seed=1):
    """A truth that lies inside at some points and outside at others."""
    return band.center + np.random.default_rng(seed).normal(scale=2, size=band.center.shape)
