"""Areas, normals and volume of surfaces against formulas, and surfaces that are none."""

import numpy as np
import pytest

from uqno.geometry import Surface

POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
BODY = Surface(POINTS, FACES)


def test_a_tetrahedron():
    side, slope = 0.5, np.sqrt(3) / 2
    np.testing.assert_allclose(BODY.areas, [side, *[(2 * side + slope) / 3] * 3])
    assert BODY.areas.sum() == pytest.approx(3 * side + slope)
    assert BODY.volume == pytest.approx(1 / 6)
    np.testing.assert_allclose(BODY.normals[0], -np.ones(3) / np.sqrt(3))
    np.testing.assert_allclose(np.linalg.norm(BODY.normals, axis=1), 1)
    np.testing.assert_allclose(BODY.area_vectors.sum(axis=0), 0, atol=1e-15)  # it is closed
    BODY.check_closed()


REFUSED = {
    "open": (Surface(POINTS, FACES[1:]), "3 edges are not shared .* not watertight"),
    "doubled": (Surface(POINTS, np.vstack([FACES, FACES])), "6 edges are not shared"),
    "turned": (Surface(POINTS, np.vstack([FACES[:1, ::-1], FACES[1:]])), "against each other"),
    "inward": (Surface(POINTS, FACES[:, ::-1]), "volume is -0.166667: the normals point inward"),
    "two bodies": (
        Surface(np.vstack([POINTS, POINTS + 2]), np.vstack([FACES, FACES + 4])),
        "Euler characteristic 4",
    ),
    "a loose vertex": (Surface(np.vstack([POINTS, [[9, 9, 9]]]), FACES), "4 of 5 vertices used"),
}


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_surfaces_that_are_not_closed_are_refused(body, message):
    with pytest.raises(ValueError, match=message):
        body.check_closed()


def test_a_vertex_without_a_normal_is_named():
    with pytest.raises(ValueError, match=r"vertex 4 has no normal: .* remove it"):
        _ = Surface(np.vstack([POINTS, [[9, 9, 9]]]), FACES).normals
