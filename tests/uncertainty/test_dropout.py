"""MC dropout against passes by hand, and what its masks depend on."""

import pytest
import torch
from torch import nn

from tests.uncertainty import problems
from uqno.uncertainty import Dropout
from uqno.uncertainty.dropout import Masked, with_masks


@pytest.fixture(scope="module")
def base():
    return problems.trained(problems.fno(channels=2), problems.functions(6, channels=2))


def fitted(base, **options):
    uncertainty = Dropout(**options)
    uncertainty.fit(
        base, problems.residuals(base, problems.functions(4, channels=2)), problems.OPTIONS
    )
    return uncertainty


def test_equals_passes_by_hand(base):
    uncertainty = fitted(base, passes=4, multiplier=3.0)
    batch = problems.batch_of(base, problems.functions(1, channels=2, seed=2))
    passes = torch.stack(list(uncertainty.answers(base, batch))).double()
    assert passes.shape == (4, 1, 2, 9, 9)
    found = uncertainty.predict(base, batch)
    torch.testing.assert_close(found.center.double(), passes.mean(0), atol=1e-6, rtol=1e-5)
    variance = ((passes - passes.mean(0)) ** 2).sum(0) / 3
    expected = 3 * variance.sum(1).sqrt()
    assert (expected > uncertainty.floor).all()
    torch.testing.assert_close(found.uncertainty.double(), expected, atol=1e-6, rtol=1e-4)


def test_passes_differ_by_pass_and_by_seed(base):
    uncertainty = fitted(base, passes=3, seed=5)
    batch = problems.batch_of(base, problems.functions(1, channels=2, seed=2))
    first, second, _ = uncertainty.answers(base, batch)
    assert not torch.equal(first, second)
    with torch.no_grad():
        plain = base.operator(batch)
    assert not torch.equal(first, plain)
    other = next(fitted(base, passes=3, seed=6).answers(base, batch))
    assert not torch.equal(first, other)


def test_only_dropout_is_active():
    seen = []

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.drop = nn.BatchNorm2d(1), nn.Dropout2d(0.5)

        def forward(self, a):
            seen.append((self.training, self.norm.training, self.drop.training))
            return self.drop(self.norm(a))

    base, residuals = problems.exact(Spy().eval(), problems.functions(3))
    uncertainty = Dropout(passes=2)
    base.operator.eval()
    uncertainty.fit(base, residuals, problems.OPTIONS)
    seen.clear()
    uncertainty.predict(base, problems.batch_of(base, problems.functions(2)))
    assert seen == [(False, False, True)] * 4
    assert not base.operator.module.drop.training


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Dropout(0.3), (2, 3, 5)),
        (nn.Dropout(0.3, inplace=True), (4, 700)),
        (nn.Dropout1d(0.5), (2, 8, 5)),
        (nn.Dropout1d(0.5), (8, 5)),
        (nn.Dropout2d(0.5), (2, 8, 5, 4)),
        (nn.Dropout3d(0.5), (2, 8, 3, 2, 2)),
        (nn.Dropout3d(0.5), (8, 3, 2, 2)),
        (nn.AlphaDropout(0.4), (3, 40)),
        (nn.FeatureAlphaDropout(0.4), (3, 8, 4)),
        (nn.Dropout(1.0), (3, 4)),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else str(x),
)
def test_masks_are_those_of_torch_itself(layer, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    for given in (x, x.transpose(0, 1).contiguous().transpose(0, 1)):  # of other strides
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            expected = layer.train()(given.clone())
        state = torch.get_rng_state()
        masks = torch.Generator().manual_seed(7)
        assert torch.equal(Masked(layer, masks)(given.clone()), expected)
        assert torch.equal(torch.get_rng_state(), state), "the global state is drawn from"


def test_the_copy_shares_weights_and_leaves_the_module_alone():
    shared = nn.Linear(3, 3)
    module = nn.Sequential(shared, nn.Dropout(0.5), shared, nn.Dropout(0.0)).eval()
    copy = with_masks(torch.compile(module, backend="eager"), torch.Generator())
    assert copy[0] is copy[2]
    assert copy[0].weight is shared.weight
    assert [m.training for m in copy] == [False, True, False, False]
    assert not any(m.training for m in module.modules())
    assert type(module[1]) is nn.Dropout


def test_the_floor_where_all_passes_agree():
    class Boundary(nn.Module):
        """Zero on the edge whatever is dropped, as a Dirichlet condition by construction."""

        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, a):
            inside = torch.zeros_like(a)
            inside[..., 1:-1, 1:-1] = 1
            return inside * self.drop(a)

    base, residuals = problems.exact(Boundary().eval(), problems.functions(3))
    base.operator.eval()
    uncertainty = Dropout(passes=5, floor=0.01)
    uncertainty.fit(base, residuals, problems.OPTIONS)
    inside = torch.zeros(9, 9)
    inside[1:-1, 1:-1] = 1
    error = torch.stack([(s["u"] - inside * s["a"]).abs() for s in residuals.data])
    found = uncertainty.predict(base, problems.batch_of(base, problems.functions(2))).uncertainty
    torch.testing.assert_close(found[:, 0], 0.01 * error.mean().expand(2, 9))


def test_a_base_without_dropout_is_refused():
    base = problems.trained(problems.fno(dropout=0.0), problems.functions(4))
    with pytest.raises(ValueError, match=r"FNO has 0 layers with dropout > 0.*dropout=0.1"):
        Dropout().fit(base, problems.residuals(base, problems.functions(2)), problems.OPTIONS)
