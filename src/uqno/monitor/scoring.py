"""The score of a function that comes in, by the rule of the calibration, and who it is."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.conformal import Calibration
from uqno.conformal.guarantees import Facts, ScoreCollector
from uqno.conformal.guarantees.designs import FixedRank
from uqno.conformal.scores import blocks
from uqno.conformal.stream import Stream
from uqno.types import Array, Reals

if TYPE_CHECKING:
    from uqno.band import Band


def score_of(calibration: Calibration, band: Band, truth: Any) -> float:
    """The score of one function, as those that the calibration keeps.

    Args:
        calibration: the rule and how many points its functions had.
        band: of one function.
        truth: of the shape of its center.

    Raises:
        ValueError: the truth is not finite or of another shape, weights are missing, or the
            guarantee has no single score of a function.
    """
    error = band.error(_finite(band.truth(truth)))
    weights = None
    if calibration.weighted:
        if band.weights is None:
            raise ValueError(
                "the calibration is by weights and the band has none: predict from a sample that "
                "has them"
            )
        weights = [band.weights.ravel()]
    stream = Stream([error.ravel()], [band.uncertainty.ravel()], weights)
    collector = _collector(calibration, band.uncertainty.size)
    (block,) = blocks(stream)
    collector.add(block)
    scores: Reals = collector.evidence().scores
    if scores.shape != (1,):
        raise ValueError(
            f"guarantee {calibration.rule.name!r} keeps no single score of a function to compare: "
            "calibrate with guarantees.Fraction beside it, and monitor that calibration"
        )
    return float(scores[0])


def _collector(calibration: Calibration, points: int) -> Any:
    """What keeps the score of one function more of those that the calibration was made of."""
    rule, pair = calibration.rule, calibration.ranks
    alike = calibration.points == calibration.points_max
    if rule.needs_independent_points and alike and pair is not None and pair.point is not None:
        if points != calibration.points:
            raise ValueError(
                f"the function has {points} points and those of calibration had "
                f"{calibration.points}: predict at as many points, drawn alike"
            )
        return FixedRank(point=pair.point)  # as it was decided then
    sizes = (calibration.points,) + (calibration.points_max,) * (calibration.functions - 1)
    collector = rule.collector(Facts(calibration.functions, sizes, calibration.weighted))
    if not isinstance(collector, ScoreCollector):
        raise ValueError(
            f"guarantee {rule.name!r} keeps no scores: calibrate with guarantees.Fraction beside "
            "it, and monitor that calibration"
        )
    return collector


def _finite(truth: Array) -> Array:
    bad = ~np.isfinite(truth)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"the truth is {truth[place]} at {list(place)} ({np.count_nonzero(bad)} such of "
            f"{bad.size}), expected finite numbers: leave out the failed simulation; it was not "
            "counted"
        )
    return truth


def identity(given: Any, *arrays: Any) -> str:
    """A short hash of the name of a function, or of its values where it has none."""
    digest = hashlib.blake2b(digest_size=8)
    if given is None:
        for array in arrays:
            values = np.ascontiguousarray(array)
            digest.update(f"{values.dtype}{values.shape}".encode())
            digest.update(values.tobytes())
        return digest.hexdigest()
    if isinstance(given, bool) or not isinstance(given, str | int | np.integer):
        raise ValueError(
            f"id = {given!r:.60} must be text or a whole number, that of the simulation for "
            "example; leave it out to know functions by their values"
        )
    digest.update(f"{'text' if isinstance(given, str) else 'number'} {given}".encode())
    return digest.hexdigest()


def fingerprint(calibration: Calibration, inputs: Reals) -> str:
    """A hash of what is monitored: the calibration, its scores, and the distances of its inputs."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(calibration.model.encode())
    digest.update(repr((calibration.rule, calibration.scale, calibration.ranks)).encode())
    for values in (calibration.scores, inputs):
        digest.update(np.ascontiguousarray(values, dtype=np.float64).tobytes())
    return digest.hexdigest()
