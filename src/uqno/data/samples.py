"""Samples: what is known of one function, on a grid or on a geometry, as fields by name.

Two types say which fields there are and of which shapes. A plain dict with these fields is as good
everywhere, and may hold more fields for an operator of its own.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from uqno.data.checks import check_finite
from uqno.memory import check_memory
from uqno.types import Array, Reals

if TYPE_CHECKING:
    from torch import Tensor

MEASURES = ("points", "area")


class GridSample(TypedDict):
    """One function on a regular grid. All fields are float tensors."""

    a: "Tensor"
    """The input, (channel, *grid)."""
    u: NotRequired["Tensor"]
    """The truth, (channel, *grid), to train, calibrate and test with."""
    weights: NotRequired["Tensor"]
    """The measure μ of the nodes, (*grid); all alike where it is absent."""


class GeometrySample(TypedDict):
    """One function on a geometry given by points, such as the vertices of a surface.

    n points, and q points at which an answer is wanted: the `queries`, or the n points themselves
    where there are none. All fields are float tensors.
    """

    points: "Tensor"
    """(n, d)."""
    normals: "Tensor"
    """Outward unit normals at the points, (n, d)."""
    features: NotRequired["Tensor"]
    """What else is known at the points, (n, channel)."""
    surface_weights: NotRequired["Tensor"]
    """The area of each point, (n,)."""
    sdf: NotRequired["Tensor"]
    """The signed distance at the nodes of the operator's latent grid, (*latent)."""
    queries: NotRequired["Tensor"]
    """(q, d)."""
    query_normals: NotRequired["Tensor"]
    """(q, d); those of the nearest points where they are absent."""
    query_features: NotRequired["Tensor"]
    """(q, channel); those of the nearest points where they are absent."""
    u: NotRequired["Tensor"]
    """The truth, (channel, q), to train, calibrate and test with."""
    weights: NotRequired["Tensor"]
    """The measure μ where an answer is wanted, (q,); all alike where it is absent."""


@lru_cache(maxsize=8)
def node_weights(shape: tuple[int, int], measure: str = "points") -> Reals:
    """The measure μ of the nodes of a grid, with sum 1.

    Args:
        shape: the number of nodes along each side.
        measure: "points" weighs the nodes alike, as the paper counts them; "area" by the area
            that each stands for (half on an edge, a quarter in a corner).

    Returns:
        Weights of that shape, which cannot be written to.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {MEASURES}, got {measure!r}")
    sides = [np.ones(n) for n in shape]
    if measure == "area":
        for side in sides:
            side[[0, -1]] = 0.5
    weights = np.multiply.outer(*sides)
    normalised: Reals = weights / weights.sum()
    normalised.flags.writeable = False  # one array serves all samples
    return normalised


@dataclass(frozen=True)
class GridSamples:
    """A sequence of grid samples (`a` and `u` (1, H, W), `weights` (H, W), float32) from arrays.

    Args:
        inputs: a of all functions, (functions, H, W): NumPy or anything that slices like it (a
            zarr array is read one function at a time).
        solutions: u of all functions, of the same shape.
        positions: which functions, in which order.
        measure: how nodes are weighed, see `node_weights`.
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

    @staticmethod
    def from_file(
        path: str | os.PathLike[str], inputs: Array, solutions: Array, measure: str = "points"
    ) -> "GridSamples":
        """All functions of two arrays that were read from a file.

        Args:
            path: the file, to name in errors.
            inputs: (n, H, W) or (n, 1, H, W), of any type of number.
            solutions: of the same shape.
            measure: how nodes are weighed, see `node_weights`.
        """
        both = []
        for array in (inputs, solutions):
            plain = array[:, 0] if array.ndim == 4 and array.shape[1] == 1 else array
            both.append(np.ascontiguousarray(plain, dtype=np.float32))
        if both[0].ndim != 3 or both[0].shape != both[1].shape:
            raise ValueError(
                f"{path}: inputs and solutions must have one shape (n, H, W), got {inputs.shape} "
                f"and {solutions.shape}"
            )
        return GridSamples(both[0], both[1], tuple(range(len(both[0]))), measure)

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, i: int) -> GridSample:
        import torch

        position = self.positions[i]  # its IndexError ends a plain for loop
        height, width = self.inputs.shape[1:]
        weights = node_weights((height, width), self.measure)
        return {
            "a": torch.from_numpy(self._read("a", self.inputs, position))[None],
            "u": torch.from_numpy(self._read("u", self.solutions, position))[None],
            "weights": torch.tensor(weights, dtype=torch.float32),
        }

    def __iter__(self) -> Iterator[GridSample]:
        return (self[i] for i in range(len(self)))

    def _read(self, name: str, array: Any, where: int | slice) -> NDArray[np.float32]:
        source = "an array in memory" if isinstance(array, np.ndarray) else str(array)
        what = f"function {where} of {source}"
        if isinstance(where, slice):
            what = f"functions {where.start} to {where.stop - 1} of {source}"
        if isinstance(where, slice) and not isinstance(array, np.ndarray):
            size = 4 * (where.stop - where.start) * prod(array.shape[1:])
            check_memory(f"{name} of {what}", size, "take fewer functions")
        try:
            values = np.array(array[where], dtype=np.float32)
        except Exception as why:  # a damaged chunk, whatever the store calls it
            raise ValueError(f"{name} of {what} cannot be read: {why}") from why
        check_finite(name, what, values, "write or repair it, or leave it out")
        return values

    def subset(self, indices: Iterable[int]) -> "GridSamples":
        """The samples `indices` of this sequence, in that order, not read yet."""
        return replace(self, positions=tuple(self.positions[i] for i in indices))

    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """All inputs and all solutions in memory, each (len(self), H, W)."""
        start, stop = min(self.positions, default=0), max(self.positions, default=-1) + 1
        rows = np.array(self.positions, dtype=int) - start
        inputs = self._read("a", self.inputs, slice(start, stop))[rows]
        return inputs, self._read("u", self.solutions, slice(start, stop))[rows]

    def in_memory(self) -> "GridSamples":
        """The same samples, read once: for training on a set that fits."""
        inputs, solutions = self.arrays()
        return replace(
            self, inputs=inputs, solutions=solutions, positions=tuple(range(len(inputs)))
        )
