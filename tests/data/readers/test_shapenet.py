"""The processed ShapeNet-Car set, in files of its exact layout."""

import numpy as np
import pytest

from tests.data.readers.test_ply import ply
from uqno.data import read_shapenet
from uqno.experiments.cars import shapes
from uqno.geometry.surface import Surface


def write_set(folder, train=("0a1", "b2"), test=("c3",)):
    for i, name in enumerate((*train, *test)):
        car = folder / "data" / name
        car.mkdir(parents=True)
        body = shapes.surface(shapes.draw(1, i))
        (car / "tri_mesh.ply").write_bytes(ply(body))
        pressure = np.arange(3586.0) + i
        raw = np.concatenate([pressure[:16], np.full(96, np.nan), pressure[16:]]).astype(np.float32)
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


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"train\.txt does not exist"):
        read_shapenet(tmp_path)
    write_set(tmp_path)
    car = tmp_path / "data/b2"
    np.save(car / "press.npy", np.zeros(3600))
    with pytest.raises(ValueError, match=r"b2/press\.npy has 3600 values, of which 3504 remain"):
        read_shapenet(tmp_path)
    np.save(car / "press.npy", np.full(3682, np.inf))
    with pytest.raises(
        ValueError,
        match=r"b2/press\.npy has 3586 of 3586 .*: leave this car out",
    ):
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
         "has 3 of 10758 entries that are NaN or infinite"),
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
