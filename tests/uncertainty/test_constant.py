"""The mean error, over everything and by place."""

import pytest
import torch

from tests.uncertainty import problems
from uqno.operators import FNO
from uqno.uncertainty import Constant, MeanField


def slope(points, factor):
    """a = 0 and an error factor · x, which multilinear interpolation keeps exactly."""
    x = torch.linspace(0, 1, points)[:, None].expand(points, points)
    return {"a": torch.zeros(1, points, points), "u": factor * x[None]}


def test_constant_is_the_mean_error_by_the_weights():
    w = torch.arange(81.0).view(9, 9)
    data = [{**slope(9, k), "weights": w} for k in (1.0, 3.0)]
    base, residuals = problems.exact(lambda a: a, data)
    uncertainty = Constant()
    uncertainty.fit(base, residuals, problems.OPTIONS)
    x = torch.linspace(0, 1, 9)[:, None]
    expected = float(2 * (x * w).sum() / w.sum())
    found = uncertainty.predict(base, {"a": torch.rand(2, 1, 5, 5)})
    torch.testing.assert_close(found.uncertainty, torch.full((2, 5, 5), expected))


def test_mean_field_of_mixed_resolutions_at_other_ones():
    base, residuals = problems.exact(lambda a: a, [slope(9, 1.0), slope(17, 2.0), slope(5, 3.0)])
    uncertainty = MeanField()
    uncertainty.fit(base, residuals, problems.OPTIONS)
    torch.testing.assert_close(uncertainty.field, 2 * slope(9, 1.0)["u"][0])
    found = uncertainty.predict(base, {"a": torch.zeros(2, 1, 13, 13)}).uncertainty
    expected = 2 * slope(13, 1.0)["u"][0]
    torch.testing.assert_close(found[1, 1:], expected[1:])
    torch.testing.assert_close(found[:, 0], torch.full((2, 13), float(uncertainty.floor)))


def test_mean_field_at_points_in_the_operators_coordinates():
    base = problems.trained(problems.fno(domain=((0.0, 2.0), (-1.0, 1.0))), problems.functions(4))
    residuals = problems.residuals(base, problems.functions(4))
    uncertainty = MeanField()
    uncertainty.fit(base, residuals, problems.OPTIONS)
    uncertainty.field = slope(9, 1.0)["u"][0]
    points = torch.tensor([[2.0, -1.0], [1.0, 0.3], [0.5, 1.0]])
    with torch.no_grad():
        found = uncertainty.predict(
            base, {"a": torch.rand(2, 1, 9, 9), "queries": points}
        ).uncertainty
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.5, 0.25]]).expand(2, 3))


def test_mean_field_of_vertices_needs_one_topology():
    gino = problems.gino()
    base = problems.trained(gino, problems.bodies(gino, 4, points=30))
    residuals = problems.residuals(base, problems.bodies(gino, 5, seed=1, points=30))
    uncertainty = MeanField()
    uncertainty.fit(base, residuals, problems.OPTIONS)
    error = [(s["u"] - c).abs()[0] for s, c in zip(residuals.data, residuals.centers, strict=True)]
    torch.testing.assert_close(uncertainty.field, torch.stack(error).mean(0))
    other = problems.batch_of(base, problems.bodies(gino, 1, points=31))
    with torch.no_grad(), pytest.raises(ValueError, match=r"31 vertices .* mean field has 30"):
        uncertainty.predict(base, other)
    mixed = problems.residuals(base, problems.bodies(gino, 3))
    with pytest.raises(ValueError, match=r"31 vertices .* mean field has 30"):
        MeanField().fit(base, mixed, problems.OPTIONS)


def test_the_operators_grid_may_be_periodic():
    torch.manual_seed(0)
    fno = FNO(1, 1, modes=(4,), width=4, layers=1, periodic=True)
    data = [{"a": torch.rand(1, 8), "u": torch.rand(1, 8)} for _ in range(4)]
    base = problems.trained(fno, data)
    uncertainty = MeanField()
    uncertainty.fit(base, problems.residuals(base, data), problems.OPTIONS)
    with torch.no_grad():
        finer = uncertainty.predict(base, {"a": torch.rand(1, 1, 16)}).uncertainty
    torch.testing.assert_close(finer[0, ::2], uncertainty.field)  # k/8 is a point of both grids
