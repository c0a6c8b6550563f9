"""The one way in which files and folders are written, and how damaged ones are recognised.

A file or folder is written aside, under a name in the same place that nobody can foresee, forced
to the disk and renamed: a reader sees the old content or the whole new one, and a write that fails
leaves the old content. Of several writers at once, the last one to finish wins; none fails.

*Files* are replaced by one rename, and only regular files are: a link is followed, and a device,
a pipe or a folder is refused, since a rename would put a file in its place.

*Folders* are exchanged in one step where the system can (Linux), so that there is no moment
without one. Elsewhere the old one is moved away first; a process that is killed between the two
renames leaves it in `.uqno-….old`, from where `recover_folder` puts it back.

*What a killed process left* is swept by the next write into the same place, see `uqno.asides`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from uqno import asides
from uqno.types import Array

log = logging.getLogger(__name__)

# What renaming onto a folder that is not empty says, depending on the system.
TAKEN = (errno.ENOTEMPTY, errno.EEXIST)
# What a system or disk says that cannot exchange two folders.
CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)
# Seconds that the two renames of a folder may take, of a writer that is not killed.
BETWEEN_RENAMES = 1.0


class DamagedError(ValueError):
    """A file that was whole when it was written and is not any more."""


# --- files ---------------------------------------------------------------------------------------


def write_file(path: str | Path, write: Callable[[Path], object]) -> None:
    """Replace a file by what `write` puts into the path it is given, whole or not at all.

    Args:
        path: the file to write; folders above it are created, a link is followed.
        write: is called with the path of an empty file in the same folder, whose name has the same
            suffix, and writes it.

    Raises:
        FileExistsError: something is there that is no regular file.
        OSError: the file could not be written; the old one, if there was one, is untouched.
    """
    path = _regular(Path(path))
    make_folders(path.parent)
    asides.sweep(path.parent)
    aside = asides.new_file(path)
    try:
        write(aside)
        _force_to_disk(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)  # on a full disk, give the space back
    _force_to_disk(path.parent)  # the rename too


def make_folders(folder: str | Path) -> None:
    """Create a folder and those above it, where they are not there, so that a power cut keeps them.

    Raises:
        FileExistsError: a file has the name of one of them.
    """
    folder = Path(folder)
    if folder.is_dir():
        return
    make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    _force_to_disk(folder.parent)


def remove_file(path: str | Path) -> None:
    """Remove a file, if it is there, so that a power cut does not bring it back.

    What is written into the same folder afterwards is then never found beside it.
    """
    path = Path(path)
    if path.exists():
        path.unlink(missing_ok=True)
        _force_to_disk(path.parent)


def _regular(path: Path) -> Path:
    """Where the path leads to: a regular file, or nothing yet.

    Raises:
        FileExistsError: it is something else, such as /dev/null.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return Path(os.path.realpath(path))
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
        raise FileExistsError(f"{path} is {what}, not a file to replace: choose another name")
    return Path(os.path.realpath(path))


def write_text(path: str | Path, text: str) -> None:
    """`write_file` with UTF-8 text."""
    write_bytes(path, text.encode("utf8"))


def write_bytes(path: str | Path, content: bytes | memoryview) -> None:
    """`write_file` with bytes."""
    write_file(path, lambda aside: aside.write_bytes(content))


def write_json(path: str | Path, content: Any, indent: int | None = None) -> None:
    """`write_file` with JSON.

    Args:
        path: the file to write.
        content: what JSON can hold.
        indent: spaces for each level; None writes one line.

    Raises:
        ValueError: the content has NaN or infinity, which JSON does not have.
    """
    write_text(path, json.dumps(content, indent=indent, allow_nan=False))


def write_npz(path: str | Path, arrays: Mapping[str, Any], compressed: bool = False) -> None:
    """`write_file` with named arrays in NumPy's archive format.

    Args:
        path: the file to write.
        arrays: by name.
        compressed: whether they are compressed, which takes longer.

    Raises:
        ValueError: an array holds Python objects, which would be pickled.
    """
    for name, values in arrays.items():
        if np.asarray(values).dtype.hasobject:
            raise ValueError(
                f"{name} holds Python objects, which {path} cannot: convert it to numbers or text"
            )
    save = np.savez_compressed if compressed else np.savez
    content = BytesIO()  # given a name, NumPy would append its suffix to it
    save(content, **arrays)
    write_bytes(path, content.getbuffer())


def write_npy(path: str | Path, values: Array) -> None:
    """`write_file` with one array of numbers in NumPy's format."""
    content = BytesIO()
    np.save(content, values, allow_pickle=False)
    write_bytes(path, content.getbuffer())


# --- folders -------------------------------------------------------------------------------------


