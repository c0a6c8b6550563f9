"""One layer of a neural operator: a kernel integral beside a pointwise map."""

from collections.abc import Iterator
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from uqno.operators.pointwise import Analyse, SkipAndSum, mlp, skip_and_sum
from uqno.operators.spectral import (
    Fourier,
    Matrices,
    SpectralConv,
    analyse,
    analyse_others,
    full_precision,
    multiply,
    synthesise,
    synthesise_others,
    transform_first,
)


class Block(nn.Module):
    """v ← σ(W v + K v), then optionally v ← v + MLP(v), then dropout; channels last."""

    def __init__(
        self, conv: SpectralConv, activate: bool, channel_mlp: float = 0.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        width = conv.out_channels
        self.conv, self.activate = conv, activate
        self.skip = nn.Linear(conv.in_channels, width, bias=False)
        hidden = round(channel_mlp * width)
        self.mlp = mlp_layers(width, hidden, width) if hidden else None
        self.dropout = nn.Dropout(dropout)

    def coefficients(self, v: Tensor, matrices: Matrices) -> Tensor:
        """Fourier coefficients of K v (batch, 2n_1, .., width) from v (batch, *grid, width)."""
        with full_precision(v):
            r = analyse(v.to(self.conv.weight.dtype), matrices)
            return multiply(r, self.conv.weight, self.conv.bias)

    def pointwise(self, v: Tensor, integral: Tensor, fused: bool) -> Tensor:
        """The rest of the block at points: v and K v (..., width), in any layout of points."""
        pre = self.skip(v) + integral
        return self._after(F.gelu(pre) if self.activate else pre, fused)

    def forward(self, v: Tensor, matrices: Matrices) -> Tensor:
        """v (batch, *grid, width) to the same shape, by plain expressions."""
        return self.pointwise(v, synthesise(self.coefficients(v, matrices), matrices), False)

    def fused(
        self, v: Tensor, z: Tensor | None, matrices: Matrices
    ) -> tuple[Tensor, Tensor | None]:
        """`forward` in pieces; without gradients `v` is overwritten.

        Args:
            v: (batch, *grid, width).
            z: the transform of v in the first dimension, if known.
            matrices: of the transforms along each dimension.

        Returns:
            The answer, of the shape of v, and its transform in the first dimension, or None where
            there is no next block or this one changes the answer afterwards.
        """
        shape, (analysis, synthesis) = v.shape, matrices[0]
        training = torch.is_grad_enabled()
        v = v.reshape(shape[0], shape[1], -1)
        with full_precision(v):
            if z is None:
                if training:
                    v, z = Analyse.apply(v, analysis)  # type: ignore[no-untyped-call]
                else:
                    z = transform_first(v, analysis)
            r = analyse_others(z, matrices, shape[-1])
            z = synthesise_others(multiply(r, self.conv.weight, self.conv.bias), matrices)
            unchanged = self.mlp is None and not (self.dropout.training and self.dropout.p)
            ahead = analysis if self.activate and unchanged else None
            arguments = (v, z, self.skip.weight, synthesis, ahead, self.activate)
            if training:
                v, z = SkipAndSum.apply(*arguments)  # type: ignore[no-untyped-call]
            else:
                v, z = skip_and_sum(*arguments, v)
        return self._after(v.view(*shape[:-1], -1), True), z

    def _after(self, v: Tensor, fused: bool) -> Tensor:
        if self.mlp is not None:
            v = v + mlp(v, self.mlp, fused)
        return cast(Tensor, self.dropout(v))


class Blocks(nn.ModuleList):
    """v ← block_L ∘ … ∘ block_1 (v), all of one width; the last one without activation."""

    def __init__(
        self,
        width: int,
        layers: int,
        fourier: Fourier,
        channel_mlp: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        if layers < 1 or width < 1:
            raise ValueError(f"width={width}, layers={layers}: both must be at least 1")
        super().__init__(
            Block(SpectralConv(width, width, fourier=fourier), i < layers - 1, channel_mlp, dropout)
            for i in range(layers)
        )

    def __iter__(self) -> Iterator[Block]:
        return cast(Iterator[Block], super().__iter__())

    def forward(self, v: Tensor, matrices: Matrices, fused: bool) -> Tensor:
        """v (batch, *grid, width) to the same shape; fused and without gradients overwritten."""
        z: Tensor | None = None
        for block in self:
            if fused:
                v, z = block.fused(v, z, matrices)
            else:
                v = block(v, matrices)
        return v


def mlp_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, outputs))
