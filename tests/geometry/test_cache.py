"""Values of a surface are computed once for each surface and recipe."""

import numpy as np

from uqno.geometry.cache import cached
from uqno.geometry.surface import Surface

POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
BODY = Surface(POINTS, FACES)
VALUES = np.arange(4, dtype=np.float32)


class Counted:
    def __init__(self, values=VALUES):
        self.calls, self.values = 0, values

    def __call__(self):
        self.calls += 1
        return self.values


def test_computed_once_for_each_surface_and_recipe(tmp_path):
    compute = Counted()
    for body, recipe, calls in [
        (BODY, ("distance", 3), 1),
        (BODY, ("distance", 3), 1),
        (Surface(POINTS.copy(), FACES.copy()), ("distance", 3), 1),
        (BODY, ("distance", 4), 2),
        (Surface(2 * POINTS, FACES), ("distance", 3), 3),
        (Surface(POINTS, FACES[:, [1, 2, 0]]), ("distance", 3), 4),
    ]:
        values = cached(tmp_path / "folder", body, recipe, (4,), compute)
        np.testing.assert_array_equal(values, VALUES)
        assert compute.calls == calls
    assert len(list((tmp_path / "folder").iterdir())) == 4


def test_without_a_folder_it_is_computed_every_time():
    compute = Counted()
    for _ in range(2):
        cached(None, BODY, ("distance",), (4,), compute)
    assert compute.calls == 2


def test_files_that_are_damaged_or_of_another_shape_are_replaced(tmp_path):
    cached(tmp_path, BODY, ("distance",), (4,), Counted())
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for write in (
        lambda: file.write_bytes(whole[:-3]),
        lambda: file.write_bytes(b""),
        lambda: np.save(file, VALUES[:3]),
        lambda: np.save(file, VALUES.astype(float)),
    ):
        write()
        compute = Counted()
        np.testing.assert_array_equal(cached(tmp_path, BODY, ("distance",), (4,), compute), VALUES)
        assert compute.calls == 1
        assert file.read_bytes() == whole
