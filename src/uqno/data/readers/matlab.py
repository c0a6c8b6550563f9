"""MATLAB files: up to version 5 by SciPy, 7.3, which is HDF5, by h5py."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from uqno.data.readers.contract import Reader
from uqno.data.readers.matlab_layout import numeric_names
from uqno.data.variables import Content, Variable
from uqno.types import Array


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
        file = h5py.File(path, "r")
        return {
            name: Reversed(one)
            for name, one in file.items()
            if isinstance(one, h5py.Dataset) and one.ndim and one.dtype.kind in "fiubc"
        }
    import scipy.io

    try:
        names = numeric_names(Path(path))
        content = {} if names == [] else scipy.io.loadmat(path, variable_names=names)
    except Exception as why:  # a foreign file fails in many ways
        raise ValueError(f"{path} is not a MATLAB file: {why}") from why
    arrays = {name: x for name, x in content.items() if isinstance(x, np.ndarray)}
    return {name: x for name, x in arrays.items() if x.dtype.kind in "fiubc" and x.ndim}


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
