"""One topology for all cars: the surface of a box of 40 × 24 × 13 cells.

Its lattice has 2(40·24 + 24·13 + 13·40) + 2 = 3586 points, and two triangles a square make
7168, with no pole where triangles crowd. Refined k times, the box has 40k × 24k × 13k cells, and
the points of the coarse one are among its own.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from uqno.data.cars.surface import Array, Indices

CELLS = (40, 24, 13)  # along, across (even: a line of vertices in the symmetry plane), upwards


@lru_cache(maxsize=4)
def lattice(refine: int = 1) -> Indices:
    """Integer coordinates (n, 3) of the points, in lexicographic order; n = 3584 refine² + 2."""
    if refine < 1:
        raise ValueError(f"refine must be at least 1, got {refine}")
    sizes = np.array(CELLS) * refine
    all_points = np.indices(tuple(sizes + 1)).reshape(3, -1).T
    outside = ((all_points == 0) | (all_points == sizes)).any(axis=1)
    return _frozen(all_points[outside])


@lru_cache(maxsize=4)
def box_points(refine: int = 1) -> Array:
    """The points on the box [−1, 1]³, (n, 3)."""
    points = 2.0 * lattice(refine) / (np.array(CELLS) * refine) - 1
    points.flags.writeable = False
    return points


def _numbers(refine: int) -> Indices:
    """The number of the point at each lattice coordinate, −1 inside the box."""
    number = np.full(np.array(CELLS) * refine + 1, -1)
    points = lattice(refine)
    number[tuple(points.T)] = np.arange(len(points))
    return number


@lru_cache(maxsize=4)
def triangles(refine: int = 1) -> Indices:
    """(7168 refine², 3), outward. One half is the mirror image of the other, y → −y."""
    number = _numbers(refine)
    squares = [
        square
        for axis in range(3)
        for outward, face in (
            (False, number.take(0, axis)),
            (True, number.take(-1, axis)),
        )
        for square in _squares(face, outward if axis != 1 else not outward)
    ]
    left = np.concatenate(squares)
    # A square of the left half has a corner beyond the plane and none before it.
    across = lattice(refine)[:, 1][left]
    left = left[across.sum(axis=1) > 4 * CELLS[1] * refine // 2]
    half = left[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    return _frozen(np.concatenate([half, mirror(refine)[half][:, ::-1]]))


def _squares(face: Indices, forwards: bool) -> list[Indices]:
    """Corners (s, 4) of the squares of a face, turning from its first axis to its second."""
    corners = np.stack([face[:-1, :-1], face[1:, :-1], face[1:, 1:], face[:-1, 1:]], axis=-1)
    corners = corners.reshape(-1, 4)
    return [corners if forwards else corners[:, ::-1]]


@lru_cache(maxsize=4)
def mirror(refine: int = 1) -> Indices:
    """The vertex (n) that is the mirror image y → −y of each vertex."""
    mirrored = lattice(refine).copy()
    mirrored[:, 1] = CELLS[1] * refine - mirrored[:, 1]
    return _frozen(_numbers(refine)[tuple(mirrored.T)])


def coarse(refine: int) -> Indices:
    """Which points of the refined box are those of the plain one: (3586,)."""
    return _numbers(refine)[tuple(lattice().T * refine)]


def _frozen(values: NDArray[np.int64]) -> Indices:
    values.flags.writeable = False  # one array serves all cars
    return values
