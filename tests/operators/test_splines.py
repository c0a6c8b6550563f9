import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline

from uqno.operators.splines import carried


def axis(n):
    return torch.linspace(0, 1, n, dtype=torch.float64)


def test_it_is_the_spline_along_one_dimension_after_the_other():
    torch.manual_seed(0)
    v = torch.randn(2, 3, 7, 5).double()
    x, y = axis(7) ** 2, axis(5)
    to = torch.tensor([0.0, 0.31, 1.0]).double(), axis(9)
    expected = CubicSpline(x, v.numpy(), axis=2)(to[0])
    expected = CubicSpline(y, expected, axis=3)(to[1])
    np.testing.assert_allclose(carried(v, (x, y), to), expected, atol=1e-12)
    torch.testing.assert_close(carried(v, (x, y), (x, y)), v)


def test_the_error_falls_with_the_fourth_power_of_the_step():
    def f(x, y):
        return torch.sin(5 * x)[:, None] * torch.exp(y)[None]

    fine = axis(97)
    errors = [
        (carried(f(axis(n), axis(n)), (axis(n),) * 2, (fine, fine)) - f(fine, fine)).abs().max()
        for n in (13, 25, 49)
    ]
    assert 10 < errors[0] / errors[1] < 25
    assert 10 < errors[1] / errors[2] < 25


def test_what_a_spline_cannot_do_is_refused():
    with pytest.raises(ValueError, match="3 nodes, a cubic spline needs at least 4"):
        carried(torch.zeros(3), (axis(3),), (axis(9),))
    with pytest.raises(ValueError, match="reach from 0 to 2, outside 0 to 1"):
        carried(torch.zeros(5), (axis(5),), (2 * axis(9),))
