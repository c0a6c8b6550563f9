"""A synthetic problem to try the library on: smooth functions on a line, an imperfect surrogate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uqno.storage import write_npz


def example(
    functions: int = 500, points: int = 256, seed: int = 0
) -> dict[str, NDArray[np.float32]]:
    """Predictions, truths and uncertainties of a surrogate of smooth functions on a line.

    The truth is Σ_k c_k sin(π k x) / k. The error is such a sum too, larger towards x = 1 and on
    some functions; the uncertainty knows the first of these and half of the second.

    Args:
        functions: how many.
        points: equidistant in [0, 1].
        seed: of the random coefficients.

    Returns:
        "prediction", "truth" and "uncertainty", each (functions, points).
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
    """Write `example` as a file that `uqno calibrate` reads.

    Args:
        path: ends in .npz.
        functions: how many.
        points: equidistant in [0, 1].
        seed: of the random coefficients.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"{path} must end in .npz")
    write_npz(path, example(functions, points, seed))
