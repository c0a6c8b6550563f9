"""The pointwise half of an operator, in pieces that stay in the processor's cache.

On a CPU, writing a large new tensor costs more than computing it. So these functions
work through the points in pieces, keep one output and no intermediate, and compute the
intermediates again in the backward pass. They can be differentiated once; the plain
expressions beside them (`fused=False` of an operator) any number of times.
"""

from collections.abc import Iterator
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from uqno.operators.spectral import full_precision, transform_first

# Numbers a piece: 2 MB of float32 a thread; measured best at 43², 85² and 141², 1 and 2 threads.
PIECE = {"cpu": 1 << 19}
PIECE_ON_DEVICE = 1 << 26

_gelu = torch.ops.aten.gelu.out
_gelu_backward = torch.ops.aten.gelu_backward.grad_input


def piece_size(device: torch.device) -> int:
    if device.type in PIECE:
        return PIECE[device.type] * torch.get_num_threads()
    return PIECE_ON_DEVICE


def pieces(rows: int, width: int, device: torch.device) -> Iterator[slice]:
    """Slices of `rows` rows of `width` numbers, each about one piece."""
    step = max(1, piece_size(device) // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def blocks(v: Tensor) -> Iterator[tuple[slice, slice]]:
    """(samples, rows) slices of v (batch, rows, width): whole samples, or rows of one sample."""
    (batch, rows, width), device = v.shape, v.device
    if rows * width <= piece_size(device):
        return ((samples, slice(0, rows)) for samples in pieces(batch, rows * width, device))
    return ((slice(i, i + 1), some) for i in range(batch) for some in pieces(rows, width, device))


def mlp(x: Tensor, layers: nn.Sequential, fused: bool = True) -> Tensor:
    """Linear, GELU, Linear on the last axis of x (..., in)."""
    if not fused:
        return cast(Tensor, layers(x))
    weights = (layers[0].weight, layers[0].bias, layers[2].weight, layers[2].bias)
    with full_precision(x):
        y = _MLP.apply(x.reshape(-1, x.shape[-1]), *weights)  # type: ignore[no-untyped-call]
    return cast(Tensor, y.view(*x.shape[:-1], -1))


class _MLP(torch.autograd.Function):
    """y = gelu(x W1ᵀ + b1) W2ᵀ + b2, x (points, in)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> Tensor:
        ctx.save_for_backward(x, W1, b1, W2)
        y = x.new_empty(x.shape[0], W2.shape[0])
        for some in pieces(x.shape[0], W1.shape[0], x.device):
            hidden = torch.addmm(b1, x[some], W1.t())
            _gelu(hidden, out=hidden)
            torch.addmm(b2, hidden, W2.t(), out=y[some])
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, W1, b1, W2 = ctx.saved_tensors
        gx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        gW1, gb1 = torch.zeros_like(W1.t()), torch.zeros_like(b1)
        gW2, gb2 = torch.zeros_like(W2), gy.sum(0)
        with full_precision(x):
            for some in pieces(x.shape[0], W1.shape[0], x.device):
                pre = torch.addmm(b1, x[some], W1.t())
                hidden = F.gelu(pre)
                gW2.addmm_(gy[some].t(), hidden)
                g = torch.mm(gy[some], W2, out=hidden)
                _gelu_backward(g, pre, grad_input=g)
                gW1.addmm_(x[some].t(), g)  # much faster than gᵀ x where x is narrow
                gb1 += g.sum(0)
                if gx is not None:
                    torch.mm(g, W1, out=gx[some])
        return gx, gW1.t(), gb1, gW2, gb2


def mean_mlp(x: Tensor, shares: Tensor, layers: nn.Sequential, fused: bool = True) -> Tensor:
    """Σ_k shares_k · mlp(x_k), x (..., k, in), shares (..., k) of sum 1: (..., out).

    The mean goes before the last layer, which is linear: the same, and k times cheaper.
    """
    first, last = layers[0], layers[2]
    if not fused:
        hidden = F.gelu(first(x))
        mean = (shares.unsqueeze(-2).to(hidden) @ hidden).squeeze(-2)
        return cast(Tensor, last(mean))
    with full_precision(x):
        flat = (x.flatten(0, -3), shares.flatten(0, -2).to(x), first.weight, first.bias)
        mean = _MeanHidden.apply(*flat)  # type: ignore[no-untyped-call]
        return cast(Tensor, last(mean.view(*x.shape[:-2], -1)))


class _MeanHidden(torch.autograd.Function):
    """y = Σ_k s_k gelu(x_k Wᵀ + b), x (points, k, in), s (points, k)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, s: Tensor, W: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(x, s, W, b)
        (points, k, _), width = x.shape, W.shape[0]
        y = x.new_empty(points, width)
        for some in pieces(points, k * width, x.device):
            hidden = torch.addmm(b, x[some].flatten(0, 1), W.t())
            _gelu(hidden, out=hidden)
            torch.sum(hidden.view(-1, k, width).mul_(s[some].unsqueeze(-1)), 1, out=y[some])
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, s, W, b = ctx.saved_tensors
        gx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        (points, k, _), width = x.shape, W.shape[0]
        gW, gb = torch.zeros_like(W.t()), torch.zeros_like(b)
        with full_precision(x):
            for some in pieces(points, k * width, x.device):
                edges = x[some].flatten(0, 1)
                pre = torch.addmm(b, edges, W.t())
                g = (gy[some].unsqueeze(1) * s[some].unsqueeze(-1)).view(-1, width)
                _gelu_backward(g, pre, grad_input=g)
                gW.addmm_(edges.t(), g)  # much faster than gᵀ x where x is narrow
                gb += g.sum(0)
                if gx is not None:
                    torch.mm(g, W, out=gx[some].view(-1, x.shape[2]))
        return gx, None, gW.t(), gb


class Analyse(torch.autograd.Function):
    """(v, F v) of v (batch, n, rest) and F (m, n): both gradients of v meet in one product."""

    @staticmethod
    def forward(ctx: Any, v: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(matrix)
        return v.view_as(v), transform_first(v, matrix)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gv: Tensor, gz: Tensor) -> tuple[Tensor, None]:
        (matrix,) = ctx.saved_tensors
        with full_precision(gv):
            # `gv` was made by SkipAndSum.backward for this node alone: adding in place is safe.
            return _add_product(gv, matrix.t(), gz), None


class SkipAndSum(torch.autograd.Function):
    """w = σ(v Wᵀ + G z) and F w: v (batch, n, ..·in), G (n, m), z (batch, m, ..·out), F (m, n).

    F w starts the next integral while the piece of w is in the cache; None to leave it out.
    """

    @staticmethod
    def forward(
        ctx: Any, v: Tensor, z: Tensor, W: Tensor, G: Tensor, F: Tensor | None, activate: bool
    ) -> tuple[Tensor, Tensor | None]:
        ctx.activate = activate
        ctx.save_for_backward(v, z, W, G, F)
        return skip_and_sum(v, z, W, G, F, activate, v.new_empty(*v.shape[:2], z.shape[2]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gw: Tensor, gz_next: Tensor | None) -> tuple[Tensor | None, ...]:
        v, z, W, G, F = ctx.saved_tensors
        gz, gW = torch.zeros_like(z), torch.zeros_like(W)
        # `gw` was made by the next layer's backward for this node alone, so it is free to
        # be overwritten by the gradient of v: a new tensor of this size would cost more
        # than the products.
        gw = gw.contiguous()
        gv = gw if v.shape == gw.shape else torch.empty_like(v)
        with full_precision(v):
            for samples, rows in blocks(gw):
                g = gw[samples, rows]
                if gz_next is not None:
                    _add_product(g, F[:, rows].t(), gz_next[samples])
                if ctx.activate:
                    pre = torch.empty_like(g)
                    _skip_and_sum(v, z, W, G, samples, rows, pre)
                    g = _gelu_backward(g, pre, grad_input=pre)
                else:
                    g = g.clone()
                _add_product(gz[samples], G[rows].t(), g)
                g = g.view(-1, W.shape[0])
                gW.addmm_(g.t(), v[samples, rows].view(-1, W.shape[1]))
                torch.mm(g, W, out=gv[samples, rows].view(-1, W.shape[1]))
        return gv, gz, gW, None, None, None


def skip_and_sum(
    v: Tensor, z: Tensor, W: Tensor, G: Tensor, F: Tensor | None, activate: bool, w: Tensor
) -> tuple[Tensor, Tensor | None]:
    """`SkipAndSum` written to w, which may be v: then there is no second copy of a large grid."""
    ahead = None if F is None else w.new_zeros(w.shape[0], F.shape[0], w.shape[2])
    for samples, rows in blocks(w):
        piece = w[samples, rows]
        pre = piece if w is not v else torch.empty_like(piece)
        _skip_and_sum(v, z, W, G, samples, rows, pre)
        if activate:
            _gelu(pre, out=piece)
        elif w is v:
            piece.copy_(pre)
        if F is not None and ahead is not None:
            _add_product(ahead[samples], F[:, rows], piece)
    return w, ahead


def _skip_and_sum(
    v: Tensor, z: Tensor, W: Tensor, G: Tensor, samples: slice, rows: slice, out: Tensor
) -> None:
    torch.mm(v[samples, rows].view(-1, W.shape[1]), W.t(), out=out.view(-1, W.shape[0]))
    _add_product(out, G[rows], z[samples])


def _add_product(out: Tensor, matrix: Tensor, z: Tensor) -> Tensor:
    """out (batch, n, rest) += matrix (n, m) · z (batch, m, rest)."""
    if len(out) == 1:  # a product of batches uses a thread a sample, a plain one all threads
        out[0].addmm_(matrix, z[0])
        return out
    return out.baddbmm_(matrix.expand(len(out), *matrix.shape), z)
