"""The law of residuals as training functions show it, and functions drawn by it inside a band.

A normalised residual (u − Ĝ(a)) / E(a) is described by two things that hold at any points:

    correlation   of its values at a distance h: Σ_k w_k exp(−h² / 2 ℓ_k²), and the rest at h = 0
    sizes         the quantiles of its norm

It is a picture of the residuals, not their law: stationary, alike along all axes, the same for all
functions. No promise rests on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.optimize import nnls
from scipy.special import gammainc

from uqno.conformal import checks
from uqno.types import Array, Reals

if TYPE_CHECKING:
    from uqno.band.band import Band

LENGTHS: Final = 16
QUANTILES: Final = 129
WAVES: Final = 256
"""Random waves that make up a drawn function."""
BINS: Final = 24
ORIGINS: Final = 40
MOST_POINTS: Final = 10_000
"""Of a function that are looked at."""
JUST_INSIDE: Final = 1 - 1e-9
MEANING: Final = (
    "Functions drawn inside the band for computations downstream: with the correlation and the "
    "sizes that residuals of training functions had, cut off at the band. They are no sample of "
    "the truth, and nothing is promised of them or of what is computed from them."
)


@dataclass(frozen=True)
class Draws:
    """Functions inside a band, and what they are.

    values: (draws, channel, *points), or (draws, functions, channel, *points) of a batch.
    """

    values: Reals
    meaning: str = MEANING

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)


@dataclass(frozen=True)
class ResidualLaw:
    """Correlation and sizes of normalised residuals.

    Args:
        lengths: ℓ_k, (K,); weights: w_k ≥ 0 of sum at most 1, (K,).
        sizes: evenly spaced quantiles of ‖u − Ĝ(a)‖ / E(a), rising.
        unit: by what the coordinates of a band are divided before distances are taken, (d,).
    """

    lengths: Reals
    weights: Reals
    sizes: Reals
    unit: Reals | None = None

    def draw(self, band: Band, n: int, seed: int) -> Draws:
        """n functions inside a band of one function, or of each function of a batch."""
        checks.count("n", n)
        rng = np.random.default_rng(checks.count("seed", seed, least=0))
        bands = [band[i] for i in range(len(band))] if band.is_batch else [band]
        drawn = [np.stack([self._one(one, rng) for _ in range(n)]) for one in bands]
        return Draws(np.stack(drawn, axis=1) if band.is_batch else drawn[0])

    def _one(self, band: Band, rng: np.random.Generator) -> Reals:
        x = points_of(band.coordinates)
        x = x if self.unit is None else x / self.unit
        g = np.stack([self._field(x, rng) for _ in range(band.channels)])
        norm = np.sqrt((g**2).sum(axis=0))
        share = gammainc(band.channels / 2, norm**2 / 2)  # uniform on (0, 1)
        scale = float(band.applied_scale)  # of one function
        places = np.linspace(0.0, 1.0, len(self.sizes))
        inside = np.interp(scale, self.sizes, places)
        if inside > 0:
            size = np.minimum(np.interp(share * inside, places, self.sizes), scale)
        else:  # a band narrower than any residual was
            size = share * scale
        residual = g / np.maximum(norm, 1e-300) * (size * JUST_INSIDE)
        wide = residual.reshape(band.center.shape) * band.uncertainty.astype(np.float64)
        return np.asarray(band.center + wide, dtype=np.float64)

    def _field(self, x: Reals, rng: np.random.Generator) -> Reals:
        """A nearly Gaussian function of variance 1 with the correlation, at points (m, d)."""
        smooth = float(self.weights.sum())
        g = np.sqrt(max(0.0, 1 - smooth)) * rng.standard_normal(len(x))
        if smooth > 0:
            which = rng.choice(len(self.lengths), WAVES, p=self.weights / smooth)
            waves = rng.standard_normal((x.shape[1], WAVES)) / self.lengths[which]
            phases = rng.uniform(0, 2 * np.pi, WAVES)
            g += np.sqrt(2 * smooth / WAVES) * np.cos(x @ waves + phases).sum(axis=1)
        return np.asarray(g)


def points_of(coordinates: Any) -> Reals:
    """The points of a grid or of a cloud, one after the other, (m, d)."""
    if isinstance(coordinates, tuple):
        mesh = np.meshgrid(*coordinates, indexing="ij")
        return np.stack([np.ravel(one) for one in mesh], axis=1).astype(np.float64)
    return np.asarray(coordinates, dtype=np.float64)


# --- from residuals ------------------------------------------------------------------------------


class Learner:
    """Looks at normalised residuals, a function at a time, and keeps a few numbers of each."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.products: list[Reals] = []
        self.distances: list[Reals] = []
        self.sizes: list[Reals] = []

    def add(self, ratio: Reals, x: Reals) -> None:
        """One function.

        Args:
            ratio: (u − Ĝ(a)) / E(a), (channel, m).
            x: its points, (m, d), in the unit of distances.
        """
        norm = np.sqrt((ratio**2).sum(axis=0))
        good = np.isfinite(norm)
        ratio, x, norm = ratio[:, good], x[good], norm[good]
        variance = float((norm**2).mean()) if len(norm) else 0.0
        if variance == 0:
            return
        if len(norm) > MOST_POINTS:
            some = self.rng.permutation(len(norm))[:MOST_POINTS]
            ratio, x, norm = ratio[:, some], x[some], norm[some]
        self.sizes.append(np.quantile(norm, np.linspace(0, 1, QUANTILES)))
        for i in self.rng.integers(0, len(x), ORIGINS):
            h = np.sqrt(((x - x[i]) ** 2).sum(axis=1))
            near = self._one_a_distance(h)
            self.distances.append(h[near])
            self.products.append(ratio[:, near].T @ ratio[:, i] / variance)

    def _one_a_distance(self, h: Reals) -> Array:
        """A few points at all orders of distance, where most are far away."""
        away = np.flatnonzero(h > 0)
        if not len(away):
            return away
        edges = np.geomspace(h[away].min() * 0.999, h.max() * 1.001, BINS + 1)
        order = self.rng.permutation(away)
        _, first = np.unique(np.digitize(h[order], edges), return_index=True)
        return order[first]

    def law(self) -> ResidualLaw | None:
        """What was learned; None where no function had a residual."""
        if not self.sizes:
            return None
        sizes = np.quantile(np.concatenate(self.sizes), np.linspace(0, 1, QUANTILES))
        h, products = np.concatenate(self.distances), np.concatenate(self.products)
        if not len(h):
            return ResidualLaw(np.ones(1), np.zeros(1), sizes)
        lengths = np.geomspace(h.min() / 2, 2 * h.max(), LENGTHS)
        kernel = np.exp(-(h[:, None] ** 2) / (2 * lengths**2))
        weights, _ = nnls(kernel, products)
        return ResidualLaw(lengths, weights / max(1.0, weights.sum()), sizes)
