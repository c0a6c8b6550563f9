"""Cars are closed, symmetric, of one topology, of many kinds, and the same every time."""

from dataclasses import replace

import numpy as np
import pytest

from tests.geometry.intersections import self_intersections
from uqno.experiments.cars import bodies, lattice, shapes
from uqno.geometry.surface import Surface

MANY = 150
DRAWN = [shapes.draw(0, i) for i in range(MANY)]


def test_one_topology_of_exactly_the_papers_size():
    body = shapes.surface(DRAWN[0])
    assert body.points.shape == (shapes.VERTICES, 3) == (3586, 3)
    assert body.triangles.shape == (shapes.TRIANGLES, 3) == (7168, 3)
    assert shapes.surface(DRAWN[1]).triangles is body.triangles


def test_the_box_is_closed_at_every_refinement():
    for refine in (1, 2, 3):
        box = Surface(lattice.box_points(refine), lattice.triangles(refine))
        box.check_closed()
        assert len(box.points) == 3584 * refine**2 + 2
        assert box.volume == pytest.approx(8)
        assert box.areas.sum() == pytest.approx(24)


@pytest.mark.parametrize("start", range(0, MANY, 50))
def test_watertight_and_without_degenerate_triangles(start):
    for i in range(start, start + 50):
        body = shapes.surface(DRAWN[i])
        body.check_closed()
        area = np.linalg.norm(body.area_vectors, axis=1)
        sides = np.linalg.norm(
            np.diff(body.points[body.triangles[:, [0, 1, 2, 0]]], axis=1), axis=2
        )
        assert area.min() > 1e-5, i
        # Height over longest side: no needles.
        assert (2 * area / sides.max(axis=1) ** 2).min() > 0.02, i
        assert body.areas.sum() == pytest.approx(area.sum(), rel=1e-12)
        assert 4 < body.volume < 20


def test_no_car_meets_itself():
    for i in range(30):
        assert self_intersections(shapes.surface(DRAWN[i])) == 0, i


def test_the_check_for_intersections_finds_one():
    body = shapes.surface(DRAWN[0])
    beside = body.points + np.array([0.0, 0.0, 0.3])  # a second car through the first
    twice = np.concatenate([body.triangles, body.triangles + len(beside)])
    assert self_intersections(Surface(np.concatenate([body.points, beside]), twice)) > 100


def test_left_is_right():
    body = shapes.surface(DRAWN[3])
    mirror = lattice.mirror()
    np.testing.assert_array_equal(mirror[mirror], np.arange(len(mirror)))
    np.testing.assert_allclose(body.points[mirror] * [1, -1, 1], body.points, atol=1e-14)
    np.testing.assert_allclose(body.normals[mirror] * [1, -1, 1], body.normals, atol=1e-12)
    np.testing.assert_allclose(body.areas[mirror], body.areas, rtol=1e-12)
    ours = {tuple(sorted(t)) for t in body.triangles.tolist()}
    assert {tuple(sorted(t)) for t in mirror[body.triangles].tolist()} == ours


def test_normals_point_outward():
    body = shapes.surface(DRAWN[0])
    np.testing.assert_allclose(np.linalg.norm(body.normals, axis=1), 1)
    top, bottom = np.argmax(body.points[:, 2]), np.argmin(body.points[:, 2])
    nose, tail = np.argmin(body.points[:, 0]), np.argmax(body.points[:, 0])
    for vertex, way in ((top, 2), (tail, 0)):
        assert body.normals[vertex, way] > 0.9
    for vertex, way in ((bottom, 2), (nose, 0)):
        assert body.normals[vertex, way] < -0.9


def test_the_edges_of_roof_and_base_are_lines_of_vertices():
    along = lattice.lattice()[:, 0]
    for shape in DRAWN[:40]:
        points = shapes.surface(shape).points
        rim = points[(along == 40) & (np.abs(lattice.box_points()[:, 1:]).max(axis=1) == 1)]
        np.testing.assert_allclose(rim[:, 0], shape.length - shapes.BASE_DOME, atol=1e-3)
        nearest = min(np.abs(points[along == i, 0] - shape.roof_end).max() for i in range(1, 40))
        assert nearest < 2e-3 or shape.roof_end > shape.length - 0.08


