"""Does a triangle surface meet itself? Every pair of near triangles, one edge at a time."""

import numpy as np
from scipy.spatial import cKDTree


def near_pairs(body):
    """Pairs of triangles without a common vertex whose bounding spheres touch: (m, 2)."""
    corners = body.points[body.triangles]
    middle = corners.mean(axis=1)
    radius = np.linalg.norm(corners - middle[:, None], axis=2).max(axis=1)
    pairs = cKDTree(middle).query_pairs(2 * radius.max(), output_type="ndarray")
    apart = np.linalg.norm(middle[pairs[:, 0]] - middle[pairs[:, 1]], axis=1)
    pairs = pairs[apart <= radius[pairs].sum(axis=1)]
    first, second = body.triangles[pairs[:, 0]], body.triangles[pairs[:, 1]]
    shared = (first[:, :, None] == second[:, None]).any(axis=(1, 2))
    return pairs[~shared]


def crosses(start, end, corners):
    """Which segments (m, 3) pass through their triangle (m, 3, 3), by Möller and Trumbore."""
    a, b, c = (corners[:, i] for i in range(3))
    along, u, v, w = end - start, b - a, c - a, start - a
    normal = np.cross(u, v)
    determinant = -(along * normal).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (w * normal).sum(axis=1) / determinant
        moment = np.cross(w, along)
        s1 = (v * moment).sum(axis=1) / determinant
        s2 = -(u * moment).sum(axis=1) / determinant
        inside = (t >= 0) & (t <= 1) & (s1 >= 0) & (s2 >= 0) & (s1 + s2 <= 1)
    return inside & (np.abs(determinant) > 0)


def self_intersections(body):
    """How many pairs of triangles that share no vertex cut each other."""
    pairs = near_pairs(body)
    corners = body.points[body.triangles]
    cut = np.zeros(len(pairs), dtype=bool)
    for one, other in ((0, 1), (1, 0)):
        edges, faces = corners[pairs[:, one]], corners[pairs[:, other]]
        for i in range(3):
            cut |= crosses(edges[:, i], edges[:, (i + 1) % 3], faces)
    return int(cut.sum())
