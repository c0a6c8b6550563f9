"""NumPy's files as data: nothing is unpickled, nothing is allocated that the budget does not allow.

A .npy file declares a shape, a .npz file also how large each array is once it is decompressed. Both
are compared with each other, with the size of the file and with the memory budget before an array
is made. Archives are stored or deflated, as NumPy writes them: other compressions may ask for
gigabytes to decompress a byte.
"""

from __future__ import annotations

import io
import os
import stat
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from uqno.memory import check_memory
from uqno.types import Array

# NumPy refuses longer heads too, but only after it has read them.
LONGEST_HEAD = 16_384
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
HEADS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# How the standard library and NumPy fail on damaged files.
DAMAGED = (
    OSError, EOFError, ValueError, AttributeError, KeyError, TypeError, SyntaxError, RuntimeError,
    RecursionError, MemoryError, NotImplementedError, zlib.error, zipfile.BadZipFile,
    tokenize.TokenError,
)  # fmt: skip


@dataclass(frozen=True)
class Head:
    """What the head of a .npy file declares.

    Args:
        shape: of the array.
        fortran: whether its values lie in Fortran's order.
        dtype: of its values.
        begin: where they begin in the file.
    """

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    begin: int

    @property
    def size(self) -> int:
        """The bytes of the values."""
        return self.dtype.itemsize * prod(self.shape)


def read_head(stream: IO[bytes], size: int, what: str) -> Head:
    """The head of a .npy file, of which at most 16 KB are read.

    Args:
        stream: the file, at its begin.
        size: how many bytes it has.
        what: it is, to name in messages.

    Raises:
        ValueError: it is no such file, holds Python objects, or is not as long as it declares.
    """
    start = io.BytesIO(stream.read(LONGEST_HEAD))
    try:
        version = np.lib.format.read_magic(start)
        shape, fortran, dtype = HEADS[version](start)
    except DAMAGED as why:
        raise ValueError(f"{what} is no array of NumPy ({type(why).__name__}: {why})") from None
    if dtype.hasobject:
        raise ValueError(f"{what} holds Python objects, expected numbers")
    head = Head(shape, fortran, dtype, start.tell())
    if min(shape, default=0) < 0 or head.begin + head.size != size:
        raise ValueError(
            f"{what} declares the shape {shape} of {dtype}, {head.size} bytes, but has "
            f"{size - head.begin}: it is truncated or damaged"
        )
    return head


def read_npy(path: str | Path) -> Array:
    """The array in a .npy file.

    Raises:
        FileNotFoundError: there is none.
        ValueError: the file is damaged, holds Python objects, or is larger than the budget.
    """
    with open(path, "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise ValueError(f"{path} is no regular file")
        head = read_head(file, state.st_size, str(path))
        check_memory(str(path), head.size, "map it with numpy.load(mmap_mode='r')")
        file.seek(0)
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def members_of(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an opened .npz file by name; of two with one name the last, as NumPy reads."""
    there = {info.filename: info for info in archive.infolist() if info.filename.endswith(".npy")}
    return {name.removesuffix(".npy"): info for name, info in there.items()}


def open_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, what: str
) -> tuple[IO[bytes], Head]:
    """An array inside an archive: a stream that stands where its values begin, and its head.

    Raises:
        ValueError: it is compressed in another way than NumPy does, or no array.
    """
    if info.compress_type not in COMPRESSIONS:
        raise ValueError(
            f"{what} is compressed by method {info.compress_type} of zip, expected 0 or 8 as "
            "NumPy writes: write it again with numpy.savez_compressed"
        )
    stream = archive.open(info)
    try:
        head = read_head(stream, info.file_size, what)
        stream.seek(head.begin)
    except BaseException:
        stream.close()
        raise
    return stream, head


def read_npz(path: str | Path, names: tuple[str, ...] | None = None) -> dict[str, Array]:
    """Arrays of a .npz file in memory, by name.

    Args:
        path: the file.
        names: which; all by default.

    Raises:
        ValueError: the file is absent, damaged, holds Python objects, lacks one of the names, or
            its arrays are together larger than the budget.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = members_of(archive)
            chosen = tuple(members) if names is None else names
            total = sum(members[name].file_size for name in chosen)
            check_memory(str(path), total, "store fewer or smaller arrays in a file")
            return {name: _read_member(archive, members[name], path) for name in chosen}
    except ValueError:
        raise
    except DAMAGED as why:
        raise ValueError(f"{path} is not whole, truncated or foreign ({why})") from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str | Path) -> Array:
    stream, head = open_member(archive, info, f"{path}: {info.filename.removesuffix('.npy')}")
    with stream:
        content = bytearray(head.size)
        view, there = memoryview(content), 0
        while there < head.size and (block := stream.read(min(2**24, head.size - there))):
            view[there : there + len(block)] = block
            there += len(block)
        stream.read()  # to the end, where the checksum is compared
    if there < head.size:
        raise ValueError(f"{path}: {info.filename} ends early; the file is truncated")
    order: Any = "F" if head.fortran else "C"
    return np.ndarray(head.shape, head.dtype, buffer=content, order=order)
