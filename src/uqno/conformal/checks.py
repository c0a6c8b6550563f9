"""Every check of what a caller hands in: expected X, got Y, do Z."""

from __future__ import annotations

import numbers
import re
from fractions import Fraction
from typing import Any, Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from uqno.types import Floats, Mixed, Sampling, Share

# More functions or points than any archive holds; floats still count them exactly.
LARGEST_COUNT: Final = 10**12
# Shares are held exactly: with more digits or a larger exponent, a few characters fill a memory.
MOST_DIGITS: Final = 1000
SAMPLINGS: Final = get_args(Sampling)
MIXED: Final = get_args(Mixed)


class InfeasibleError(ValueError):
    """No finite λ̂ carries the guarantee asked for; the message says what would."""


def shown(value: Any) -> str:
    """A value as a message shows it: one short line, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # of an object of the caller's; of a number of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}…"


def _exactly(value: Any) -> Fraction | None:
    """A share as it is written; None for what is no number, or has too many digits."""
    try:
        text = str(value)
        exponent = re.search(r"e[+-]?([0-9_]+)", text, re.IGNORECASE)
        if len(text) > MOST_DIGITS or (exponent and int(exponent[1]) > MOST_DIGITS):
            return None
        return Fraction(text)
    except (ValueError, ZeroDivisionError, RecursionError, RuntimeError):
        return None


def share(name: str, value: Share) -> Fraction:
    """The decimal that the caller wrote, exactly: 0.1 is 1/10, not the nearest binary number."""
    exact = _exactly(value)
    if exact is None or not 0 < exact < 1:
        raise ValueError(
            f"{name} = {shown(value)} must lie strictly between 0 and 1"
            + (
                "; to cover every point of a grid of m points take any alpha below 1/m"
                if name == "alpha" and exact == 0
                else f"; for example {name}=0.1"
            )
        )
    return exact


def count(name: str, value: Any, least: int = 1) -> int:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= LARGEST_COUNT:
        raise ValueError(
            f"{name} = {shown(value)} must be a whole number, at least {least} and at most 10^12"
        )
    return int(value)


def sampling(value: str) -> Sampling:
    if not isinstance(value, str) or value not in SAMPLINGS:
        raise ValueError(f"sampling = {shown(value)} must be one of {', '.join(SAMPLINGS)}")
    return cast(Sampling, value)


def mixed(value: str, design: Sampling) -> Mixed:
    if not isinstance(value, str) or value not in MIXED:
        raise ValueError(f"mixed = {shown(value)} must be one of {', '.join(MIXED)}")
    if value == "subsample" and design == "grid":
        raise ValueError(
            "mixed = 'subsample' is for points drawn at random; on a grid each function's "
            "coverage is known exactly: leave mixed out, or say sampling='iid'"
        )
    return cast(Mixed, value)


def misses(value: Any, design: Sampling, way: Mixed, ranks: Any) -> int:
    """How many scores may exceed λ̂ in the rule for functions of different numbers of points."""
    if design != "iid" or way != "own" or ranks is not None:
        raise ValueError(
            f"misses = {shown(value)} is for sampling='iid' with mixed='own' and no ranks, got "
            f"sampling={design!r}, mixed={way!r}, ranks={shown(ranks)}: leave misses out"
        )
    return count("misses", value)


def own_ranks(ranks: Any) -> None:
    """A pair of the caller's own is a Ranks of two whole numbers."""
    if not (hasattr(ranks, "point") and hasattr(ranks, "function")):
        raise ValueError(f"ranks = {shown(ranks)} must be a uqno.conformal.Ranks(point, function)")
    count("ranks.point", ranks.point)
    count("ranks.function", ranks.function)


def no_ranks_beside_weights(ranks: Any) -> None:
    if ranks is not None:
        raise ValueError("ranks are counts of points, which weights replace: leave ranks out")


def some_guarantees(guarantees: tuple[Any, ...]) -> None:
    if not guarantees:
        raise ValueError("no guarantee to calibrate for: give at least one, or alpha and delta")


def yes_or_no(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} = {shown(value)} must be True or False")
    return bool(value)


def elements(name: str, values: Any, of: str) -> list[Any]:
    """What an argument holds that must be a sequence."""
    try:
        return list(values)
    except (TypeError, RuntimeError):
        raise ValueError(f"{name} = {shown(values)} must be {of}") from None


def uncertainty_given(uncertainty: Any) -> None:
    if uncertainty is None:
        raise ValueError(
            "uncertainty is missing: pass E(a) beside the error, an array (functions, points); "
            "use ones for bands of one radius"
        )


