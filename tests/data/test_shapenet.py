"""The processed ShapeNet-Car set, in files of its exact layout."""

import struct

import numpy as np
import pytest

from uqno.data import read_shapenet
from uqno.data.ply import read_ply
from uqno.experiments.cars import shapes
from uqno.geometry.surface import Surface


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


def write_set(folder, train=("0a1", "b2"), test=("c3",)):
    for i, name in enumerate((*train, *test)):
        car = folder / "data" / name
        car.mkdir(parents=True)
        body = shapes.surface(shapes.draw(1, i))
        (car / "tri_mesh.ply").write_bytes(ply(body))
        kept = np.arange(3586.0) + i
        raw = np.concatenate([kept[:16], np.full(96, np.nan), kept[16:]]).astype(np.float32)
        assert raw.shape == (3682,)
        np.save(car / "press.npy", raw)
    (folder / "train.txt").write_text(",".join(train))
    (folder / "test.txt").write_text(",".join(test) + "\n")


def test_reads_the_set(tmp_path):
    write_set(tmp_path)
    cars = read_shapenet(tmp_path)
    assert (cars.ids, cars.train, len(cars)) == (("0a1", "b2", "c3"), 2, 3)
    np.testing.assert_array_equal(cars.pressure[2], np.arange(3586) + 2)
    np.testing.assert_allclose(cars.surface(1).points, shapes.surface(shapes.draw(1, 1)).points)
    data = cars.samples(measure="area", latent=(6, 5, 5))
    assert data[2]["u"].shape == (1, 3586)
    assert data[2]["sdf"].shape == (6, 5, 5)
    for (low, high), x in zip(cars.domain, cars.surface(0).points.T, strict=True):
        assert low < x.min()
        assert x.max() < high


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


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"train\.txt does not exist"):
        read_shapenet(tmp_path)
    write_set(tmp_path)
    car = tmp_path / "data/b2"
    np.save(car / "press.npy", np.zeros(3600))
    with pytest.raises(ValueError, match=r"b2/press\.npy has 3600 values, of which 3504 remain"):
        read_shapenet(tmp_path)
    np.save(car / "press.npy", np.full(3682, np.inf))
    with pytest.raises(ValueError, match="not finite"):
        read_shapenet(tmp_path)
    (car / "press.npy").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"press\.npy cannot be read"):
        read_shapenet(tmp_path)
    (tmp_path / "test.txt").write_text("b2")
    with pytest.raises(ValueError, match=r"\['b2'\] are in train\.txt and in test\.txt"):
        read_shapenet(tmp_path)
    (tmp_path / "test.txt").write_text("../b2")
    with pytest.raises(ValueError, match="name of a folder"):
        read_shapenet(tmp_path)
    (tmp_path / "test.txt").write_text(" \n")
    with pytest.raises(ValueError, match="different ids"):
        read_shapenet(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda b: (np.where(np.arange(3586)[:, None] == 7, np.nan, b.points), b.triangles),
         "not finite"),
        (lambda b: (b.points, b.triangles[1:]), "3 edges .* not watertight; leave this car out"),
    ],
)  # fmt: skip
def test_a_surface_that_is_none_is_named(tmp_path, spoil, reason):
    write_set(tmp_path)
    body = shapes.surface(shapes.draw(1, 1))
    spoilt = Surface(*spoil(body))
    spoilt.__dict__["normals"] = body.normals
    (tmp_path / "data/b2/tri_mesh.ply").write_bytes(ply(spoilt))
    with pytest.raises(ValueError, match=rf"b2/tri_mesh\.ply.*{reason}"):
        read_shapenet(tmp_path)


def test_a_surface_that_looks_inward_is_turned(tmp_path):
    write_set(tmp_path)
    body = shapes.surface(shapes.draw(1, 1))
    turned = Surface(body.points, body.triangles[:, ::-1])
    (tmp_path / "data/b2/tri_mesh.ply").write_bytes(ply(turned))
    np.testing.assert_allclose(read_shapenet(tmp_path).surface(1).normals, body.normals)


def test_pressures_that_are_none_are_named(tmp_path):
    write_set(tmp_path)
    file = tmp_path / "data/b2/press.npy"
    for values in (np.zeros(3682, complex), np.full(3682, "a"), np.zeros(3682, [("p", "f4")])):
        np.save(file, values)
        with pytest.raises(ValueError, match=r"b2/press\.npy: expected real numbers, got"):
            read_shapenet(tmp_path)
    with file.open("wb") as archive:
        np.savez(archive, p=np.zeros(3682))
    with pytest.raises(ValueError, match=r"b2/press\.npy cannot be read"):
        read_shapenet(tmp_path)
    file.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ValueError, match=r"b2/press\.npy cannot be read"):
        read_shapenet(tmp_path)


def test_a_folder_of_generated_cars_is_to_be_packed(tmp_path):
    (tmp_path / "set.json").write_text("{}")
    with pytest.raises(ValueError, match=r"generated cars: .*--pack"):
        read_shapenet(tmp_path)


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
