"""A band as an xarray dataset, a NetCDF, .npz or VTK file; the names are the same in each."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.storage import write_file
from uqno.types import Array

if TYPE_CHECKING:
    import xarray

    from uqno.band import Band


AXES = ("x", "y", "z")
CONVENTIONS = "CF-1.11 UGRID-1.0"


def variables(band: Band) -> dict[str, tuple[tuple[str, ...], Array, str]]:
    """(dimensions, values, long name) of every field by its name; a scalar has no component."""
    functions = ("function",) if band.is_batch else ()
    points = AXES[: len(band.points)] if band.is_grid else ("point",)
    over = (*functions, *points)
    if band.channels == 1:
        axis = len(functions)
        prediction = (over, band.center.squeeze(axis), f"prediction of {band.name}")
    else:
        prediction = ((*functions, "component", *points), band.center, f"prediction of {band.name}")
    found = {
        "prediction": prediction,
        "radius": (over, band.radius, f"radius of the calibrated band around {band.name}"),
        "uncertainty": (
            over,
            band.uncertainty,
            f"estimated error of {band.name} before calibration",
        ),
    }
    if band.channels == 1:
        found["lower"] = (over, band.lower, f"lower end of the calibrated band of {band.name}")
        found["upper"] = (over, band.upper, f"upper end of the calibrated band of {band.name}")
    if band.weights is not None:
        dims = over if band.weights.ndim == len(over) else points
        found["weights"] = (dims, band.weights, "measure of each point")
    return found


def axes(band: Band) -> dict[str, tuple[tuple[str, ...], Array]]:
    """(dimensions, values) of x, y, z: axes of a grid, or the columns of points."""
    if isinstance(band.coordinates, tuple):
        return {n: ((n,), x) for n, x in zip(AXES, band.coordinates, strict=False)}
    dims = ("function", "point") if band.coordinates.ndim == 3 else ("point",)
    columns = range(band.coordinates.shape[-1])
    return {AXES[j]: (dims, band.coordinates[..., j]) for j in columns}


# --- xarray and NetCDF -----------------------------------------------------------------------


def dataset(band: Band) -> xarray.Dataset:
    import xarray

    # A measured quantity without units is left without: CF reads "1" as dimensionless.
    units = {"units": band.units} if band.units else {}
    own = {n: {} if n == "weights" else units for n in variables(band)}
    mesh = {} if band.triangles is None else {"mesh": "mesh", "location": "node"}
    data = xarray.Dataset(
        {
            name: (dims, values, {"long_name": told, **own[name], **mesh})
            for name, (dims, values, told) in variables(band).items()
        },
        coords={
            name: (dims, values, {"long_name": f"{name} coordinate", "axis": name.upper()})
            for name, (dims, values) in axes(band).items()
        },
        attrs=_attributes(band),
    )
    data["prediction"].attrs["ancillary_variables"] = " ".join(
        n for n in variables(band) if n not in ("prediction", "weights")
    )
    if band.component_names is not None and band.channels > 1:
        data = data.assign_coords(component=("component", list(band.component_names)))
    if band.triangles is not None:
        _add_mesh(data, band)
    for variable in data.variables.values():
        variable.encoding["_FillValue"] = None  # nothing is missing
    return data


def _attributes(band: Band) -> dict[str, Any]:
    from uqno import __version__

    c = band.calibration
    confidence = {} if c.confidence is None else {"confidence": c.confidence}
    return {
        "Conventions": CONVENTIONS if band.triangles is not None else CONVENTIONS.split()[0],
        "title": f"Calibrated band around the prediction of {band.name}",
        "source": f"uqno {__version__}",
        "guarantee": band.guarantee,
        "alpha": c.alpha,
        "delta": c.delta,
        **confidence,
        "scale": c.scale,
        "sampling": c.sampling,
        "calibration": c.to_json(),
        "uqno_version": __version__,
    }


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


def write_netcdf(band: Band, path: str | Path) -> None:
    path = _path(path, (".nc", ".nc4", ".netcdf"))
    data = dataset(band)
    write_file(path, lambda aside: data.to_netcdf(aside, engine="h5netcdf", format="NETCDF4"))


# --- npz -------------------------------------------------------------------------------------


def write_npz(band: Band, path: str | Path) -> None:
    path = _path(path, (".npz",))
    arrays: dict[str, Any] = {name: values for name, (_, values, _) in variables(band).items()}
    arrays |= {name: values for name, (_, values) in axes(band).items()}
    if band.triangles is not None:
        arrays["triangles"] = band.triangles
    if band.component_names is not None:
        arrays["component"] = np.array(band.component_names)
    for name in ("name", "units", "guarantee"):
        arrays[name] = np.array(getattr(band, name))
    arrays["calibration"] = np.array(band.calibration.to_json())

    def write(aside: Path) -> None:
        with aside.open("wb") as out:  # an open file keeps NumPy from adding to the name
            np.savez(out, **arrays)

    write_file(path, write)


# --- VTK -------------------------------------------------------------------------------------


def write_vtk(band: Band, path: str | Path) -> None:
    if band.is_batch:
        raise ValueError(
            f"a VTK file holds one function, the band {len(band)}: write band[0].to_vtk(…) and so "
            "on, a file each"
        )
    path = _path(path, (".vtr",) if band.is_grid else (".vtp",))
    try:
        pyvista = import_module("pyvista")
    except ImportError as why:
        raise ImportError(f'to_vtk needs pyvista ({why}): pip install "uqno[mesh]"') from None
    mesh = _grid(pyvista, band) if band.is_grid else _points(pyvista, band)
    for name, values in _point_arrays(band):
        mesh.point_data[name] = values
    for name, value in _attributes(band).items():
        mesh.field_data[name] = [_ascii(value) if isinstance(value, str) else value]

    def write(aside: Path) -> None:
        with TemporaryDirectory(dir=aside.parent) as folder:  # pyvista goes by the suffix
            whole = Path(folder) / path.name
            mesh.save(whole)
            whole.replace(aside)

    write_file(path, write)


def _grid(pyvista: Any, band: Band) -> Any:
    given = [x for _, x in axes(band).values()]
    x, y, z = given + [np.zeros(1)] * (3 - len(given))
    return pyvista.RectilinearGrid(x, y, z)


def _points(pyvista: Any, band: Band) -> Any:
    coordinates = np.asarray(band.coordinates)
    points = np.zeros((len(coordinates), 3), coordinates.dtype)
    points[:, : coordinates.shape[1]] = coordinates
    if band.triangles is None:
        return pyvista.PolyData(points)
    return pyvista.PolyData.from_regular_faces(points, band.triangles)


def _point_arrays(band: Band) -> Iterator[tuple[str, Array]]:
    """Fields as VTK stores them: x runs fastest, the components of a point stand together."""
    for name, (dims, values, _) in variables(band).items():
        if "component" in dims:
            yield name, np.stack([v.ravel(order="F") for v in values], axis=1)
        else:
            yield name, values.ravel(order="F")


def _ascii(text: str) -> str:
    """VTK stores no other text."""
    return text.replace("×", "x").encode("ascii", "backslashreplace").decode()


def _path(path: str | Path, suffixes: tuple[str, ...]) -> Path:
    path = Path(path)
    if path.suffix not in suffixes:
        raise ValueError(f"{path} must end in {' or '.join(suffixes)} for this band")
    return path
