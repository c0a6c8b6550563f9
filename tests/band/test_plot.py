"""Figures show the band's numbers: every value at its place, what is missed marked."""

import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest

from tests.band.bands import CAL, EVERY, FACES, POINTS, line, plane, rng, surface, truth_of
from uqno.band import Band


def panels(figure):
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def test_line_figure_marks_what_lies_outside():
    band = line(40, name="q", units="m")
    u = truth_of(band)
    (ax,) = panels(band.plot(u))
    drawn = {artist.get_label(): artist for artist in ax.lines}
    np.testing.assert_array_equal(drawn["prediction"].get_ydata(), band.center[0])
    np.testing.assert_array_equal(drawn["truth"].get_ydata(), u[0])
    marked = drawn["truth outside the band"].get_xdata()
    np.testing.assert_array_equal(marked, band.coordinates[0][~band.contains(u)])
    edge = ax.collections[0].get_paths()[0].vertices
    assert edge[:, 1].max() == band.upper.max()
    assert edge[:, 1].min() == band.lower.min()
    assert ax.get_ylabel() == "q [m]"
    assert f"{100 * band.coverage(u):g} % covered" == ax.get_title()


def test_line_figure_of_points_in_any_order_and_of_vectors():
    x = rng().permutation(10) / 10
    vectors = Band(rng().normal(size=(2, 10)), np.ones(10), CAL, x[:, np.newaxis])
    (ax,) = panels(vectors.plot())
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.sort(x))
    length = np.linalg.norm(vectors.center, axis=0)[np.argsort(x)]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), length)
    (ax,) = panels(vectors.plot(component=1))
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), vectors.center[1][np.argsort(x)])


def test_plane_figure_shows_prediction_radius_error_and_what_is_covered():
    band = plane(name="p", units="Pa")
    u = truth_of(band)
    figure = band.plot(u)
    shown = panels(figure)
    share = band.coverage(u)
    assert [ax.get_title() for ax in shown] == [
        "prediction",
        "radius",
        "error",
        f"{100 * share:g} % covered",
    ]
    wanted = [band.center[0], band.radius, np.abs(u - band.center)[0], band.contains(u)]
    for ax, values in zip(shown, wanted, strict=True):
        np.testing.assert_array_equal(ax.collections[0].get_array(), values.T)  # x to the right
    norms = [ax.collections[0].norm for ax in shown]
    assert (norms[1].vmin, norms[1].vmax) == (norms[2].vmin, norms[2].vmax)
    assert [ax.get_title() for ax in panels(band.plot())] == ["prediction", "radius"]
    labels = [ax.get_ylabel() for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert labels == ["p [Pa]", "± p [Pa]", "|error| [Pa]", ""]


def test_all_but_one_point_is_not_called_everything():
    n = 40_000
    band = Band(np.zeros((1, n)), np.ones(n), CAL, (np.arange(float(n)),))
    u = np.zeros((1, n))
    assert panels(band.plot(u))[0].get_title() == "100 % covered"
    u[0, 0] = 3
    assert panels(band.plot(u))[0].get_title() == "99.99 % covered"


def test_surface_figure_gives_each_point_its_own_colour():
    band = surface()
    u = truth_of(band)
    inside = band.contains(u)
    assert 0 < inside.sum() < 4
    *_, covered = panels(band.plot(u))
    (cells,) = covered.collections
    assert len(cells._faces) == 3 * len(FACES)
    rgb = cells._facecolor3d[:, :3]
    is_orange = rgb[:, 0] > rgb[:, 2]
    corner = np.concatenate([FACES[:, j] for j in range(3)])
    np.testing.assert_array_equal(is_orange, ~inside[corner])
    for cell, point in zip(cells._faces, corner, strict=True):
        np.testing.assert_array_equal(np.asarray(cell)[0], POINTS[point])
    parts = [0.5 * np.linalg.norm(np.cross(c[2] - c[0], c[3] - c[1])) for c in cells._faces]
    whole = [0.5 * np.linalg.norm(np.cross(b - a, c - a)) for a, b, c in (POINTS[f] for f in FACES)]
    np.testing.assert_allclose(parts, np.tile(np.divide(whole, 3), 3))


def test_a_batch_has_a_row_a_function_and_at_most_three():
    batch = plane(functions=5)
    u = truth_of(batch)
    shown = panels(batch.plot(u))
    assert len(shown) == 12
    assert shown[4].get_title() == "function 1: prediction"
    assert shown[7].get_title() == f"{100 * batch.coverage(u)[1]:g} % covered"
    assert len(panels(plane(functions=2).plot())) == 4
    assert "functions 0 to 2 of 5" in batch.plot().get_suptitle()


FIGURES = {
    **EVERY,
    "points of a plane": lambda: Band(np.ones((1, 4)), np.ones(4), CAL, POINTS[:, :2]),
    "triangles of a plane": lambda: Band(
        np.ones((1, 4)), np.ones(4), CAL, POINTS[:, :2], triangles=FACES
    ),
    "points of space": lambda: Band(np.ones((1, 4)), np.ones(4), CAL, POINTS),
}


@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES.keys())
@pytest.mark.parametrize("with_truth", [False, True])
def test_every_kind_of_figure_is_drawn(make, with_truth, tmp_path):
    band = make()
    figure = band.plot(truth_of(band) if with_truth else None)
    assert band.promise in figure.get_suptitle()
    png = figure._repr_png_()
    assert png.startswith(b"\x89PNG")
    (tmp_path / "figure.png").write_bytes(png)
    picture = matplotlib.image.imread(tmp_path / "figure.png")
    assert (picture[..., :3] < 0.9).any(axis=-1).mean() > 0.02


def test_figures_that_cannot_be_drawn_are_refused():
    x = (np.arange(2.0),) * 3
    solid = Band(np.ones((1, 2, 2, 2)), np.ones((2, 2, 2)), CAL, x)
    with pytest.raises(ValueError, match="not a 3-D grid: export it with to_vtk"):
        solid.plot()
    with pytest.raises(ValueError, match="component = 2 must lie in 0 … 1"):
        plane(channels=2).plot(component=2)
    with pytest.raises(ValueError, match="up = 'w'"):
        surface().plot(up="w")
    with pytest.raises(ValueError, match="expected the same"):
        plane().plot(np.zeros((3, 3)))


def test_plotting_touches_no_pyplot():
    code = (
        "import sys; from tests.band.bands import line, plane, surface\n"
        "for band in (line(), plane(), surface()): band.plot(band.center)._repr_png_()\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
