"""Files and folders are replaced whole or not at all, whoever else writes them."""

import hashlib
import json
import multiprocessing
import os
import secrets
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from uqno import asides, storage


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


@pytest.mark.parametrize("write", ["file", "folder"])
def test_new_folders_above_are_forced_to_the_disk(write, tmp_path, monkeypatch):
    """Else a power cut after the write would lose the folder with all that is in it."""
    synced = set()
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda d: (synced.add(os.fstat(d).st_ino), fsync(d)))
    path = tmp_path / "a" / "b" / "name"
    if write == "file":
        storage.write_text(path, "text")
    else:
        storage.write_folder(path, filled(x="1"))
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        assert folder.stat().st_ino in synced, folder
    with pytest.raises(FileExistsError):
        storage.make_folders(path if write == "file" else path / "inside" / "x")


def test_a_removed_file_stays_removed(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    synced = []
    monkeypatch.setattr(os, "fsync", lambda d: synced.append(os.fstat(d).st_ino))
    storage.remove_file(tmp_path / "file")
    assert synced == [tmp_path.stat().st_ino]
    assert not (tmp_path / "file").exists()
    storage.remove_file(tmp_path / "file")


def test_one_process_at_a_time_works_in_a_folder(tmp_path):
    with storage.alone(tmp_path / "new", "a run"):
        with (
            pytest.raises(ValueError, match=r"another process has a run in .*new: let it finish"),
            storage.alone(tmp_path / "new", "a run"),
        ):
            pass
        code = (
            "import sys\nfrom uqno import storage\nstorage.alone(sys.argv[1], 'a run').__enter__()"
        )
        told = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "new")], capture_output=True, text=True
        )
        assert "another process has a run" in told.stderr
    with storage.alone(tmp_path / "new", "a run"):
        pass
    (tmp_path / "new" / ".lock").unlink()
    (tmp_path / "new" / ".lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic link"), storage.alone(tmp_path / "new", "a run"):
        pass
    assert not (tmp_path / "victim").exists()


def test_a_disk_without_locks_is_worked_on(tmp_path, monkeypatch):
    def none(descriptor, kind):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(storage.fcntl, "flock", none)
    with storage.alone(tmp_path, "a run"):
        assert (tmp_path / ".lock").exists()


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

    monkeypatch.setattr(storage, "exchange", lambda one, other: False)
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


def _write_often(place, writer, in_two_steps):
    if in_two_steps:
        storage.exchange = lambda one, other: False
    for i in range(20):
        text = json.dumps([writer, i]) * 100
        storage.write_text(place / "file", text)
        storage.write_folder(place / "folder", filled(a=text, b=text))


@pytest.mark.parametrize("in_two_steps", [False, True])
def test_concurrent_writers_leave_the_whole_content_of_one(in_two_steps, tmp_path):
    """Renames of writers interleave: none fails, and the files of two are never mixed."""
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        arguments = [(tmp_path, writer, in_two_steps) for writer in range(3)]
        for done in [pool.submit(_write_often, *each) for each in arguments]:
            done.result()
    endings = [json.dumps([writer, 19]) * 100 for writer in range(3)]
    assert (tmp_path / "file").read_text() in endings
    content = tree(tmp_path / "folder")
    assert sorted(content) == ["inside/a", "inside/b"]
    assert content["inside/a"] == content["inside/b"]
    assert content["inside/a"] in endings
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


# --- what is no file, and what killed processes leave -----------------------------------------


def test_a_device_a_pipe_and_a_folder_are_no_files_to_replace(tmp_path):
    """As root, a rename would put a file in the place of /dev/null for everybody."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "null").symlink_to("/dev/null")
    for path in ("/dev/null", tmp_path / "pipe", tmp_path / "folder", tmp_path / "null"):
        with pytest.raises(FileExistsError, match="not a file to replace: choose another name"):
            storage.write_text(path, "text")
    assert (tmp_path / "null").is_symlink()
    assert not os.path.isfile("/dev/null")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "file")
    for text in ("first", "second"):  # the file is not there yet, and is
        storage.write_text(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "elsewhere" / "file").read_text() == text
    storage.write_folder(tmp_path / "elsewhere" / "model", filled(a="1"))
    (tmp_path / "model").symlink_to(tmp_path / "elsewhere" / "model")
    storage.write_folder(tmp_path / "model", filled(a="2"))
    assert (tmp_path / "model").is_symlink()
    assert tree(tmp_path / "elsewhere" / "model") == {"inside/a": "2"}


def test_asides_are_new_files_of_unforeseen_names(tmp_path, monkeypatch):
    names = []
    for _ in range(2):
        storage.write_file(tmp_path / "x.json", lambda aside: names.append(aside))
    assert names[0] != names[1]
    assert all(n.parent == tmp_path and n.suffix == ".json" for n in names)
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 16)
    there = asides.path_in(tmp_path, "part", ".json")
    there.symlink_to(tmp_path / "victim")  # what somebody else put there is never written through
    with pytest.raises(FileExistsError):
        storage.write_text(tmp_path / "x.json", "text")
    assert not (tmp_path / "victim").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from uqno import asides, storage

def fill(aside):
    target = aside / "half" if aside.is_dir() else aside
    target.write_text("half")
    if {moment!r} == "writing":
        os.kill(os.getpid(), signal.SIGKILL)

def killed(*names):
    os.kill(os.getpid(), signal.SIGKILL)

if {moment!r} == "exchanged":
    exchange = storage.exchange
    storage.exchange = lambda one, other: exchange(one, other) and killed()
if {moment!r} == "between renames":
    storage.exchange = lambda one, other: False
    storage._place_folder = killed
if {moment!r} == "file":
    storage.write_file(Path(sys.argv[1]) / "file", fill)
storage.write_folder(Path(sys.argv[1]) / "model", fill)
"""


