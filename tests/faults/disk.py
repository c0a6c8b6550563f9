"""A folder as a disk that forgets: what is on it before each operation, and after a power cut."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from uqno import asides

CHANGING = {
    "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate",
}  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# No process has this number: it is above the largest that Linux gives.
GONE = 2**22 + 1
ROOT = 0  # the number of the folder itself
MOST_PENDING = 12  # operations of which each is lost alone

Tree = Mapping[str, bytes | None]
"""{path below the folder: content of a file, None of a folder}, folders before what is in them."""


@dataclass(frozen=True)
class Look:
    """What is in a folder at one moment, by numbers that files and folders keep when renamed.

    Args:
        entries: {folder: {name: file or folder}}.
        files: {file: its content}.
        event: the operation that comes next.
    """

    entries: Mapping[int, Mapping[str, int]]
    files: Mapping[int, bytes]
    event: str

    def tree(self) -> dict[str, bytes | None]:
        return tree(self.entries, self.files)


def tree(entries: Mapping[int, Mapping[str, int]], files: Mapping[int, bytes]) -> dict:
    """What is found from the top: a folder that nothing leads to any more is not."""
    found: dict[str, bytes | None] = {}

    def walk(folder: int, prefix: str) -> None:
        for name, number in sorted(entries.get(folder, {}).items()):
            if number in files:
                found[prefix + name] = files[number]
            else:
                found[prefix + name] = None
                walk(number, f"{prefix}{name}/")

    walk(ROOT, "")
    return found


# --- recording -------------------------------------------------------------------------------


@dataclass
class Recording:
    """What happened to a folder.

    Args:
        root: the folder.
        looks: before each operation, and at the end.
        syncs: {number of a look: what was forced to the disk there}.
        written: files that were opened for writing, below the folder.
    """

    root: Path
    looks: list[Look] = field(default_factory=list)
    syncs: dict[int, int] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    _numbers: dict[tuple[int, bool], int] = field(default_factory=dict)
    _next: int = 1
    _known: dict[bytes, bytes] = field(default_factory=dict)
    _read: dict[tuple[int, int, int], bytes] = field(default_factory=dict)

    def look(self, event: str) -> None:
        entries: dict[int, dict[str, int]] = {}
        files: dict[int, bytes] = {}
        there: dict[tuple[int, bool], int] = {}

        def walk(folder: str, number: int) -> None:
            entries[number] = {}
            with suppress(FileNotFoundError), os.scandir(folder) as found:
                for entry in found:
                    # A file's number may be that of a folder at once, where threads write.
                    inode = entry.inode(), entry.is_dir(follow_symlinks=False)
                    if inode not in there:
                        there[inode] = self._numbers.get(inode, self._next)
                        self._next = max(self._next, there[inode] + 1)
                    if entry.is_dir(follow_symlinks=False):
                        walk(entry.path, there[inode])
                    else:
                        with suppress(FileNotFoundError):
                            files[there[inode]] = self._content(entry)
                    entries[number][entry.name] = there[inode]

        walk(str(self.root), ROOT)
        self._numbers = there  # a number ends with its file: the system gives it to another one
        self.looks.append(Look(entries, files, event))

    def _content(self, entry: os.DirEntry[str]) -> bytes:
        """What is in a file, read again unless it was left alone for a while; one copy of each."""
        status = entry.stat(follow_symlinks=False)
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp not in self._read or time.time_ns() - status.st_mtime_ns < 10**8:
            with open(entry.path, "rb") as file:
                content = file.read()
            digest = hashlib.blake2b(content).digest()
            self._read[stamp] = self._known.setdefault(digest, content)
        return self._read[stamp]

    def sync(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        number = ROOT if os.path.samestat(status, os.stat(self.root)) else None
        self.look("fsync")
        here = status.st_ino, stat.S_ISDIR(status.st_mode)
        number = self._numbers.get(here) if number is None else number
        if number is not None:
            self.syncs[len(self.looks) - 1] = number


_recording: Recording | None = None
_lock = threading.RLock()
_inside = False
_hooked = False


def _heard(event: str, arguments: tuple) -> None:
    """Every operation of this process passes here, before it is done."""
    global _inside
    if _recording is None or not (event in CHANGING or event in ("open", "ctypes.dlsym")):
        return
    with _lock:
        if _inside or _recording is None:
            return
        _inside = True
        try:
            path = arguments[0]
            if event == "ctypes.dlsym":
                if arguments[1] == "renameat2":
                    _recording.look("exchange")
                return
            if isinstance(path, int) or (event == "open" and not arguments[2] & WRITING):
                return
            path = os.path.abspath(os.fsdecode(path))
            below = path.startswith(f"{_recording.root}{os.sep}")
            if event == "open":
                if not below:
                    return
                _recording.written.append(os.path.relpath(path, _recording.root))
            elif not below and os.path.isabs(os.fsdecode(arguments[0])):
                return  # names beside a descriptor of a folder are looked at, wherever they are
            _recording.look(f"{event} {os.path.basename(path)}")
        finally:
            _inside = False


@contextmanager
def recorded(root: Path) -> Iterator[Recording]:
    """Record what happens to a folder."""
    global _recording, _inside, _hooked
    if not _hooked:
        sys.addaudithook(_heard)
        _hooked = True
    recording = Recording(Path(os.path.realpath(root)))
    recording.look("begin")
    recording.looks.clear()
    with without_fsync(recording.sync):
        _recording = recording
        try:
            yield recording
        finally:
            _recording = None
    recording.look("end")


@contextmanager
def without_fsync(instead: Callable[[int], object] = lambda descriptor: None) -> Iterator[None]:
    """Nobody waits for the disk; `instead` is told what would be forced to it."""
    real, thread = os.fsync, threading.RLock()

    def fsync(descriptor: int) -> None:
        global _inside
        with thread, _lock:
            before, _inside = _inside, True
            try:
                instead(descriptor)
            finally:
                _inside = before

    os.fsync = fsync
    try:
        yield
    finally:
        os.fsync = real


# --- the disks that follow -------------------------------------------------------------------


@dataclass(frozen=True)
class Disk:
    """What a command finds: how it came about, and what is there."""

    kind: str
    why: str
    tree: Tree


def stops(recording: Recording) -> Iterator[Disk]:
    """The disks of a process that is killed before each operation, or in a write."""
    before = None
    for k, look in enumerate(recording.looks):
        if before is not None:
            for number, content in look.files.items():
                if content and before.files.get(number, b"") != content and len(content) > 1:
                    half = {**look.files, number: content[: len(content) // 2]}
                    yield Disk("stop", f"in a write before {k} {look.event}",
                               tree(look.entries, half))  # fmt: skip
        yield Disk("stop", f"before {k} {look.event}", look.tree())
        before = look


@dataclass(frozen=True)
class Operation:
    """Names that change in one step: {(folder, name): what it leads to, None for nothing}."""

    changes: Mapping[tuple[int, str], int | None]

    @property
    def folders(self) -> set[int]:
        return {folder for folder, _ in self.changes}


def _operation(before: Look, after: Look) -> Operation | None:
    changes: dict[tuple[int, str], int | None] = {}
    for folder in {*before.entries, *after.entries}:
        old, new = before.entries.get(folder, {}), after.entries.get(folder, {})
        if folder not in after.entries:
            continue  # it is gone, and what was in it
        changes |= {(folder, name): new.get(name) for name in {*old, *new}
                    if old.get(name) != new.get(name)}  # fmt: skip
    return Operation(changes) if changes else None


def cuts(recording: Recording) -> Iterator[Disk]:
    """The disks after a power cut before each operation, and after the last one."""
    first = recording.looks[0]
    names = {folder: dict(entries) for folder, entries in first.entries.items()}
    contents, latest = dict(first.files), dict(first.files)
    pending: list[Operation] = []
    for k, (before, look) in enumerate(pairwise([first, *recording.looks])):
        if k:
            operation = _operation(before, look)
            pending += [operation] if operation is not None else []
        latest |= look.files
        seen = _in_sight(look.entries, latest) | _in_sight(names, latest)
        for lost in _losses(pending, seen):
            kept = _applied(names, [pending[i] for i in range(len(pending)) if i not in lost])
            what = f"cut before {k} {look.event}, lost {sorted(lost)} of {len(pending)}"
            for files, how in _forgotten(latest, contents):
                yield Disk("cut", what + how, tree(kept, files))
        if k in recording.syncs:
            number = recording.syncs[k]
            if number in look.files:
                contents[number] = look.files[number]
            else:
                last = _closure(pending, [i for i, p in enumerate(pending) if number in p.folders])
                names = _applied(names, [pending[i] for i in sorted(last)])
                pending = [p for i, p in enumerate(pending) if i not in last]


def _closure(pending: list[Operation], wanted: list[int]) -> set[int]:
    """With them, the earlier operations on any of their folders."""
    done: set[int] = set()
    for i in sorted(wanted, reverse=True):
        if i in done:
            continue
        folders = set(pending[i].folders)
        done.add(i)
        for j in range(i - 1, -1, -1):
            if pending[j].folders & folders:
                done.add(j)
                folders |= pending[j].folders
    return done


def _in_sight(names: Mapping[int, Mapping[str, int]], files: Mapping[int, bytes]) -> set[int]:
    """The folders that are not in what is set aside."""
    found, todo = set(), [ROOT]
    while todo:
        folder = todo.pop()
        found.add(folder)
        entries = names.get(folder, {}).items()
        todo += [n for name, n in entries if n not in files and not is_aside(name)]
    return found


def _losses(pending: list[Operation], seen: set[int]) -> list[set[int]]:
    """Which operations a power cut may undo: none, all, all but what one needs, all since one.

    Those inside of asides alone are not varied.
    """
    every = set(range(len(pending)))
    losses = [set(), every]
    for i in [i for i in every if pending[i].folders & seen][-MOST_PENDING:]:
        losses.append(every - _closure(pending, [i]))
        losses.append(set(range(i, len(pending))))
        # One is lost, and what comes after it on its folders.
        folders, gone = set(pending[i].folders), {i}
        for j in range(i + 1, len(pending)):
            if pending[j].folders & folders:
                gone.add(j)
                folders |= pending[j].folders
        losses.append(gone)
    return [set(x) for x in dict.fromkeys(frozenset(loss) for loss in losses)]


def _applied(
    names: Mapping[int, Mapping[str, int]], operations: list[Operation]
) -> dict[int, dict[str, int]]:
    result = {folder: dict(entries) for folder, entries in names.items()}
    for operation in operations:
        for (folder, name), number in operation.changes.items():
            entries = result.setdefault(folder, {})
            entries.pop(name, None)
            if number is not None:
                entries[name] = number
    return result


def _forgotten(
    now: Mapping[int, bytes], synced: Mapping[int, bytes]
) -> Iterator[tuple[dict[int, bytes], str]]:
    """Files as they are synced, and as those come back that are not."""
    unsynced = {n: c for n, c in now.items() if synced.get(n) != c}
    whole = {**synced, **{n: c for n, c in now.items() if n not in unsynced}}
    yield {**whole, **{n: synced.get(n, b"") for n in unsynced}}, ""
    if unsynced:
        yield {**whole, **{n: c[: len(c) // 2] for n, c in unsynced.items()}}, ", cut files"
        yield {**whole, **{n: bytes(len(c)) for n, c in unsynced.items()}}, ", zeros"


def damages(whole: Tree, files: str) -> Iterator[Disk]:
    """The disks on which one file came back damaged or not at all, of those that fit a pattern."""
    for path, content in whole.items():
        if content is None or not re.search(files, path):
            continue
        ways = {"empty": b"", "cut": content[: len(content) // 2], "zeros": bytes(len(content))}
        for how, damaged in ways.items():
            if damaged != content:
                yield Disk("damage", f"{path} {how}", {**whole, path: damaged})
        yield Disk("damage", f"{path} lost", {p: c for p, c in whole.items() if p != path})


# --- making a disk ---------------------------------------------------------------------------


def is_aside(path: str) -> bool:
    """Whether it is, or is in, what a process has set aside."""
    return any(asides.NAME.match(part) for part in path.split("/"))


def make(root: Path, content: Tree) -> None:
    """Let a folder hold what a disk holds; asides are of a process that is gone."""
    for entry in os.scandir(root):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    for path, data in content.items():
        place = root / _of_gone(path)
        if data is None:
            place.mkdir()
        else:
            place.write_bytes(data)


def _of_gone(path: str) -> str:
    return re.sub(rf"(\.uqno-[0-9a-f]{{12}})-{os.getpid()}-", rf"\1-{GONE}-", path)


def key(disk: Disk, blind: bool) -> bytes:
    """Equal for disks that a command finds alike, whatever the names of asides.

    Args:
        disk: the disk.
        blind: whether contents of asides that are only swept count as equal.
    """
    digest, numbers = hashlib.blake2b(), {}
    for path, content in disk.tree.items():
        parts = []
        for part in path.split("/"):
            aside = asides.NAME.match(part)
            if aside is not None:
                number = numbers.setdefault(part, len(numbers))
                part = f"aside {number} {aside[3]}{part[aside.end() :]}"
            parts.append(part)
        swept = blind and ".part" in path and is_aside(path)
        if swept and not asides.NAME.match(path.rpartition("/")[2]):
            continue  # in a folder that is swept
        name = "/".join(parts)
        digest.update(f"{name}\0".encode())
        digest.update(b"folder" if content is None else b"swept" if swept else _digest(content))
    return digest.digest()


_digests: dict[int, tuple[bytes, bytes]] = {}


def _digest(content: bytes) -> bytes:
    """Of a file; contents are shared between disks, and looked at once."""
    known = _digests.get(id(content))
    if known is None or known[0] is not content:
        known = _digests[id(content)] = (content, b"file" + hashlib.blake2b(content).digest())
    return known[1]


def different(disks: Iterable[Disk], blind: bool) -> list[Disk]:
    """Each disk once."""
    found: dict[bytes, Disk] = {}
    for disk in disks:
        found.setdefault(key(disk, blind), disk)
    return list(found.values())
