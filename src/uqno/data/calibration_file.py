"""The file that a calibration reads: predictions, truths and uncertainties of held-out functions.

A .npz, NetCDF or zarr file holds `prediction`, `truth` and `uncertainty`, and may hold `weights`.
The first dimension counts the functions; prediction and truth may have one more last dimension,
`component`. The file may be larger than memory: a few functions are read at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from uqno.data.arrays import Rows, open_variables
from uqno.types import Array

REQUIRED = ("prediction", "truth", "uncertainty")


@dataclass(frozen=True)
class CalibrationFile:
    """What `uqno.calibrate` takes, read from an open file as it is asked for.

    Args:
        error: truth − prediction, (functions, *points) or (functions, *points, component).
        uncertainty: E, (functions, *points).
        weights: the measure μ: None, an array (*points) for all functions, or rows
            (functions, *points).
        beside: further variables that were asked for, (functions,) each, by name: labels of groups,
            likelihood ratios.
    """

    error: Rows
    uncertainty: Rows
    weights: Rows | Array | None
    beside: Mapping[str, Array]


@contextmanager
def open_calibration(
    path: str | Path,
    progress: Callable[[int, int], None] | None = None,
    beside: Sequence[str] = (),
) -> Iterator[CalibrationFile]:
    """The arrays of a calibration file, not read yet.

    Args:
        path: a .npz, NetCDF or zarr file.
        progress: is called with the number of functions read and of all functions.
        beside: names of further variables to read, one value for each function.

    Raises:
        ValueError: the file is damaged, or its variables do not fit together.
    """
    path = Path(path)
    with open_variables(path, (*REQUIRED, "weights", *beside)) as variables:
        read = {name: _of_functions(path, name, variables.get(name)) for name in beside}
        yield _calibration_file(path, variables, progress, read)


def _of_functions(path: Path, name: str, rows: Rows | None) -> Array:
    if rows is None or len(rows.shape) != 1:
        found = "is not there" if rows is None else f"has shape {rows.shape}"
        raise ValueError(f"{path}: {name} {found}, expected one value for each function")
    values = rows[: len(rows)]
    return values.astype(str) if values.dtype.kind in "SO" else values


def _calibration_file(
    path: Path,
    variables: dict[str, Rows],
    progress: Callable[[int, int], None] | None,
    beside: Mapping[str, Array],
) -> CalibrationFile:
    missing = [name for name in REQUIRED if name not in variables]
    if missing:
        raise ValueError(
            f"{path} lacks {', '.join(missing)}: expected the variables prediction, truth and "
            f"uncertainty, got {', '.join(sorted(variables)) or 'none'}"
        )
    prediction, truth, uncertainty = (variables[name] for name in REQUIRED)
    _check_dimensions(path, prediction, truth, uncertainty)
    if prediction.shape != truth.shape:
        raise ValueError(
            f"{path}: prediction has shape {prediction.shape}, truth {truth.shape}; expected equal"
        )
    if uncertainty.shape not in (truth.shape, truth.shape[:-1]):
        raise ValueError(
            f"{path}: uncertainty has shape {uncertainty.shape}, expected {truth.shape}, or that "
            "without its last dimension, the components of a vector"
        )

    def difference(start: int, stop: int) -> Array:
        if progress is not None:
            progress(stop, len(truth))
        return np.subtract(truth[start:stop], prediction[start:stop], dtype=np.float64)

    error = Rows("error", truth.shape, np.float64, truth.slab, difference)
    weights = _weights(path, variables.get("weights"), uncertainty)
    return CalibrationFile(error, uncertainty, weights, beside)


def _check_dimensions(path: Path, prediction: Rows, truth: Rows, uncertainty: Rows) -> None:
    """Real numbers over functions; where dimensions have names, they must agree as well: equal
    shapes would let a transposed array pass."""
    for variable in (prediction, truth, uncertainty):
        if not np.issubdtype(variable.dtype, np.number) or variable.dtype.kind == "c":
            raise ValueError(
                f"{path}: {variable.name} is of {variable.dtype}, expected real numbers"
            )
        if not variable.shape:
            raise ValueError(f"{path}: {variable.name} is a single number, expected functions")
    if prediction.dims is None or truth.dims is None or uncertainty.dims is None:
        return
    if truth.dims != prediction.dims or uncertainty.dims not in (truth.dims, truth.dims[:-1]):
        raise ValueError(
            f"{path}: prediction has the dimensions {prediction.dims}, truth {truth.dims}, "
            f"uncertainty {uncertainty.dims}; expected the same in the same order, uncertainty "
            "without a last component"
        )
    if "component" in truth.dims[:-1] or "component" in uncertainty.dims:
        raise ValueError(
            f"{path}: component must be the last dimension of prediction and truth, and none of "
            f"uncertainty, got {truth.dims} and {uncertainty.dims}"
        )
    if "function" in truth.dims[1:]:
        raise ValueError(f"{path}: function must be the first dimension, got {truth.dims}")


def _weights(path: Path, weights: Rows | None, uncertainty: Rows) -> Rows | Array | None:
    if weights is None or weights.shape == uncertainty.shape:
        return weights
    if weights.shape == uncertainty.shape[1:]:
        return weights[: len(weights)]
    raise ValueError(
        f"{path}: weights have shape {weights.shape}, expected {uncertainty.shape[1:]} for all "
        f"functions or {uncertainty.shape}"
    )
