"""Measured numbers → parts of the record: rows, the ablation, curves and targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

from uqno.experiments.measuring import Measured
from uqno.experiments.results import Ablated, Curve, Row, Targets, Unit


def row(
    method: str,
    measured: Measured,
    label: str,
    *,
    unit: Unit | None = None,
    share_of_variance: float | None = None,
    relative_error: float | None = None,
    train_seconds: float | None = None,
    calibrate_seconds: float | None = None,
    predict_seconds: float | None = None,
) -> Row:
    """A row of the table from what was measured of a method with this name and label."""
    numbers = asdict(measured)
    del numbers["ranks"]
    width = measured.bandwidth
    content = {
        "method": method,
        "label": label,
        "bandwidth_in_unit": None if unit is None or width is None else width * unit["size"],
        "share_of_variance": share_of_variance,
        "relative_error": relative_error,
        "train_seconds": train_seconds,
        "calibrate_seconds": calibrate_seconds,
        "predict_seconds": predict_seconds,
        "target": measured.target,
        **numbers,
    }
    return cast(Row, {key: content[key] for key in Row.__annotations__})


def ablated(recipes: Mapping[str, tuple[str, Measured]], reference: str) -> list[Ablated]:
    """{name: (label, measured)} at one (α, δ) → rows; ratio = reference's bandwidth / its own."""
    if reference not in recipes:
        raise ValueError(f"reference = {reference!r} must be one of {', '.join(recipes)}")
    theirs = recipes[reference][1].bandwidth
    return [
        Ablated(
            name=name,
            label=label,
            alpha=m.alpha,
            delta=m.delta,
            sampling=m.sampling,
            feasible=m.feasible,
            bandwidth=m.bandwidth,
            calibration_percentage=m.calibration_percentage,
            ratio=theirs / m.bandwidth if theirs is not None and m.bandwidth else None,
        )
        for name, (label, m) in recipes.items()
    ]


def curve(method: str, swept: Sequence[Measured]) -> Curve:
    """The trade-off of one method at one α, from `measuring.sweep`."""
    return Curve(
        method=method,
        alpha=swept[0].alpha,
        delta=[m.delta for m in swept],
        bandwidth=[m.bandwidth for m in swept],
        calibration_percentage=[m.calibration_percentage for m in swept],
    )


def targets(method: str, swept: Sequence[Measured]) -> Targets:
    """Actual against target of one method at one α, from `measuring.sweep`."""
    known = [m for m in swept if m.calibration_percentage is not None and m.interval is not None]
    return Targets(
        method=method,
        alpha=swept[0].alpha,
        target=[m.target for m in known],
        actual=[cast(float, m.calibration_percentage) for m in known],
        low=[m.interval[0] for m in known if m.interval is not None],
        high=[m.interval[1] for m in known if m.interval is not None],
    )
