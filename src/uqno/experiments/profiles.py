"""Profiles of functions as files: named arrays in one .npz, whole or refused."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from uqno.conformal.profile import Profile
from uqno.storage import DamagedError, write_npz

FORMAT: Final = "uqno profile"
VERSION: Final = 1


def write_profile(path: str | Path, profile: Profile) -> None:
    """One .npz file, without pickle; whoever reads it meanwhile sees the old one, whole."""
    stamp = {"format": np.array(FORMAT), "version": np.array(VERSION)}
    write_npz(path, {**profile.arrays(), **stamp})


def read_profile(path: str | Path) -> Profile:
    """The profile that `write_profile` wrote.

    Raises:
        ValueError: the file is absent, truncated, foreign or of another version.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path} does not exist")
    try:
        # Opened here, since NumPy leaves a damaged file open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, AttributeError, zlib.error, zipfile.BadZipFile) as why:
        raise DamagedError(f"{path} is not a whole profile, truncated or foreign: {why}") from None
    if str(content.get("format")) != FORMAT:
        raise ValueError(f"{path} is not a profile that uqno wrote: profile the functions again")
    if int(content.get("version", 0)) != VERSION:
        raise ValueError(
            f"{path} has version {int(content.get('version', 0))}, this uqno reads {VERSION}: "
            "profile the functions again"
        )
    try:
        return Profile.of_arrays(content)
    except ValueError as why:
        raise DamagedError(f"{path}: {why}; profile the functions again") from None
