"""Bands of one function as VTK files, for ParaView."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.band.formats.content import attributes, axes, variables
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
            mesh.field_data[name] = [_ascii(value) if isinstance(value, str) else value]
        mesh.save(path)


def _suffix(band: Band) -> str:
    return GRID if band.is_grid else POINTS


def _pyvista() -> Any:
    try:
        return import_module("pyvista")
    except ImportError as why:
        raise ImportError(f'VTK files need pyvista ({why}): pip install "uqno[mesh]"') from None


def _grid(band: Band) -> Any:
    given = [x.values for x in axes(band).values()]
    x, y, z = given + [np.zeros(1)] * (3 - len(given))
    return _pyvista().RectilinearGrid(x, y, z)


def _points(band: Band) -> Any:
    coordinates = np.asarray(band.coordinates)
    points = np.zeros((len(coordinates), 3), coordinates.dtype)
    points[:, : coordinates.shape[1]] = coordinates
    if band.triangles is None:
        return _pyvista().PolyData(points)
    return _pyvista().PolyData.from_regular_faces(points, band.triangles)


def _point_arrays(band: Band) -> Iterator[tuple[str, Array]]:
    """Fields as VTK stores them: x runs fastest, the components of a point stand together."""
    for name, field in variables(band).items():
        if "component" in field.dims:
            yield name, np.stack([v.ravel(order="F") for v in field.values], axis=1)
        else:
            yield name, field.values.ravel(order="F")


def _ascii(text: str) -> str:
    """VTK stores no other text."""
    return text.replace("×", "x").encode("ascii", "backslashreplace").decode()
