import copy

import pytest
import torch
from torch import Tensor, nn

from uqno.operators import FNO, Operator, as_operator

Sample = dict[str, Tensor]


def samples(n: int = 6, grid: int = 11) -> list[Sample]:
    generator = torch.Generator().manual_seed(0)
    a = 3 + 9 * torch.rand(n, 1, grid, grid, generator=generator)
    return [{"a": x, "u": 5 + 0.01 * x} for x in a]


def test_arguments_come_from_fields_of_the_same_name() -> None:
    operator = Operator(lambda a, b=None: a if b is None else a + b)
    batch = {"a": torch.ones(1, 1, 3), "u": torch.zeros(1, 1, 3)}
    assert torch.equal(operator(batch), batch["a"])
    assert torch.equal(operator({**batch, "b": batch["a"]}), 2 * batch["a"])


def test_first_argument_is_a_where_no_name_fits() -> None:
    batch = {"a": torch.rand(2, 3, 4), "u": torch.rand(2, 3, 4)}
    assert torch.equal(Operator(nn.Identity())(batch), batch["a"])
    assert torch.equal(Operator(torch.sin)(batch), batch["a"].sin())


def test_named_fields_and_channels_last() -> None:
    operator = Operator(
        lambda x, y: x - y, fields={"x": "p", "y": "q"}, normalise=(), channels_last=True
    )
    p, q = torch.rand(2, 5, 3), torch.rand(2, 5, 3)
    assert torch.equal(operator({"p": p, "q": q}), (p - q).movedim(-1, 1))


def test_fitted_normalisers_standardises_what_the_module_sees_and_restores_the_output() -> None:
    seen = []
    data = samples()
    operator = Operator(lambda a: seen.append(a) or torch.zeros_like(a))  # type: ignore[func-returns-value]
    operator.fit_normalisers(data)
    output = operator(operator.collate(data))
    assert abs(float(seen[0].mean())) < 1e-5
    assert abs(float(seen[0].std(correction=0)) - 1) < 1e-5
    expected = torch.stack([s["u"] for s in data]).mean()
    assert torch.allclose(output, expected.expand_as(output))


def test_fitted_normalisers_happens_once_and_is_saved() -> None:
    operator = Operator(FNO(1, 1, modes=(4, 4), width=4, layers=1))
    assert not operator.is_normalised
    operator.fit_normalisers(samples())
    state = copy.deepcopy(operator.state_dict())
    operator.fit_normalisers([{"a": 100 * s["a"], "u": s["u"]} for s in samples()])
    assert all(torch.equal(state[k], v) for k, v in operator.state_dict().items())
    other = Operator(FNO(1, 1, modes=(4, 4), width=4, layers=1))
    other.load_state_dict(state)
    assert other.is_normalised
    batch = other.collate(samples())
    assert torch.equal(other(batch), operator(batch))


def test_output_none_leaves_the_output_alone() -> None:
    operator = Operator(lambda a: a, normalise=(), output=None)
    operator.fit_normalisers(samples())
    batch = operator.collate(samples())
    assert torch.equal(operator(batch), batch["a"])


def test_as_operator_wraps_once() -> None:
    operator = as_operator(nn.Identity())
    assert isinstance(operator, Operator)
    assert as_operator(operator) is operator


def test_features_and_points_go_through() -> None:
    operator = Operator(FNO(1, 2, modes=(4, 4), width=4, layers=1))
    batch = {**operator.collate(samples(2)), "queries": torch.rand(2, 5, 2)}
    assert operator(batch).shape == (2, 2, 5)
    assert operator.features(batch).shape == (2, 8, 5)
    with pytest.raises(ValueError, match=r"Identity has no features\(\)"):
        Operator(nn.Identity()).features(batch)


def test_collate_refuses_mixed_samples() -> None:
    operator = Operator(nn.Identity())
    mixed = [samples(1)[0], samples(1, grid=21)[0]]
    with pytest.raises(ValueError, match=r"mixed resolutions.*'a' is \(1, 11, 11\).*\(1, 21, 21\)"):
        operator.collate(mixed)
    wide = {"a": torch.zeros(2, 11, 11), "u": torch.zeros(1, 11, 11)}
    with pytest.raises(ValueError, match=r"mixed channels.*'a' is \(1, 11, 11\).*\(2, 11, 11\)"):
        operator.collate([samples(1)[0], wide])
    with pytest.raises(ValueError, match=r"sample 1.*\['a'\], sample 0 \['a', 'u'\]"):
        operator.collate([samples(1)[0], {"a": torch.zeros(1, 11, 11)}])
    with pytest.raises(ValueError, match="0 samples"):
        operator.collate([])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_bad_numbers_are_refused_by_name(bad: float) -> None:
    data, operator = samples(3), Operator(nn.Identity())
    data[2]["u"][0, 4, 5] = bad
    for action in (operator.collate, operator.fit_normalisers):
        with pytest.raises(ValueError, match=r"'u' of sample 2 has 1 of 121 entries.*NaN"):
            action(data)


def test_large_but_finite_numbers_are_welcome() -> None:
    huge = {"a": torch.full((1, 4), 3e38)}
    Operator(nn.Identity()).collate([huge])


def test_missing_fields_are_named() -> None:
    with pytest.raises(ValueError, match=r"fields \['u'\].*needs \['a'\]"):
        Operator(nn.Identity())({"u": torch.zeros(1, 1, 2)})
    with pytest.raises(ValueError, match=r"needs \['p'\]"):
        Operator(nn.Identity(), fields={"input": "p"})({"a": torch.zeros(1, 1, 2)})
    with pytest.raises(ValueError, match="no 'u'"):
        Operator(nn.Identity()).fit_normalisers([{"a": torch.zeros(1, 2)}])
    with pytest.raises(ValueError, match="0 samples to fit"):
        Operator(nn.Identity()).fit_normalisers([])
