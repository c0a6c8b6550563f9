"""Variables of .npz, NetCDF and zarr files, read a few functions at a time.

Files may be larger than memory, and they are data: nothing is unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from uqno.data.containers import open_netcdf, open_zarr_dataset
from uqno.memory import check_memory, in_words
from uqno.numpy_files import members_of, open_member
from uqno.types import Array

# About as many bytes are read at once, or one chunk of a file whose chunks are larger.
SLAB_BYTES = 2**24
# A Fortran-ordered array up to this size is read whole.
LARGEST_FORTRAN = 2**28
REMEDY = "store functions at fewer points, or in smaller chunks"


class Rows:
    """A variable over functions in a file, handed out in order and read once, slab by slab.

    Args:
        name: of the variable.
        shape: (functions, *points), or () for a single number.
        dtype: of the values.
        slab: how many functions are read at once: a multiple of the file's chunks along the
            functions, so that every chunk is read once.
        read: `read(start, stop)` returns functions start to stop − 1, (stop − start, *points).
        dims: the names of the dimensions, where the file has them.
    """

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
        self.slab, self._read = max(1, slab), read
        self._first, self._buffer = 0, np.empty((0, *shape[1:]), self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        """Functions of a slice that begins no earlier than the one before it.

        Raises:
            ValueError: the slice begins earlier, or the file is damaged.
        """
        start, stop, _ = rows.indices(len(self))
        if start < self._first:
            raise ValueError(f"{self.name} is read once and in order; open the file again")
        end = self._first + len(self._buffer)
        if stop > end:
            slabs = -(-(stop - end) // self.slab)
            last = min(len(self), end + slabs * self.slab)
            size = (last - end) * self.dtype.itemsize * prod(self.shape[1:])
            check_memory(f"{self.name}, {last - end} functions of it,", size, REMEDY)
            new = self._read(end, last)
            rest = self._buffer[start - self._first :]
            self._buffer = np.concatenate([rest, new]) if len(rest) else new
            self._first = end - len(rest)
        return self._buffer[start - self._first : stop - self._first]

    def __iter__(self) -> Iterator[Array]:
        return (self[i : i + 1][0] for i in range(len(self)))


@contextmanager
def open_variables(path: Path, names: Sequence[str] | None = None) -> Iterator[dict[str, Rows]]:
    """The variables of a .npz, NetCDF or zarr file by name, not read yet.

    Args:
        path: the file.
        names: which variables, as far as the file has them; None for all of them.

    Raises:
        ValueError: the file is absent, empty, damaged or of another kind.
    """
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
        present = members_of(archive)
    except (zipfile.BadZipFile, ValueError) as why:
        raise ValueError(f"{path} is not a whole .npz file, truncated or foreign ({why})") from None
    wanted = present if names is None else [name for name in names if name in present]
    return {name: _npy_rows(archive, present[name], name, path, opened) for name in wanted}


def _npy_rows(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, path: Path, opened: ExitStack
) -> Rows:
    """Rows of one array inside the archive, decompressed as they are read."""
    try:
        stream, head = open_member(archive, member, f"{path}: {name}")
        opened.enter_context(stream)
    except ValueError:
        raise
    except Exception as why:  # a damaged archive fails in many ways
        raise _unreadable(path, name, why) from None
    shape, dtype = head.shape, head.dtype
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

    if head.fortran and len(shape) > 1:
        return _fortran_rows(name, shape, dtype, path, stream)
    return Rows(name, shape, dtype, SLAB_BYTES // max(1, row_bytes), read)


def _fortran_rows(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], path: Path, stream: IO[bytes]
) -> Rows:
    """Rows lie scattered in such an array: read it whole if it is not large."""
    size = dtype.itemsize * prod(shape)
    if size > LARGEST_FORTRAN:
        raise ValueError(
            f"{path}: {name} has {in_words(size)} in Fortran order and cannot be streamed; save "
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
    return open_zarr_dataset(path) if path.suffix == ".zarr" else open_netcdf(path)


def _dataset_variables(path: Path, names: Sequence[str] | None, dataset: Any) -> dict[str, Rows]:
    present = [str(n) for n in dataset.variables if n not in dataset.dims and dataset[n].ndim]
    wanted = present if names is None else [name for name in names if name in present]
    return {name: _variable_rows(name, dataset[name], path) for name in wanted}


def _variable_rows(name: str, variable: Any, path: Path) -> Rows:
    chunks = variable.encoding.get("preferred_chunks") or {}
    row_bytes = max(1, variable.dtype.itemsize * prod(variable.shape[1:]))
    chunk = max(1, chunks.get(variable.dims[0], 1))
    slab = chunk * max(1, SLAB_BYTES // row_bytes // chunk)

    def read(start: int, stop: int) -> Array:
        try:
            return np.asarray(variable[start:stop].values)
        except Exception as why:  # a damaged chunk, whatever the backend calls it
            raise ValueError(
                f"{path}: {name} cannot be read from function {start} on "
                f"({type(why).__name__}: {why})"
            ) from None

    dims = tuple(str(d) for d in variable.dims)
    return Rows(name, variable.shape, variable.dtype, slab, read, dims)


def read_arrays(path: str | Path) -> dict[str, Array]:
    """All variables of a .npz, NetCDF or zarr file but single numbers, in memory, by name."""
    with open_variables(Path(path)) as variables:
        return {name: np.array(rows[: len(rows)]) for name, rows in variables.items() if rows.shape}
