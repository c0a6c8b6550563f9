"""The models of the neuraloperator package, as base and as a positive estimator of the error."""

import copy
import math
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from uqno.operators import FNO, Operator

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own dependencies warn when they are imported
    models = pytest.importorskip("neuralop.models")
    layers = pytest.importorskip("neuralop.layers.spectral_convolution")


def fno() -> Operator:
    return Operator(models.FNO(n_modes=(5, 5), in_channels=1, out_channels=1, hidden_channels=8))


def tfno() -> Operator:
    model = models.TFNO(
        n_modes=(5, 5), in_channels=1, out_channels=1, hidden_channels=8, factorization="Tucker"
    )
    return Operator(model)


def uno() -> Operator:
    model = models.UNO(
        in_channels=1,
        out_channels=1,
        hidden_channels=8,
        lifting_channels=8,
        projection_channels=8,
        n_layers=3,
        uno_out_channels=[8, 8, 8],
        uno_n_modes=[[5, 5]] * 3,
        uno_scalings=[[1.0, 1.0], [0.5, 0.5], [2.0, 2.0]],
        channel_mlp_skip="linear",
    )
    return Operator(model, fields={"x": "a"})


def gino() -> Operator:
    model = models.GINO(
        in_channels=3,
        out_channels=1,
        in_gno_radius=0.6,
        out_gno_radius=0.6,
        fno_n_modes=(3, 3, 3),
        fno_hidden_channels=8,
        fno_n_layers=2,
        gno_embed_channels=4,
        in_gno_channel_mlp_hidden_layers=[8],
        out_gno_channel_mlp_hidden_layers=[8],
        gno_use_open3d=False,
        gno_use_torch_scatter=False,
    )
    fields = {
        "input_geom": "points",
        "latent_queries": "grid",
        "output_queries": "points",
        "x": "normals",
    }
    return Operator(model, fields, channels_last=True)


def squares() -> list[dict[str, Tensor]]:
    a = torch.rand(4, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    return [{"a": x, "u": 3 + torch.cumsum(x, -1) / 5} for x in a]


def spheres() -> list[dict[str, Tensor]]:
    """One geometry: neuraloperator's GINO takes no batch of several."""
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    x = x / x.norm(dim=1, keepdim=True)
    axis = torch.linspace(-1, 1, 5)
    grid = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), -1)
    return [{"points": 0.8 * x, "normals": x, "grid": grid, "u": 2 + x[:, :1].T}]


CASES = [(fno, squares), (tfno, squares), (uno, squares), (gino, spheres)]


def train(
    operator: Operator, batch: dict[str, Tensor], loss: Callable[[Tensor], Tensor]
) -> list[float]:
    optimiser = torch.optim.Adam(operator.parameters(), 1e-2)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        value = loss(operator(batch))
        value.backward()
        optimiser.step()
        losses.append(float(value.detach()))
    return losses


def check_round_trip(
    make: Callable[[], Operator], trained: Operator, batch: dict[str, Tensor]
) -> None:
    other = make()
    other.load_state_dict(copy.deepcopy(trained.state_dict()))
    assert torch.equal(other(batch), trained(batch))


@pytest.mark.parametrize(("make", "data"), CASES)
def test_as_base(make: Callable[[], Operator], data: Callable[[], list[dict[str, Tensor]]]) -> None:
    torch.manual_seed(0)
    operator = make()
    operator.fit_normalisers(data())
    batch = operator.collate(data())
    assert operator(batch).shape == batch["u"].shape
    losses = train(operator, batch, lambda output: (output - batch["u"]).square().mean())
    assert losses[-1] < 0.9 * losses[0]
    check_round_trip(make, operator, batch)


@pytest.mark.parametrize(("make", "data"), CASES)
def test_as_positive_radius(
    make: Callable[[], Operator], data: Callable[[], list[dict[str, Tensor]]]
) -> None:
    """E = softplus(operator): the pinball loss at level 0.9 falls and E is positive."""

    def raw() -> Operator:
        operator = make()
        operator.output = None
        return operator

    torch.manual_seed(0)
    operator = raw()
    operator.fit_normalisers(data())
    batch = operator.collate(data())
    error = (batch["u"] - batch["u"].mean()).abs()

    def pinball(output: Tensor) -> Tensor:
        excess = error - nn.functional.softplus(output)
        return torch.maximum(0.9 * excess, -0.1 * excess).mean()

    losses = train(operator, batch, pinball)
    assert losses[-1] < losses[0]
    assert (nn.functional.softplus(operator(batch)) > 0).all()
    check_round_trip(raw, operator, batch)


def test_modes_of_ours_are_the_odd_n_modes_of_theirs() -> None:
    """Ours modes = 12 and theirs n_modes = 13 pass the same waves, |k_j| ≤ 6, and no others."""
    torch.manual_seed(0)
    theirs = layers.SpectralConv(1, 1, (13, 13), bias=False)
    ours = FNO(1, 1, modes=(12, 12), width=1, periodic=True).blocks[0].conv  # type: ignore[union-attr]
    x = torch.arange(20) / 20
    for k1 in range(-8, 9):
        for k2 in range(-8, 9):
            wave = torch.cos(2 * math.pi * (k1 * x.view(-1, 1) + k2 * x) + 0.3)
            passed = float(theirs(wave.view(1, 1, 20, 20)).detach().abs().max()) > 1e-4
            answer = ours(wave.view(1, 20, 20, 1)) - ours.bias  # type: ignore[operator,union-attr]
            assert passed == (float(answer.detach().abs().max()) > 1e-4)
    count = sum(p.numel() for p in theirs.parameters())
    assert count == ours.weight.numel() // 2  # type: ignore[union-attr,operator]
