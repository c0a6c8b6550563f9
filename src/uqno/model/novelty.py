"""How far an input is from the training inputs: a short descriptor, and a distance between them.

descriptor   of a field on a grid, for each channel: mean, deviation, extremes, skewness, slope,
             and how its energy is spread over octaves of wave numbers; of points or normals: the
             same without slope and octaves, and the covariance of their components
distance     Mahalanobis, with mean and shrunk covariance of the *training* inputs, so that the
             distances of calibration inputs and of a new one are exchangeable
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf, isfinite, sqrt
from typing import Any, Final

import numpy as np

from uqno.band.novelty import Novelty
from uqno.model.scoring import Scored
from uqno.types import Array, Reals, Sample, Samples

FIELDS: Final = ("a", "normals", "points")
OCTAVES: Final = 5
TINY: Final = 1e-12


@dataclass
class InputDistance:
    """The distance of an input from the training inputs.

    Args:
        fields: those of a sample that are described.
        mean, scale: of each entry of the descriptors, (d,).
        inverse: of their shrunk correlation, (d, d).
        calibrated: the distances of the calibration inputs, sorted; empty before calibration.
    """

    fields: tuple[str, ...]
    mean: Reals
    scale: Reals
    inverse: Reals
    calibrated: Reals = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, train: Samples) -> InputDistance | None:
        """Fitted on training inputs; None where they have nothing to describe alike."""
        first = train[0]
        fields = tuple(name for name in FIELDS if name in first)
        described = [descriptor(train[i], fields) for i in range(len(train))]
        if not fields or any(d is None or d.shape != described[0].shape for d in described):  # type: ignore[union-attr]
            return None
        return cls.of_descriptors(fields, np.array(described))

    @classmethod
    def of_descriptors(cls, fields: tuple[str, ...], described: Reals) -> InputDistance:
        """Fitted on descriptors, (functions, d)."""
        n, d = described.shape
        mean, deviation = described.mean(axis=0), described.std(axis=0)
        # What never varies in training is far as soon as it differs by more than rounding.
        floor = 1e-3 * np.abs(mean) + 1e-6 * np.abs(described).max() + TINY
        scale = np.maximum(deviation, floor)
        z = (described - mean) / scale
        shrinkage = d / (d + n)
        correlation = (1 - shrinkage) * (z.T @ z) / n + shrinkage * np.eye(d)
        return cls(fields, mean, scale, np.linalg.inv(correlation))

    def score(self, sample: Mapping[str, Any]) -> float:
        """The distance of one input; ∞ where it cannot be described as the training inputs were."""
        described = descriptor(sample, self.fields)
        if described is None or described.shape != self.mean.shape:
            return inf
        z = (described - self.mean) / self.scale
        square = float(z @ self.inverse @ z)
        return sqrt(max(0.0, square)) if isfinite(square) else inf

    def watch(self, functions: Iterable[Scored]) -> Iterator[Scored]:
        """The calibration functions as they are; their distances are kept when all have passed."""
        scores = []
        for one in functions:
            scores.append(self.score(one.sample))
            yield one
        self.calibrated = np.sort(scores)

    def novelty(self, samples: Iterable[Sample]) -> Novelty | None:
        """How novel inputs are among those of calibration; None before calibration."""
        n = len(self.calibrated)
        if not n:
            return None
        scores = np.array([self.score(sample) for sample in samples])
        as_far = n - np.searchsorted(self.calibrated, scores, side="left")
        return Novelty(scores, (1 + as_far) / (n + 1), n)

    def without_calibration(self) -> InputDistance:
        """As it was before calibration."""
        return replace(self, calibrated=np.empty(0))


# --- descriptors ---------------------------------------------------------------------------------


def descriptor(sample: Mapping[str, Any], fields: tuple[str, ...]) -> Reals | None:
    """A few numbers that say what an input is like, (d,); None where a field is missing."""
    parts: list[Reals] = []
    for name in fields:
        if name not in sample:
            return None
        value = sample[name]
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
        array = array.astype(np.float64)
        parts.append(_of_grid(array) if name == "a" else _of_cloud(array))
    return np.concatenate(parts) if parts else None


def _of_grid(a: Array) -> Reals:
    """Of (channel, *grid): (channels · entries,)."""
    flat = a.reshape(len(a), -1)
    parts = [_moments(flat)]
    if a.ndim > 1 and max(a.shape[1:]) > 1:
        parts += [_slope(a)[:, None], _octaves(a)]
    return np.concatenate(parts, axis=1).ravel()


def _of_cloud(x: Array) -> Reals:
    """Of (points, components): moments and extremes of each, and the covariance of all."""
    parts = _moments(x.T).ravel()
    covariance = np.cov(x.T, bias=True).reshape(x.shape[1], x.shape[1])
    return np.concatenate([parts, covariance[np.triu_indices(x.shape[1], 1)]])


def _moments(rows: Array) -> Reals:
    """Mean, deviation, least, largest and skewness of each row, (rows, 5)."""
    mean, deviation = rows.mean(axis=1), rows.std(axis=1)
    centred = (rows - mean[:, None]) / (deviation[:, None] + TINY)
    skewness = (centred * centred * centred).mean(axis=1)
    return np.stack([mean, deviation, rows.min(axis=1), rows.max(axis=1), skewness], axis=1)


def _slope(a: Array) -> Reals:
    """The root mean square of the slope over the unit box, of each channel."""
    square = np.zeros(len(a))
    for axis in range(1, a.ndim):
        if a.shape[axis] > 1:
            steps = np.diff(a, axis=axis) * (a.shape[axis] - 1)
            square += (steps**2).reshape(len(a), -1).mean(axis=1)
    return np.sqrt(square)


def _octaves(a: Array) -> Reals:
    """log of the deviation in each octave of wave numbers 1, 2–3, 4–7, …, (channel, octaves)."""
    places = _octave_of(a.shape[1:])
    scale = 1 / np.prod(a.shape[1:])
    rows = []
    for channel in a:
        waves = np.fft.fftn(channel).ravel() * scale
        power = waves.real**2 + waves.imag**2
        energy = np.bincount(places, weights=power, minlength=OCTAVES + 1)
        floor = 1e-4 * sqrt(energy.sum()) + TINY
        rows.append(np.log(np.sqrt(energy[1:]) + floor))
    return np.stack(rows)


@lru_cache(maxsize=16)
def _octave_of(shape: tuple[int, ...]) -> Array:
    """The octave of each wave of a grid, from 1; 0 for the mean. Flat."""
    waves = [np.fft.fftfreq(n, 1 / n) for n in shape]
    square = np.zeros(shape)
    for k in np.meshgrid(*waves, indexing="ij"):
        square += k**2
    octave = np.floor(np.log2(np.maximum(np.sqrt(square), 0.5)))
    return np.clip(octave, -1, OCTAVES - 1).astype(np.int64).ravel() + 1
