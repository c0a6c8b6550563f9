import pytest
import torch

from tests.uncertainty.problems import OPTIONS, fno, functions, residuals, trained
from uqno.uncertainty import Quantile


@pytest.fixture(scope="module")
def problem():
    data = functions(8)
    base = trained(fno(), data)
    uncertainty = Quantile(power=1.0)
    uncertainty.fit(base, residuals(base, data), OPTIONS)
    return base, uncertainty, base.operator.collate(functions(3, seed=1))


@torch.no_grad()
def test_the_power_shrinks_the_variation_around_the_mean_error(problem):
    base, uncertainty, batch = problem
    full = uncertainty.predict(base, batch).uncertainty
    uncertainty.power = 0.5
    less = uncertainty.predict(base, batch).uncertainty
    uncertainty.power = 1.0
    scale = uncertainty.fitted().scale
    torch.testing.assert_close((less / scale) ** 2, full / scale)
    assert less.log().std() == pytest.approx(0.5 * float(full.log().std()), rel=1e-4)


@pytest.mark.parametrize("power", [0.0, -1.0, 1.1, float("nan")])
def test_a_power_outside_0_to_1_is_refused(power):
    with pytest.raises(ValueError, match=r"power = .* must lie in \(0, 1\]"):
        Quantile(power=power)
