"""The pressure of the ideal flow around a body: no friction, no wake, computed from the shape.

With the stream x₁ at infinity and a closed surface S, the potential on S is

    φ(x) = x₁ + ∫_S (φ(y) − φ(x)) ∂G/∂n_y dS_y,    G = 1 / 4π|x − y|,

and Cp = 1 − |∇φ|². A ground is the mirror image of the body. Where the real flow stays attached
the two pressures are nearly the same; behind edges they are not, which is left to be learnt.

Reference: J. Katz and A. Plotkin, Low-Speed Aerodynamics, 2nd ed., Cambridge 2001, a textbook on
potential flow around bodies and its computation by panels.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, gmres
from scipy.spatial import cKDTree

from uqno.geometry.cache import cached
from uqno.geometry.surface import Surface
from uqno.types import Reals

# Triangles around a vertex whose solid angle is exact; farther ones are treated as points.
NEAR = 16
# The largest number of vertices: the matrix has their square.
MOST = 12_000
# Cp is cut off here: at an edge the ideal flow is as fast as the mesh is fine.
LEAST = -3.0
# The largest residual of the linear equations, relative to their right-hand side.
TOLERANCE = 1e-4
# Between body and a ground of unknown place, relative to the body's height: air must pass below.
GAP = 0.05


class NoIdealFlow(ValueError):
    """The flow around this body could not be computed, or the ground cuts the body."""


@dataclass(frozen=True)
class Stream:
    """Where the flow goes and where the ground is.

    Args:
        along: the axis along which the flow goes, in either direction (Cp is the same).
        up: the axis that points away from the ground; None without a ground.
        ground: the coordinate of the ground on that axis, below the body; None places it a
            little below the lowest vertex.
    """

    along: int = 0
    up: int | None = 2
    ground: float | None = 0.0


OVER_GROUND = Stream()  # along x, over a ground at z = 0


def ideal_pressure(
    body: Surface, stream: Stream = OVER_GROUND, cache: Path | None = None
) -> NDArray[np.float32]:
    """The pressure coefficient Cp of the ideal flow at the vertices of a closed surface.

    Args:
        body: a closed surface with outward normals, of at most `MOST` vertices.
        stream: where the flow goes and where the ground is.
        cache: a folder that stores what was computed before; None computes it again.

    Returns:
        Cp ≤ 1, (n,).

    Raises:
        NoIdealFlow: the flow could not be computed, or the ground cuts the body.
        ValueError: the surface has more than `MOST` vertices.
    """
    if len(body.points) > MOST:
        raise ValueError(
            f"the surface has {len(body.points)} vertices, more than the {MOST} whose matrix is "
            "held in memory: compute the pressure on a coarser surface of the same body, and carry "
            "it over with `carry`"
        )

    def compute() -> NDArray[np.float32]:
        velocity = _gradient(body, _potential(body, stream))
        pressure: Reals = np.maximum(1 - np.einsum("ij,ij->i", velocity, velocity), LEAST)
        return pressure.astype(np.float32)

    return cached(cache, body, ("ideal pressure", stream), (len(body.points),), compute)


def carry(values: NDArray[np.float32], body: Surface, points: Reals) -> NDArray[np.float32]:
    """Values at the vertices of a surface, interpolated to other points of the same body.

    Args:
        values: one a vertex, (n,).
        body: the surface with these n vertices.
        points: where values are wanted, (m, 3).

    Returns:
        Means over the four nearest vertices by inverse squared distance, (m,).
    """
    distance, index = cKDTree(body.points).query(points, k=4)
    share = 1 / np.maximum(distance, 1e-9 * np.ptp(body.points)) ** 2
    carried: Reals = (share * values[index]).sum(axis=1) / share.sum(axis=1)
    return carried.astype(np.float32)


def _potential(body: Surface, stream: Stream) -> NDArray[np.float32]:
    """φ at the vertices, (n,), up to a constant."""
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
    with np.errstate(all="ignore"):  # a missing solution is reported below
        potential, failed = gmres(equations, onset, x0=onset, rtol=TOLERANCE, restart=50)
    if failed or not np.isfinite(potential).all():
        raise NoIdealFlow(
            f"the ideal flow around the body of {len(points)} vertices could not be computed: "
            "check that its surface is closed, with outward normals, and touches no ground"
        )
    return np.asarray(potential, dtype=np.float32)


def _double_layer(points: Reals, body: Surface, sign: Reals, shift: Reals) -> NDArray[np.float32]:
    """4π ∫ ∂G/∂n dS, seen from vertex i, over the part of S that belongs to vertex j: (n, n).

    S may be replaced by its image sign · S + shift. A third of each triangle around a vertex
    belongs to it: treated as a point, or, for the triangles near x, by the exact solid angle.
    The triangles around x itself count 0, as they are seen from the side.
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
    """Solid angles of triangles, corners (t, 3, 3), seen from the origin: (t,).

    Positive from behind, 0 from within the plane of a triangle. Reference: A. Van Oosterom and
    J. Strackee, The solid angle of a plane triangle, IEEE Trans. Biomed. Eng. 30 (1983).
    """
    a, b, c = (corners[:, i] for i in range(3))
    ra, rb, rc = np.linalg.norm(corners, axis=2).T
    product = np.einsum("ij,ij->i", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("ij,ij->i", p, q) for p, q in ((a, b), (b, c), (c, a)))
    angle: Reals = 2 * np.arctan2(product, ra * rb * rc + ab * rc + bc * ra + ca * rb)
    return angle


def _gradient(body: Surface, values: NDArray[np.float32]) -> Reals:
    """∇_S of values at the vertices, (n,) → (n, 3): means over the triangles around, by area."""
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
