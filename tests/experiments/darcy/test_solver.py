"""The solver against a manufactured solution, a direct solver and what the equation implies."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

from uqno.experiments.darcy.fields import gaussian_fields, nodes
from uqno.experiments.darcy.solver import lognormal, solve, solve_with_report, two_valued


def coefficients(resolution, functions=3, seed=0):
    return two_valued(gaussian_fields(seed, range(functions), resolution, mean_free=True))


def direct_solution(a, f):
    """The same scheme written node by node and solved by SciPy's sparse LU."""
    n = len(a)
    matrix = scipy.sparse.lil_array((n * n, n * n))
    right = np.zeros(n * n)
    for i in range(n):
        for j in range(n):
            row = i * n + j
            if i in (0, n - 1) or j in (0, n - 1):
                matrix[row, row] = 1.0
                continue
            right[row] = f[i, j]
            for k, m in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                face = (a[i, j] + a[k, m]) / 2 * (n - 1) ** 2
                matrix[row, row] += face
                matrix[row, k * n + m] -= face
    return scipy.sparse.linalg.spsolve(matrix.tocsc(), right).reshape(n, n)


@pytest.mark.parametrize("kind", ["two-valued", "lognormal"])
def test_equals_the_sparse_direct_solution(kind):
    field = gaussian_fields(1, range(3), 30, mean_free=True)
    a = two_valued(field) if kind == "two-valued" else lognormal(field)
    f = np.random.default_rng(0).standard_normal((3, 30, 30))
    u = solve(a, f)
    for i in range(3):
        exact = direct_solution(a[i], f[i])
        assert np.abs(u[i] - exact).max() < 1e-7 * np.abs(exact).max()


def test_a_manufactured_smooth_solution_shows_second_order():
    """u = sin(πx) sin(2πy), a = 2 + cos(πx) y: the error falls fourfold with h."""
    errors = []
    for n in (17, 33, 65, 129):
        x, y = np.meshgrid(nodes(n), nodes(n), indexing="ij")
        u = np.sin(np.pi * x) * np.sin(2 * np.pi * y)
        a = 2 + np.cos(np.pi * x) * y
        u_x = np.pi * np.cos(np.pi * x) * np.sin(2 * np.pi * y)
        u_y = 2 * np.pi * np.sin(np.pi * x) * np.cos(2 * np.pi * y)
        a_x, a_y = -np.pi * np.sin(np.pi * x) * y, np.cos(np.pi * x)
        f = 5 * np.pi**2 * a * u - a_x * u_x - a_y * u_y
        errors.append(np.abs(solve(a[None], f[None], tolerance=1e-10)[0] - u).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 1.9) & (orders < 2.1)), orders


@pytest.mark.parametrize("resolution", [3, 4, 43, 86])
def test_maximum_principle_and_boundary(resolution):
    u = solve(coefficients(resolution))
    assert np.all(u[:, 1:-1, 1:-1] > 0)
    for edge in (u[:, 0], u[:, -1], u[:, :, 0], u[:, :, -1]):
        assert np.all(edge == 0)


def test_bounds_by_the_constant_coefficients():
    """Energy: ∫u is between those of a = 12 and of a = 3 everywhere."""
    u = solve(coefficients(43)).sum(axis=(1, 2))
    high, low = solve(np.full((1, 43, 43), 12.0)).sum(), solve(np.full((1, 43, 43), 3.0)).sum()
    assert np.all((high < u) & (u < low))


@pytest.mark.parametrize(
    "move",
    [np.rot90, np.fliplr, np.transpose],
    ids=["rotation", "mirror", "transpose"],
)
def test_moving_a_moves_u(move):
    a = coefficients(43, functions=1)[0]
    u, moved = solve(a[None])[0], solve(move(a)[None])[0]
    np.testing.assert_allclose(moved, move(u), rtol=0, atol=1e-7 * u.max())


def test_linear_in_the_source_and_inverse_in_the_coefficient():
    a = coefficients(33)
    u = solve(a, 1.0)
    np.testing.assert_allclose(solve(a, -2e30), -2e30 * u, rtol=1e-6)
    np.testing.assert_allclose(solve(1e-20 * a, 1.0), 1e20 * u, rtol=1e-6)
    assert np.all(solve(a, 0.0) == 0)


def test_iterations_do_not_grow_with_the_resolution():
    """Condition at most 4 at any N: at most 22 iterations to 1e-8, and no trend to speak of."""
    counts = {n: solve_with_report(coefficients(n, functions=6)).iterations for n in (43, 85, 169)}
    assert max(c.max() for c in counts.values()) <= 22, counts
    # Four times the nodes a side: the energy norm's bound is the same, the residual's Euclidean
    # norm adds at most log₃(√4) < 1 iteration, rounded up.
    assert counts[169].mean() <= counts[43].mean() + 2, counts


def test_the_reported_residual_is_true_and_below_the_tolerance():
    a, f = coefficients(43), np.random.default_rng(1).standard_normal((43, 43))
    for tolerance in (1e-3, 1e-8, 1e-10):
        report = solve_with_report(a, f, tolerance)
        for i in range(3):
            n, u = 43, report.u[i]
            down, right = (a[i, 1:] + a[i, :-1]) / 2, (a[i, :, 1:] + a[i, :, :-1]) / 2
            flux_x, flux_y = down * np.diff(u, axis=0), right * np.diff(u, axis=1)
            image = -(np.diff(flux_x, axis=0)[:, 1:-1] + np.diff(flux_y, axis=1)[1:-1])
            inside = f[1:-1, 1:-1]
            residual = np.linalg.norm(image * (n - 1) ** 2 - inside) / np.linalg.norm(inside)
            assert residual <= tolerance * 1.001
            assert residual == pytest.approx(report.residual[i], rel=1e-3)


@pytest.mark.parametrize("resolution", [21, 43, 127, 169])
def test_a_function_is_solved_the_same_in_any_company(resolution):
    a = coefficients(resolution, functions=5)
    together = solve(a)
    for i in range(5):
        assert np.array_equal(solve(a[i : i + 1])[0], together[i])
    assert solve(a[:0]).shape == (0, resolution, resolution)


def test_bad_requests_are_named():
    a = coefficients(9)
    with pytest.raises(ValueError, match=r"shape \(batch, N, N\), got \(9, 9\)"):
        solve(a[0])
    with pytest.raises(ValueError, match="at least 3 nodes"):
        solve(a[:, :2, :2])
    with pytest.raises(ValueError, match=r"smallest value is -3\.0"):
        solve(np.where(a == 3, -3.0, a))
    with pytest.raises(ValueError, match=r"f must be a number"):
        solve(a, np.ones(9))
    with pytest.raises(ValueError, match="f must be finite"):
        solve(a, np.nan)
    with pytest.raises(ValueError, match="tolerance must lie in"):
        solve(a, tolerance=1e-14)


def test_a_hopeless_contrast_is_reported_not_returned(monkeypatch):
    monkeypatch.setattr("uqno.experiments.darcy.solver.MAXIMUM_ITERATIONS", 5)
    with pytest.raises(ArithmeticError, match="after 5 iterations"):
        solve(coefficients(21))


def test_the_solver_needs_no_torch():
    import subprocess
    import sys

    modules = "uqno.experiments.darcy.solver, uqno.experiments.darcy.generation"
    check = f"import sys, {modules}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
