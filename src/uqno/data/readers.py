"""Published Darcy sets as samples: neuraloperator's `.pt` and the FNO release's `.mat` files."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.data.samples import GridSamples


def read_neuraloperator(path: str | os.PathLike[str], measure: str = "points") -> GridSamples:
    """Samples of a `darcy_*.pt` file: a dict with "x" and "y", each (n, H, W) or (n, 1, H, W).

    "x" is kept as the file has it (0 and 1 stand for the two values of a in most of them). The
    file is loaded with weights only: it cannot run code.
    """
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(
            f"{path} is not a file of tensors alone and was not loaded: {error}"
        ) from error
    if not isinstance(content, dict) or not {"x", "y"} <= set(content):
        found = sorted(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{path} must hold a dict with tensors 'x' and 'y', found {found}")
    inputs, solutions = (np.asarray(content[key].to(torch.float32)) for key in ("x", "y"))
    return _samples(path, inputs, solutions, measure)


def read_fno_release(
    path: str | os.PathLike[str], stride: int = 1, measure: str = "points"
) -> GridSamples:
    """Samples of a `.mat` file with `coeff` and `sol`, each (n, H, W); every `stride`-th node.

    Both formats of MATLAB are read: up to version 5 by SciPy, 7.3 by h5py.
    """
    if stride < 1:
        raise ValueError(f"stride must be at least 1, got {stride}")
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist")
    arrays = _read_mat73(path) if _is_hdf5(path) else _read_mat5(path)
    missing = [name for name in ("coeff", "sol") if name not in arrays]
    if missing:
        raise ValueError(
            f"{path} has no variable {missing[0]!r}; the FNO release has coeff and sol"
        )
    thinned = [arrays[name][..., ::stride, ::stride] for name in ("coeff", "sol")]
    return _samples(path, thinned[0], thinned[1], measure)


def _read_mat5(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    import scipy.io

    try:
        return dict(scipy.io.loadmat(path, variable_names=["coeff", "sol"]))
    except Exception as error:
        raise ValueError(f"{path} is not a MATLAB file: {error}") from error


def _is_hdf5(path: str | os.PathLike[str]) -> bool:
    return bool(import_module("h5py").is_hdf5(path))


def _read_mat73(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    with import_module("h5py").File(path, "r") as file:
        # HDF5 lists MATLAB's column-major axes in reverse.
        return {name: np.asarray(file[name]).T for name in ("coeff", "sol") if name in file}


def _samples(
    path: str | os.PathLike[str], inputs: NDArray[Any], solutions: NDArray[Any], measure: str
) -> GridSamples:
    both = []
    for array in (inputs, solutions):
        if array.ndim == 4 and array.shape[1] == 1:
            array = array[:, 0]
        both.append(np.ascontiguousarray(array, dtype=np.float32))
    if both[0].ndim != 3 or both[0].shape != both[1].shape:
        raise ValueError(
            f"{path}: inputs and solutions must have one shape (n, H, W), got {inputs.shape} and "
            f"{solutions.shape}"
        )
    return GridSamples(both[0], both[1], tuple(range(len(both[0]))), measure)
