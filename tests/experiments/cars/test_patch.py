"""OpenFOAM's mesh as text, and fields from its faces to vertices."""

import numpy as np
import pytest

from uqno.experiments.cars import lattice, shapes
from uqno.experiments.cars.patch import Patch, at_vertices, read_cells, read_patch

HEAD = "FoamFile\n{\n    version 2.0;\n}\n// * * //\n\n\n"


def write_mesh(folder, points, faces, owner):
    folder.mkdir(parents=True, exist_ok=True)
    lists = {
        "points": [f"({' '.join(map(repr, map(float, p)))})" for p in points],
        "faces": [f"{len(f)}({' '.join(map(str, f))})" for f in faces],
        "owner": owner,
    }
    for name, items in lists.items():
        lines = "\n".join(map(str, items))
        (folder / name).write_text(f"{HEAD}{len(items)}\n(\n{lines}\n)\n\n\n// * //\n")
    (folder / "boundary").write_text(
        HEAD + "2\n(\n    ground\n    {\n        type wall;\n        nFaces 1;\n"
        "        startFace 0;\n    }\n    car\n    {\n        type wall;\n"
        f"        inGroups 1(wall);\n        nFaces {len(faces) - 1};\n"
        "        startFace 1;\n    }\n)\n"
    )


def write_field(file, values):
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(map(repr, map(float, values)))
    file.write_text(
        f"{HEAD}dimensions [0 2 -2 0 0 0 0];\n\ninternalField   nonuniform List<scalar> \n"
        f"{len(values)}\n(\n{lines}\n)\n;\n\nboundaryField\n{{\n}}\n"
    )


def test_reads_faces_of_any_number_of_corners(tmp_path):
    points = [(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0), (1, 1, 3)]
    write_mesh(tmp_path, points, [(0, 1, 4), (0, 1, 2, 3), (0, 1, 2)], [7, 5, 6])
    patch = read_patch(tmp_path)
    np.testing.assert_allclose(patch.centres, [[1, 1, 0], [4 / 3, 2 / 3, 0]])
    np.testing.assert_allclose(patch.area_vectors, [[0, 0, -4], [0, 0, -2]])
    assert patch.cells.tolist() == [5, 6]


def test_reads_a_field(tmp_path):
    write_field(tmp_path / "p", [1.5, -2e-3, 4])
    assert read_cells(tmp_path / "p").tolist() == [1.5, -2e-3, 4]
    (tmp_path / "q").write_text(HEAD + "internalField   uniform 0;\n")
    with pytest.raises(ValueError, match="q is uniform"):
        read_cells(tmp_path / "q")
    (tmp_path / "r").write_text(HEAD + "internalField   nonuniform List<scalar> \n3\n(\n1\n2")
    with pytest.raises(ValueError, match="r holds no ASCII list"):
        read_cells(tmp_path / "r")


def test_a_mesh_without_the_car_is_named(tmp_path):
    write_mesh(tmp_path, [(0, 0, 0)], [(0,)], [0])
    with pytest.raises(ValueError, match="no patch 'bus'"):
        read_patch(tmp_path, "bus")


@pytest.fixture(scope="module")
def half():
    """The left half of a car, twice as fine as its vertices, as the mesher's patch."""
    fine = shapes.surface(shapes.draw(0, 4), 2)
    centres = fine.points[fine.triangles].mean(axis=1)
    left = centres[:, 1] > 0
    return Patch(centres[left], fine.area_vectors[left], np.flatnonzero(left))


def test_linear_fields_are_exact_but_for_the_bent_surface(half):
    body = shapes.surface(shapes.draw(0, 4))
    for slope in ([1.0, 0, 0], [0, 0, 1.0]):
        at = at_vertices(half, half.centres @ slope, body)
        assert np.abs(at - body.points @ slope).max() < 0.02
        assert np.sqrt(np.mean((at - body.points @ slope) ** 2)) < 0.002


def test_the_answer_is_symmetric_and_within_the_faces_values(half):
    body = shapes.surface(shapes.draw(0, 4))
    values = np.random.default_rng(0).normal(size=len(half.cells))
    at = at_vertices(half, values, body)
    np.testing.assert_allclose(at[lattice.mirror()], at, atol=1e-12)
    assert values.min() <= at.min() < at.max() <= values.max()
