"""What is found from a surface once, and kept in a folder: one small file each."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.geometry.surface import Surface
from uqno.storage import write_file


def kept(
    cache: Path | None,
    body: Surface,
    recipe: tuple[Any, ...],
    shape: tuple[int, ...],
    make: Callable[[], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """`make()` of that shape, read from `cache` if it is there; recipe: what it depends on
    beside the body, in words and numbers."""
    if cache is None:
        return make()
    content = hashlib.sha256(repr(recipe).encode("utf8"))
    for part in (body.points, body.triangles):
        content.update(np.ascontiguousarray(part).tobytes())
    file = cache / f"{content.hexdigest()[:24]}.npy"
    try:
        values: NDArray[np.float32] = np.load(file, allow_pickle=False)
        if values.shape == shape and values.dtype == np.float32:
            return values
    except (OSError, ValueError, EOFError):  # absent or damaged: made anew
        pass
    made = make()
    write_file(file, lambda aside: _save(aside, made))
    return made


def _save(path: Path, values: NDArray[np.float32]) -> None:
    with path.open("wb") as file:  # np.save would append a suffix to the name
        np.save(file, values)
