"""Whatever stops a command, the same command ends in the same result; see the package's docstring.

Each command has a part of its disks here, evenly chosen; `make faults` tries them all.
"""

import os

import pytest

from tests.faults.commands import Command, every
from tests.faults.disk import cuts, different, make, recorded, stops
from tests.faults.drive import drive
from uqno import storage

COMMANDS = every()
# Disks of a command: one of a comparison takes half a second, others a tenth.
MOST = {"run": 45, "run of two methods": 12, "run again at other levels": 20, "report": 25,
        "data darcy": 60}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=[c.name for c in COMMANDS])
def test_nothing_is_lost(command, tmp_path, record_property):
    outcome = drive(command, tmp_path, most=MOST.get(command.name))
    record_property("count", str(outcome))  # printed at the end, see conftest.py
    assert not outcome.failures, outcome.failures[:5]
    assert outcome.tried == outcome.ends.total() > 0
    assert outcome.operations > 5


# --- the harness notices what it is for ----------------------------------------------------------


def written(write):
    """A command that writes a file over an older one by some way of writing."""

    def run(root):
        write(root / "folder" / "file", b"new " * 100)

    def prepare(root):
        (root / "folder").mkdir()
        (root / "folder" / "file").write_bytes(b"old " * 100)

    def whole(root):
        assert (root / "folder" / "file").read_bytes() in (b"old " * 100, b"new " * 100)

    return Command("write", run, lambda root: (root / "folder" / "file").read_bytes(), prepare,
                   whole)  # fmt: skip


def in_place(path, content):
    path.write_bytes(content)


def without_sync(path, content):
    aside = storage.asides.new_file(path)
    aside.write_bytes(content)
    os.replace(aside, path)


def without_sync_of_the_folder(path, content):
    aside = storage.asides.new_file(path)
    with open(aside, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def removed_first(path, content):
    path.unlink()
    storage.write_bytes(path, content)


@pytest.mark.parametrize(
    ("write", "noticed"),
    [
        (in_place, "written in place"),
        (without_sync, "not synced at the end"),
        (without_sync_of_the_folder, "not synced at the end"),
        (removed_first, "FileNotFoundError"),
        (storage.write_bytes, None),
    ],
)
def test_a_bad_way_of_writing_is_noticed(write, noticed, tmp_path):
    outcome = drive(written(write), tmp_path)
    if noticed is None:
        assert not outcome.failures
    else:
        assert any(noticed in failure for failure in outcome.failures), outcome.failures
    lost = any("write" not in failure[:5] and "not synced" not in failure
               for failure in outcome.failures)  # fmt: skip
    assert lost == (write in (in_place, without_sync, removed_first))


def test_the_disks_of_one_write(tmp_path):
    """All that a stop can leave of a file that is replaced, and all that a power cut can."""
    (tmp_path / "file").write_bytes(b"old!")
    with recorded(tmp_path) as recording:
        storage.write_bytes(tmp_path / "file", b"new!")
    events = [look.event.split()[0] for look in recording.looks]
    assert events == ["open", "open", "fsync", "os.rename", "os.remove", "fsync", "end"]
    found = {tuple(sorted(disk.tree.values())) for disk in stops(recording)}
    assert found == {(b"old!",), (b"", b"old!"), (b"ne", b"old!"), (b"new!", b"old!"), (b"new!",)}
    found = {tuple(sorted(disk.tree.values())) for disk in cuts(recording)}
    assert found == {(b"old!",), (b"", b"old!"), (b"ne", b"old!"), (b"\0" * 4, b"old!"),
                     (b"new!", b"old!"), (b"new!",)}  # fmt: skip
    assert len(different(stops(recording), blind=True)) == 3


def test_a_folder_that_is_not_synced_is_lost_with_what_is_in_it(tmp_path):
    with recorded(tmp_path) as recording:
        (tmp_path / "new").mkdir()
        with open(tmp_path / "new" / "file", "wb") as file:
            file.write(b"content")
            file.flush()
            os.fsync(file.fileno())
        descriptor = os.open(tmp_path / "new", os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    last = {tuple(disk.tree) for disk in cuts(recording) if " end," in disk.why}
    assert last == {(), ("new", "new/file")}


def test_a_rename_between_folders_is_one_operation(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "file").write_bytes(b"content")
    with recorded(tmp_path) as recording:
        os.rename(tmp_path / "one" / "file", tmp_path / "two" / "file")
    found = {tuple(disk.tree) for disk in cuts(recording)}
    assert found == {("one", "one/file", "two"), ("one", "two", "two/file")}


def test_a_disk_is_made_again_with_asides_of_a_process_that_is_gone(tmp_path):
    storage.write_text(tmp_path / "a" / "file", "whole")
    aside = storage.asides.new_file(tmp_path / "a" / "file")
    with recorded(tmp_path) as recording:
        pass
    make(tmp_path, recording.looks[-1].tree())
    assert not aside.exists()
    assert len(list((tmp_path / "a").iterdir())) == 2
    storage.write_text(tmp_path / "a" / "file", "again")
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["file"]
