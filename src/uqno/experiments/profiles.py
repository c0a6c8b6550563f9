"""Profiles of functions as files: named arrays in one .npz with a stamp, whole or refused."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from uqno.conformal.profile import Profile
from uqno.numpy_files import read_npz
from uqno.storage import DamagedError, set_aside, write_npz

FORMAT: Final = "uqno profile"
VERSION: Final = 1


def write_profile(path: str | Path, profile: Profile) -> None:
    """One .npz file, without pickle; whoever reads it meanwhile sees the old one, whole."""
    write_stamped(path, profile.arrays(), FORMAT, VERSION)


def read_profile(path: str | Path) -> Profile:
    """The profile that `write_profile` wrote.

    Raises:
        ValueError: the file is absent, truncated, foreign or of another version.
    """
    remedy = "profile the functions again"
    content = read_stamped(path, FORMAT, VERSION, remedy)
    try:
        return Profile.of_arrays(content)
    except ValueError as why:
        raise ValueError(f"{path}: {why}; {remedy}") from None


def write_stamped(
    path: str | Path, arrays: Mapping[str, Any], file_format: str, version: int
) -> None:
    """Named arrays in one .npz file that says what it holds."""
    stamp = {"format": np.array(file_format), "version": np.array(version)}
    write_npz(path, {**arrays, **stamp})


def read_stamped(path: str | Path, file_format: str, version: int, remedy: str) -> dict[str, Any]:
    """The arrays that `write_stamped` wrote, by name.

    Args:
        path: of the file.
        file_format, version: what its stamp must say.
        remedy: what to do about a file that is not whole; the end of the message.

    Raises:
        ValueError: the file is absent, truncated, foreign or of another version.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path} does not exist")
    try:
        content = read_npz(path)
    except ValueError as why:
        raise DamagedError(f"{path} is not whole, truncated or foreign ({why}): {remedy}") from None
    if str(content.pop("format", None)) != file_format:
        raise ValueError(f"{path} is no file of format {file_format!r} that uqno wrote: {remedy}")
    there = int(content.pop("version", 0))
    if there != version:
        raise ValueError(f"{path} has version {there}, this uqno reads {version}: {remedy}")
    return content


def is_archive(path: str | Path) -> bool:
    """Whether a file is a whole .npz; one that is damaged is set aside."""
    path = Path(path)
    if not path.is_file():
        return False
    damages = (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
    with suppress(*damages), zipfile.ZipFile(path) as archive:
        if archive.testzip() is None:
            return True
    set_aside(path)
    return False
