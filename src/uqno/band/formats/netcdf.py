"""Bands as NetCDF-4 files with the CF and UGRID conventions, and as xarray datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.band.formats.content import AXES, Variable, attributes, axes, others, variables
from uqno.band.formats.contract import BandFormat

if TYPE_CHECKING:
    import xarray

    from uqno.band.band import Band


class NetCDF(BandFormat):
    """`dataset` in a file, read back by `xarray.open_dataset`."""

    suffixes = (".nc", ".nc4", ".netcdf")

    def write(self, band: Band, path: Path) -> None:
        dataset(band).to_netcdf(path, engine="h5netcdf", format="NETCDF4")


def dataset(band: Band) -> xarray.Dataset:
    """A band as an xarray dataset.

    Returns:
        The variables of `content` with the dimensions (function, component, x, y, z) or (function,
        component, point), as far as they exist, or with those of the band's labels; the triangles
        of a surface as UGRID has them.
    """
    import xarray

    # A measured quantity without units is left without: CF reads "1" as dimensionless.
    units = {"units": band.units} if band.units else {}
    mesh = {} if band.triangles is None else {"mesh": "mesh", "location": "node"}
    fields, coordinates = variables(band), {**axes(band), **others(band)}
    data = xarray.Dataset(
        {
            name: (
                field.dims,
                field.values,
                {"long_name": field.long_name, **({} if name == "weights" else units), **mesh},
            )
            for name, field in fields.items()
        },
        coords={name: (x.dims, x.values, _described(name, x)) for name, x in coordinates.items()},
        attrs=attributes(band),
    )
    about_center = [name for name in fields if name not in ("center", "weights")]
    data["center"].attrs["ancillary_variables"] = " ".join(about_center)
    if band.component_names is not None and band.channels > 1:
        data = data.assign_coords(component=("component", list(band.component_names)))
    if band.triangles is not None:
        _add_mesh(data, band)
    for variable in data.variables.values():
        variable.encoding["_FillValue"] = None  # nothing is missing
    return data


def _described(name: str, coordinate: Variable) -> dict[str, Any]:
    """The attributes of a coordinate: those that it came with, else its name and axis."""
    if coordinate.attributes is not None:
        return dict(coordinate.attributes)
    axis = {"axis": name.upper()} if name in AXES else {}
    return {"long_name": coordinate.long_name, **axis}


def _add_mesh(data: xarray.Dataset, band: Band) -> None:
    """The triangles as UGRID has them, so that tools for unstructured meshes find them."""
    data["triangles"] = (
        ("face", "corner"),
        np.asarray(band.triangles),
        {"long_name": "points of each triangle", "cf_role": "face_node_connectivity"},
    )
    data["triangles"].attrs["start_index"] = np.int32(0)
    data["mesh"] = (
        (),
        np.int32(0),
        {
            "cf_role": "mesh_topology",
            "topology_dimension": np.int32(2),
            "node_coordinates": " ".join(axes(band)),
            "face_node_connectivity": "triangles",
        },
    )
