"""File formats that bands are written to, one file each; `contract` says what one is."""

from uqno.band.formats import netcdf, npz, vtk  # noqa: F401  defined, so they are known
from uqno.band.formats.contract import BandFormat as BandFormat
from uqno.band.formats.contract import format_of as format_of
from uqno.band.formats.contract import suffixes as suffixes
