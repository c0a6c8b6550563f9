"""What a band asks of its calibration: scale, guarantee, promise, weighted, levels, to_json."""

from __future__ import annotations

from inspect import getattr_static
from typing import Any

from uqno.conformal import words

ABSENT = object()
NEEDED = ("scale", "guarantee", "weighted", "to_json")


def check(calibration: Any) -> None:
    """Refuse what is no calibration."""
    missing = [name for name in NEEDED if getattr_static(calibration, name, ABSENT) is ABSENT]
    if missing:
        raise ValueError(
            f"calibration must be a uqno.Calibration, got {type(calibration).__name__} without "
            f"{', '.join(missing)}: pass the result of uqno.calibrate, or of Calibration.from_json"
        )


# TO SWAP once calibrations have `promise` and `levels`: `return calibration.promise` and
# `return calibration.levels`, and these two names in NEEDED.


def promise_of(calibration: Any) -> str:
    """The guarantee in one line."""
    if hasattr(calibration, "promise"):
        return str(calibration.promise)
    c = calibration
    part = f"covers ≥ {words.rest(c.alpha)} of "
    part += words.DOMAIN["weighted" if c.weighted else c.sampling]
    if c.confidence is None:
        return f"{part} with probability ≥ {words.rest(c.delta)}"
    return (
        f"{part} for ≥ {words.rest(c.delta)} of new functions, "
        f"confidence {words.percent(c.confidence)}"
    )


def levels_of(calibration: Any) -> dict[str, Any]:
    """The numbers and texts that the guarantee depends on, by name."""
    if hasattr(calibration, "levels"):
        return dict(calibration.levels)
    names = ("alpha", "delta", "confidence", "sampling")
    levels = {name: getattr(calibration, name) for name in names}
    return {name: value for name, value in levels.items() if value is not None}
