import math

import pytest
import torch
from torch import Tensor

from uqno.operators import SpectralConv
from uqno.operators.spectral import CACHED_GRIDS, _matrices, trapezoid

GRIDS = [((6,), (13,)), ((6, 5), (9, 12)), ((4, 6, 5), (8, 9, 7))]


def fft_reference(conv: SpectralConv, v: Tensor) -> Tensor:
    """The same layer with rfftn: dimension 1 is the one halved, so it is transformed last."""
    counts = conv.fourier.counts
    axes = list(range(len(counts), 0, -1))
    spectrum = torch.fft.rfftn(v, dim=axes, norm="forward")
    kept = [torch.arange(counts[0])]
    kept += [torch.cat((torch.arange(n), torch.arange(-1, -n, -1))) for n in counts[1:]]
    picked = spectrum
    for axis, k in enumerate(kept, start=1):
        picked = picked.index_select(axis, k % spectrum.shape[axis])
    weight = torch.complex(conv.weight[:, :, 0], conv.weight[:, :, 1])
    weight = weight.reshape(*(len(k) for k in kept), conv.in_channels, conv.out_channels)
    product = torch.einsum("b...i,...io->b...o", picked, weight)
    full = spectrum.new_zeros(*spectrum.shape[:-1], conv.out_channels)
    where = torch.meshgrid(
        *(k % spectrum.shape[axis] for axis, k in enumerate(kept, start=1)), indexing="ij"
    )
    full[(slice(None), *where)] = product
    shape = list(v.shape[1:-1])[::-1]
    return torch.fft.irfftn(full, s=shape, dim=axes, norm="forward") + conv.bias


def relative(x: Tensor, y: Tensor) -> float:
    return float(((x - y).norm() / y.norm()).detach())


@pytest.mark.parametrize(("modes", "grid"), GRIDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_periodic_equals_fft(
    modes: tuple[int, ...], grid: tuple[int, ...], dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(0)
    conv = SpectralConv(3, 4, modes, periodic=True).to(dtype)
    v = torch.randn(2, *grid, 3, dtype=dtype, requires_grad=True)
    ours, reference = conv(v), fft_reference(conv, v)
    assert relative(ours, reference) < tolerance
    g = torch.randn_like(ours)
    variables = [v, conv.weight, conv.bias]
    for x, y in zip(
        torch.autograd.grad(ours, variables, g),
        torch.autograd.grad(reference, variables, g),
        strict=True,
    ):
        assert relative(x, y) < tolerance


@torch.no_grad()
def test_equals_the_integral_it_stands_for() -> None:
    """Dense sum over all pairs of points with the kernel κ(x − y) = Re Σ W_k e^{2πi k(x−y)/L}."""
    torch.manual_seed(0)
    conv = SpectralConv(1, 1, (4, 6), domain=[(-1, 1), (2, 5)]).double()
    axes = (torch.linspace(-1, 1, 7).double(), torch.rand(9).double().sort().values * 3 + 2)
    v = torch.randn(1, 7, 9, 1).double()
    x = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    w = (trapezoid(axes[0]).view(-1, 1) * trapezoid(axes[1])).flatten()
    length = torch.tensor([2 * 1.25, 3 * 1.25]).double()
    k2 = [0, 1, 2, 3, -1, -2, -3]
    total = conv.bias.expand(63).clone()
    for m, (k1, k) in enumerate((k1, k) for k1 in range(3) for k in k2):
        phase = 2 * math.pi * ((x[:, None] - x) / length) @ torch.tensor([k1, k]).double()
        a, b = conv.weight[m, 0, :, 0]
        kernel = (a * phase.cos() - b * phase.sin()) * (2 if k1 else 1)
        total += kernel @ (w * v.flatten())
    assert torch.allclose(conv(v, axes).flatten(), total, atol=1e-12)


@torch.no_grad()
def test_converges_with_resolution() -> None:
    torch.manual_seed(0)
    conv = SpectralConv(1, 1, (8, 8)).double()

    def answer(n: int) -> Tensor:
        x = torch.linspace(0, 1, n).double()
        v = torch.exp(x).view(-1, 1) * torch.sin(3 * x)
        return conv(v.view(1, n, n, 1))[0, :: (n - 1) // 16, :: (n - 1) // 16, 0]

    errors = [float((answer(n) - answer(257)).abs().max()) for n in (17, 33, 65)]
    assert errors[1] < errors[0] / 3.5
    assert errors[2] < errors[1] / 3.5


@torch.no_grad()
def test_frequency_range_is_symmetric() -> None:
    conv = SpectralConv(1, 1, (4, 4), periodic=True).double()
    x = torch.arange(16).double() / 16
    for k1 in range(-4, 5):
        for k2 in range(-4, 5):
            wave = torch.cos(2 * math.pi * (k1 * x.view(-1, 1) + k2 * x) + 0.3)
            answer = conv(wave.view(1, 16, 16, 1)) - conv.bias
            kept = max(abs(k1), abs(k2)) <= 2
            assert (float(answer.abs().max()) > 1e-8) == kept


def test_half_precision_does_not_enter() -> None:
    torch.manual_seed(0)
    conv = SpectralConv(4, 4, (6, 6))
    v = torch.randn(2, 20, 20, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(conv(v), conv(v.clone()))
        mixed = conv(v)
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, conv(v))


def test_matrices_are_cached_and_the_cache_is_bounded() -> None:
    conv = SpectralConv(1, 1, (2,))
    first = conv.fourier.matrices((9,), conv.weight)
    assert conv.fourier.matrices((9,), conv.weight)[0][0] is first[0][0]
    axes = (torch.linspace(0, 1, 9) ** 2,)
    assert conv.fourier.matrices((9,), conv.weight, axes)[0][0] is not first[0][0]
    for n in range(3, 2 * CACHED_GRIDS):
        conv(torch.zeros(1, n, 1))
    assert _matrices.cache_info().currsize <= CACHED_GRIDS


def test_cached_matrices_serve_training_after_inference_mode() -> None:
    conv = SpectralConv(1, 1, (3,))
    with torch.inference_mode():
        conv(torch.zeros(1, 23, 1))
    conv(torch.ones(1, 23, 1)).sum().backward()
    assert conv.weight.grad is not None


def test_errors_state_value_bound_and_remedy() -> None:
    conv = SpectralConv(1, 1, (12, 12))
    with pytest.raises(ValueError, match=r"11 points in dimension 1.*modes=12.*at least 13.*finer"):
        conv(torch.zeros(1, 20, 11, 1))
    with pytest.raises(ValueError, match=r"expected \(batch, \*grid, 1\).*got \(1, 20, 20, 2\)"):
        conv(torch.zeros(1, 20, 20, 2))
    with pytest.raises(ValueError, match="must increase"):
        conv(torch.zeros(1, 13, 13, 1), (torch.linspace(1, 0, 13), torch.linspace(0, 1, 13)))
    with pytest.raises(ValueError, match=r"do not describe a grid of shape \(13, 13\)"):
        conv(torch.zeros(1, 13, 13, 1), (torch.linspace(0, 1, 13),))
    with pytest.raises(ValueError, match="4 dimensions"):
        SpectralConv(1, 1, (2, 2, 2, 2))
    with pytest.raises(ValueError, match=r"period=0.5 is shorter"):
        SpectralConv(1, 1, (2,), period=0.5)
