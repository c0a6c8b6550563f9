import pytest
import torch

from uqno.operators import Normaliser


def test_statistics_equal_those_of_all_values_at_once() -> None:
    generator = torch.Generator().manual_seed(0)
    functions = [1e3 + torch.randn(2, n, generator=generator).double() for n in (5, 9, 7)]
    normaliser = Normaliser().double()
    normaliser.fit((f, None) for f in functions)
    everything = torch.cat(functions, dim=1)
    assert torch.allclose(normaliser.mean, everything.mean(1), rtol=1e-12)
    assert torch.allclose(normaliser.std, everything.std(1, correction=0), rtol=1e-9)


def test_weights_count_like_repeated_points() -> None:
    f = torch.tensor([[1.0, 2.0, 7.0]])
    weighted, repeated = Normaliser(), Normaliser()
    weighted.fit([(f, torch.tensor([2.0, 1.0, 0.0]))])
    repeated.fit([(torch.tensor([[1.0, 1.0, 2.0]]), None)])
    assert torch.allclose(weighted.mean, repeated.mean)
    assert torch.allclose(weighted.std, repeated.std)


def test_inverse_undoes_and_a_constant_channel_keeps_its_scale() -> None:
    normaliser = Normaliser()
    x = torch.stack((torch.full((4, 6), 12.0), torch.rand(4, 6)), dim=1)
    assert torch.equal(normaliser(x), x)
    normaliser.fit((f, None) for f in x)
    assert torch.allclose(normaliser.inverse(normaliser(x)), x)
    assert torch.equal(normaliser(x)[:, 0], torch.zeros(4, 6))


def test_state_dict_brings_the_number_of_channels() -> None:
    fitted, fresh = Normaliser(), Normaliser()
    fitted.fit([(torch.rand(3, 5), None)])
    fresh.load_state_dict(fitted.state_dict())
    x = torch.rand(2, 3, 4)
    assert torch.equal(fresh(x), fitted(x))
    assert bool(fresh.fitted)


def test_errors() -> None:
    normaliser = Normaliser()
    with pytest.raises(ValueError, match="no functions"):
        normaliser.fit([])
    normaliser.fit([(torch.rand(3, 5), None)])
    with pytest.raises(ValueError, match="fitted on 3 channels, got 2"):
        normaliser(torch.rand(1, 2, 5))
