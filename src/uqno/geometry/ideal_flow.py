"""The pressure of the ideal flow around a body: no friction, no wake, found from the shape alone.

With the stream x₁ at infinity and a closed surface S, the potential on S is

    φ(x) = x₁ + ∫_S (φ(y) − φ(x)) ∂G/∂n_y dS_y,    G = 1 / 4π|x − y|,

and Cp = 1 − |∇φ|². A ground is the mirror image of the body. Where the real flow stays attached
the two pressures are nearly the same; behind edges they are not, which is left to be learnt.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, gmres
from scipy.spatial import cKDTree

from uqno.geometry.cache import kept
from uqno.geometry.surface import Surface
from uqno.types import Reals

NEAR = 16  # triangles around a vertex whose solid angle is exact; others are points
MOST = 12_000  # vertices: the matrix has their square
LEAST = -3.0  # of Cp: at an edge the ideal flow is as fast as the mesh is fine
TOLERANCE = 1e-4
GAP = 0.05  # of the body's height, to a ground of unknown place: below it there must be a flow


class NoIdealFlow(ValueError):
    """There is none around this body, or this ground is in its way."""


@dataclass(frozen=True)
class Stream:
    """The axis along which the flow goes, one way or the other, and the ground, if there is one.

    up: the axis that points away from the ground; None without one
    ground: its place on that axis, below the body; None for a little below the lowest vertex
    """

    along: int = 0
    up: int | None = 2
    ground: float | None = 0.0


SHIPPED_CARS = Stream()


def ideal_pressure(
    body: Surface, stream: Stream = SHIPPED_CARS, cache: Path | None = None
) -> NDArray[np.float32]:
    """Cp (n) ≤ 1 at the vertices of a closed surface; read from `cache` if it is there."""
    if len(body.points) > MOST:
        raise ValueError(
            f"the surface has {len(body.points)} vertices, more than the {MOST} whose matrix is "
            "kept in memory: find the pressure on a coarser surface of the same body, and carry it "
            "over with `carry`"
        )

    def make() -> NDArray[np.float32]:
        speed = _gradient(body, _potential(body, stream))
        found: Reals = np.maximum(1 - np.einsum("ij,ij->i", speed, speed), LEAST)
        return found.astype(np.float32)

    return kept(cache, body, ("ideal pressure", stream), (len(body.points),), make)


def carry(values: NDArray[np.float32], body: Surface, points: Reals) -> NDArray[np.float32]:
    """Values (n) at the vertices of a body carried over to points (m, 3) on the same body."""
    distance, index = cKDTree(body.points).query(points, k=4)
    share = 1 / np.maximum(distance, 1e-9 * np.ptp(body.points)) ** 2
    carried: Reals = (share * values[index]).sum(axis=1) / share.sum(axis=1)
    return carried.astype(np.float32)


def _potential(body: Surface, stream: Stream) -> NDArray[np.float32]:
    """φ (n) at the vertices, up to a constant."""
    middle = body.points.mean(axis=0)
    points = body.points - middle  # single precision is finest around 0
    layer = _double_layer(points, body, np.ones(3), np.zeros(3))
    if stream.up is not None:
        up = np.eye(3)[stream.up]
        lowest, height = float((body.points @ up).min()), float(np.ptp(body.points @ up))
        ground = lowest - GAP * height if stream.ground is None else stream.ground
        if lowest <= ground:
            raise NoIdealFlow(
                f"the body reaches down to {lowest:g}, the ground is at {ground:g}: there must be "
                "a flow between them; give the ground's place with Stream(ground=...)"
            )
        layer += _double_layer(points, body, 1 - 2 * up, 2 * (ground - middle @ up) * up)
    layer /= 4 * np.pi
    diagonal = 1 + layer.sum(axis=1)
    onset = points[:, stream.along].astype(np.float32)
    equations = LinearOperator(
        layer.shape, matvec=lambda phi: diagonal * phi - layer @ phi, dtype=np.float32
    )
    with np.errstate(all="ignore"):  # what has no solution is said below
        potential, failed = gmres(equations, onset, x0=onset, rtol=TOLERANCE, restart=50)
    if failed or not np.isfinite(potential).all():
        raise NoIdealFlow(
            f"no ideal flow was found around the body of {len(points)} vertices: is its surface "
            "closed, with outward normals, and does nothing touch the ground?"
        )
    return np.asarray(potential, dtype=np.float32)


def _double_layer(points: Reals, body: Surface, sign: Reals, shift: Reals) -> NDArray[np.float32]:
    """4π ∫ ∂G/∂n dS over the part of S (or of its image, sign · S + shift) of every vertex (n, n).

    A vertex stands for a third of the triangles around it: as a point, or for the triangles near x
    by their exact solid angle. The parts of x itself are 0, being seen from the side.
    """
    corners = (points * sign + shift)[body.triangles]
    thirds = body.area_vectors * sign / 3
    source, vector = points * sign + shift, np.zeros_like(points)
    for k in range(3):
        np.add.at(vector, body.triangles[:, k], thirds)
    layer = _as_points(points, source, vector)
    _, near = cKDTree(corners.mean(axis=1)).query(points, k=min(NEAR, len(corners)))
    x, triangle = np.repeat(np.arange(len(points)), near.shape[1]), near.ravel()
    # Mirrored, a triangle is seen counter-clockwise from the other side.
    angle = -np.prod(sign) * _solid_angle(corners[triangle] - points[x, None]) / 3
    for k in range(3):
        vertex = body.triangles[triangle, k]
        away = points[x] - source[vertex]
        squared = np.einsum("ij,ij->i", away, away)
        as_point = np.einsum("ij,ij->i", thirds[triangle], away)
        as_point[squared > 0] /= squared[squared > 0] ** 1.5
        np.add.at(layer, (x, vertex), (angle - as_point).astype(np.float32))
    return layer


def _as_points(points: Reals, source: Reals, vector: Reals) -> NDArray[np.float32]:
    """v_j · (x_i − y_j) / |x_i − y_j|³ (n, n), and 0 where the two are one; in single precision."""
    x, y, v = (values.astype(np.float32) for values in (points, source, vector))
    squared = -2 * (x @ y.T)
    squared += np.einsum("ij,ij->i", x, x)[:, None]
    squared += np.einsum("ij,ij->i", y, y)
    layer: NDArray[np.float32] = x @ v.T
    layer -= np.einsum("ij,ij->i", y, v)
    one = squared < 1e-6 * squared.max()
    squared[one] = 1
    layer[one] = 0
    layer /= squared
    layer /= np.sqrt(squared, out=squared)
    return layer


def _solid_angle(corners: Reals) -> Reals:
    """Of triangles (t, 3, 3) seen from 0: positive from behind, 0 from within their plane."""
    a, b, c = (corners[:, i] for i in range(3))
    ra, rb, rc = np.linalg.norm(corners, axis=2).T
    product = np.einsum("ij,ij->i", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("ij,ij->i", p, q) for p, q in ((a, b), (b, c), (c, a)))
    angle: Reals = 2 * np.arctan2(product, ra * rb * rc + ab * rc + bc * ra + ca * rb)
    return angle


def _gradient(body: Surface, values: NDArray[np.float32]) -> Reals:
    """∇_S of values (n) at the vertices (n, 3): of the triangles around, by area."""
    corners, of_corner = body.points[body.triangles], values[body.triangles].astype(np.float64)
    double = 2 * np.linalg.norm(body.area_vectors, axis=1)
    opposite = np.roll(corners, -2, axis=1) - np.roll(corners, -1, axis=1)  # edges c − b, a − c, …
    edges = np.einsum("ti,tij->tj", of_corner, opposite)
    # area · ∇ = ½ n × Σ φ_i e_i, with the edge e_i opposite to corner i
    flux = np.cross(body.area_vectors / np.where(double > 0, double, 1)[:, None], edges)
    total = np.zeros_like(body.points)
    area = np.zeros(len(body.points))
    for k in range(3):
        np.add.at(total, body.triangles[:, k], flux)
        np.add.at(area, body.triangles[:, k], double / 2)
    return total / area[:, None]
