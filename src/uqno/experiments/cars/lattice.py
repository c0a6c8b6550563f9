"""One topology for all cars: the surface of a box of 40 × 24 × 13 cells.

Its lattice has 2(40·24 + 24·13 + 13·40) + 2 = 3586 points, and two triangles a square make
7168, with no pole where triangles crowd. Refined k times, the box has 40k × 24k × 13k cells, and
the points of the coarse one are among its own.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from uqno.types import Integers, Reals

CELLS = (40, 24, 13)  # along, across (even: a line of vertices in the symmetry plane), upwards


@lru_cache(maxsize=4)
def _keys(refine: int) -> Integers:
    """Sorted keys ((i · n_j) + j) · n_k + k of the points (i, j, k) on the box's surface."""
    if refine < 1:
        raise ValueError(f"refine must be at least 1, got {refine}")
    faces = [_face_keys(refine, axis, last) for axis in range(3) for last in (False, True)]
    return _frozen(np.unique(np.concatenate([face.ravel() for face in faces])))


def _sizes(refine: int) -> tuple[int, int, int]:
    i, j, k = (cells * refine + 1 for cells in CELLS)
    return i, j, k


def _face_keys(refine: int, axis: int, last: bool) -> Integers:
    """Keys of the points of a face, as a grid over the two other axes in their order."""
    sizes = _sizes(refine)
    ranges = [np.arange(n) for n in sizes]
    ranges[axis] = ranges[axis][-1:] if last else ranges[axis][:1]
    i, j, k = np.ix_(*ranges)
    keys: Integers = ((i * sizes[1] + j) * sizes[2] + k).squeeze(axis)
    return keys


@lru_cache(maxsize=4)
def lattice(refine: int = 1) -> Integers:
    """Integer coordinates (n, 3) of the points, in lexicographic order; n = 3584 refine² + 2."""
    return _frozen(np.stack(np.unravel_index(_keys(refine), _sizes(refine)), axis=1))


@lru_cache(maxsize=4)
def box_points(refine: int = 1) -> Reals:
    """The points on the box [−1, 1]³, (n, 3)."""
    points: Reals = 2.0 * lattice(refine) / (np.array(CELLS) * refine) - 1
    points.flags.writeable = False
    return points


def _numbers(refine: int, points: Integers) -> Integers:
    """The numbers (m) of lattice points (m, 3)."""
    keys = np.ravel_multi_index(tuple(points.T), _sizes(refine))
    numbers: Integers = np.searchsorted(_keys(refine), keys)
    return numbers


@lru_cache(maxsize=4)
def triangles(refine: int = 1) -> Integers:
    """(7168 refine², 3), outward. One half is the mirror image of the other, y → −y."""
    squares = np.concatenate(
        [_squares(refine, axis, last) for axis in range(3) for last in (False, True)]
    )
    across = lattice(refine)[squares, 1].sum(axis=1)
    left = squares[across > 4 * CELLS[1] * refine // 2]  # the middle of a square is never in y = 0
    half = left[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    return _frozen(np.concatenate([half, mirror(refine)[half][:, ::-1]]))


def _squares(refine: int, axis: int, last: bool) -> Integers:
    """Corners (s, 4) of the squares of a face, outward."""
    face = np.searchsorted(_keys(refine), _face_keys(refine, axis, last))
    corners = np.stack([face[:-1, :-1], face[1:, :-1], face[1:, 1:], face[:-1, 1:]], axis=-1)
    corners = corners.reshape(-1, 4)
    # From the first of the other two axes to the second is outward on the last face of x and z.
    return corners if last != (axis == 1) else corners[:, ::-1]


@lru_cache(maxsize=4)
def mirror(refine: int = 1) -> Integers:
    """The vertex (n) that is the mirror image y → −y of each vertex."""
    mirrored = lattice(refine).copy()
    mirrored[:, 1] = CELLS[1] * refine - mirrored[:, 1]
    return _frozen(_numbers(refine, mirrored))


def coarse(refine: int) -> Integers:
    """Which points of the refined box are those of the plain one: (3586,)."""
    return _numbers(refine, lattice() * refine)


def _frozen(values: NDArray[np.int64]) -> Integers:
    values.flags.writeable = False  # one array serves all cars
    return values
