"""The layouts of PDEBench (Takamoto et al., 2022).

tensor (n, t, x), …, x-coordinate, t-coordinate      1-D: Burgers, advection, reaction–diffusion
nu (n, x, y), tensor (n, 1, x, y)                    Darcy flow: nu is the input
density, pressure, Vx, Vy, Vz (n, t, x, y, z)        compressible Navier–Stokes
0000/data (t, x, y, channel), 0000/grid/x, …         2-D reaction–diffusion, shallow water
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqno.data.containers import open_hdf5
from uqno.data.labels import Coordinate
from uqno.data.readers.contract import Reader
from uqno.data.readers.hdf5 import SUFFIXES, attributes_of
from uqno.data.variables import Content, Variable, read_whole
from uqno.types import Array

AXES = ("x", "y", "z")


class PDEBench(Reader):
    """A file of PDEBench: the dimensions are (sample, t, x, y, z), as far as they exist."""

    suffixes = SUFFIXES

    @classmethod
    def recognises(cls, path: Path) -> bool:
        try:
            file = open_hdf5(path)
        except ValueError:
            return False
        with file:
            return "x-coordinate" in file or _is_grouped(file)

    def open(self, path: Path) -> Content:
        file = open_hdf5(path)
        return _grouped(file, path) if _is_grouped(file) else _arrays(file, path)


def _is_grouped(file: Any) -> bool:
    names = list(file)
    return bool(names) and names[0].isdigit() and f"{names[0]}/data" in file


def _arrays(file: Any, path: Path) -> Content:
    """A file whose arrays hold all samples."""
    axes = [axis for axis in AXES if f"{axis}-coordinate" in file]
    coordinates = {
        axis: Coordinate((axis,), _axis(file, f"{axis}-coordinate", path), {}) for axis in axes
    }
    variables = {}
    for name, one in file.items():
        if name.endswith("-coordinate") or not hasattr(one, "shape"):
            continue
        steady = "nu" in file and one.ndim == len(axes) + 2 and one.shape[1] == 1
        between = ("channel",) if steady else ("t",)
        dims = ("sample", *(between if one.ndim == len(axes) + 2 else ()), *axes)
        if one.ndim == len(dims):
            variables[name] = Variable(name, one, dims, attributes_of(one))
    times = {v.shape[1] for v in variables.values() if v.dims is not None and "t" in v.dims}
    if "t-coordinate" in file and len(times) == 1:
        # Some files have one time more than there are steps.
        values = _axis(file, "t-coordinate", path)[: times.pop()]
        coordinates["t"] = Coordinate(("t",), values, {})
    darcy = {"nu", "tensor"} <= set(variables)
    inputs, outputs = (("nu",), ("tensor",)) if darcy else ((), ())
    about = attributes_of(file)
    return Content(str(path), variables, coordinates, about, inputs, outputs, "PDEBench")


def _grouped(file: Any, path: Path) -> Content:
    """A file with one group a sample."""
    names = [name for name in file if f"{name}/data" in file]
    shapes = {file[f"{name}/data"].shape for name in names}
    if len(shapes) > 1:
        raise ValueError(f"{path}: samples have the shapes {sorted(shapes)[:3]}, expected one")
    first = file[names[0]]
    axes = [axis for axis in AXES if f"grid/{axis}" in first]
    dims = ("sample", "t", *axes, "channel")
    if len(shapes.pop()) != len(dims) - 1:
        raise ValueError(f"{path}: data of {names[0]} is no field over t, {', '.join(axes)}")
    coordinates = {
        axis: Coordinate((axis,), _axis(first, f"grid/{axis}", path), {})
        for axis in ("t", *axes)
        if f"grid/{axis}" in first
    }
    variables = {"data": Variable("data", Groups(file, names), dims)}
    return Content(str(path), variables, coordinates, attributes_of(file), layout="PDEBench")


def _axis(group: Any, name: str, path: Path) -> Array:
    return read_whole(group[name], f"{path}: {name}")


class Groups:
    """`data` of every sample as one array, (sample, t, *grid, channel); read sample by sample.

    Args:
        file: the open file.
        names: of the samples.
    """

    def __init__(self, file: Any, names: list[str]) -> None:
        self.file, self.names = file, names
        first = file[f"{names[0]}/data"]
        self.shape, self.dtype = (len(names), *first.shape), first.dtype

    def __getitem__(self, index: Any) -> Array:
        index = index if isinstance(index, tuple) else (index,)
        first, rest = (slice(None), ()) if index[0] is Ellipsis else (index[0], index[1:])
        if isinstance(first, slice):
            chosen = self.names[first]
            return np.stack([self.file[f"{name}/data"][rest or ...] for name in chosen])
        return np.asarray(self.file[f"{self.names[first]}/data"][rest or ...])
