"""Functions in .npz, NetCDF and zarr files, read a few at a time: larger than memory is fine.

A file holds `prediction`, `truth` and `uncertainty`, and may hold `weights`; the first dimension
counts the functions, prediction and truth may have one more last dimension `component`.
Files are data: nothing is unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from uqno.types import Array

# Bytes read at once where a file does not say how it is chunked.
SLAB_BYTES = 2**24
# A Fortran-ordered array up to this size is read whole.
LARGEST_FORTRAN = 2**28


@dataclass(frozen=True)
class CalibrationFile:
    """Rows of error = truth − prediction, uncertainty and weights, made as they are asked for."""

    error: Rows
    uncertainty: Rows
    weights: Any
    """None, an array over the points for all functions, or Rows."""


class Rows:
    """A variable over functions that is read in order, once, slab by slab."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: Any,
        slab: int,
        read: Callable[[int, int], Array],
        dims: tuple[str, ...] | None = None,
    ) -> None:
        self.name, self.shape, self.dtype, self.dims = name, shape, np.dtype(dtype), dims
        self._slab, self._read = max(1, slab), read
        self._first, self._held = 0, np.empty((0, *shape[1:]), self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(len(self))
        if start < self._first:
            raise ValueError(f"{self.name} is read once and in order; open the file again")
        while self._first + len(self._held) < stop:
            begin = self._first + len(self._held)
            fresh = self._read(begin, min(len(self), max(stop, begin + self._slab)))
            rest = self._held[start - self._first :]
            self._held = np.concatenate([rest, fresh]) if len(rest) else fresh
            self._first = begin - len(rest)
        return self._held[start - self._first : stop - self._first]

    def __iter__(self) -> Iterator[Array]:
        return (self[i : i + 1][0] for i in range(len(self)))


@contextmanager
def open_calibration(
    path: str | Path, progress: Callable[[int, int], None] | None = None
) -> Iterator[CalibrationFile]:
    """The variables of a file, not read yet; `progress(done, total)` is told of functions read."""
    path = Path(path)
    with open_variables(path, ("prediction", "truth", "uncertainty", "weights")) as variables:
        yield _calibration_file(path, variables, progress)


def _calibration_file(
    path: Path, variables: dict[str, Rows], progress: Callable[[int, int], None] | None
) -> CalibrationFile:
    missing = [name for name in ("prediction", "truth", "uncertainty") if name not in variables]
    if missing:
        raise ValueError(
            f"{path} lacks {', '.join(missing)}: expected the variables prediction, truth and "
            f"uncertainty, found {', '.join(sorted(variables)) or 'none'}"
        )
    prediction, truth, uncertainty = (variables[n] for n in ("prediction", "truth", "uncertainty"))
    _check_dimensions(path, prediction, truth, uncertainty)
    if prediction.shape != truth.shape:
        raise ValueError(
            f"{path}: prediction has shape {prediction.shape}, truth {truth.shape}; expected equal"
        )
    if uncertainty.shape not in (truth.shape, truth.shape[:-1]):
        raise ValueError(
            f"{path}: uncertainty has shape {uncertainty.shape}, expected {truth.shape}, or without its "
            "last dimension, the components of a vector"
        )

    def difference(start: int, stop: int) -> Array:
        if progress is not None:
            progress(stop, len(truth))
        return np.subtract(truth[start:stop], prediction[start:stop], dtype=np.float64)

    error = Rows("error", truth.shape, np.float64, truth._slab, difference)
    return CalibrationFile(
        error, uncertainty, _weights(path, variables.get("weights"), uncertainty)
    )


def _check_dimensions(path: Path, prediction: Rows, truth: Rows, uncertainty: Rows) -> None:
    """Where dimensions have names, the same ones in the same order: shapes alone may deceive."""
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
            f"{path}: prediction has the dimensions {prediction.dims}, truth {truth.dims}, uncertainty "
            f"{uncertainty.dims}; expected the same in the same order, uncertainty without a last component"
        )
    if "component" in truth.dims[:-1] or "component" in uncertainty.dims:
        raise ValueError(
            f"{path}: component must be the last dimension of prediction and truth, and none of "
            f"uncertainty, got {truth.dims} and {uncertainty.dims}"
        )
    if "function" in truth.dims[1:]:
        raise ValueError(f"{path}: function must be the first dimension, got {truth.dims}")


def _weights(path: Path, weights: Rows | None, uncertainty: Rows) -> Any:
    if weights is None or weights.shape == uncertainty.shape:
        return weights
    if weights.shape == uncertainty.shape[1:]:
        return weights[: len(weights)]
    raise ValueError(
        f"{path}: weights have shape {weights.shape}, expected {uncertainty.shape[1:]} for all "
        f"functions or {uncertainty.shape}"
    )


@contextmanager
def open_variables(path: Path, names: Sequence[str] | None = None) -> Iterator[dict[str, Rows]]:
    """The variables of a .npz, NetCDF or zarr file by name: those in `names`, or all."""
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    if path.suffix == ".npz":
        with ExitStack() as opened:
            yield _npz_variables(path, names, opened)
    elif path.suffix in (".nc", ".nc4", ".netcdf", ".h5", ".zarr"):
        with _dataset(path) as dataset:
            yield _dataset_variables(path, names, dataset)
    else:
        raise ValueError(f"{path}: expected a .npz, NetCDF (.nc) or .zarr, got {path.suffix!r}")


