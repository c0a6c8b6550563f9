"""The one way in which files and folders are written, and how damaged ones are recognised.

A file or folder is written under another name in the same place, forced to the disk and renamed:
a reader sees the old content or the whole new one, and a write that fails leaves the old content.

A file is replaced by one rename. A folder takes two, as the old one must be moved away first: a
reader between them sees no folder, and a process killed between them leaves the old folder
beside, as `.NAME.*.old`. Where several write at once, the last one to finish wins.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from uqno.types import Array

# What renaming onto a folder that is not empty says, depending on the system.
TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


def write_file(path: str | Path, write: Callable[[Path], object]) -> None:
    """Replace a file by what `write` puts into the path it is given, whole or not at all.

    Args:
        path: the file to write; folders above it are created.
        write: is called with another path in the same folder, and writes a file there.

    Raises:
        OSError: the file could not be written; the old one, if there was one, is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = _beside(path, "part")
    try:
        write(aside)
        _force_to_disk(aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)  # on a full disk, give the space back
    _force_to_disk(path.parent)  # the rename too


def write_text(path: str | Path, text: str) -> None:
    """`write_file` with UTF-8 text."""
    write_bytes(path, text.encode("utf8"))


def write_bytes(path: str | Path, content: bytes) -> None:
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
    save = np.savez_compressed if compressed else np.savez
    for name, values in arrays.items():
        if np.asarray(values).dtype.hasobject:
            raise ValueError(
                f"{name} holds Python objects, which {path} cannot: convert it to numbers or text"
            )
    _write_opened(path, lambda file: save(file, **arrays))


def write_npy(path: str | Path, values: Array) -> None:
    """`write_file` with one array of numbers in NumPy's format."""
    _write_opened(path, lambda file: np.save(file, values, allow_pickle=False))


def _write_opened(path: str | Path, write: Callable[[IO[bytes]], object]) -> None:
    """`write_file` through an open file: given a name, NumPy would append its suffix to it."""

    def write_aside(aside: Path) -> None:
        with aside.open("wb") as file:
            write(file)

    write_file(path, write_aside)


def write_folder(
    folder: str | Path, write: Callable[[Path], object], *, replace: bool = True
) -> None:
    """Put what `write` fills an empty folder with in the place of `folder`, whole or not at all.

    Args:
        folder: the folder to write; folders above it are created.
        write: is called with an empty folder beside it, and fills that.
        replace: whether a folder that is there already is replaced. If not, it is refused.

    Raises:
        FileExistsError: a file is there, or a folder and `replace` is False.
        OSError: the folder could not be written; the old one, if there was one, is untouched.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: remove it or choose another name")
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = _beside(folder, "part")
    try:
        aside.mkdir()
        write(aside)
        for path in (*aside.rglob("*"), aside):
            _force_to_disk(path)
        if replace:
            _replace_folder(aside, folder)
        else:
            _place_folder(aside, folder)
        _force_to_disk(folder.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


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
    """Rename `aside` to `folder`, after what is there was moved away; a failure moves it back."""
    while True:
        old = _beside(folder, "old")
        with suppress(FileNotFoundError):
            os.replace(folder, old)
        try:
            os.replace(aside, folder)
        except BaseException as why:
            if isinstance(why, OSError) and why.errno in TAKEN:
                shutil.rmtree(old, ignore_errors=True)  # another writer was faster: replace that
                continue
            if old.exists():
                os.replace(old, folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
        return


def _beside(path: Path, suffix: str) -> Path:
    """A new name in the same folder, hidden and used by nobody else."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.{suffix}")


def read_json(path: str | Path, remedy: str) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        ValueError: the file is absent, damaged or holds something else; the message ends with
            `remedy`, what to do about it.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as why:
        raise ValueError(f"{path} is damaged ({why}): {remedy}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged, it holds {content!r:.40}: {remedy}")
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