def test_a_refined_car_contains_the_plain_one():
    plain, fine = (shapes.surface(DRAWN[2], refine) for refine in (1, 4))
    np.testing.assert_allclose(fine.points[lattice.coarse(4)], plain.points, atol=1e-12)
    assert fine.volume == pytest.approx(plain.volume, rel=0.01)


def test_a_car_is_its_seed_and_index_and_its_parameters():
    assert shapes.draw(3, 5) == shapes.draw(3, 5) != shapes.draw(4, 5)
    shape = DRAWN[7]
    again = shapes.Shape.from_vector(shape.vector().astype(np.float32))
    assert again == shape
    np.testing.assert_array_equal(shapes.surface(again).points, shapes.surface(shape).points)
    pinned = shapes.surface(shapes.draw(0, 0))
    assert pinned.volume == pytest.approx(8.5301424, rel=1e-6), "cars that are shipped have changed"


def test_proportions_are_those_of_cars():
    for shape in DRAWN:
        body = shapes.surface(shape)
        low, high = body.points.min(axis=0), body.points.max(axis=0)
        assert low[0] >= 0
        assert high[0] <= shape.length + 1e-9
        assert shape.length - (high[0] - low[0]) < 0.02
        assert 0.9 * shape.width < high[1] - low[1] <= shape.width
        assert high[2] == pytest.approx(shape.height, abs=0.01)
        assert low[2] == pytest.approx(shape.ride_height, abs=0.03)
        assert 0.10 < low[2] < 0.28
        assert 2.0 < shape.length / shape.width < 3.0
        assert 0.60 < shape.height / shape.width < 1.10
        assert 0.1 < shape.roof_length < 0.72
        for (a, b), box_low, box_high in zip(shapes.DOMAIN, low, high, strict=True):
            assert a <= box_low
            assert box_high <= b


def test_a_wide_variety():
    kinds = [bodies.body(0, i) for i in range(MANY)]
    assert set(kinds) == set(bodies.BODIES)
    assert min(kinds.count(kind) for kind in bodies.BODIES) > MANY / 12
    volumes = [shapes.surface(shape).volume for shape in DRAWN[:60]]
    assert max(volumes) > 1.8 * min(volumes)
    drawn = np.stack([shape.vector() for shape in DRAWN])
    assert (drawn.std(axis=0) > 0.02 * np.abs(drawn.mean(axis=0))).all()
    points = np.stack([shapes.surface(shape).points for shape in DRAWN[:60]])
    assert points.std(axis=0).mean() > 0.08


def test_bad_requests_are_named():
    with pytest.raises(ValueError, match="27 parameters length, width"):
        shapes.Shape.from_vector([1.0])
    with pytest.raises(ValueError, match="at least 0, got -1 and 2"):
        shapes.draw(-1, 2)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        shapes.surface(DRAWN[0], 0)


def test_open_and_inverted_surfaces_are_refused():
    body = shapes.surface(DRAWN[0])
    with pytest.raises(ValueError, match="not shared by exactly two"):
        Surface(body.points, body.triangles[1:]).check_closed()
    with pytest.raises(ValueError, match="normals point inward"):
        Surface(body.points, body.triangles[:, ::-1]).check_closed()
    turned = body.triangles.copy()
    turned[0] = turned[0, ::-1]
    with pytest.raises(ValueError, match="against each other"):
        Surface(body.points, turned).check_closed()
    lonely = Surface(np.vstack([body.points, [[0.0, 0.0, 9.0]]]), body.triangles)
    with pytest.raises(ValueError, match="3586 of 3587"):
        lonely.check_closed()
    with pytest.raises(ValueError, match="vertex 3586 has no normal"):
        lonely.normals  # noqa: B018


def test_each_parameter_matters():
    shape = DRAWN[4]
    plain = shapes.surface(shape).points
    for name in shapes.names():
        other = replace(shape, **{name: 1.04 * getattr(shape, name)})
        moved = np.abs(shapes.surface(other).points - plain).max()
        assert 1e-4 < moved < 0.5, name
