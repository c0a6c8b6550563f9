"""The layout of The Well (Ohana et al., 2024): trajectories of scalars, vectors and tensors.

    dimensions/time, dimensions/x, …                     coordinates
    t0_fields/NAME (trajectory, time, x, y)              scalars
    t1_fields/NAME (trajectory, time, x, y, d)           vectors, the last axis their components
    t2_fields/NAME (trajectory, time, x, y, d, d)        tensors
    scalars/NAME                                         numbers

Attributes of a field say whether it varies over trajectories, time and each dimension.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uqno.data.containers import open_hdf5
from uqno.data.labels import Coordinate
from uqno.data.readers.contract import Reader
from uqno.data.readers.hdf5 import SUFFIXES, attributes_of
from uqno.data.variables import Content, Variable, read_whole

RANKS = ("t0_fields", "t1_fields", "t2_fields")
COMPONENTS = ((), ("component",), ("component", "components"))


class TheWell(Reader):
    """A file of The Well; fields have the names they have in their group."""

    suffixes = SUFFIXES

    @classmethod
    def recognises(cls, path: Path) -> bool:
        try:
            file = open_hdf5(path)
        except ValueError:
            return False
        with file:
            return "dimensions" in file and any(rank in file for rank in RANKS)

    def open(self, path: Path) -> Content:
        file = open_hdf5(path)
        dimensions = file["dimensions"]
        spatial = [_text(name) for name in dimensions.attrs["spatial_dims"]]
        coordinates = {
            name: Coordinate((name,), read_whole(one, f"{path}: {name}"), attributes_of(one))
            for name, one in dimensions.items()
            if one.ndim == 1
        }
        variables = {}
        for rank, components in zip(RANKS, COMPONENTS, strict=True):
            for name, one in file[rank].items() if rank in file else ():
                dims = (*_varying(one, spatial), *components)
                if len(dims) != one.ndim:
                    raise ValueError(
                        f"{path}: {name} has shape {one.shape}, but its attributes say it is over "
                        f"{', '.join(dims)}: the file is not as The Well describes"
                    )
                variables[name] = Variable(name, one, dims, attributes_of(one))
        about = attributes_of(file)
        return Content(str(path), variables, coordinates, about, layout="The Well")


def _varying(one: Any, spatial: list[str]) -> tuple[str, ...]:
    """The dimensions that a field varies over."""
    attributes = one.attrs
    over = attributes.get("dim_varying", [True] * len(spatial))
    return (
        *(("trajectory",) if attributes.get("sample_varying", True) else ()),
        *(("time",) if attributes.get("time_varying", True) else ()),
        *(name for name, varies in zip(spatial, over, strict=True) if varies),
    )


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
