import numpy as np
import pytest
import torch

from tests.uncertainty.problems import OPTIONS, exact, fno, functions, residuals, trained
from uqno.conformal import function_scores
from uqno.uncertainty import Conformal, Options, Quantile


@pytest.fixture(scope="module")
def problem():
    data = functions(8)
    base = trained(fno(), data)
    uncertainty = Conformal((0.3, 0.1))
    uncertainty.fit(base, residuals(base, data), OPTIONS)
    return base, uncertainty, base.operator.collate(functions(3, seed=1))


def test_each_level_has_its_copy_and_other_levels_take_the_nearest(problem):
    base, uncertainty, batch = problem
    assert uncertainty.levels == (0.3, 0.1)
    answers = [
        uncertainty.for_level(alpha).predict(base, batch).uncertainty for alpha in (0.3, 0.1)
    ]
    assert not torch.equal(*answers)
    for alpha, nearest in ((0.9, 0), (0.3, 0), (0.2, 0), (0.17, 1), (0.1, 1), (1e-6, 1)):
        chosen = uncertainty.for_level(alpha).predict(base, batch).uncertainty
        assert torch.equal(chosen, answers[nearest]), alpha
    assert torch.equal(uncertainty.predict(base, batch).uncertainty, answers[0])
    assert Quantile().levels == ()
    assert (other := Quantile()).for_level(0.1) is other


def bandwidth(uncertainty, error, E, alpha):
    scores = function_scores(error, E, int(np.ceil(error.shape[1] * (1 - alpha))))
    return np.quantile(scores, 0.9, method="higher") * E.mean()


@pytest.mark.slow
def test_the_band_is_tighter_than_that_of_the_quantile():
    """Errors of a size that the input decides, times one that it does not: E must hedge."""
    generator = torch.Generator().manual_seed(0)

    def sample():
        a = torch.randn((), generator=generator).expand(1, 9, 9)
        size = torch.exp(0.7 * torch.randn((), generator=generator)) * torch.exp(a)
        return {"a": a.clone(), "u": size * torch.randn(1, 9, 9, generator=generator)}

    data, new = [sample() for _ in range(600)], [sample() for _ in range(600)]
    base, left = exact(lambda a: 0 * a, data)
    network = lambda inputs: torch.nn.Sequential(  # noqa: E731
        torch.nn.Conv2d(inputs, 16, 1), torch.nn.GELU(), torch.nn.Conv2d(16, 1, 1)
    )
    options = Options({"epochs": 30, "progress": False, "validation": 0.0, "learning_rate": 1e-2})
    widths = {}
    for name, E in {"quantile": Quantile(network=network, power=1.0),
                    "conformal": Conformal((0.1,), network=network)}.items():  # fmt: skip
        torch.manual_seed(0)
        E.fit(base, left, options)
        batch = base.operator.collate(new)
        answer = E.predict(base, {n: x for n, x in batch.items() if n != "u"})
        error = (batch["u"] - answer.center).abs().flatten(1).numpy()
        widths[name] = bandwidth(E, error, answer.uncertainty.detach().flatten(1).numpy(), 0.1)
    assert widths["conformal"] < 0.97 * widths["quantile"]


def test_folders_of_its_fits_go_on(tmp_path):
    data = functions(8)
    base = trained(fno(), data)
    left = residuals(base, data)
    options = Options({**OPTIONS.training, "folder": tmp_path, "resume": True}, 0)
    first, second = Conformal((0.2, 0.1)), Conformal((0.2, 0.1))
    first.fit(base, left, options)
    assert {path.name for path in tmp_path.iterdir()} == {"quantile", "band-0.2", "band-0.1"}
    second.fit(base, left, options)
    for x, y in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(x, y)


@pytest.mark.parametrize("levels", [(), (0.0,), (1.0,), (0.1, 0.1), (float("nan"),)])
def test_levels_out_of_bounds_are_refused(levels):
    with pytest.raises(ValueError, match=r"levels = .* must be different numbers in \(0, 1\)"):
        Conformal(levels)
    with pytest.raises(ValueError, match="share = 0 must be positive"):
        Conformal(share=0)
