"""Distances against formulas and against VTK, and stored in files."""

from itertools import pairwise

import numpy as np
import pytest

from uqno.experiments.cars import lattice, shapes
from uqno.geometry.distance import distance_on_grid, grid_nodes, signed_distance
from uqno.geometry.surface import Surface

LATENT = (14, 8, 8)


def box():
    return Surface(lattice.box_points(), lattice.triangles())


def test_a_box():
    x = np.random.default_rng(0).uniform(-2, 2, (500, 3))
    beyond = np.abs(x) - 1
    outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
    exact = np.where(outside > 0, outside, beyond.max(axis=1))
    np.testing.assert_allclose(signed_distance(box(), x), exact, atol=1e-4)


def test_a_ball():
    cube = lattice.box_points(2)
    ball = Surface(cube / np.linalg.norm(cube, axis=1, keepdims=True), lattice.triangles(2))
    x = np.random.default_rng(1).uniform(-2, 2, (500, 3))
    np.testing.assert_allclose(signed_distance(ball, x), np.linalg.norm(x, axis=1) - 1, atol=4e-3)


@pytest.mark.parametrize("index", [3, 4])
def test_equals_vtk_around_cars(index):
    pyvista = pytest.importorskip("pyvista")
    body = shapes.surface(shapes.draw(0, index))
    nodes = grid_nodes(shapes.DOMAIN, (20, 9, 8))
    mesh = pyvista.PolyData.from_regular_faces(body.points, body.triangles)
    theirs = pyvista.PolyData(nodes).compute_implicit_distance(mesh)["implicit_distance"]
    distance = signed_distance(body, nodes)
    assert (distance < 0).sum() > 50
    np.testing.assert_allclose(distance, theirs, atol=1e-12)


def box_of_unequal_triangles():
    """[0, 1]³: of its sides, the top has 800 triangles, the others a few that reach far."""
    ticks = np.linspace(0, 1, 21)
    top = np.stack([*np.meshgrid(ticks, ticks, indexing="ij"), np.ones((21, 21))], axis=-1)
    points = [*top.reshape(-1, 3), *((x, y, 0) for x in (0, 1) for y in (0, 1))]
    at, bottom = (
        np.arange(441).reshape(21, 21),
        {(0, 0): 441, (0, 1): 442, (1, 0): 443, (1, 1): 444},
    )
    a, b, c, d = at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]
    faces = [*np.stack([a, b, c], -1).reshape(-1, 3), *np.stack([a, c, d], -1).reshape(-1, 3)]
    # Around the top, counter-clockwise from above; below each side's rim its two corners.
    for rim, (first, second) in (
        (at[:, 0], ((0, 0), (1, 0))),
        (at[-1, :], ((1, 0), (1, 1))),
        (at[::-1, -1], ((1, 1), (0, 1))),
        (at[0, ::-1], ((0, 1), (0, 0))),
    ):
        faces += [(bottom[first], v, u) for u, v in pairwise(rim)]
        faces.append((bottom[first], bottom[second], rim[-1]))
    faces += [(441, 442, 444), (441, 444, 443)]
    body = Surface(np.array(points, dtype=float), np.array(faces))
    body.check_closed()
    return body


def test_triangles_of_unequal_size():
    x = np.random.default_rng(0).uniform(-0.5, 1.5, (500, 3))
    beyond = np.abs(x - 0.5) - 0.5
    outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
    exact = np.where(outside > 0, outside, beyond.max(axis=1))
    np.testing.assert_allclose(signed_distance(box_of_unequal_triangles(), x), exact, atol=1e-12)


def test_triangles_without_area():
    """Two vertices at one place: two triangles are segments, and change nothing."""
    whole = box()
    a, b = whole.triangles[100, :2]
    points = whole.points.copy()
    points[a] = points[b]
    x = np.random.default_rng(1).uniform(-1.5, 1.5, (300, 3))
    with np.errstate(all="raise"):
        distance = signed_distance(Surface(points, whole.triangles), x)
    beyond = np.abs(x) - 1
    outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
    exact = np.where(outside > 0, outside, beyond.max(axis=1))
    np.testing.assert_allclose(distance, exact, atol=0.05)


def test_stored_in_a_file_and_computed_again_if_damaged(tmp_path, monkeypatch):
    body = shapes.surface(shapes.draw(0, 1))
    first = distance_on_grid(body, shapes.DOMAIN, LATENT, tmp_path)
    assert first.shape == LATENT
    assert first.dtype == np.float32
    (file,) = tmp_path.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr("uqno.geometry.distance.signed_distance", None)
        again = distance_on_grid(body, shapes.DOMAIN, LATENT, tmp_path)
    np.testing.assert_array_equal(again, first)
    file.write_bytes(b"half")
    np.testing.assert_array_equal(distance_on_grid(body, shapes.DOMAIN, LATENT, tmp_path), first)
    distance_on_grid(body, shapes.DOMAIN, (5, 5, 5), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_no_points():
    assert signed_distance(box(), np.empty((0, 3))).shape == (0,)
