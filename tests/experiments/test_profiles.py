"""Profiles as files."""

import numpy as np
import pytest

from tests.conformal.test_profile import assert_alike, functions, stacked
from uqno.experiments.profiles import is_archive, read_profile, write_profile


def test_saved_and_loaded_alike(tmp_path):
    held = stacked(*functions(400))
    write_profile(tmp_path / "one.npz", held)
    again = read_profile(tmp_path / "one.npz")
    assert_alike(again, held)
    assert [p.name for p in tmp_path.iterdir()] == ["one.npz"]


def test_what_is_no_profile_is_refused_by_name(tmp_path):
    write_profile(tmp_path / "one.npz", stacked(*functions(400)))
    content = (tmp_path / "one.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(content[: len(content) // 2])
    np.savez(tmp_path / "foreign.npz", a=np.ones(3))
    with np.load(tmp_path / "one.npz") as file:
        np.savez(tmp_path / "newer.npz", **{**file, "version": np.array(2)})
    for name, why in [
        ("none", "does not exist"),
        ("half", "truncated"),
        ("foreign", "no file of format 'uqno profile'"),
        ("newer", "version 2"),
    ]:
        with pytest.raises(ValueError, match=f"{name}.npz.*{why}"):
            read_profile(tmp_path / f"{name}.npz")


@pytest.mark.parametrize("damage", ["whole", "empty", "cut", "flip", "absent"])
def test_an_archive_that_came_back_damaged_is_set_aside(damage, tmp_path):
    file = tmp_path / "one.npz"
    write_profile(file, stacked(*functions(40)))
    whole = file.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    content = {"empty": b"", "cut": whole[:middle], "flip": flipped}.get(damage, whole)
    file.write_bytes(content)
    if damage == "absent":
        file.unlink()
    assert is_archive(file) == (damage == "whole")
    left = [p.name for p in tmp_path.iterdir()]
    expected = {"whole": ["one.npz"], "absent": []}.get(damage, ["one.npz.damaged"])
    assert left == expected
