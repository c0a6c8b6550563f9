"""Losses against dense naive formulas, and the minimiser of the quantile loss on a known law."""

import math

import pytest
import torch
from scipy.stats import norm

from uqno.training import (
    BandLoss,
    QuantileLoss,
    RelativeH1,
    RelativeL2,
    pointwise_error,
    quantile_loss,
)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def naive_quantile(error, uncertainty, alpha, weights):
    total = 0.0
    for e, r, w in zip(error, uncertainty, weights, strict=True):
        inner = 0.0
        for ex, rx, wx in zip(e.flatten(), r.flatten(), w.flatten(), strict=True):
            inner += wx * ((1 - alpha) * (ex - rx) if ex > rx else alpha * (rx - ex))
        total += inner / w.sum()
    return total / len(error)


@pytest.mark.parametrize("points", [(7,), (3, 4), (2, 3, 2)])
def test_quantile_loss_is_the_weighted_pinball(points):
    error, uncertainty, weights = (
        draw(3, *points).abs(),
        draw(3, *points, seed=1),
        draw(3, *points).abs(),
    )
    expected = naive_quantile(error, uncertainty, 0.2, weights)
    assert quantile_loss(error, uncertainty, 0.2, weights) == pytest.approx(
        expected.item(), rel=1e-12
    )
    ones = torch.ones_like(weights)
    expected = naive_quantile(error, uncertainty, 0.2, ones)
    assert quantile_loss(error, uncertainty, 0.2) == pytest.approx(expected.item(), rel=1e-12)


def test_the_error_is_the_two_norm_over_channels():
    residual = draw(2, 3, 4, 5)
    assert torch.allclose(pointwise_error(residual), residual.pow(2).sum(1).sqrt())
    one = residual[:, :1]
    assert torch.equal(pointwise_error(one), one[:, 0].abs())
    loss = QuantileLoss(0.1)(draw(2, 1, 4, 5), {"u": residual})
    assert loss == quantile_loss(pointwise_error(residual), draw(2, 1, 4, 5)[:, 0], 0.1)


def test_weights_are_a_measure_and_padding_does_not_count():
    error, uncertainty, weights = draw(2, 6).abs(), draw(2, 6, seed=1), draw(2, 6, seed=2).abs()
    loss = quantile_loss(error, uncertainty, 0.1, weights)
    assert torch.isclose(loss, quantile_loss(error, uncertainty, 0.1, 7.0 * weights))
    pad = torch.full((2, 3), 1e3, dtype=torch.float64)
    padded = [torch.cat([x, pad], dim=1) for x in (error, uncertainty)]
    zeros = torch.cat([weights, torch.zeros_like(pad)], dim=1)
    assert torch.isclose(loss, quantile_loss(*padded, 0.1, zeros))


