"""A format is registered by being defined, is found by its suffix, and writes whole files."""

from dataclasses import replace

import numpy as np
import pytest
import pyvista
import xarray

from tests.band.bands import geometries, plane, surface
from uqno.band import Band
from uqno.band.formats import BandFormat, contract, format_of, suffixes
from uqno.band.formats.netcdf import NetCDF
from uqno.band.formats.npz import Npz
from uqno.band.formats.vtk import Vtk


@pytest.fixture
def registry(monkeypatch):
    """Formats that a test defines are forgotten after it."""
    monkeypatch.setattr(contract, "FORMATS", dict(contract.FORMATS))


def test_formats_are_found_by_their_suffix(tmp_path):
    assert [format_of(f"band{s}") for s in (".nc", ".nc4", ".npz", ".vtr", ".vtp")] == [
        NetCDF, NetCDF, Npz, Vtk, Vtk,
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"band\.txt must end in one of \.nc, .*\.npz, .*\.vtp"):
        plane().write(tmp_path / "band.txt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".nc", ".npz", ".vtp"])
def test_write_is_the_format_that_has_the_suffix(suffix, tmp_path):
    thin = {".nc": Band.to_netcdf, ".npz": Band.to_npz, ".vtp": Band.to_vtk}[suffix]
    surface().write(str(tmp_path / f"a{suffix}"))
    thin(surface(), tmp_path / f"b{suffix}")
    a, b = ((tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
    assert len(a) == len(b) > 500


def test_a_format_is_known_once_it_is_defined(registry, tmp_path):
    class Mean(BandFormat):
        suffixes = (".mean", ".avg")

        def write(self, band, path):
            path.write_text(f"{band.bandwidth}")

    assert suffixes()[-2:] == (".mean", ".avg")
    plane().write(tmp_path / "band.avg")
    assert float((tmp_path / "band.avg").read_text()) == plane().bandwidth
    assert [f.name for f in tmp_path.iterdir()] == ["band.avg"]

    class Silent(Mean):  # names no suffixes of its own
        pass

    assert format_of("a.mean") is Mean


def test_two_formats_for_one_suffix_are_refused(registry):
    def define():
        class Notebook(BandFormat):
            suffixes = (".cell",)

            def write(self, band, path): ...

        return Notebook

    define()
    again = define()  # as when the cell of a notebook is run again
    assert format_of("a.cell") is again
    with pytest.raises(ValueError, match=r"\.nc, which uqno\.band\.formats\.netcdf\.NetCDF writes"):

        class Other(BandFormat):
            suffixes = (".nc",)

            def write(self, band, path): ...

    assert format_of("a.nc") is NetCDF


def test_files_of_the_wrong_kind_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .vtr"):
        plane().to_vtk(tmp_path / "a.vtp")
    with pytest.raises(ValueError, match=r"must end in .vtp"):
        surface().to_vtk(tmp_path / "a.vtr")
    with pytest.raises(ValueError, match=r"a VTK file holds one function, the band 3.*band\[0\]"):
        geometries().to_vtk(tmp_path / "a.vtp")
    with pytest.raises(ValueError, match=r"must end in .npz"):
        plane().to_npz(tmp_path / "a.nc")
    with pytest.raises(ValueError, match=r"must end in .nc"):
        plane().to_netcdf(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".nc", ".npz", ".vtp"])
def test_a_failed_write_leaves_the_old_file(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"band{suffix}"
    write = {".nc": Band.to_netcdf, ".npz": Band.to_npz, ".vtp": Band.to_vtk}[suffix]
    write(surface(), path)
    old = path.read_bytes()

    def fail(*args, **more):
        raise OSError("disk full")

    monkeypatch.setattr(xarray.Dataset, "to_netcdf", fail)
    monkeypatch.setattr(np, "savez", fail)
    monkeypatch.setattr(pyvista.PolyData, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        write(replace(surface(), name="other"), path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]
