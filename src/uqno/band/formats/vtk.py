"""Bands of one function as VTK files, for ParaView."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.band.formats.content import AXES, attributes, names, variables
from uqno.band.formats.contract import BandFormat, check_suffix
from uqno.types import Array

if TYPE_CHECKING:
    from uqno.band.band import Band

GRID, POINTS = ".vtr", ".vtp"


class Vtk(BandFormat):
    """A rectilinear grid (.vtr), or a surface or points (.vtp); written by pyvista."""

    suffixes = (GRID, POINTS)

    def check(self, band: Band, path: Path) -> None:
        if band.is_batch:
            raise ValueError(
                f"a VTK file holds one function, the band {len(band)}: write band[0] and so on, a "
                "file each"
            )
        check_suffix(path, (_suffix(band),))
        _pyvista()

    def write(self, band: Band, path: Path) -> None:
        mesh = _grid(band) if band.is_grid else _points(band)
        for name, values in _point_arrays(band):
            mesh.point_data[name] = values
        for name, value in attributes(band).items():
            plain = _ascii(value) if isinstance(value, str) else value
            mesh.field_data[name] = plain if np.ndim(plain) else [plain]
        mesh.save(path)


def _suffix(band: Band) -> str:
    return GRID if band.is_grid else POINTS


def _pyvista() -> Any:
    try:
        return import_module("pyvista")
    except ImportError as why:
        raise ImportError(f'VTK files need pyvista ({why}): pip install "uqno[mesh]"') from None


def _grid(band: Band) -> Any:
    given = [np.sort(band.coordinates[j]) for j in _order(band)]
    x, y, z = given + [np.zeros(1)] * (3 - len(given))
    return _pyvista().RectilinearGrid(x, y, z)


def _order(band: Band) -> list[int]:
    """The dimensions of a grid that VTK's x, y and z run along: by their names where they have
    these, else in the order of the band."""
    given = names(band)
    if set(given) <= set(AXES):
        return sorted(range(len(given)), key=lambda j: AXES.index(given[j]))
    return list(range(len(given)))


def _ordered(band: Band, values: Array) -> Array:
    """Values over the points with every axis increasing, along VTK's x, y and z."""
    if not isinstance(band.coordinates, tuple):
        return values
    falling = tuple(j for j, x in enumerate(band.coordinates) if len(x) > 1 and x[1] < x[0])
    rising: Array = np.flip(values, falling)
    return rising.transpose(_order(band))


def _points(band: Band) -> Any:
    coordinates = np.asarray(band.coordinates)[:, _order(band)]
    points = np.zeros((len(coordinates), 3), coordinates.dtype)
    points[:, : coordinates.shape[1]] = coordinates
    if band.triangles is None:
        return _pyvista().PolyData(points)
    return _pyvista().PolyData.from_regular_faces(points, band.triangles)


def _point_arrays(band: Band) -> Iterator[tuple[str, Array]]:
    """Fields as VTK stores them: x runs fastest, the components of a point stand together."""
    for name, field in variables(band).items():
        if "component" in field.dims:
            each = [_ordered(band, v).ravel(order="F") for v in field.values]
            yield name, np.stack(each, axis=1)
        else:
            yield name, _ordered(band, field.values).ravel(order="F")


def _ascii(text: str) -> str:
    """VTK stores no other text."""
    return text.replace("×", "x").encode("ascii", "backslashreplace").decode()
