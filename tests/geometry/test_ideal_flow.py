"""The ideal flow against formulas, and where it must not matter how it is asked for."""

import numpy as np
import pytest

from uqno.experiments.cars import lattice, shapes
from uqno.geometry import ideal_flow as ideal
from uqno.geometry.ideal_flow import Stream, carry, ideal_pressure
from uqno.geometry.surface import Surface


def spheroid(long=1.0, refine=1, centre=(0.0, 0.0, 0.0)):
    """Semi-axes (long, 1, 1)."""
    cube = lattice.box_points(refine)
    ball = cube / np.linalg.norm(cube, axis=1, keepdims=True)
    return Surface(ball * [long, 1, 1] + centre, lattice.triangles(refine))


def exact(body, long):
    """Cp of a spheroid in a stream along its axis: on it φ = (1 + k) x₁."""
    if long == 1:
        k = 0.5
    else:
        e = np.sqrt(1 - 1 / long**2)
        depth = 2 * (1 - e**2) / e**3 * (np.arctanh(e) - e)
        k = depth / (2 - depth)
    gradient = body.points / [long**2, 1, 1]
    cosine = gradient[:, 0] / np.linalg.norm(gradient, axis=1)
    return 1 - (1 + k) ** 2 * (1 - cosine**2)


@pytest.mark.parametrize("long", [1.0, 2.0, 4.0])
def test_a_spheroid(long):
    body = spheroid(long)
    wrong = np.abs(ideal_pressure(body, Stream(up=None)) - exact(body, long))
    assert wrong.mean() < 0.015
    assert wrong.max() < 0.15


def test_a_finer_mesh_is_nearer_to_the_formula(monkeypatch):
    monkeypatch.setattr(ideal, "MOST", 20_000)
    coarse, fine = (
        np.abs(ideal_pressure(body, Stream(up=None)) - exact(body, 2.0)).mean()
        for body in (spheroid(2.0), spheroid(2.0, refine=2))
    )
    assert fine < 0.6 * coarse


def test_a_ground_is_a_second_body():
    body = spheroid(centre=(0.0, 0.0, 1.2))
    image = body.points * [1, 1, -1]
    both = Surface(
        np.concatenate([body.points, image]),
        np.concatenate([body.triangles, body.triangles[:, ::-1] + len(image)]),
    )
    alone = ideal_pressure(body, Stream())
    np.testing.assert_allclose(
        alone, ideal_pressure(both, Stream(up=None))[: len(image)], atol=0.01, rtol=0
    )
    assert alone.min() < exact(spheroid(), 1.0).min() - 0.3  # the gap is narrow: the flow is fast


@pytest.mark.parametrize("lifted", [0.0, 0.7])
def test_axes_and_places_do_not_matter(lifted):
    body = shapes.surface(shapes.draw(0, 3))
    turned = Surface(body.points[:, [1, 2, 0]] + [0, lifted, 3.0], body.triangles)
    np.testing.assert_allclose(
        ideal_pressure(turned, Stream(2, 1, lifted)), ideal_pressure(body), atol=5e-3
    )


def test_a_car():
    body = shapes.surface(shapes.draw(0, 4))
    cp = ideal_pressure(body)
    assert cp.shape == (len(body.points),)
    assert cp.dtype == np.float32
    assert np.isfinite(cp).all()
    assert cp.max() <= 1
    assert cp.min() >= ideal.LEAST
    nose = body.points[:, 0].argmin()
    assert cp[nose] > 0.9
    mirrored = body.points * [1, -1, 1]
    partner = np.linalg.norm(body.points[:, None] - mirrored[None, ::50], axis=2).argmin(axis=0)
    np.testing.assert_allclose(cp[partner], cp[::50], atol=0.02)


def test_a_body_on_the_ground_has_a_flow():
    body = spheroid(centre=(0.0, 0.0, 1.0))
    cp = ideal_pressure(body, Stream(ground=None))
    assert np.isfinite(cp).all()


def test_carried_to_a_finer_mesh():
    shape = shapes.draw(0, 4)
    body, fine = shapes.surface(shape), shapes.surface(shape, 2)
    values = body.points[:, 0].astype(np.float32)
    np.testing.assert_array_equal(carry(values, body, body.points), values)
    np.testing.assert_allclose(carry(values, body, fine.points), fine.points[:, 0], atol=0.1)


def test_too_many_vertices_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"more than the 12000.*coarser surface.*carry"):
        ideal_pressure(spheroid(refine=2))


def test_triangles_without_an_area_do_no_harm():
    body = spheroid()
    a, b, _ = body.triangles[0]
    flat = Surface(body.points, np.concatenate([body.triangles, [[a, b, b]]]))
    cp = ideal_pressure(flat, Stream(up=None))
    np.testing.assert_allclose(cp, ideal_pressure(body, Stream(up=None)), atol=0.02)


def test_a_ground_above_the_body_is_refused():
    with pytest.raises(ValueError, match=r"reaches down to -1, the ground is at 0: .*Stream"):
        ideal_pressure(spheroid())


def test_stored_in_a_folder(tmp_path):
    body = spheroid(centre=(0.0, 0.0, 1.5))
    first = ideal_pressure(body, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    marked = first + 1
    np.save(file, marked)
    np.testing.assert_array_equal(ideal_pressure(body, cache=tmp_path), marked)
    file.write_bytes(b"half")
    np.testing.assert_array_equal(ideal_pressure(body, cache=tmp_path), first)
    ideal_pressure(body, Stream(1), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
