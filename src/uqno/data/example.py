"""A synthetic problem to try the library on: smooth functions on a line, an imperfect surrogate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uqno.storage import write_file


def example(
    functions: int = 500, points: int = 256, seed: int = 0
) -> dict[str, NDArray[np.float32]]:
    """prediction, truth and uncertainty, each (functions, points).

    truth = Σ_k c_k sin(π k x) / k; the error is such a sum too, larger towards x = 1 and on some
    functions, and the uncertainty knows the first of these and half of the second.
    """
    rng = np.random.default_rng(seed)
    x, k = np.linspace(0, 1, points), np.arange(1, 9)
    waves = np.sin(np.pi * np.outer(k, x)) / k[:, np.newaxis]
    hardness = np.exp(0.5 * rng.standard_normal((functions, 1)))
    truth = rng.standard_normal((functions, k.size)) @ waves
    error = 0.05 * hardness * (0.2 + x) * (rng.standard_normal((functions, k.size)) @ waves + 0.2)
    arrays = {
        "prediction": truth - error,
        "truth": truth,
        "uncertainty": 0.05 * np.sqrt(hardness) * (0.2 + x),
    }
    return {name: values.astype(np.float32) for name, values in arrays.items()}


def write_example(path: str | Path, functions: int = 500, points: int = 256, seed: int = 0) -> None:
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"{path} must end in .npz")
    arrays = example(functions, points, seed)

    def write(aside: Path) -> None:
        with aside.open("wb") as out:  # an open file keeps NumPy from adding to the name
            np.savez(out, **arrays)  # type: ignore[arg-type]

    write_file(path, write)
