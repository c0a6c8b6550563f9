"""How one function is shown: what is drawn of its fields, on a grid or on a surface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from uqno.types import Array


class Domain(TypedDict):
    """Where the functions of a task live.

    "grid": a rectangle, fields (x, y) with both ends of each side. "surface": a mesh of its own
    for each function.
    """

    kind: str
    nodes: list[int]
    """As calibrated and tested; the fields that are shown may be thinner."""
    unit: str | None
    """The unit of truth, error and uncertainty, such as "Pa"; None for pure numbers."""


@dataclass(frozen=True)
class Scene:
    """Where the values of one function are, for pictures.

    Args:
        coordinates: one increasing array (n,) a side of a grid; or the points (n, 3) of a surface.
        thin: a field (*points) → the part of it that is shown, (x, y) on a grid, (n,) on a surface.
        cut_at: coordinates along a line through the function.
        cut: a field (*points) → its values there.
        input: the input of the function, thinned; None where the input is the surface itself.
        triangles: (t, 3) of a surface, whose outer side is seen counterclockwise.
    """

    coordinates: tuple[Array, ...] | Array
    thin: Callable[[Array], Array]
    cut_at: Array
    cut: Callable[[Array], Array]
    input: Array | None = None
    triangles: Array | None = None

    @property
    def points(self) -> Array | None:
        """(n, 3) of a surface, None on a grid."""
        return None if isinstance(self.coordinates, tuple) else self.coordinates


def grid_scene(input: Array, most: int, axes: tuple[Array, Array] | None = None) -> Scene:
    """A function on a grid, cut through its middle.

    Args:
        input: (x, y), what the function was computed from.
        most: nodes a side that are shown at most.
        axes: the coordinates along each side; 0 … 1 by default.
    """
    sides = input.shape
    if len(sides) != 2:
        raise ValueError(f"input has shape {sides}: expected (x, y), functions of two coordinates")
    x, y = axes or (np.linspace(0, 1, sides[0]), np.linspace(0, 1, sides[1]))
    step = tuple(slice(None, None, thinning(nodes, most)) for nodes in sides)
    return Scene(
        coordinates=(x, y),
        thin=lambda field: field[step],
        cut_at=y[step[1]],
        cut=lambda field: field[sides[0] // 2, step[1]],
        input=input[step],
    )


def thinning(nodes: int, most: int) -> int:
    """The smallest s for which every s-th of `nodes` are at most `most`, both ends among them.

    The record of nine methods at 421 × 421 would be 30 MB, and no figure has so many dots.

    >>> thinning(43, 64), thinning(421, 64)
    (1, 7)
    """
    step = max(1, -(-(nodes - 1) // (most - 1)))
    while (nodes - 1) % step:
        step += 1
    return step
