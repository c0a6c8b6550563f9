"""NetCDF and zarr, read by xarray, with their dimensions, coordinates and attributes."""

from __future__ import annotations

from pathlib import Path

from uqno.data.readers.contract import Reader, unreadable
from uqno.data.variables import Content, from_dataset


class NetCDF(Reader):
    """NetCDF files; variables are read when they are sliced."""

    suffixes = (".nc", ".nc4", ".netcdf", ".cdf")

    def open(self, path: Path) -> Content:
        import xarray

        try:
            return from_dataset(xarray.open_dataset(path, chunks=None), str(path))
        except Exception as why:
            raise unreadable(path, why) from why


class Zarr(Reader):
    """A zarr group; chunks are read when they are needed."""

    suffixes = (".zarr",)

    def open(self, path: Path) -> Content:
        import xarray

        try:
            dataset = xarray.open_zarr(path, chunks=None, consolidated=False)
        except Exception as why:
            raise unreadable(path, why) from why
        return from_dataset(dataset, str(path))
