"""The pointwise half of an operator, in pieces that stay in the processor's cache.

On a CPU, writing a large new tensor costs more than computing it. So these functions
work through the points in pieces, keep one output and no intermediate, and compute the
intermediates again in the backward pass. They can be differentiated once; the plain
expressions beside them (`fused=False` of an operator) any number of times.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .spectral import full_precision

# Numbers a piece: 1 MB of float32, the second-level cache of a CPU core.
PIECE = {"cpu": 1 << 18}
PIECE_ON_DEVICE = 1 << 26

_gelu = torch.ops.aten.gelu.out
_gelu_backward = torch.ops.aten.gelu_backward.grad_input


def pieces(rows: int, width: int, device: torch.device) -> Iterator[slice]:
    """Slices of `rows` rows of `width` numbers, each about one piece."""
    step = max(1, PIECE.get(device.type, PIECE_ON_DEVICE) // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def blocks(
    batch: int, rows: int, width: int, device: torch.device
) -> Iterator[tuple[slice, slice]]:
    """(samples, rows) slices: several whole samples, or some rows of one sample."""
    if rows * width <= PIECE.get(device.type, PIECE_ON_DEVICE):
        return ((samples, slice(0, rows)) for samples in pieces(batch, rows * width, device))
    return ((slice(i, i + 1), some) for i in range(batch) for some in pieces(rows, width, device))


def mlp(x: Tensor, layers: nn.Sequential, fused: bool = True) -> Tensor:
    """Linear, GELU, Linear on the last axis of x (..., in)."""
    if not fused:
        return layers(x)  # type: ignore[no-any-return]
    first, last = layers[0], layers[2]
    with full_precision(x):
        y = _MLP.apply(x.reshape(-1, x.shape[-1]), first.weight, first.bias, last.weight, last.bias)
    return y.view(*x.shape[:-1], -1)  # type: ignore[no-any-return]


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
        gW1, gb1 = torch.zeros_like(W1), torch.zeros_like(b1)
        gW2, gb2 = torch.zeros_like(W2), gy.sum(0)
        with full_precision(x):
            for some in pieces(x.shape[0], W1.shape[0], x.device):
                pre = torch.addmm(b1, x[some], W1.t())
                hidden = F.gelu(pre)
                gW2.addmm_(gy[some].t(), hidden)
                g = torch.mm(gy[some], W2, out=hidden)
                _gelu_backward(g, pre, grad_input=g)
                gW1.addmm_(g.t(), x[some])
                gb1 += g.sum(0)
                if gx is not None:
                    torch.mm(g, W1, out=gx[some])
        return gx, gW1, gb1, gW2, gb2


class ShareInput(torch.autograd.Function):
    """(v, F v) of v (batch, n, rest) and F (m, n): both gradients of v meet in one product."""

    @staticmethod
    def forward(ctx: Any, v: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(matrix)
        return v.view_as(v), torch.bmm(matrix.expand(v.shape[0], *matrix.shape), v)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gv: Tensor, gz: Tensor) -> tuple[Tensor, None]:
        (matrix,) = ctx.saved_tensors
        with full_precision(gv):
            # `gv` was made by SkipAndSum.backward for this node alone: adding in place is safe.
            return gv.baddbmm_(matrix.t().expand(gz.shape[0], *matrix.t().shape), gz), None


class SkipAndSum(torch.autograd.Function):
    """σ(v Wᵀ + b + G z): v (batch, n, points·in), G (n, m), z (batch, m, points·out)."""

    @staticmethod
    def forward(
        ctx: Any, v: Tensor, z: Tensor, W: Tensor, b: Tensor, G: Tensor, activate: bool
    ) -> Tensor:
        ctx.activate = activate
        ctx.save_for_backward(v, z, W, b, G)
        out = v.new_empty(v.shape[0], v.shape[1], z.shape[2])
        for samples, rows in blocks(*out.shape, out.device):
            _skip_and_sum(v, z, W, b, G, samples, rows, out[samples, rows])
            if activate:
                _gelu(out[samples, rows], out=out[samples, rows])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gout: Tensor) -> tuple[Tensor | None, ...]:
        v, z, W, b, G = ctx.saved_tensors
        gout = gout.contiguous()
        gv, gz = torch.empty_like(v), torch.zeros_like(z)
        gW, gb = torch.zeros_like(W), torch.zeros_like(b)
        with full_precision(v):
            for samples, rows in blocks(*gout.shape, gout.device):
                g = gout[samples, rows]
                if ctx.activate:
                    pre = torch.empty_like(g)
                    _skip_and_sum(v, z, W, b, G, samples, rows, pre)
                    g = _gelu_backward(g, pre, grad_input=pre)
                gz[samples].baddbmm_(G[rows].t().expand(g.shape[0], -1, -1), g)
                g = g.view(-1, W.shape[0])
                gW.addmm_(g.t(), v[samples, rows].view(-1, W.shape[1]))
                gb += g.sum(0)
                torch.mm(g, W, out=gv[samples, rows].view(-1, W.shape[1]))
        return gv, gz, gW, gb, None, None


def skip_and_sum_in_place(
    v: Tensor, z: Tensor, W: Tensor, b: Tensor, G: Tensor, activate: bool
) -> Tensor:
    """`SkipAndSum` without gradients, written over v (in = out): no second copy of a large grid."""
    for samples, rows in blocks(*v.shape, v.device):
        pre = torch.empty_like(v[samples, rows])
        _skip_and_sum(v, z, W, b, G, samples, rows, pre)
        if activate:
            _gelu(pre, out=v[samples, rows])
        else:
            v[samples, rows] = pre
    return v


def _skip_and_sum(
    v: Tensor, z: Tensor, W: Tensor, b: Tensor, G: Tensor, samples: slice, rows: slice, out: Tensor
) -> None:
    torch.addmm(b, v[samples, rows].view(-1, W.shape[1]), W.t(), out=out.view(-1, W.shape[0]))
    out.baddbmm_(G[rows].expand(out.shape[0], -1, -1), z[samples])
