"""Triangle meshes in PLY files, as other programs write them."""

import struct

import numpy as np
import pytest

from uqno.data.readers.ply import read_ply
from uqno.experiments.cars import shapes


def ply(body, order="<", extra=False, real="double", index="int"):
    """A PLY file as Open3D, trimesh or MeshLab write it."""
    name = {"<": "binary_little_endian", ">": "binary_big_endian", "a": "ascii"}[order]
    normals = "".join(f"property {real} n{a}\n" for a in "xyz") if extra else ""
    head = (
        f"ply\nformat {name} 1.0\ncomment Created by hand\n"
        f"element vertex {len(body.points)}\n"
        + "".join(f"property {real} {a}\n" for a in "xyz")
        + normals
        + f"element face {len(body.triangles)}\nproperty list uchar {index} vertex_indices\n"
        "end_header\n"
    ).encode()
    rows = np.hstack([body.points, body.normals]) if extra else body.points
    if order == "a":
        lines = [" ".join(map(repr, row)) for row in rows.tolist()]
        lines += [f"3 {a} {b} {c}" for a, b, c in body.triangles]
        return head + ("\n".join(lines) + "\n").encode()
    kind = {"double": "f8", "float": "f4"}[real]
    faces = b"".join(struct.pack(f"{order}B3i", 3, *t) for t in body.triangles.tolist())
    return head + rows.astype(order + kind).tobytes() + faces


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"extra": True},
        {"order": ">"},
        {"order": "a"},
        {"order": "a", "extra": True},
        {"real": "float", "index": "uint"},
    ],
)
def test_reads_ply_of_any_kind(tmp_path, options):
    body = shapes.surface(shapes.draw(0, 0))
    (tmp_path / "m.ply").write_bytes(ply(body, **options))
    read = read_ply(tmp_path / "m.ply")
    np.testing.assert_allclose(read.points, body.points, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(read.triangles, body.triangles)


def test_reads_what_vtk_writes(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    body = shapes.surface(shapes.draw(0, 0))
    mesh = pyvista.PolyData.from_regular_faces(body.points, body.triangles)
    for binary in (True, False):
        mesh.save(tmp_path / "m.ply", binary=binary)
        read = read_ply(tmp_path / "m.ply")
        np.testing.assert_allclose(read.points, body.points, atol=1e-5)
        np.testing.assert_array_equal(read.triangles, body.triangles)


def test_damaged_ply_files_are_named(tmp_path):
    body = shapes.surface(shapes.draw(0, 0))
    whole, ascii_ = ply(body), ply(body, order="a")
    file = tmp_path / "m.ply"
    for content, reason in [
        (b"solid", "not a PLY"),
        (whole[:-10], "ends early, in its face table"),
        (whole.replace(b"binary_little_endian", b"binary"), "expected one of the formats"),
        (whole.replace(b"property double x", b"property quad x"), "cannot be read at"),
        (whole.replace(b"property double x", b"property double q"), "lacks vertices x"),
        (whole.replace(b"element vertex 3586", b"element vertex 3585"), "expected triangles"),
        (whole.replace(b"binary_little_endian", b"ascii"), "vertex table cannot be read"),
        (whole.replace(b"format binary_little_endian 1.0", b"format"), "expected one of the for"),
        (whole.replace(b"element vertex 3586", b"element vertex -1"), "expected a number of rows"),
        (whole.replace(b"property double y", b"property double x"), "cannot be read at"),
        (
            whole.replace(b"element face", b"element nothing 0\nelement face"),
            "nothing table has no",
        ),
        (ascii_[: ascii_.rindex(b"3 ", 0, -3)], "ends after 7167 of 7168 rows"),
    ]:
        file.write_bytes(content)
        with pytest.raises(ValueError, match=reason):
            read_ply(file)
    with pytest.raises(ValueError, match="does not exist"):
        read_ply(tmp_path / "none.ply")
