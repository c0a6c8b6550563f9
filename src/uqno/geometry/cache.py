"""Values computed from a surface once and stored in a folder, one small file each."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.geometry.surface import Surface
from uqno.numpy_files import read_npy
from uqno.storage import write_npy


def cached(
    folder: Path | None,
    surface: Surface,
    recipe: tuple[Any, ...],
    shape: tuple[int, ...],
    compute: Callable[[], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """What `compute` returns for a surface, read from a folder if it is there.

    Args:
        folder: where values are stored; None computes them every time.
        surface: what they are computed from.
        recipe: what else they depend on, in words and numbers.
        shape: the shape of the values; a file with values of another shape is replaced.
        compute: returns the values.
    """
    if folder is None:
        return compute()
    digest = hashlib.sha256(repr(recipe).encode("utf8"))
    for part in (surface.points, surface.triangles):
        digest.update(np.ascontiguousarray(part).tobytes())
    file = folder / f"{digest.hexdigest()[:24]}.npy"
    try:
        stored: NDArray[np.float32] = read_npy(file)
        if stored.shape == shape and stored.dtype == np.float32:
            return stored
    except (OSError, ValueError, EOFError):  # absent or damaged
        pass
    values = compute()
    write_npy(file, values)
    return values
