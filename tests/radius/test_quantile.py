import pytest
import torch

from tests.radius.problems import OPTIONS, fno, functions, residuals, trained
from uqno.radius import QuantileRadius


@pytest.fixture(scope="module")
def problem():
    data = functions(8)
    base = trained(fno(), data)
    radius = QuantileRadius(power=1.0)
    radius.fit(base, residuals(base, data), OPTIONS)
    return base, radius, base.operator.collate(functions(3, seed=1))


@torch.no_grad()
def test_the_power_shrinks_the_variation_around_the_mean_error(problem):
    base, radius, batch = problem
    full = radius.estimate(base, batch).radius
    radius.power = 0.5
    less = radius.estimate(base, batch).radius
    radius.power = 1.0
    scale = radius.fitted().scale
    torch.testing.assert_close((less / scale) ** 2, full / scale)
    assert less.log().std() == pytest.approx(0.5 * float(full.log().std()), rel=1e-4)


@torch.no_grad()
def test_a_radius_saved_before_there_was_a_power_has_none(problem):
    base, radius, batch = problem
    saved = radius.saved()
    assert saved["config"].pop("power") == 1.0
    again = QuantileRadius(**saved["config"])
    assert again.power == 0.8
    again.restore(base.operator, saved, radius.state_dict())
    torch.testing.assert_close(
        again.estimate(base, batch).radius, radius.estimate(base, batch).radius
    )


@pytest.mark.parametrize("power", [0.0, -1.0, 1.1, float("nan")])
def test_a_power_outside_0_to_1_is_refused(power):
    with pytest.raises(ValueError, match=r"power = .* must lie in \(0, 1\]"):
        QuantileRadius(power=power)
