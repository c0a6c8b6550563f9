"""Closed triangle surfaces: normals and areas of vertices, volume, what makes them watertight."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uqno.conformal import checks
from uqno.types import Integers, Reals


@dataclass(frozen=True, eq=False)
class Surface:
    """A surface of triangles in space.

    Args:
        points: the vertices, (n, 3).
        triangles: indices of their corners, (t, 3), counter-clockwise seen from outside.
    """

    points: Reals
    triangles: Integers

    def __post_init__(self) -> None:
        points = checks.real("points", "the surface", self.points)
        triangles = checks.whole("triangles", "the surface", self.triangles)
        if points.ndim != 2 or points.shape[1] != 3:
            raise ValueError(f"points of a surface have shape {points.shape}, expected (n, 3)")
        if triangles.ndim != 2 or triangles.shape[1] != 3:
            raise ValueError(
                f"triangles of a surface have shape {triangles.shape}, expected (t, 3)"
            )
        if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(points):
            raise ValueError(
                f"triangles name points {triangles.min()} … {triangles.max()}, expected 0 … "
                f"{len(points) - 1}: count from 0"
            )
        object.__setattr__(self, "points", points)  # frozen for everyone else
        object.__setattr__(self, "triangles", triangles)

    @cached_property
    def area_vectors(self) -> Reals:
        """½ (b − a) × (c − a), (t, 3): the outward normal of each triangle, as long as its area."""
        a, b, c = (self.points[self.triangles[:, i]] for i in range(3))
        vectors: Reals = 0.5 * np.cross(b - a, c - a)
        return vectors

    @cached_property
    def areas(self) -> Reals:
        """The area of each vertex, (n,): a third of the triangles around it; the sum is the area
        of the surface."""
        third = np.linalg.norm(self.area_vectors, axis=1) / 3
        corners = self.triangles.ravel()
        shares = np.bincount(corners, np.repeat(third, 3), minlength=len(self.points))
        return shares.astype(np.float64)  # as bincount's type does not tell

    @cached_property
    def normals(self) -> Reals:
        """Unit outward normals of the vertices, (n, 3): means over the triangles around, by area.

        Raises:
            ValueError: a vertex is on no triangle with an area, or its triangles cancel.
        """
        corners = self.triangles.ravel()
        total = np.stack(
            [
                np.bincount(corners, np.repeat(self.area_vectors[:, d], 3), len(self.points))
                for d in range(3)
            ],
            axis=1,
        )
        length = np.linalg.norm(total, axis=1, keepdims=True)
        if not (length > 0).all():
            lost = int(np.argmin(length))
            raise ValueError(
                f"vertex {lost} has no normal: it is on no triangle with an area; remove it"
            )
        unit: Reals = total / length
        return unit

    @property
    def volume(self) -> float:
        """Enclosed volume by the divergence theorem, Σ a·(b × c) / 6: positive if the normals point
        outward."""
        centres = self.points[self.triangles].mean(axis=1)
        return float((centres * self.area_vectors).sum() / 3)

    def edges(self) -> tuple[Integers, Integers]:
        """Directed edges of all triangles, (3t, 2), and the count of each undirected one, (e,)."""
        directed = self.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
        _, count = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
        return directed, count

    def check_closed(self) -> None:
        """Refuse a surface that is open, doubly covered, wrongly oriented, or has handles.

        Raises:
            ValueError: what is wrong with it.
        """
        directed, count = self.edges()
        if not (count == 2).all():
            raise ValueError(
                f"{int((count != 2).sum())} edges are not shared by exactly two triangles: the "
                "surface is not watertight"
            )
        if len(np.unique(directed, axis=0)) != len(directed):
            raise ValueError("two neighbouring triangles are oriented against each other")
        used = len(np.unique(self.triangles))
        characteristic = used - len(count) + len(self.triangles)
        if characteristic != 2 or used != len(self.points):
            raise ValueError(
                f"Euler characteristic {characteristic} with {used} of {len(self.points)} vertices "
                "used, expected 2 and all: not one closed surface without handles"
            )
        if not self.volume > 0:
            raise ValueError(f"the enclosed volume is {self.volume:g}: the normals point inward")
