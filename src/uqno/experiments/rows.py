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
    rms: float | None = None,
    share_of_variance: float | None = None,
    relative_error: float | None = None,
    train_seconds: float | None = None,
    calibrate_seconds: float | None = None,
    predict_seconds: float | None = None,
) -> Row:
    """A row of the table from what was measured of a method with this name and label.

    Args:
        method, label: of the method.
        measured: its numbers.
        unit: of the functions, if they have one.
        rms: their root mean square, where they have none.
        share_of_variance, relative_error, train_seconds, calibrate_seconds, predict_seconds: as in
            `Row`.
    """
    numbers = asdict(measured)
    del numbers["ranks"]
    width = measured.bandwidth
    size = 1.0 if unit is not None else rms
    content = {
        "method": method,
        "label": label,
        "bandwidth_in_unit": None if unit is None or width is None else width * unit["size"],
        "relative_bandwidth": None if width is None or not size else width / size,
        "share_of_variance": share_of_variance,
        "relative_error": relative_error,
        "train_seconds": train_seconds,
        "calibrate_seconds": calibrate_seconds,
        "predict_seconds": predict_seconds,
        "target": measured.target,
        **numbers,
    }
    return cast(Row, {key: content[key] for key in Row.__annotations__})


def ablated(
    recipes: Mapping[str, tuple[str, str, Measured]], reference: str = "uqno-paper"
) -> list[Ablated]:
    """Rows of the ablation at one (α, δ), each with its ratio to a reference of the same design.

    Args:
        recipes: {name: (label, method, measured)}.
        reference: the method whose bandwidth, calibrated by the same design, is divided by a
            row's own.
    """
    theirs = {m.sampling: m.bandwidth for _, method, m in recipes.values() if method == reference}
    return [
        Ablated(
            name=name,
            label=label,
            method=method,
            alpha=m.alpha,
            delta=m.delta,
            sampling=m.sampling,
            feasible=m.feasible,
            bandwidth=m.bandwidth,
            ratio=_ratio(theirs.get(m.sampling), m.bandwidth),
        )
        for name, (label, method, m) in recipes.items()
    ]


def _ratio(reference: float | None, bandwidth: float | None) -> float | None:
    return reference / bandwidth if reference is not None and bandwidth else None


def curve(method: str, swept: Sequence[Measured]) -> Curve:
    """The trade-off of one method at one α, from `measuring.sweep`."""
    return Curve(
        method=method,
        alpha=swept[0].alpha,
        delta=[m.delta for m in swept],
        bandwidth=[m.bandwidth for m in swept],
    )


def targets(method: str, swept: Sequence[Measured]) -> Targets:
    """Actual against target of one method at one α, from `measuring.sweep`."""
    known = [m for m in swept if m.calibration_percentage is not None and m.usual is not None]
    return Targets(
        method=method,
        alpha=swept[0].alpha,
        target=[m.target for m in known],
        actual=[cast(float, m.calibration_percentage) for m in known],
        low=[m.usual[0] for m in known if m.usual is not None],
        high=[m.usual[1] for m in known if m.usual is not None],
    )
