"""Darcy sets as the FNO paper publishes them: `coeff` and `sol` in a MATLAB file."""

from __future__ import annotations

import os
from pathlib import Path

from uqno.data.readers.matlab import read_matlab
from uqno.data.samples import GridSamples
from uqno.data.variables import read_whole

VARIABLES = ("coeff", "sol")


def read_fno_release(
    path: str | os.PathLike[str], stride: int = 1, measure: str = "points"
) -> GridSamples:
    """Samples of a .mat file with `coeff` and `sol`, each (n, H, W).

    Both formats of MATLAB are read: up to version 5 by SciPy, 7.3 by h5py.

    Args:
        path: the file.
        stride: every how many nodes are taken along each side.
        measure: how the nodes are weighed, see `GridSamples`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file holds something else.
    """
    if stride < 1:
        raise ValueError(f"stride must be at least 1, got {stride}")
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist")
    arrays = read_matlab(path)
    missing = [name for name in VARIABLES if name not in arrays]
    if missing:
        raise ValueError(
            f"{path} has no variable {missing[0]!r}; the FNO release has coeff and sol"
        )
    inputs, solutions = (
        read_whole(arrays[name], f"{path}: {name}")[..., ::stride, ::stride] for name in VARIABLES
    )
    return GridSamples.from_file(path, inputs, solutions, measure)