def minimised(loss, errors, batch_size, uncertainty, rounds):
    """The uncertainty at each point in which averaged gradient descent on the loss ends."""
    uncertainty = uncertainty.clone().requires_grad_()
    steps = rounds * (len(errors) // batch_size)
    average, count = torch.zeros_like(uncertainty), 0
    for step in range(steps):
        k = step % (len(errors) // batch_size)
        batch = errors[k * batch_size : (k + 1) * batch_size]
        (gradient,) = torch.autograd.grad(loss(batch, uncertainty.expand_as(batch)), uncertainty)
        rate = 4.0 / (1 + step / 20) ** 0.6 * min(1.0, batch_size / 8) ** 0.5
        with torch.no_grad():
            uncertainty -= (
                rate * gradient * uncertainty.numel()
            )  # the loss is a mean over the points
        if step > steps // 2:
            average, count = average + uncertainty.detach(), count + 1
    return average / count


@pytest.mark.parametrize("batch_size", [1, 2, 4, 32])
def test_the_minimiser_is_the_quantile_whatever_the_batch_size(batch_size):
    """Half-normal errors of scale s(x): the (1 − α)-quantile is s(x) Φ⁻¹(1 − α/2)."""
    alpha, scale = 0.2, torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    errors = draw(8192, 3).abs() * scale
    start = torch.ones(3, dtype=torch.float64)
    learned = minimised(
        lambda e, r: quantile_loss(e, r, alpha), errors, batch_size, start, max(1, batch_size // 4)
    )
    exact = scale * norm.ppf(1 - alpha / 2)
    assert torch.allclose(learned / exact, torch.ones(3, dtype=torch.float64), atol=0.06)


def test_a_constant_radius_learns_the_quantile_of_the_mixture():
    """Exactly, on all errors at once: the minimiser is an order statistic."""
    errors = draw(50, 20).abs()
    grid = errors.flatten().sort().values
    losses = [quantile_loss(errors, r.expand_as(errors), 0.137) for r in grid]
    best = int(torch.stack(losses).argmin())
    assert best == math.ceil(0.863 * grid.numel()) - 1


def test_the_peer_learns_another_level_at_another_batch_size():
    """neuralop divides by the largest error of the batch, ours does not."""
    peer = pytest.importorskip("neuralop.losses.data_losses").PointwiseQuantileLoss(
        0.2, reduction="mean"
    )
    errors = draw(4096)
    uncertainties = torch.linspace(0.4, 1.8, 57, dtype=torch.float64)

    def coverage(loss, batch_size):
        """The level the loss asks of a constant uncertainty; every point is one more batch."""
        batches = errors.view(-1, batch_size).T
        losses = torch.stack([loss(r.expand_as(batches), batches) for r in uncertainties])
        return float((errors.abs() <= uncertainties[losses.argmin()]).double().mean())

    def ours(uncertainty, residual):
        return quantile_loss(residual.abs(), uncertainty, 0.2)

    sizes = (1, 2, 4, 32)
    assert all(abs(coverage(ours, b) - 0.8) < 0.02 for b in sizes)
    assert coverage(peer, 1) < 0.6  # it asks for 0.8
    assert coverage(peer, 1) < coverage(peer, 2) < coverage(peer, 4) < coverage(peer, 32)


def naive_relative(difference, truth, weights):
    ratios = []
    for d, u, w in zip(difference, truth, weights, strict=True):
        ratios.append(((w * d**2).sum() / (w * u**2).sum()).sqrt())
    return sum(ratios) / len(ratios)


def test_relative_l2():
    v, u, w = draw(3, 2, 4, 5), draw(3, 2, 4, 5, seed=1), draw(3, 4, 5, seed=2).abs()
    weighted = RelativeL2()(v, {"u": u, "weights": w})
    assert torch.isclose(weighted, naive_relative(v - u, u, w[:, None]))
    plain = RelativeL2()(v, {"u": u})
    assert torch.isclose(plain, naive_relative(v - u, u, torch.ones_like(w)[:, None]))


def test_relative_h1_is_exact_for_quadratics_on_uneven_grids():
    """Second-order differences of x² + xy are exact in the interior: compare with calculus."""
    x = torch.tensor([0.0, 0.1, 0.3, 0.35, 0.8, 1.0], dtype=torch.float64)
    y = torch.tensor([-1.0, 0.0, 0.5, 2.0], dtype=torch.float64)
    X, Y = torch.meshgrid(x, y, indexing="ij")
    field = (X**2 + X * Y)[None, None]
    dx, dy = RelativeH1((tuple(x.tolist()), tuple(y.tolist()))).derivatives(field)
    assert torch.allclose(dx[0, 0, 1:-1], (2 * X + Y)[1:-1])
    assert torch.allclose(dy[0, 0], X)


def test_relative_h1_converges_to_the_continuous_norm():
    """v = sin πx, u = sin 2πx on [0, 1]: ‖v − u‖² = ½(1 + π²) + ½(1 + 4π²), ‖u‖² the latter."""
    expected = math.sqrt((1 + math.pi**2 + 1 + 4 * math.pi**2) / (1 + 4 * math.pi**2))
    errors = []
    for points in (65, 257):
        x = torch.linspace(0, 1, points, dtype=torch.float64)
        weights = torch.full((points,), 1.0, dtype=torch.float64)
        weights[[0, -1]] = 0.5  # the trapezoid rule
        v, u = torch.sin(math.pi * x), torch.sin(2 * math.pi * x)
        batch = {"u": u[None, None], "weights": weights[None]}
        errors.append(abs(RelativeH1()(v[None, None], batch).item() - expected))
    assert errors[0] < 5e-3
    assert errors[1] < errors[0] / 8


@pytest.mark.parametrize("loss", [RelativeL2(), RelativeH1()])
def test_a_zero_truth_counts_with_its_absolute_error(loss):
    output = torch.full((2, 1, 8), 3.0, requires_grad=True)
    truth = torch.zeros(2, 1, 8)
    value = loss(output, {"u": truth})
    assert value.item() == pytest.approx(3.0)
    value.backward()
    assert output.grad.isfinite().all()
    exact = truth.clone().requires_grad_()  # zero over zero
    loss(exact, {"u": truth}).backward()
    assert torch.equal(exact.grad, torch.zeros_like(truth))


@pytest.mark.parametrize("loss", [RelativeL2(), RelativeH1(), QuantileLoss(0.1)])
def test_shapes_never_broadcast(loss):
    with pytest.raises(ValueError, match=r"shape \(2, 1, 1\)"):
        loss(torch.ones(2, 1, 1), {"u": torch.ones(2, 1, 5)})


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"alpha = 1\.5 must lie strictly between 0 and 1"):
        QuantileLoss(1.5)
    with pytest.raises(ValueError, match="increasing"):
        RelativeH1(((0.0, 0.0, 1.0),))
    with pytest.raises(ValueError, match="each as long as that axis"):
        RelativeH1(((0.0, 1.0),))(torch.ones(1, 1, 3), {"u": torch.ones(1, 1, 3)})
    with pytest.raises(ValueError, match="a derivative needs 2"):
        RelativeH1()(torch.ones(1, 1, 1), {"u": torch.ones(1, 1, 1)})
    with pytest.raises(ValueError, match="one uncertainty a point"):
        quantile_loss(torch.ones(1, 2), torch.ones(1, 1), 0.1)


# --- the loss of the band -------------------------------------------------------------------------


def test_the_loss_of_the_band_is_the_log_of_its_width():
    """With a narrow window and a large power: the (1 − α)-quantile of the ratios of the worst."""
    torch.manual_seed(0)
    error = torch.rand(5, 1, 40, 25).double()
    E = 0.5 + torch.rand(5, 1, 40, 25).double()
    ratios = (error / E).flatten(1).sort(dim=1).values
    expected = E.mean().log() + ratios[:, 900 - 1 : 900 + 1].mean(1).max().log()
    loss = BandLoss(0.1, power=1e4, window=0.01)(E, {"u": error})
    assert float(loss) == pytest.approx(float(expected), abs=2e-3)


def test_scores_are_means_between_two_quantiles():
    ratios = torch.arange(1.0, 101.0).double()[None].flip(1)
    (score,) = BandLoss(0.1, window=0.3).scores(ratios, None)
    assert float(score) == pytest.approx(float(torch.arange(88.0, 94.0).mean()))
    weights = torch.zeros(1, 200).double()
    weights[:, :100] = 3.0
    padded = torch.cat((ratios, torch.full((1, 100), 1e3).double()), dim=1)
    (same,) = BandLoss(0.1, window=0.3).scores(padded, weights)
    assert float(same) == pytest.approx(float(score))
    (shared,) = BandLoss(0.1, window=0.3).scores(padded, weights[0])
    assert float(shared) == pytest.approx(float(score))


def test_the_loss_of_the_band_knows_shapes_alone():
    torch.manual_seed(0)
    batch = {"u": torch.randn(3, 2, 8, 8).double()}
    E = (0.5 + torch.rand(3, 1, 8, 8)).double()
    assert float(BandLoss(0.1)(7 * E, batch)) == pytest.approx(float(BandLoss(0.1)(E, batch)))
    assert torch.autograd.gradcheck(
        lambda x: BandLoss(0.1)(x, batch), (E.clone().requires_grad_(),)
    )
    huge = {"u": 1e15 * batch["u"].float()}
    assert torch.isfinite(BandLoss(0.1)(E.float(), huge))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((0.0,), "alpha = 0"), ((0.1, 0.5), "power = 0.5"), ((0.1, 2, 0), "window = 0")],
)
def test_levels_of_the_band_out_of_bounds_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        BandLoss(*arguments)
    with pytest.raises(ValueError, match="one channel, on the points"):
        BandLoss(0.1)(torch.ones(1, 2, 3), {"u": torch.ones(1, 1, 3)})
