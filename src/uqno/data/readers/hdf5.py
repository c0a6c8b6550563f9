"""HDF5 files: every data set of real numbers by its path, read when it is sliced."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from uqno.data.containers import open_hdf5
from uqno.data.labels import Coordinate
from uqno.data.readers.contract import Reader
from uqno.data.readers.netcdf import NetCDF
from uqno.data.variables import Content, Variable, read_whole

SUFFIXES = (".h5", ".hdf5", ".hdf")


class Hdf5(Reader):
    """Plain HDF5; dimensions have the names of their scales, where there are any."""

    suffixes = SUFFIXES

    def open(self, path: Path) -> Content:
        file = open_hdf5(path)
        if "_NCProperties" in file.attrs:
            file.close()
            return NetCDF().open(path)
        variables, coordinates = {}, {}
        for name, one in data_sets(file).items():
            dims = _dims(one)
            if one.is_scale:
                dims = (name,)
                coordinates[name] = Coordinate(
                    dims, read_whole(one, f"{path}: {name}"), attributes_of(one)
                )
            elif one.dtype.kind in "fiub" and one.ndim:
                variables[name] = Variable(name, one, dims, attributes_of(one))
        return Content(str(path), variables, coordinates, attributes_of(file), layout="HDF5")


def data_sets(group: Any) -> dict[str, Any]:
    """Every data set below a group by its path."""
    h5py = import_module("h5py")
    sets: dict[str, Any] = {}

    def visit(name: str, one: Any) -> None:
        if isinstance(one, h5py.Dataset):
            sets[name] = one

    group.visititems(visit)
    return sets


def attributes_of(one: Any) -> dict[str, Any]:
    """Attributes that are texts and numbers, by name, without HDF5's own."""
    own = ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid")
    content = {}
    for name in one.attrs:
        if name in own:
            continue
        value = one.attrs[name]
        if isinstance(value, bytes):
            value = value.decode("utf8", "replace")
        if isinstance(value, str) or np.asarray(value).dtype.kind in "fiub":
            content[name] = value
    return content


def _dims(one: Any) -> tuple[str, ...] | None:
    """The names of its dimensions, if each has one."""
    names = [d.label or (d[0].name.lstrip("/") if len(d) else "") for d in one.dims]
    return tuple(names) if all(names) and len(set(names)) == len(names) else None
