"""Signed distance to a closed triangle surface: negative inside, at any points.

The triangles whose middles are nearest give an upper bound, by a kd-tree; a triangle is nearer than
its middle by its reach at most, so few others can come below the bound, and these are looked at.
The result is exact, whatever the sizes of the triangles.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from uqno.geometry.cache import cached
from uqno.geometry.surface import Surface
from uqno.types import Box, Integers, Reals

BOUND_BY = 4  # triangles that give the upper bound
CHUNK = 256  # points worked on at once


def signed_distance(body: Surface, points: Reals) -> Reals:
    """±min_p |x − p| over the points p of a surface, for each of several points x.

    Args:
        body: a closed surface with outward normals.
        points: x, (L, 3).

    Returns:
        The distances, (L,), negative inside.
    """
    corners = body.points[body.triangles]
    middles = corners.mean(axis=1)
    reach = np.linalg.norm(corners - middles[:, None], axis=2).max(axis=1)
    tree, widest = cKDTree(middles), reach.max()
    parts = []
    for start in range(0, len(points), CHUNK):
        x = points[start : start + CHUNK]
        _, few = tree.query(x, k=np.arange(1, min(BOUND_BY, len(middles)) + 1))
        offset = x[:, None] - _closest(x[:, None], corners[few])
        bound = np.sqrt(_dot(offset, offset).min(axis=1))
        bound = bound * (1 + 1e-9) + 1e-12  # those at the same distance decide the side too
        around = tree.query_ball_point(x, bound + widest)
        owner = np.repeat(np.arange(len(x)), [len(some) for some in around])
        triangle = np.concatenate(around).astype(np.int64)
        away = middles[triangle] - x[owner]
        possible = _dot(away, away) <= (bound[owner] + reach[triangle]) ** 2
        parts.append(_to_nearest(body, x, owner[possible], triangle[possible]))
    return np.concatenate(parts) if parts else np.empty(0)


def _to_nearest(body: Surface, x: Reals, owner: Integers, triangle: Integers) -> Reals:
    """Signed distance of each x, (m, 3), to the nearest of its candidate triangles, (m,).

    Pair i is the point owner[i] and the triangle triangle[i], both (p,), owners ascending.
    """
    offset = x[owner] - _closest(x[owner], body.points[body.triangles[triangle]])
    squared = _dot(offset, offset)
    begin = np.searchsorted(owner, np.arange(len(x)))
    least = np.minimum.reduceat(squared, begin)
    vectors = body.area_vectors[triangle]
    area = np.sqrt(_dot(vectors, vectors))
    height = _dot(offset, vectors) / np.where(area > 0, area, 1)
    # Nearest to an edge or a corner, x belongs to several triangles; the one that it stands over
    # most upright decides the side.
    tied = squared <= least[owner] * (1 + 1e-9) + 1e-24
    upright = np.where(tied, np.abs(height), -1.0)
    decides = upright == np.maximum.reduceat(upright, begin)[owner]
    inside = np.zeros(len(x), dtype=bool)
    inside[owner[decides]] = height[decides] < 0
    distance: Reals = np.sqrt(least) * np.where(inside, -1.0, 1.0)
    return distance


def _closest(x: Reals, corners: Reals) -> Reals:
    """The point of each triangle, corners (…, 3, 3), that is nearest to x, (…, 3)."""
    a, b, c = (corners[..., i, :] for i in range(3))
    foot, is_inside = _on_plane(x, a, b, c)
    options = [foot, *(_on_segment(x, *ends) for ends in ((a, b), (b, c), (c, a)))]
    squared = np.stack([_dot(x - option, x - option) for option in options])
    squared[0][~is_inside] = np.inf
    nearest: Reals = np.choose(squared.argmin(axis=0)[..., None], options)
    return nearest


def _on_segment(x: Reals, a: Reals, b: Reals) -> Reals:
    """The point between a and b that is nearest to x, all (…, 3)."""
    along = b - a
    length = _dot(along, along)
    t = _dot(x - a, along) / np.where(length > 0, length, 1)
    point: Reals = a + np.clip(t, 0, 1)[..., None] * along
    return point


def _on_plane(x: Reals, a: Reals, b: Reals, c: Reals) -> tuple[Reals, NDArray[np.bool_]]:
    """The foot of the perpendicular, and whether it lies in the triangle, which has an area."""
    u, v, w = b - a, c - a, x - a
    uu, vv, uv, wu, wv = _dot(u, u), _dot(v, v), _dot(u, v), _dot(w, u), _dot(w, v)
    determinant = uu * vv - uv**2
    has_area = determinant > 0
    divisor = np.where(has_area, determinant, 1)
    s, t = (vv * wu - uv * wv) / divisor, (uu * wv - uv * wu) / divisor
    foot = a + s[..., None] * u + t[..., None] * v
    return foot, has_area & (s >= 0) & (t >= 0) & (s + t <= 1)


def _dot(p: Reals, q: Reals) -> Reals:
    product: Reals = np.einsum("...i,...i->...", p, q)  # faster than a sum over so short an axis
    return product


def grid_nodes(domain: Box, shape: Sequence[int]) -> Reals:
    """Nodes of a regular grid that fills a box, ends included, the last axis fastest.

    Args:
        domain: (lower, upper) along each of d axes.
        shape: the number of nodes along each axis.

    Returns:
        Coordinates, (∏ shape, d).
    """
    axes = [np.linspace(low, high, n) for (low, high), n in zip(domain, shape, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def distance_on_grid(
    body: Surface, domain: Box, shape: Sequence[int], cache: Path | None = None
) -> NDArray[np.float32]:
    """Signed distance at the nodes of a regular grid.

    Args:
        body: a closed surface with outward normals.
        domain: the box that the grid fills.
        shape: the number of nodes along each axis.
        cache: a folder that stores what was computed before; None computes it again.

    Returns:
        The distances, of that shape.
    """

    def compute() -> NDArray[np.float32]:
        nodes = grid_nodes(domain, shape)
        return signed_distance(body, nodes).astype(np.float32).reshape(tuple(shape))

    sides = tuple((float(low), float(high)) for low, high in domain)
    size = tuple(int(n) for n in shape)
    return cached(cache, body, ("signed distance", sides, size), size, compute)
