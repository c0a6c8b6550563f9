"""Files and folders are replaced whole or not at all, whoever else writes them."""

import hashlib
import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from uqno import storage


def full_disk(aside):
    """Write half of something, then fail as a full disk does."""
    target = aside / "half" if aside.is_dir() else aside
    target.write_text("half")
    raise OSError(28, "No space left on device")


def tree(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


# --- files -----------------------------------------------------------------------------------


def test_every_kind_of_file_reads_back(tmp_path):
    deep = tmp_path / "a" / "b"
    storage.write_text(deep / "t.txt", "λ̂ · E")
    assert (deep / "t.txt").read_text("utf8") == "λ̂ · E"
    storage.write_bytes(deep / "b.bin", b"\x00\xff")
    assert (deep / "b.bin").read_bytes() == b"\x00\xff"
    storage.write_json(deep / "j.json", {"x": [1, 0.5, None]})
    assert storage.read_json(deep / "j.json", "remake it") == {"x": [1, 0.5, None]}
    x = np.arange(6.0).reshape(2, 3)
    storage.write_npy(deep / "one.npy", x)
    np.testing.assert_array_equal(np.load(deep / "one.npy"), x)
    for compressed in (False, True):
        storage.write_npz(deep / "some", {"x": x, "name": np.array("p")}, compressed)
        with np.load(deep / "some", allow_pickle=False) as content:
            assert sorted(content) == ["name", "x"]
            np.testing.assert_array_equal(content["x"], x)
    names = {"t.txt", "b.bin", "j.json", "one.npy", "some"}
    assert {p.name for p in deep.iterdir()} == names


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    storage.write_text(path, "old")
    with pytest.raises(OSError, match="No space left"):
        storage.write_file(path, full_disk)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="No space left"):
        storage.write_file(tmp_path / "new.txt", full_disk)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fills_at_the_end_leaves_the_old_file(step, tmp_path, monkeypatch):
    """Some disks report that they are full only when the content is forced to them."""
    path = tmp_path / "file.txt"
    storage.write_text(path, "old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        storage.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_without_infinity_and_arrays_without_objects(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        storage.write_json(tmp_path / "j.json", {"x": float("nan")})
    with pytest.raises(ValueError, match="notes holds Python objects"):
        storage.write_npz(tmp_path / "a.npz", {"notes": np.array([{}], dtype=object)})
    with pytest.raises(ValueError, match="allow_pickle"):
        storage.write_npy(tmp_path / "a.npy", np.array([{}], dtype=object))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [None, "", "{", "[1]", "[" * 100_000])
def test_damaged_json_is_named_with_the_remedy(content, tmp_path):
    path = tmp_path / "state.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=r"state.json is damaged.*: remake it"):
        storage.read_json(path, "remake it")


def test_the_checksum_is_that_of_the_content(tmp_path):
    storage.write_bytes(tmp_path / "b", b"abc")
    assert storage.sha256_of(tmp_path / "b") == hashlib.sha256(b"abc").hexdigest()


# --- folders ---------------------------------------------------------------------------------


def filled(**files):
    def write(folder):
        for name, text in files.items():
            storage.write_text(folder / "inside" / name, text)

    return write


def test_a_folder_is_replaced_whole(tmp_path):
    folder = tmp_path / "up" / "model"
    storage.write_folder(folder, filled(a="1", b="2"))
    assert tree(folder) == {"inside/a": "1", "inside/b": "2"}
    storage.write_folder(folder, filled(b="3"))
    assert tree(folder) == {"inside/b": "3"}
    assert list(folder.parent.iterdir()) == [folder]


def test_a_failed_write_leaves_the_old_folder(tmp_path):
    folder = tmp_path / "model"
    storage.write_folder(folder, filled(a="1"))
    with pytest.raises(OSError, match="No space left"):
        storage.write_folder(folder, full_disk)
    assert tree(folder) == {"inside/a": "1"}
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failed_rename_leaves_the_old_folder(failing, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    storage.write_folder(folder, filled(a="1"))
    real, calls = os.replace, []

    def replace(*names):
        calls.append(names)
        if len(calls) == failing + 1:  # the first call writes the file inside
            raise PermissionError(13, "Permission denied")
        real(*names)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError):
        storage.write_folder(folder, filled(a="2"))
    assert tree(folder) == {"inside/a": "1"}
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_must_be_new(tmp_path):
    folder = tmp_path / "store"
    storage.write_folder(folder, filled(a="1"), replace=False)
    with pytest.raises(FileExistsError, match="already exists: remove it"):
        storage.write_folder(folder, filled(a="2"), replace=False)
    assert tree(folder) == {"inside/a": "1"}
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is a file"):
        storage.write_folder(tmp_path / "file", filled(a="1"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "store"]


def _write_often(place, writer):
    for i in range(20):
        text = json.dumps([writer, i]) * 100
        storage.write_text(place / "file", text)
        storage.write_folder(place / "folder", filled(a=text, b=text))


def test_concurrent_writers_leave_the_whole_content_of_one(tmp_path):
    """Renames of writers interleave: none fails, and the files of two are never mixed."""
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(_write_often, tmp_path, writer) for writer in range(3)]:
            done.result()
    endings = [json.dumps([writer, 19]) * 100 for writer in range(3)]
    assert (tmp_path / "file").read_text() in endings
    content = tree(tmp_path / "folder")
    assert sorted(content) == ["inside/a", "inside/b"]
    assert content["inside/a"] == content["inside/b"]
    assert content["inside/a"] in endings
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
