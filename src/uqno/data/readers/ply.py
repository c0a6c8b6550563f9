"""Triangle meshes in the PLY format, ASCII or binary, with any further properties."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uqno.geometry.surface import Surface
from uqno.memory import check_memory

_TYPES = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "i2"),
    **dict.fromkeys(("ushort", "uint16"), "u2"),
    **dict.fromkeys(("int", "int32"), "i4"),
    **dict.fromkeys(("uint", "uint32"), "u4"),
    **dict.fromkeys(("float", "float32"), "f4"),
    **dict.fromkeys(("double", "float64"), "f8"),
}
_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}


# So many times the size of a file is taken while it is read: text becomes words, then numbers.
COPIES = 20


@dataclass(frozen=True)
class _Element:
    """A table of the file: how many rows, and a field for each property; a list gives two."""

    name: str
    rows: int
    dtype: list[tuple[str, str, tuple[int, ...]]]


def read_ply(path: Path) -> Surface:
    """The surface in a PLY file.

    Args:
        path: the file; its faces must be triangles.

    Raises:
        ValueError: the file is absent, damaged, or has other faces.
    """
    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    check_memory(str(path), COPIES * path.stat().st_size, "split the mesh")
    content = path.read_bytes()
    order, elements, begin = _header(path, content)
    tables = _ascii(path, content[begin:], elements) if order == "=" else None
    if tables is None:
        tables = _binary(path, content[begin:], elements)
    try:
        vertex, face = tables["vertex"], tables["face"]
        points = np.stack([vertex[axis] for axis in "xyz"], axis=1).astype(np.float64)
        count, corners = face["count"], face["list"].astype(np.int64)
    except (KeyError, ValueError) as why:
        raise ValueError(f"{path} lacks vertices x, y, z or faces: {why}") from None
    if not (count == 3).all() or (
        len(corners) and not 0 <= corners.min() <= corners.max() < len(points)
    ):
        raise ValueError(f"{path}: expected triangles of vertices 0 to {len(points) - 1}")
    return Surface(points, corners)


def _header(path: Path, content: bytes) -> tuple[str, list[_Element], int]:
    end = content.find(b"end_header")
    if not content.startswith(b"ply") or end < 0:
        raise ValueError(f"{path} is not a PLY file")
    begin = content.find(b"\n", end) + 1
    lines = [line.split() for line in content[:end].decode("ascii", "replace").splitlines()]
    declared = [words for words in lines if words and words[0] in ("format", "element", "property")]
    kind = (
        declared[0][1] if declared and declared[0][0] == "format" and len(declared[0]) > 1 else ""
    )
    if kind not in _ORDERS:
        raise ValueError(f"{path}: expected one of the formats {', '.join(_ORDERS)}")
    order, elements = _ORDERS[kind], list[_Element]()
    try:
        for words in declared[1:]:
            if words[0] == "element":
                elements.append(_Element(words[1], _count(words[2]), []))
            else:
                elements[-1].dtype.extend(_fields(words, order))
            np.dtype(elements[-1].dtype)  # refuses a name that is there twice
    except (KeyError, IndexError, ValueError) as why:
        raise ValueError(f"{path}: its header cannot be read at {words}: {why}") from None
    bare = [element.name for element in elements if not element.dtype]
    if bare:
        raise ValueError(f"{path}: its {bare[0]} table has no properties")
    return order, elements, begin


def _count(word: str) -> int:
    if not word.isdigit():
        raise ValueError("expected a number of rows")
    return int(word)


def _fields(words: list[str], order: str) -> list[tuple[str, str, tuple[int, ...]]]:
    if words[1] == "list":  # of the triangle's corners: always 3
        return [("count", order + _TYPES[words[2]], ()), ("list", order + _TYPES[words[3]], (3,))]
    return [(words[2], order + _TYPES[words[1]], ())]


def _binary(path: Path, body: bytes, elements: list[_Element]) -> dict[str, NDArray[np.void]]:
    tables, start = {}, 0
    for element in elements:
        dtype = np.dtype(element.dtype)
        stop = start + element.rows * dtype.itemsize
        if stop > len(body):
            raise ValueError(f"{path} ends early, in its {element.name} table, or has no triangles")
        tables[element.name] = np.frombuffer(body[start:stop], dtype)
        start = stop
    return tables


def _ascii(path: Path, body: bytes, elements: list[_Element]) -> dict[str, NDArray[np.void]]:
    lines = [line for line in body.decode("ascii", "replace").splitlines() if line.strip()]
    tables, start = {}, 0
    for element in elements:
        rows = lines[start : start + element.rows]
        start += element.rows
        dtype = np.dtype(element.dtype)
        try:
            if len(rows) < element.rows:
                raise ValueError(f"the file ends after {len(rows)} of {element.rows} rows")
            flat = np.array([line.split() for line in rows], dtype=np.float64)
            table = np.empty(element.rows, dtype)
            column = 0
            for name, _, shape in element.dtype:
                width = 3 if shape else 1
                some = flat[:, column : column + width]
                table[name] = some if shape else some[:, 0]
                column += width
        except (ValueError, IndexError) as why:
            raise ValueError(f"{path}: its {element.name} table cannot be read: {why}") from None
        tables[element.name] = table
    return tables
