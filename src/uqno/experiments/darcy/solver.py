"""Darcy flow −∇·(a∇u) = f on the unit square, u = 0 on the boundary, at a batch of coefficients.

*Scheme.* N × N nodes, boundary included, spacing h = 1/(N − 1); flux balance around each node with
the coefficient on a face taken as the arithmetic mean of its two nodes. It is second order for
smooth a, symmetric, and the scheme of the published data set, with whose truths ours must be
comparable. At a jump of a that cuts cells at any angle, the arithmetic and the harmonic mean are
both first order (12/3, relative L² distance to either one's solution at 1681²: 0.15 to 0.22 % and
0.07 to 0.13 % at 421², 1.4 % and 1.2 % at 43²), which is no reason to leave the published set.

*Solver.* Conjugate gradients preconditioned by the constant-coefficient Laplacian, inverted by
two type-I sine transforms. The preconditioned condition number is at most max a / min a at any
resolution (4 for the coefficient 12/3, hence about 20 iterations to 1e-8). The transforms run in
float32: they only shape the search directions, while the residual, the solution and the
stopping test are float64, so the count of iterations stays and each costs half.
Tried and dropped because they do not reduce time: smoothing before and after the
transform, symmetric scaling by (smoothed) √a, a start interpolated from a coarser solution, and
updates by strips that fit in the cache.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray

from uqno.types import Reals

MAXIMUM_ITERATIONS = 1000
# Small grids are iterated on together, up to this number of nodes, to share the overhead of a
# call; more would not stay in the cache of a core (measured at 43² and 85²).
BLOCK_NODES = 2**15


@dataclass(frozen=True)
class Solution:
    """What the solver did: the solutions and the work and accuracy of each.

    Args:
        u: (batch, N, N), 0 on the boundary.
        iterations: (batch,).
        residual: ‖f − A u‖ / ‖f‖, computed from u itself, (batch,).
    """

    u: Reals
    iterations: NDArray[np.int64]
    residual: Reals


def two_valued(field: ArrayLike, high: float = 12.0, low: float = 3.0) -> Reals:
    """a = high where the field is ≥ 0, else low.

    Args:
        field: of any shape.
        high: the value where it is at least 0.
        low: the value where it is negative.

    Returns:
        a, of the shape of the field.
    """
    return np.where(np.asarray(field) >= 0, high, low)


def lognormal(field: ArrayLike, scale: float = 3.0) -> Reals:
    """a = exp(scale · field).

    Args:
        field: of any shape.
        scale: τ^(s−1) = 3 is the one of the published generator.

    Returns:
        a, of the shape of the field.
    """
    coefficient: Reals = np.exp(scale * np.asarray(field, dtype=np.float64))
    return coefficient


def solve(a: ArrayLike, f: ArrayLike = 1.0, tolerance: float = 1e-8) -> Reals:
    """u with −∇·(a∇u) = f and u = 0 on the boundary, to ‖f − A u‖ ≤ tolerance · ‖f‖.

    Each function is solved by itself: the result does not depend on the others in the batch.

    Args:
        a: (batch, N, N) positive values at the nodes, boundary included, N ≥ 3.
        f: a number, (N, N) or (batch, N, N).
        tolerance: in [1e-12, 1).

    Returns:
        u, (batch, N, N) in double precision.

    Raises:
        ValueError: a shape or a value is out of its bounds.

    >>> u = solve(np.ones((1, 65, 65)))
    >>> f"{u.max():.4f}"  # the torsion of a square: 0.07367 in the continuum
    '0.0737'
    """
    return solve_with_report(a, f, tolerance).u


def solve_with_report(a: ArrayLike, f: ArrayLike = 1.0, tolerance: float = 1e-8) -> Solution:
    """`solve`, together with the iterations and the residual of each function.

    Args:
        a: as for `solve`.
        f: as for `solve`.
        tolerance: as for `solve`.

    Raises:
        ValueError: a shape or a value is out of its bounds.
    """
    coefficient = _checked_coefficient(a)
    batch, n = coefficient.shape[:2]
    source = np.asarray(f, dtype=np.float64)
    if source.shape not in ((), (n, n), (batch, n, n)):
        raise ValueError(
            f"f must be a number, ({n}, {n}) or ({batch}, {n}, {n}), got shape {source.shape}"
        )
    if not np.isfinite(source).all():
        raise ValueError("f must be finite at every node")
    if not 1e-12 <= tolerance < 1:
        raise ValueError(
            f"tolerance must lie in [1e-12, 1), got {tolerance}: "
            "below it, float64 rounding of the residual itself is larger"
        )
    source = np.broadcast_to(source, coefficient.shape)
    block = max(1, BLOCK_NODES // n**2)
    parts = [
        _conjugate_gradients(coefficient[i : i + block], source[i : i + block], tolerance)
        for i in range(0, batch, block)
    ]
    if not parts:
        return Solution(np.empty((0, n, n)), np.empty(0, dtype=np.int64), np.empty(0))
    return Solution(
        np.concatenate([part.u for part in parts]),
        np.concatenate([part.iterations for part in parts]),
        np.concatenate([part.residual for part in parts]),
    )


def _checked_coefficient(a: ArrayLike) -> Reals:
    coefficient = np.asarray(a, dtype=np.float64)
    if coefficient.ndim != 3 or coefficient.shape[1] != coefficient.shape[2]:
        raise ValueError(
            f"a must have shape (batch, N, N), got {coefficient.shape}: "
            "for a single function pass a[None]"
        )
    if coefficient.shape[1] < 3:
        raise ValueError(
            f"a grid needs at least 3 nodes a side to have one inside, got {coefficient.shape[1]}"
        )
    if coefficient.size and not (coefficient.min() > 0 and np.isfinite(coefficient).all()):
        raise ValueError(
            f"a must be positive and finite at every node, its smallest value is "
            f"{coefficient.min()}: the equation is not elliptic"
        )
    return coefficient


class _Equation:
    """A p = −h²∇·(a∇p) for a block of functions held as flat rows (block, N·N).

    Rows are flat so that every difference is one pass over contiguous memory. The step from the
    last node of a grid row to the first of the next is no face, but both ends lie on
    the boundary, where p = 0, so that its flux is 0 by itself.
    """

    def __init__(self, a: Reals) -> None:
        self.n = n = a.shape[-1]
        row = a.reshape(len(a), n * n)
        self.down = 0.5 * (row[:, n:] + row[:, :-n])
        self.right = 0.5 * (row[:, 1:] + row[:, :-1])
        self._flux_down = np.empty_like(self.down)
        self._flux_right = np.empty_like(self.right)

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Go on with these functions only."""
        self.down, self.right = self.down[rows], self.right[rows]
        self._flux_down, self._flux_right = self._flux_down[rows], self._flux_right[rows]

    def apply(self, p: Reals, out: Reals) -> None:
        """out = A p; both (block, N·N), p = 0 on the boundary."""
        n, down, right = self.n, self._flux_down, self._flux_right
        np.subtract(p[:, n:], p[:, :-n], out=down)
        np.multiply(down, self.down, out=down)
        np.subtract(p[:, 1:], p[:, :-1], out=right)
        np.multiply(right, self.right, out=right)
        np.subtract(right[:, :-1], right[:, 1:], out=out[:, 1:-1])
        out[:, n:] += down
        out[:, :-n] -= down
        clear_boundary(out.reshape(-1, n, n))