def killed(place, moment):
    """A process that is killed at a moment of a write."""
    moment = "writing" if moment == "file" else moment
    code = KILLED.format(moment=moment)
    done = subprocess.run([sys.executable, "-c", code, str(place)], capture_output=True)
    assert done.returncode == -9, done.stderr


@pytest.mark.parametrize("moment", ["writing", "exchanged", "between renames"])
def test_a_kill_leaves_a_model_and_the_next_write_sweeps(moment, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "BETWEEN_RENAMES", 0.01)
    folder = tmp_path / "model"
    storage.write_folder(folder, filled(a="1"))
    killed(tmp_path, moment)
    assert len(list(tmp_path.glob(".uqno-*"))) >= 1
    storage.recover_folder(folder)
    assert tree(folder) == ({"half": "half"} if moment == "exchanged" else {"inside/a": "1"})
    storage.write_folder(folder, filled(a="2"))
    assert tree(folder) == {"inside/a": "2"}
    assert list(tmp_path.iterdir()) == [folder]


def test_the_only_copy_of_a_folder_is_not_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "BETWEEN_RENAMES", 0.01)
    storage.write_folder(tmp_path / "model", filled(a="1"))
    killed(tmp_path, "between renames")
    assert not (tmp_path / "model").exists()
    storage.write_text(tmp_path / "other", "text")  # sweeps, and finds the only copy
    storage.recover_folder(tmp_path / "model")
    assert tree(tmp_path / "model") == {"inside/a": "1"}
    storage.recover_folder(tmp_path / "never")  # nothing to put back


def test_asides_of_living_processes_are_not_swept(tmp_path):
    living = asides.path_in(tmp_path, "part")
    gone = tmp_path / f".uqno-{asides.machine()}-{2**22 + 1}-{'0' * 16}.part"
    elsewhere = tmp_path / f".uqno-{'0' * 12}-1-{'0' * 16}.part"
    long_ago = tmp_path / f".uqno-{'0' * 12}-1-{'1' * 16}.part"
    own = tmp_path / ".uqno-notes.part"
    for path in (living, gone, elsewhere, long_ago, own):
        path.touch()
    os.utime(long_ago, (time.time() - 100_000,) * 2)
    storage.write_text(tmp_path / "file", "text")
    there = {path.name for path in tmp_path.iterdir()}
    assert there == {"file", living.name, elsewhere.name, own.name}


def test_without_a_moment_without_a_folder(tmp_path):
    """Where the system can exchange folders, a reader never sees none."""
    one, other = tmp_path / "one", tmp_path / "other"
    filled(a="1")(one), filled(a="2")(other)
    if not storage.exchange(one, other):
        pytest.skip("this system cannot exchange folders")
    assert (tree(one), tree(other)) == ({"inside/a": "2"}, {"inside/a": "1"})
    with pytest.raises(FileNotFoundError):
        storage.exchange(one, tmp_path / "absent")
    code = "import sys\nfrom pathlib import Path\np = Path(sys.argv[1])\n"
    code += "while p.parent.joinpath('go').exists():\n    assert p.exists(), 'no folder'\n"
    (tmp_path / "go").touch()
    reader = subprocess.Popen([sys.executable, "-c", code, str(one)])
    for i in range(100):
        storage.write_folder(one, filled(a=str(i)))
    (tmp_path / "go").unlink()
    assert reader.wait() == 0


def test_what_is_damaged_is_set_aside_by_name(tmp_path, caplog):
    for expected in ("f.json.damaged", "f.json.damaged-2", "f.json.damaged-3"):
        (tmp_path / "f.json").write_text("{")
        assert storage.set_aside(tmp_path / "f.json") == tmp_path / expected
        assert expected in caplog.text
    assert not (tmp_path / "f.json").exists()
