"""What is read back from VTK files is the band."""

import sys

import numpy as np
import pytest
import pyvista

from tests.band.bands import CAL, FACES, POINTS, rng, surface
from uqno.band import Band


def test_vtk_of_a_surface(tmp_path):
    band = surface(weights=np.arange(1.0, 5))
    band.to_vtk(tmp_path / "car.vtp")
    written = pyvista.read(tmp_path / "car.vtp")
    np.testing.assert_array_equal(written.points, POINTS)
    np.testing.assert_array_equal(written.regular_faces, FACES)
    np.testing.assert_array_equal(written.point_data["center"], band.center[0])
    for name in ("radius", "lower", "upper", "uncertainty", "weights"):
        np.testing.assert_array_equal(written.point_data[name], getattr(band, name))
    assert str(written.field_data["guarantee"][0]) == band.guarantee.replace("×", "x")
    assert written.field_data["scale"][0] == 2.0
    assert [f.name for f in tmp_path.iterdir()] == ["car.vtp"]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_vtk_of_scattered_points(d, tmp_path):
    where = POINTS[:, :d]
    vectors = Band(rng().normal(size=(2, 4)), np.ones(4), CAL, where)
    vectors.to_vtk(tmp_path / "points.vtp")
    written = pyvista.read(tmp_path / "points.vtp")
    assert written.n_verts == 4
    np.testing.assert_array_equal(written.points[:, :d], where)
    assert not written.points[:, d:].any()
    np.testing.assert_array_equal(written.point_data["center"], vectors.center.T)
    assert "lower" not in written.point_data


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("channels", [1, 3])
def test_vtk_of_a_grid(d, channels, tmp_path):
    """Every value stands at its own place, whatever order VTK stores them in."""
    axes = tuple(np.cumsum(rng().uniform(1, 2, n)) for n in (2, 3, 4)[:d])
    shape = tuple(map(len, axes))
    band = Band(rng().normal(size=(channels, *shape)), rng().uniform(size=shape), CAL, axes)
    band.to_vtk(tmp_path / "grid.vtr")
    written = pyvista.read(tmp_path / "grid.vtr")
    assert written.n_points == band.uncertainty.size
    for point, radius, center in zip(
        written.points, written["radius"], written["center"], strict=True
    ):
        place = tuple(int(np.abs(x - p).argmin()) for x, p in zip(axes, point, strict=False))
        assert radius == band.radius[place]
        np.testing.assert_array_equal(np.atleast_1d(center), band.center[(..., *place)])


def test_vtk_without_pyvista_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(ImportError, match=r'pip install "uqno\[mesh\]"'):
        surface().to_vtk(tmp_path / "car.vtp")