def clear_boundary(grids: Reals) -> None:
    """Set the boundary nodes of (batch, N, N) to 0, in place."""
    grids[:, 0] = grids[:, -1] = grids[:, :, 0] = grids[:, :, -1] = 0.0


@lru_cache(maxsize=8)
def _inverse_eigenvalues(n: int) -> NDArray[np.float32]:
    """1 / (4 sin²(jπh/2) + 4 sin²(kπh/2)), (N−2, N−2), with both transforms' normalisation."""
    eigenvalue = 4 * np.sin(np.pi * np.arange(1, n - 1) / (2 * (n - 1))) ** 2
    inverse = 1 / ((eigenvalue[:, None] + eigenvalue) * (2 * (n - 1)) ** 2)
    return np.asarray(inverse, dtype=np.float32)


def _precondition(r: Reals, n: int, out: Reals) -> None:
    """out = (−h²Δ)⁻¹ r by two type-I sine transforms in float32; both (block, N·N)."""
    inside = r.reshape(-1, n, n)[:, 1:-1, 1:-1].astype(np.float32)
    inside = scipy.fft.dstn(inside, type=1, axes=(1, 2), overwrite_x=True, workers=1)
    inside *= _inverse_eigenvalues(n)
    inside = scipy.fft.dstn(inside, type=1, axes=(1, 2), overwrite_x=True, workers=1)
    out.reshape(-1, n, n)[:, 1:-1, 1:-1] = inside


