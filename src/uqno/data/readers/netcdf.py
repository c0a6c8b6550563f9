"""NetCDF and zarr, read by xarray, with their dimensions, coordinates and attributes."""

from __future__ import annotations

from pathlib import Path

from uqno.data.containers import open_netcdf, open_zarr_dataset
from uqno.data.readers.contract import Reader
from uqno.data.variables import Content, from_dataset


class NetCDF(Reader):
    """NetCDF files; variables are read when they are sliced."""

    suffixes = (".nc", ".nc4", ".netcdf", ".cdf")

    def open(self, path: Path) -> Content:
        return from_dataset(open_netcdf(path), str(path))


class Zarr(Reader):
    """A zarr group; chunks are read when they are needed."""

    suffixes = (".zarr",)

    def open(self, path: Path) -> Content:
        return from_dataset(open_zarr_dataset(path), str(path))
