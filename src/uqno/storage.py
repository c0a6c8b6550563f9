"""The one way in which files and folders are written, and how damaged ones are recognised.

A file or folder is made aside, forced to the disk and renamed into its place: whoever reads
the place, at whatever instant the writer was stopped, sees the old content or the whole new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_file(path: str | Path, write: Callable[[Path], object]) -> None:
    """Replace a file by what `write` puts into the path it is given, whole or not at all.

    Args:
        path: the file to write; folders above it are made.
        write: is called with another path in the same folder, and writes a file there.

    Raises:
        OSError: the file could not be written; the old one, if there was one, is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
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
    """`write_file` with JSON; NaN and infinity are refused, as JSON has no such numbers."""
    write_text(path, json.dumps(content, indent=indent, allow_nan=False))


def write_npz(path: str | Path, arrays: Mapping[str, Any], compressed: bool = False) -> None:
    """`write_file` with named arrays in NumPy's archive format, without pickle."""
    save = np.savez_compressed if compressed else np.savez

    def write(aside: Path) -> None:
        with aside.open("wb") as file:  # given a name, NumPy would append .npz to it
            save(file, allow_pickle=False, **arrays)

    write_file(path, write)


def write_npy(path: str | Path, values: Any) -> None:
    """`write_file` with one array in NumPy's format, without pickle."""

    def write(aside: Path) -> None:
        with aside.open("wb") as file:  # given a name, NumPy would append .npy to it
            np.save(file, values, allow_pickle=False)

    write_file(path, write)


def write_folder(folder: str | Path, write: Callable[[Path], object]) -> None:
    """Replace a folder by what `write` puts into the folder it is given, whole or not at all.

    Args:
        folder: the folder to write; folders above it are made.
        write: is called with an empty folder beside it, and fills that.

    Raises:
        OSError: the folder could not be written; the old one, if there was one, is untouched.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.part")
    old = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.old")
    try:
        aside.mkdir()
        write(aside)
        for path in (*aside.rglob("*"), aside):
            _force_to_disk(path)
        if folder.exists():
            os.replace(folder, old)
        try:
            os.replace(aside, folder)
        except BaseException:
            if old.exists():  # the folder that was there stays
                os.replace(old, folder)
            raise
        _force_to_disk(folder.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if folder.exists():  # otherwise the old folder is all there is
            shutil.rmtree(old, ignore_errors=True)


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
