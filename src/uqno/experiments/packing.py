"""Arrays as text in JSON, for a page without Python to read."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np

from uqno.types import Reals


class Packed(TypedDict):
    """An array as base64: little-endian float32, or integers 0 … top that run from low to high."""

    kind: str
    """"float32", "uint16", "uint8", "index16": whole numbers 0 … 65535 as they are, or
    "constant": low everywhere, no data."""
    shape: list[int]
    low: float
    high: float
    data: str


def packed(values: Any, kind: str = "float32") -> Packed:
    """An array as text; integers are off by at most half a step, (high − low) / top / 2.

    >>> unpacked(packed([[1.0, 2.0]], "uint8")).tolist()
    [[1.0, 2.0]]
    """
    x = np.asarray(values, dtype=np.float64)
    if kind == "index16":
        return _indices(x)
    finite = x[np.isfinite(x)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if kind != "float32":
        if finite.size != x.size:
            raise ValueError(f"{x.size - finite.size} values are not finite: pack as float32")
        if low == high:
            return Packed(kind="constant", shape=list(x.shape), low=low, high=high, data="")
        top = np.iinfo(kind).max
        x = np.round((x - low) / (high - low) * top)
    data = b64encode(x.astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")
    return Packed(kind=kind, shape=list(x.shape), low=low, high=high, data=data)


def _indices(x: Reals) -> Packed:
    """Corners of triangles: exact, so that any number that is no index is refused."""
    top = np.iinfo(np.uint16).max
    if not ((x >= 0) & (x <= top) & (x == np.floor(x))).all():
        raise ValueError(f"index16 holds whole numbers 0 … {top}, got others: pack as float32")
    data = b64encode(x.astype("<u2").tobytes()).decode("ascii")
    return Packed(kind="index16", shape=list(x.shape), low=0.0, high=float(top), data=data)


def unpacked(content: Packed) -> Reals:
    """What a page reads out of `packed`."""
    if content["kind"] == "constant":
        return np.full(content["shape"], content["low"])
    name = "uint16" if content["kind"] == "index16" else content["kind"]
    kind = np.dtype(name).newbyteorder("<")
    x = (
        np.frombuffer(b64decode(content["data"]), dtype=kind)
        .reshape(content["shape"])
        .astype(float)
    )
    if content["kind"] in ("float32", "index16"):
        return np.asarray(x)
    top = np.iinfo(name).max
    return np.asarray(content["low"] + x * ((content["high"] - content["low"]) / top))


@dataclass
class Shelf:
    """Fields by number; the same field is stored once (methods share predictions)."""

    fields: list[Packed] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def put(self, values: Any, kind: str = "uint16") -> int:
        content = packed(values, kind)
        place = self.places.setdefault(json.dumps(content), len(self.fields))
        if place == len(self.fields):
            self.fields.append(content)
        return place

    def put_some(self, values: Any | None, kind: str) -> int | None:
        """`put`, of what there may not be."""
        return None if values is None else self.put(values, kind)
