"""Signed distance to a closed triangle surface: negative inside, at any points, kept in files.

The nearest point of the nearest triangles by a kd-tree of their middles, so that a grid of
thousands of nodes takes a fraction of a second. `CANDIDATES` triangles are looked at: a
triangle beyond them is farther by its size at most, and the tests hold the result against VTK's.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from uqno.data.cars.mesh import Array, Indices, Surface
from uqno.data.files import write_whole

CANDIDATES = 32
CHUNK = 4096  # points worked on at once

Domain = Sequence[tuple[float, float]]


def signed_distance(body: Surface, points: Array) -> Array:
    """±min_p |x − p| over the surface for points x (L, 3): (L,), negative inside."""
    tree = cKDTree(body.points[body.triangles].mean(axis=1))
    normals = body.area_vectors / np.linalg.norm(body.area_vectors, axis=1, keepdims=True)
    count = min(CANDIDATES, len(body.triangles))
    parts = []
    for start in range(0, len(points), CHUNK):
        some = points[start : start + CHUNK]
        _, near = tree.query(some, k=np.arange(1, count + 1))
        parts.append(_among(body, normals, some, near))
    return np.concatenate(parts) if parts else np.empty(0)


def _among(body: Surface, normals: Array, x: Array, near: Indices) -> Array:
    """Signed distance of x (m, 3) to the nearest of its candidates (m, k)."""
    corners = body.points[body.triangles[near]]
    offset = x[:, None] - _closest(x[:, None], corners)
    squared = (offset**2).sum(axis=-1)
    least = squared.min(axis=1, keepdims=True)
    height = (offset * normals[near]).sum(axis=-1)
    # Nearest to an edge or a corner, x belongs to several triangles; the one it stands over most
    # upright tells the side.
    tied = squared <= least * (1 + 1e-9) + 1e-24
    upright = np.where(tied, np.abs(height), -1.0).argmax(axis=1)
    inside = np.take_along_axis(height, upright[:, None], axis=1)[:, 0] < 0
    distance: Array = np.sqrt(least[:, 0]) * np.where(inside, -1.0, 1.0)
    return distance


def _closest(x: Array, corners: Array) -> Array:
    """The nearest point of triangles (m, k, 3, 3) to x (m, 1, 3): (m, k, 3)."""
    a, b, c = (corners[..., i, :] for i in range(3))
    options = [_on_segment(x, *ends) for ends in ((a, b), (b, c), (c, a))]
    foot, is_inside = _on_plane(x, a, b, c)
    squared = np.stack([((x - option) ** 2).sum(axis=-1) for option in options])
    edge = np.choose(squared.argmin(axis=0)[..., None], options)
    nearest: Array = np.where(is_inside[..., None], foot, edge)
    return nearest


def _on_segment(x: Array, a: Array, b: Array) -> Array:
    along = b - a
    t = ((x - a) * along).sum(axis=-1) / (along**2).sum(axis=-1)
    point: Array = a + np.clip(t, 0, 1)[..., None] * along
    return point


def _on_plane(x: Array, a: Array, b: Array, c: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The foot of the perpendicular, and whether it lies in the triangle."""
    u, v, w = b - a, c - a, x - a
    uu, vv, uv = ((p * q).sum(axis=-1) for p, q in ((u, u), (v, v), (u, v)))
    wu, wv = (w * u).sum(axis=-1), (w * v).sum(axis=-1)
    determinant = uu * vv - uv**2
    s, t = (vv * wu - uv * wv) / determinant, (uu * wv - uv * wu) / determinant
    foot = a + s[..., None] * u + t[..., None] * v
    return foot, (s >= 0) & (t >= 0) & (s + t <= 1)


def grid_nodes(domain: Domain, shape: Sequence[int]) -> Array:
    """Nodes (∏ shape, d) of the regular grid that GINO lays into `domain`, ends included."""
    axes = [np.linspace(low, high, n) for (low, high), n in zip(domain, shape, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def distance_on_grid(
    body: Surface, domain: Domain, shape: Sequence[int], cache: Path | None = None
) -> NDArray[np.float32]:
    """Signed distance at the nodes of a latent grid, `shape`; read from `cache` if it is there."""
    if cache is None:
        nodes = grid_nodes(domain, shape)
        return signed_distance(body, nodes).astype(np.float32).reshape(tuple(shape))
    file = cache / f"{_fingerprint(body, domain, shape)}.npy"
    try:
        kept: NDArray[np.float32] = np.load(file, allow_pickle=False)
        if kept.shape == tuple(shape) and kept.dtype == np.float32:
            return kept
    except (OSError, ValueError, EOFError):  # absent or damaged: made anew
        pass
    made = distance_on_grid(body, domain, shape)
    write_whole(file, lambda aside: _save(aside, made))
    return made


def _save(path: Path, values: NDArray[np.float32]) -> None:
    with path.open("wb") as file:  # np.save would append a suffix to the name
        np.save(file, values)


def _fingerprint(body: Surface, domain: Domain, shape: Sequence[int]) -> str:
    content = hashlib.sha256(np.ascontiguousarray(body.points).tobytes())
    content.update(np.ascontiguousarray(body.triangles).tobytes())
    content.update(np.array(domain, dtype=np.float64).tobytes())
    content.update(np.array(tuple(shape), dtype=np.int64).tobytes())
    return content.hexdigest()[:24]