def nothing_beside_stream(uncertainty: Any, weights: Any) -> None:
    if uncertainty is not None or weights is not None:
        raise ValueError(
            "a stream or profile of functions has its own uncertainty and weights: leave them out"
        )


def calibration_sets(splits: Any) -> NDArray[np.int64]:
    """Whole numbers, (sets, functions)."""
    given = real("splits", "the functions", splits)
    with np.errstate(invalid="ignore"):
        index = given.astype(np.int64)
    if (index != given).any():
        raise ValueError("splits must be whole numbers: the indices of functions, from 0")
    if index.ndim != 2 or not index.size:
        raise ValueError(
            f"splits have shape {index.shape}, expected (sets, functions): the indices of the "
            "calibration functions, one row for each set"
        )
    return index


def indices_of(name: str, index: NDArray[np.int64], number: int) -> None:
    if index.min() < 0 or index.max() >= number:
        raise ValueError(
            f"{name} name functions {index.min()} … {index.max()}, expected 0 … {number - 1}"
        )


def sorted_scores(values: Any, n: int) -> NDArray[np.float64]:
    """The scores of a calibration from a file: n numbers ≥ 0 that rise; null stands for ∞."""
    try:
        scores = np.array([np.inf if s is None else s for s in values], dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError("scores in the calibration must be numbers") from None
    if scores.shape != (n,) or not (scores >= 0).all() or (scores[1:] < scores[:-1]).any():
        raise ValueError(
            f"scores in the calibration have shape {scores.shape}, expected {n} numbers ≥ 0 in "
            "rising order"
        )
    return scores


def named_arrays(values: Any) -> dict[str, NDArray[np.float64]]:
    """The arrays of a calibration from a file, by name; null stands for ∞."""
    if not isinstance(values, dict):
        raise ValueError(f"details = {values!r:.60} in the calibration must be an object")
    try:
        arrays = {str(name): np.array(x, dtype=np.float64) for name, x in values.items()}
    except (TypeError, ValueError, OverflowError):
        raise ValueError("details in the calibration must be arrays of numbers") from None
    return {name: np.where(np.isnan(x), np.inf, x) for name, x in arrays.items()}


def holds_weights(values: Any, shape: tuple[int, ...] | None) -> None:
    if () in (shape, getattr(values, "shape", None)) or (
        shape is None and not hasattr(values, "__iter__")
    ):
        raise ValueError(
            f"weights must be one number a point, got {shown(values)}: an array (points) for all "
            "functions, or one a function"
        )
    if shape is None and hasattr(values, "__len__") and not len(values):
        raise ValueError("weights are empty: leave them out for points that count alike")


def weights_design(design: Sampling) -> None:
    if design != "grid":
        raise ValueError(
            f"weights go with sampling='grid', got sampling={design!r}: points drawn from μ "
            "already carry μ; leave weights out, or treat the points as the domain with 'grid'"
        )


def functions(n: int) -> int:
    """A calibration set holds at least two functions."""
    if n == 0:
        raise ValueError("the calibration set is empty: give at least 2 functions")
    if n == 1:
        raise ValueError(
            "the calibration set holds 1 function, at least 2 are needed: calibrate on one "
            "row per function, shape (functions, points)"
        )
    return n


def real(name: str, where: str, values: Any) -> Floats:
    """`values` as float32 or float64 in native byte order; a view where possible."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} of {where} has masked values: leave the masked points out")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, LookupError) as why:
        raise ValueError(f"{name} of {where} cannot be read as an array: {why}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} of {where} has dtype {array.dtype}, expected real numbers"
            + (
                "; pass real and imaginary part as two components"
                if array.dtype.kind == "c"
                else ""
            )
        )
    wanted = np.float32 if array.dtype in (np.float16, np.float32) else np.float64
    return np.asarray(array, dtype=wanted)


def whole(name: str, where: str, values: Any) -> NDArray[np.integer[Any]]:
    """`values` as an array of whole numbers."""
    real(name, where, values)
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} of {where} has dtype {array.dtype}, expected whole numbers")
    return array


def shapes(where: str, error: tuple[int, ...], uncertainty: tuple[int, ...]) -> bool:
    """Whether the error, (*points) or (*points, d), is vector-valued; uncertainty: (*points)."""
    if not uncertainty:
        raise ValueError(
            f"uncertainty of {where} is a single number, expected one array of points per "
            "function; for one point per function use shape (functions, 1)"
        )
    if 0 in uncertainty or 0 in error:
        raise ValueError(f"{where} has no points: error {error}, uncertainty {uncertainty}")
    if error == uncertainty:
        return False
    if error[:-1] == uncertainty:
        return True
    raise ValueError(
        f"error of {where} has shape {error}, uncertainty {uncertainty}: expected the same shape, "
        "or one more last axis in the error for the components of a vector"
    )


def holds_functions(name: str, values: Any, shape: tuple[int, ...] | None) -> None:
    """An array over functions and points, or something to iterate over."""
    if getattr(values, "shape", None) == ():
        shape = ()
    if shape is not None and len(shape) < 2:
        raise ValueError(
            f"{name} has shape {shape}, expected (functions, points): one row per function; "
            "reshape a single point per function to (functions, 1)"
        )
    if shape is None and not hasattr(values, "__iter__"):
        raise ValueError(
            f"{name} must hold functions, got {type(values).__name__}: an array (functions, "
            "points) or an iterable of arrays"
        )


def triple(function: int, values: Any) -> tuple[Any, Any, Any]:
    """(error, uncertainty, weights) of one function of a stream."""
    try:
        error, uncertainty, weights = values
    except (TypeError, ValueError):
        raise ValueError(
            f"function {function} of the stream is {shown(values)}, expected a tuple (error, "
            "uncertainty, weights); weights may be None"
        ) from None
    return error, uncertainty, weights


def ends_together(name: str, function: int, missing: bool) -> None:
    """Error, uncertainty and weights end at the same function."""
    if missing:
        raise ValueError(
            f"{name} ends after {function} functions and the others go on: expected as many "
            "functions in each"
        )


def point_rank(ranks: NDArray[np.int64], points: int, where: str) -> None:
    if ranks.dtype.kind not in "iu" or not ranks.size:
        raise ValueError(f"point rank {shown(ranks)} must be a whole number, or several")
    if ranks.min() < 1 or ranks.max() > points:
        raise ValueError(
            f"point rank {ranks} must lie in 1 … {points}, the number of points of {where}"
        )


def scale(value: Any) -> NDArray[np.float64]:
    """One scale, or one for each function, (n,)."""
    scales = np.asarray(real("scale", "the functions", value), dtype=np.float64)
    if scales.ndim > 1 or not (scales >= 0).all():
        raise ValueError(f"scale = {shown(value)} must be a number ≥ 0, or one for each function")
    return scales


def scale_for_each(scales: NDArray[np.float64], number: int, at_least: bool = False) -> None:
    """One scale for all, or one for each of so many functions; at least, while more may come."""
    if scales.ndim and (scales.size < number if at_least else scales.size != number):
        raise ValueError(
            f"scale has {scales.size} values, expected one number, or one for each function"
        )


def same_number(**counts: int) -> None:
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{n} of {name}" for name, n in counts.items())
        raise ValueError(f"expected as many functions in each, got {numbers}")


def first_bad(name: str, where: str, values: Floats, bad: NDArray[np.bool_], why: str) -> None:
    """Raise for the first marked value, with its place."""
    if bad.any():
        point = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{name} of {where} is {values.ravel()[point]} at point {point} "
            f"({np.count_nonzero(bad)} such of {bad.size}); {why}"
        )


def finite_error(where: str, error: Floats) -> None:
    why = "errors must be finite: leave out the failed simulations or the masked points"
    first_bad("error", where, error, ~np.isfinite(error), why)


def finite_uncertainty(where: str, uncertainty: Floats) -> None:
    bad = ~np.isfinite(uncertainty)
    first_bad("uncertainty", where, uncertainty, bad, "it must be a finite number ≥ 0")
    why = "it must be ≥ 0: use a positive function of the network's output, such as softplus"
    first_bad("uncertainty", where, uncertainty, uncertainty < 0, why)


def weights(where: str, values: Any, points: int) -> NDArray[np.float64]:
    """Point weights μ, shape (points,): finite, none negative, not all zero."""
    w = np.asarray(real("weights", where, values), dtype=np.float64).ravel()
    if w.size != points:
        raise ValueError(f"weights of {where} have {w.size} points, expected {points}")
    first_bad("weights", where, w, ~np.isfinite(w), "weights must be finite numbers ≥ 0")
    first_bad("weights", where, w, w < 0, "weights are areas or shares: none may be negative")
    if not w.any():
        raise ValueError(f"weights of {where} sum to zero: at least one point must count")
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            raise ValueError(f"weights of {where} have an infinite sum: divide them by the largest")
    return w
