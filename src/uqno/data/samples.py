"""Arrays of functions on a grid as a sequence of samples {"a", "u", "weights"}."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

MEASURES = ("points", "area")


@lru_cache(maxsize=8)
def node_weights(shape: tuple[int, int], measure: str = "points") -> NDArray[np.float64]:
    """μ of each node, `shape`, with sum 1: all alike ("points"), or trapezoid areas ("area")."""
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {MEASURES}, got {measure!r}")
    sides = [np.ones(n) for n in shape]
    if measure == "area":
        for side in sides:
            side[[0, -1]] = 0.5
    weights = np.multiply.outer(*sides)
    normalised: NDArray[np.float64] = weights / weights.sum()
    normalised.flags.writeable = False  # one array serves all samples
    return normalised


@dataclass(frozen=True)
class GridSamples:
    """`data[i]` is {"a": (1, H, W), "u": (1, H, W), "weights": (H, W)}, float32 tensors.

    inputs, solutions: (functions, H, W) arrays, NumPy or anything that slices like it (a zarr array
    is read one function at a time); positions: which of them, in which order.
    """

    inputs: Any
    solutions: Any
    positions: tuple[int, ...]
    measure: str = "points"

    def __post_init__(self) -> None:
        if tuple(self.inputs.shape) != tuple(self.solutions.shape) or len(self.inputs.shape) != 3:
            raise ValueError(
                "inputs and solutions must have one shape (functions, H, W), got "
                f"{tuple(self.inputs.shape)} and {tuple(self.solutions.shape)}"
            )
        node_weights((1, 1), self.measure)

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, i: int) -> dict[str, "torch.Tensor"]:
        import torch

        position = self.positions[i]  # its IndexError ends a plain for loop
        height, width = self.inputs.shape[1:]
        return {
            "a": torch.from_numpy(self._read(self.inputs, position))[None],
            "u": torch.from_numpy(self._read(self.solutions, position))[None],
            "weights": torch.tensor(
                node_weights((height, width), self.measure), dtype=torch.float32
            ),
        }

    def __iter__(self) -> Iterator[dict[str, "torch.Tensor"]]:
        return (self[i] for i in range(len(self)))

    def _read(self, array: Any, where: Any) -> NDArray[np.float32]:
        try:
            values = np.array(array[where], dtype=np.float32)
        except Exception as error:
            raise ValueError(f"function {where} of {array} cannot be read: {error}") from error
        if np.isnan(values).any():
            raise ValueError(f"function {where} of {array} was never written or holds NaN")
        return values

    def subset(self, indices: Iterable[int]) -> "GridSamples":
        """The samples `indices` of this sequence, in that order, still unread."""
        return replace(self, positions=tuple(self.positions[i] for i in indices))

    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """All inputs and all solutions in memory, each (len(self), H, W)."""
        start, stop = min(self.positions, default=0), max(self.positions, default=-1) + 1
        rows = np.array(self.positions, dtype=int) - start
        inputs = self._read(self.inputs, slice(start, stop))[rows]
        return inputs, self._read(self.solutions, slice(start, stop))[rows]

    def in_memory(self) -> "GridSamples":
        """The same samples, read once: for training on a set that fits."""
        inputs, solutions = self.arrays()
        return replace(
            self, inputs=inputs, solutions=solutions, positions=tuple(range(len(inputs)))
        )