def write_folder(
    folder: str | Path, write: Callable[[Path], object], *, replace: bool = True
) -> None:
    """Put what `write` fills an empty folder with in the place of `folder`, whole or not at all.

    Args:
        folder: the folder to write; folders above it are created, a link is followed.
        write: is called with an empty folder beside it, and fills that.
        replace: whether a folder that is there already is replaced. If not, it is refused.

    Raises:
        FileExistsError: a file is there, or a folder and `replace` is False.
        OSError: the folder could not be written; the old one, if there was one, is untouched.
    """
    folder = Path(os.path.realpath(folder))
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: remove it or choose another name")
    make_folders(folder.parent)
    recover_folder(folder)
    asides.sweep(folder.parent)
    aside = asides.new_folder(folder.parent, "part")
    try:
        write(aside)
        for path in (*aside.rglob("*"), aside):
            _force_to_disk(path)
        if replace:
            _replace_folder(aside, folder)
        else:
            _place_folder(aside, folder)
        _force_to_disk(folder.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # what was written, or the folder before it


def _place_folder(aside: Path, folder: Path) -> None:
    """Rename `aside` to `folder`, which must not be there, or only as an empty folder."""
    try:
        os.replace(aside, folder)
    except OSError as why:
        if why.errno not in TAKEN:
            raise
        raise FileExistsError(
            f"{folder} already exists: remove it or choose another name"
        ) from None


def _replace_folder(aside: Path, folder: Path) -> None:
    """Exchange both, or rename in two steps; what other writers do meanwhile is replaced too."""
    while True:
        try:
            if exchange(aside, folder):
                return
            _replace_in_two_steps(aside, folder)
        except FileNotFoundError:  # there was nothing to exchange it with
            if not aside.exists():
                raise
            with suppress(FileExistsError):
                _place_folder(aside, folder)
                return
        except FileExistsError:
            continue  # another writer was faster: replace that
        else:
            return


def exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; False where the system cannot.

    Raises:
        FileNotFoundError: one of them is not there.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old one
        return False
    here, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of <fcntl.h>
    if rename(here, os.fsencode(one), here, os.fsencode(other), swap) == 0:
        return True
    code = ctypes.get_errno()
    if code in CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _replace_in_two_steps(aside: Path, folder: Path) -> None:
    """Move the old folder away and the new one in; a failure moves it back.

    Raises:
        FileExistsError: another writer put its own there in between.
    """
    beside = asides.new_folder(folder.parent, "old")
    old = beside / folder.name
    try:
        with suppress(FileNotFoundError):
            os.replace(folder, old)
        try:
            _place_folder(aside, folder)
        except FileExistsError:
            raise
        except BaseException:
            with suppress(FileNotFoundError):
                os.replace(old, folder)
            raise
        _force_to_disk(folder.parent)  # before the old one is removed
    finally:
        if folder.exists() or not old.exists():  # else it is the only copy
            shutil.rmtree(beside, ignore_errors=True)


def recover_folder(folder: str | Path) -> None:
    """Put a folder back that a process moved away and was killed before it put in the new one.

    A writer that is alive has a second to put in its own.
    """
    folder = Path(os.path.realpath(folder))
    ends = time.monotonic() + BETWEEN_RENAMES
    while not folder.exists():
        old = [p for p in folder.parent.glob(".uqno-*.old/*") if p.name == folder.name]
        if not old:
            return
        if time.monotonic() > ends:
            latest = max(old, key=lambda p: p.stat().st_mtime)
            with suppress(FileNotFoundError, FileExistsError):
                _place_folder(latest, folder)
                _force_to_disk(folder.parent)  # before a sweep removes where it was
                log.warning("%s was left aside by a process that was killed: it is back", folder)
        time.sleep(BETWEEN_RENAMES / 20)


def set_aside(path: str | Path) -> Path:
    """Rename what is damaged to NAME.damaged, or NAME.damaged-2, …; the new path."""
    path = Path(path)
    names = (f"{path.name}.damaged{number}" for number in ("", *(f"-{k}" for k in range(2, 1000))))
    aside = next(path.with_name(name) for name in names if not path.with_name(name).exists())
    os.replace(path, aside)
    log.warning("%s is damaged: set aside as %s, and made again", path, aside.name)
    return aside


# --- locks ---------------------------------------------------------------------------------------


@contextmanager
def alone(folder: str | Path, work: str) -> Iterator[None]:
    """Be the only process that works in a folder; the lock ends with the process, however it ends.

    Where a disk has no locks, none is taken.

    Args:
        folder: is created if it is not there.
        work: what the process does, for the one that comes second: "a run".

    Raises:
        ValueError: another process has the lock.
    """
    make_folders(folder)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(Path(folder) / ".lock", flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ValueError(
            f"another process has {work} in {folder}: let it finish or stop it, or choose another "
            "folder"
        ) from None
    except OSError as why:
        log.info("%s cannot be locked: %s", folder, why)
    try:
        yield
    finally:
        os.close(descriptor)


# --- reading -------------------------------------------------------------------------------------


def as_path(given: Any) -> Path:
    """The name of a file or folder, as text or as a path.

    Raises:
        ValueError: it is something else, or holds characters that no name can have.
    """
    try:
        path = Path(given)
        os.fsencode(path)
    except (TypeError, UnicodeError) as why:
        what = type(given).__name__
        raise ValueError(
            f"expected the name of a file or folder, text or a Path, got {what}: {why}"
        ) from None
    return path


def read_json(path: str | Path, remedy: str) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        DamagedError: the file is absent, damaged or holds something else; the message ends with
            `remedy`, what to do about it.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as why:
        raise DamagedError(f"{path} is damaged ({why}): {remedy}") from None
    if not isinstance(content, dict):
        raise DamagedError(f"{path} is damaged, it holds {content!r:.40}: {remedy}")
    return content


def sha256_of(path: str | Path) -> str:
    """The SHA-256 checksum of a file, in hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
