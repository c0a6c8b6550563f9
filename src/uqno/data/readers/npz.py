"""NumPy's .npz and .npy, never unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqno.data.readers.contract import Reader
from uqno.data.variables import Content, Variable
from uqno.numpy_files import read_head, read_npz
from uqno.types import Array


class Npz(Reader):
    """Arrays by name; each is read into memory when it is first asked for."""

    suffixes = (".npz",)

    def open(self, path: Path) -> Content:
        from uqno.data.arrays import open_variables

        with open_variables(path) as rows:  # reads the heads alone, and refuses objects
            variables = {
                name: Variable(name, Member(path, name, row.shape, row.dtype))
                for name, row in rows.items()
                if row.shape
            }
        return Content(str(path), variables, layout="NumPy archive")


class Npy(Reader):
    """One array, mapped into memory."""

    suffixes = (".npy",)

    def open(self, path: Path) -> Content:
        try:
            with path.open("rb") as file:
                read_head(file, path.stat().st_size, str(path))
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as why:
            raise ValueError(f"{path} is no whole array of numbers: {why}") from None
        return Content(str(path), {path.stem: Variable(path.stem, array)}, layout="NumPy array")


class Member:
    """An array inside an archive, read whole when it is first sliced.

    Args:
        path: of the archive.
        name: of the array.
        shape, dtype: as its head says.
    """

    def __init__(self, path: Path, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.path, self.name, self.shape, self.dtype = path, name, shape, dtype
        self._values: Array | None = None

    def __getitem__(self, index: Any) -> Array:
        if self._values is None:
            try:
                self._values = read_npz(self.path, (self.name,))[self.name]
            except ValueError as why:
                raise ValueError(f"{self.path}: {self.name} cannot be read ({why})") from None
        return np.asarray(self._values[index])