def _dot(x: Reals, y: Reals) -> Reals:
    """Σ_i x_bi y_bi, (block,).

    Not by BLAS, whose threads would fight the worker processes, nor by einsum, whose rounding
    depends on where a row lies in memory: a function's digits must not depend on its block.
    """
    product: Reals = (x * y).sum(axis=1)
    return product


def _conjugate_gradients(a: Reals, f: Reals, tolerance: float) -> Solution:
    """Preconditioned conjugate gradients for a block; a function leaves as soon as it converges."""
    block, n = a.shape[:2]
    b = f.reshape(block, n * n) / (n - 1) ** 2
    clear_boundary(b.reshape(block, n, n))
    size = np.sqrt(_dot(b, b))
    # In units of ‖b‖, so that float32 neither overflows nor underflows; f = 0 stays 0.
    r = b / np.where(size > 0, size, 1.0)[:, None]
    u = np.zeros_like(r)
    iterations = np.zeros(block, dtype=np.int64)
    active = np.flatnonzero(size > 0)
    if len(active):
        _iterate(_Equation(a[active]), r[active], active, u, iterations, 0.95 * tolerance)
    image = np.empty_like(u)
    _Equation(a).apply(u, image)
    image -= r
    residual = np.sqrt(_dot(image, image))
    if residual.max() > tolerance:
        raise ArithmeticError(
            f"conjugate gradients reached a relative residual of {residual.max():.1e} after "
            f"{iterations.max()} iterations, not {tolerance:.1e}: the coefficient's contrast is "
            f"{a.max() / a.min():.1e}; ask for a larger tolerance"
        )
    u *= size[:, None]
    return Solution(u.reshape(block, n, n), iterations, residual)


def _iterate(
    equation: _Equation,
    r: Reals,
    active: NDArray[np.int64],
    u: Reals,
    iterations: NDArray[np.int64],
    tolerance: float,
) -> None:
    """Reduce r (active, N·N) from norm 1 to `tolerance`, writing into u and iterations."""
    n = equation.n
    x, z, image = np.zeros_like(r), np.zeros_like(r), np.zeros_like(r)
    _precondition(r, n, z)
    p = z.copy()
    rz = _dot(r, z)
    for count in range(1, MAXIMUM_ITERATIONS + 1):
        equation.apply(p, image)
        step = (rz / _dot(p, image))[:, None]
        # `image` becomes its own multiple; z, free until it is refilled, holds that of p, which
        # keeps its boundary 0.
        r -= np.multiply(image, step, out=image)
        x += np.multiply(p, step, out=z)
        going = np.sqrt(_dot(r, r)) > tolerance
        if not going.all() or count == MAXIMUM_ITERATIONS:
            u[active] = x
            iterations[active] = count
            if not going.any():
                return
            equation.keep(going)
            active, rz = active[going], rz[going]
            x, r, z, p, image = (v[going] for v in (x, r, z, p, image))
        _precondition(r, n, z)
        new = _dot(r, z)
        p *= (new / rz)[:, None]
        p += z
        rz = new
