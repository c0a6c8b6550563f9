"""A `uqno.data.FunctionStore`, as `uqno data darcy` writes it: functions at several resolutions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from uqno.data.labels import Coordinate
from uqno.data.readers.contract import Reader
from uqno.data.variables import Content, Variable

ARRAYS = ("inputs", "solutions")


class Stored(Reader):
    """Arrays N/inputs and N/solutions, (function, x, y); those of the finest grid by default."""

    suffixes = (".zarr",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        from uqno.data.store import FORMAT

        try:
            head = json.loads((path / "zarr.json").read_text(encoding="utf8"))
            return bool(head["attributes"]["format"] == FORMAT)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def open(self, path: Path) -> Content:
        from uqno.data.store import FunctionStore

        store = FunctionStore.open(path)
        done = len(store.available())
        if done < store.count:
            raise ValueError(
                f"{path} is unfinished, it has {done} of {store.count} functions: run its "
                "generation to its end"
            )
        variables: dict[str, Variable] = {}
        coordinates: dict[str, Coordinate] = {}
        for n in store.resolutions:
            axes = (f"x{n}", f"y{n}")
            places = np.linspace(0.0, 1.0, n)
            coordinates |= {axis: Coordinate((axis,), places, {}) for axis in axes}
            for name in (f"{n}/{array}" for array in ARRAYS):
                variables[name] = Variable(name, store.group[name], ("function", *axes))
        finest = max(store.resolutions)
        inputs, outputs = ((f"{finest}/{array}",) for array in ARRAYS)
        return Content(str(path), variables, coordinates, {}, inputs, outputs, "functions of uqno")
