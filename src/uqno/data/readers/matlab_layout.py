"""Whether a MATLAB file of version 5 is laid out as it says, before a parser in C believes it.

    128 bytes of header, then elements: type, size, content, filled up to 8 bytes; small ones in 8
    an array is an element of elements: flags, dimensions, name, real part, imaginary part

SciPy's parser trusts sizes and kinds: a damaged file ends the process instead of an error. What is
no array of numbers (text, cells, structures, objects) is left out, and never parsed.

Reference: MathWorks, MAT-File Format, version 5 (2024).
"""

from __future__ import annotations

import zlib
from math import prod
from pathlib import Path
from typing import BinaryIO, Final, Literal

Order = Literal["little", "big"]
HEADER: Final = 128
MATRIX, COMPRESSED = 14, 15
# Bytes of a number of each type of content, and of each class of array.
SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
NUMERIC: Final = range(6, 16)
COMPLEX: Final = 0x0800
HEAD: Final = 2**12  # of an array: its flags, dimensions and name
PIECE: Final = 2**20


def numeric_names(path: Path) -> list[str] | None:
    """The arrays of numbers in a file of version 5, all of them whole; None for another version.

    Raises:
        ValueError: the file is not laid out as it says.
    """
    try:
        return _names(path)
    except ValueError as why:
        raise ValueError(f"{path} is not a MATLAB file, or damaged: {why}") from None


def _names(path: Path) -> list[str] | None:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEADER)
        if len(head) < HEADER or head[126:128] not in (b"IM", b"MI"):
            return None
        order: Order = "little" if head[126:128] == b"IM" else "big"
        names, place = [], HEADER
        while place < size:
            kind, length, start = _tag(file.read(8), order)
            if start != 8 or kind not in (MATRIX, COMPRESSED) or place + 8 + length > size:
                raise ValueError(f"it is cut short at the element that begins at byte {place}")
            begins, inside = _content(file, kind, length, order)
            name = _checked(begins, inside, order)
            if name is not None:
                names.append(name)
            place += 8 + length
            file.seek(place)
    return names


def _tag(raw: bytes, order: Order) -> tuple[int, int, int]:
    """(type, bytes, where the content begins) of an element; small ones are packed into the tag."""
    if len(raw) < 8:
        raise ValueError("the file is cut short within an element")
    first = int.from_bytes(raw[:4], order)
    if first >> 16:
        return first & 0xFFFF, first >> 16, 4
    return first, int.from_bytes(raw[4:8], order), 8


def _content(file: BinaryIO, kind: int, length: int, order: Order) -> tuple[bytes, int]:
    """The beginning of an array and all its bytes, of which a compressed one has to be unpacked."""
    if kind == MATRIX:
        return file.read(min(length, HEAD)), length
    unpack, begins, total, left = zlib.decompressobj(), b"", 0, length
    try:
        while left or unpack.unconsumed_tail:
            raw = unpack.unconsumed_tail or file.read(min(left, PIECE))
            left -= 0 if unpack.unconsumed_tail else len(raw)
            piece = unpack.decompress(raw, PIECE)
            if not piece and not raw:
                break
            begins += piece[: HEAD + 8 - len(begins)]
            total += len(piece)
            if unpack.eof:
                break
    except zlib.error as why:
        raise ValueError(f"a compressed array is damaged: {why}") from None
    inner, declared, start = _tag(begins, order)
    if inner != MATRIX or start != 8 or declared + 8 > total:
        raise ValueError("a compressed array is cut short, or is none")
    return begins[8:], declared


def _checked(begins: bytes, inside: int, order: Order) -> str | None:
    """The name of an array whose parts are as long as they must be; None for no numbers."""
    parts, place = [], 0
    for _ in range(4):
        kind, length, start = _tag(begins[place : place + 8], order)
        parts.append((kind, begins[place + start : place + start + length], length))
        if place + start + length > inside:
            raise ValueError("a part of an array is longer than the array")
        place += 8 if start == 4 else 8 + -(-length // 8) * 8
        if len(parts) == 1 and (kind, length) != (6, 8):
            raise ValueError("an array has no flags")
        if len(parts) == 1 and parts[0][1][:4] and not _is_numeric(parts[0][1], order):
            return None
    (_, raw, _), (dims_kind, dims_raw, dims_length), (name_kind, name, name_length), data = parts
    dims = [int.from_bytes(dims_raw[i : i + 4], order, signed=True)
            for i in range(0, len(dims_raw), 4)]  # fmt: skip
    if dims_kind != 5 or not 2 <= len(dims) <= 32 or dims_length % 4 or min(dims) < 0:
        raise ValueError(f"an array has the dimensions {dims[:8]}")
    if name_kind != 1 or not 1 <= name_length <= 63 or not name.isascii():
        raise ValueError("an array has no name")
    if SIZES.get(data[0], 0) * prod(dims) != data[2]:
        raise ValueError(f"{name.decode()} has {data[2]} bytes for the dimensions {dims}")
    flags = int.from_bytes(raw[:4], order)
    if flags & COMPLEX and place + data[2] > inside:
        raise ValueError(f"{name.decode()} lacks its imaginary part")
    return name.decode()


def _is_numeric(flags: bytes, order: Order) -> bool:
    return int.from_bytes(flags[:4], order) & 0xFF in NUMERIC
