"""MATLAB files: up to version 5 by SciPy, 7.3, which is HDF5, by h5py."""

from __future__ import annotations

import os
import zlib
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from uqno.data.containers import open_hdf5
from uqno.data.readers.contract import Reader
from uqno.data.readers.matlab_layout import numeric_names
from uqno.data.variables import Content, Variable
from uqno.memory import check_memory
from uqno.types import Array

# Bytes of a value, by what MATLAB calls its arrays of numbers; twice that where it may be complex.
ITEM = {"double": 16, "single": 8, "logical": 1} | {
    f"{sign}int{bits}": bits // 4 for sign in ("", "u") for bits in (8, 16, 32, 64)
}
COMPRESSED = 15
BLOCK = 2**20


class Matlab(Reader):
    """Arrays by name, with MATLAB's order of dimensions."""

    suffixes = (".mat",)

    def open(self, path: Path) -> Content:
        arrays = read_matlab(path)
        variables = {name: Variable(name, values) for name, values in arrays.items()}
        return Content(str(path), variables, layout="MATLAB file")


def read_matlab(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of a .mat file by name; those of version 7.3 are read when they are sliced.

    Raises:
        ValueError: it is no MATLAB file.
    """
    h5py = import_module("h5py")
    if h5py.is_hdf5(path):
        file = open_hdf5(Path(path))
        return {
            name: Reversed(one)
            for name, one in file.items()
            if isinstance(one, h5py.Dataset) and one.ndim and one.dtype.kind in "fiubc"
        }
    import scipy.io

    try:
        whole = numeric_names(Path(path))
        names = [n for n in _numeric(Path(path)) if whole is None or n in whole]
        content = scipy.io.loadmat(path, variable_names=names) if names else {}
    except MemoryError as why:
        raise ValueError(f"{path} declares more than there is memory: {why}") from None
    except ValueError:
        raise
    except Exception as why:  # a foreign file fails in many ways
        raise ValueError(f"{path} is not a MATLAB file: {why}") from why
    arrays = {name: x for name, x in content.items() if isinstance(x, np.ndarray)}
    return {name: x for name, x in arrays.items() if x.dtype.kind in "fiubc" and x.ndim}


def _numeric(path: Path) -> list[str]:
    """The arrays of numbers in a file up to version 5, once their sizes are compared.

    Cells, structures and objects are left out: they are not read, and would be made of Python
    objects, as many as the file declares.

    Raises:
        ValueError: they declare more than the budget, or decompress to more than they declare.
    """
    import scipy.io

    kinds = {
        name: (shape, ITEM[kind]) for name, shape, kind in scipy.io.whosmat(path) if kind in ITEM
    }
    declared = sum(size * prod(shape) for shape, size in kinds.values())
    check_memory(str(path), declared, "store fewer or smaller arrays in a file")
    _check_compressed(path)
    return list(kinds)


def _check_compressed(path: Path) -> None:
    """Decompress the elements of a version 5 file block by block, and count the bytes.

    Such a file is a head of 128 bytes and then elements, each a type, a length and content. Type 15
    is compressed by zlib and says at its begin how long it is.
    """
    with path.open("rb") as file:
        head = file.read(128)
        order: Literal["little", "big"] = "big" if head[126:128] == b"MI" else "little"
        if head[126:128] not in (b"MI", b"IM"):
            return  # version 4, which has no compression
        total = 0
        while len(tag := file.read(8)) == 8:
            kind, length = (int.from_bytes(part, order) for part in (tag[:4], tag[4:]))
            if kind != COMPRESSED:
                file.seek(length, 1)
                continue
            inner, said, there = zlib.decompressobj(), None, 0
            while length and (block := file.read(min(BLOCK, length))):
                length -= len(block)
                while block:
                    plain = inner.decompress(block, BLOCK)
                    if said is None and len(plain) >= 8:
                        said = 8 + int.from_bytes(plain[4:8], order)
                    there, block = there + len(plain), inner.unconsumed_tail
                    check_memory(str(path), total + there, "store fewer arrays in a file")
            if said != there:
                raise ValueError(
                    f"{path} is not a MATLAB file: an array decompresses to {there} bytes, and "
                    f"declares {said}"
                )
            total += there


class Reversed:
    """A data set with its axes in reverse: HDF5 lists MATLAB's column-major axes so.

    Args:
        values: the data set.
    """

    def __init__(self, values: Any) -> None:
        self.values, self.dtype = values, values.dtype
        self.shape = tuple(values.shape[::-1])

    def __getitem__(self, index: Any) -> Array:
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in index:
            return np.asarray(np.asarray(self.values[...]).T[index])
        whole = (*index, *(slice(None) for _ in range(len(self.shape) - len(index))))
        return np.asarray(self.values[whole[::-1]]).T