def _npz_variables(path: Path, names: Sequence[str] | None, opened: ExitStack) -> dict[str, Rows]:
    try:
        archive = opened.enter_context(zipfile.ZipFile(path))
        members = [m for m in archive.namelist() if m.endswith(".npy")]
    except (zipfile.BadZipFile, ValueError) as why:
        raise ValueError(f"{path} is not a whole .npz file, truncated or foreign ({why})") from None
    found = {m.removesuffix(".npy"): m for m in members}
    wanted = found if names is None else [name for name in names if name in found]
    return {name: _npy_rows(archive, found[name], name, path, opened) for name in wanted}


def _npy_rows(
    archive: zipfile.ZipFile, member: str, name: str, path: Path, opened: ExitStack
) -> Rows:
    """Rows of one array inside the archive, decompressed as they pass by."""
    try:
        stream = opened.enter_context(archive.open(member))
        version = np.lib.format.read_magic(stream)
        header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = header(stream)
    except Exception as why:  # a damaged archive fails in many ways
        raise _unreadable(path, name, why) from None
    if dtype.hasobject:
        raise ValueError(f"{path}: {name} holds Python objects, expected numbers")
    row_bytes = dtype.itemsize * prod(shape[1:])

    def read(start: int, stop: int) -> Array:
        wanted = (stop - start) * row_bytes
        try:
            content = stream.read(wanted)
        except Exception as why:
            raise _unreadable(path, name, why) from None
        if len(content) != wanted:
            raise ValueError(f"{path}: {name} ends early; the file is truncated")
        return np.frombuffer(content, dtype).reshape(stop - start, *shape[1:])

    if fortran and len(shape) > 1:
        return _fortran_rows(name, shape, dtype, path, stream)
    return Rows(name, shape, dtype, SLAB_BYTES // max(1, row_bytes), read)


def _fortran_rows(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], path: Path, stream: IO[bytes]
) -> Rows:
    """Rows lie scattered in such an array: read it whole if it is not large."""
    size = dtype.itemsize * prod(shape)
    if size > LARGEST_FORTRAN:
        raise ValueError(
            f"{path}: {name} has {size / 1e6:.0f} MB in Fortran order and cannot be streamed; save "
            "np.ascontiguousarray of it"
        )
    content = stream.read(size)
    if len(content) != size:
        raise ValueError(f"{path}: {name} ends early; the file is truncated")
    whole = np.frombuffer(content, dtype).reshape(shape, order="F")
    return Rows(name, shape, dtype, shape[0], lambda start, stop: whole[start:stop])


def _unreadable(path: Path, name: str, why: Exception) -> ValueError:
    return ValueError(f"{path}: {name} cannot be read ({type(why).__name__}: {why})")


def _dataset(path: Path) -> Any:
    import xarray

    try:
        if path.suffix == ".zarr":
            return xarray.open_zarr(path, chunks=None, consolidated=False)
        return xarray.open_dataset(path, chunks=None)
    except Exception as why:  # each backend fails in its own way on a foreign file
        raise ValueError(f"{path} cannot be opened: {type(why).__name__}: {why}") from None


def _dataset_variables(path: Path, names: Sequence[str] | None, dataset: Any) -> dict[str, Rows]:
    found = [str(n) for n in dataset.variables if n not in dataset.dims and dataset[n].ndim]
    wanted = found if names is None else [name for name in names if name in found]
    return {name: _variable_rows(name, dataset[name], path) for name in wanted}


def _variable_rows(name: str, variable: Any, path: Path) -> Rows:
    chunks = variable.encoding.get("preferred_chunks") or {}
    row_bytes = max(1, variable.dtype.itemsize * prod(variable.shape[1:]))
    slab = chunks.get(variable.dims[0], 1) if variable.dims else 1

    def read(start: int, stop: int) -> Array:
        try:
            return np.asarray(variable[start:stop].values)
        except Exception as why:  # a damaged chunk, whatever the backend calls it
            raise ValueError(
                f"{path}: {name} cannot be read from function {start} on "
                f"({type(why).__name__}: {why})"
            ) from None

    dims = tuple(str(d) for d in variable.dims)
    rows = max(slab, SLAB_BYTES // row_bytes)
    return Rows(name, variable.shape, variable.dtype, rows, read, dims)


def read_arrays(path: str | Path) -> dict[str, Array]:
    """All variables of a .npz, NetCDF or zarr file but single numbers, in memory."""
    with open_variables(Path(path)) as variables:
        return {name: np.array(rows[: len(rows)]) for name, rows in variables.items() if rows.shape}


def read_points(path: str | Path) -> NDArray[np.float64]:
    """Coordinates (points, d) from a CSV file, with or without a line of names."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    lines = [line for line in path.read_text(encoding="utf8").splitlines() if line.strip()]
    if lines and not _are_numbers(lines[0]):
        lines = lines[1:]
    bad = [i for i, line in enumerate(lines) if not _are_numbers(line)]
    widths = {line.count(",") for line in lines}
    if not lines or bad or len(widths) > 1:
        where = f"line {bad[0] + 1} is {lines[bad[0]]!r}" if bad else f"{len(lines)} lines"
        raise ValueError(f"{path}: expected equally many numbers in each line, got {where}")
    return np.array([[float(x) for x in line.split(",")] for line in lines])


def _are_numbers(line: str) -> bool:
    try:
        return all(np.isfinite(float(x)) for x in line.split(","))
    except ValueError:
        return False
