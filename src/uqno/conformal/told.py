"""Checks of what is told of functions beside their values: groups, likelihood ratios, sizes."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.conformal.checks import first_bad, real


def group(label: Any) -> str:
    """The name of a group of functions, as text."""
    if not isinstance(label, str | numbers.Integral | np.bool_) or str(label) == "":
        raise ValueError(f"group {label!r} must be a text that is not empty, or a whole number")
    return str(label)


def likelihood_ratios(values: Any) -> NDArray[np.float64]:
    """dQ/dP of each function, (n,): finite, none negative, with a sum that is positive."""
    w = np.asarray(real("shift", "the functions", values), dtype=np.float64)
    if w.ndim != 1 or not w.size:
        raise ValueError(f"shift has shape {w.shape}, expected (functions,): one ratio for each")
    why = "likelihood ratios are finite numbers ≥ 0: leave out inputs that the new law cannot have"
    first_bad("shift", "the functions", w, ~(np.isfinite(w) & (w >= 0)), why)
    if not w.any():
        raise ValueError(
            "the likelihood ratios of shift sum to zero: no calibration function is possible under "
            "the new law; calibrate with functions that are"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            raise ValueError(
                "the likelihood ratios of shift have an infinite sum: divide them by the largest"
            )
    return w


def likelihood_ratio(value: Any) -> float:
    """dQ/dP of a new function."""
    try:
        ratio = float(value)
    except (TypeError, ValueError):
        ratio = np.nan
    if not np.isfinite(ratio) or ratio < 0:
        raise ValueError(f"likelihood_ratio = {value!r} must be one finite number ≥ 0")
    return ratio


def features(name: str, values: Any, number: int | None = None) -> NDArray[np.float64]:
    """Numbers that describe inputs, (n, f), all finite."""
    x = np.asarray(real(name, "the inputs", values), dtype=np.float64)
    if x.ndim != 2 or not x.size or (number is not None and x.shape[1] != number):
        raise ValueError(
            f"{name} have shape {x.shape}, expected (functions, {number or 'features'}): one row "
            "for each function"
        )
    first_bad(name, "the inputs", x, ~np.isfinite(x), "features must be finite numbers")
    return x


def marks(name: Any, values: Any) -> NDArray[np.bool_]:
    """Which functions are in a group, (n,)."""
    inside = np.asarray(values)
    if inside.ndim != 1 or inside.dtype != np.bool_:
        raise ValueError(
            f"group {name!r} has marks of shape {inside.shape} and dtype {inside.dtype}: expected "
            "one boolean for each function"
        )
    return inside


def sizes_of(names: tuple[str, ...], sizes: Any) -> None:
    """A positive size of each part of a joint promise."""
    if not names or set(names) != set(sizes):
        raise ValueError(f"sizes are of {sorted(sizes)}, expected one of each: {sorted(names)}")
    for name, size in sizes.items():
        if not np.isfinite(size) or size <= 0:
            raise ValueError(
                f"the size of {name} is {size!r}, expected a positive number: its usual score on "
                "training functions, or 1"
            )


def levels_alike(rules: Any) -> None:
    """Parts of a joint promise have one δ and one confidence."""
    levels = {
        name: tuple(str(getattr(rule, x, None)) for x in ("delta", "confidence"))
        for name, rule in rules.items()
    }
    if len(set(levels.values())) > 1:
        said = ", ".join(f"{name} {pair}" for name, pair in levels.items())
        raise ValueError(
            f"a joint promise has one delta and one confidence, got (delta, confidence) of {said}"
        )


def not_shifted(guarantees: tuple[Any, ...]) -> None:
    """Ratios belong to the functions of one group, in their order."""
    if any(rule.name == "shifted" for rule in guarantees):
        raise ValueError(
            "shift= weighs one set of functions, and groups= divide them, within which the law may "
            "shift otherwise: calibrate the functions of each group alone, with their own shift="
        )
