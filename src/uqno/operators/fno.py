"""Fourier neural operator on a grid, evaluated on the grid or at any point."""

from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from uqno.operators.base import NeuralOperator
from uqno.operators.block import Blocks, mlp_layers
from uqno.operators.checks import check_functions, check_inside
from uqno.operators.interpolate import multilinear
from uqno.operators.pointwise import mlp, pieces
from uqno.operators.spectral import (
    Coordinates,
    Matrices,
    analyse_others,
    full_precision,
    is_autocast_enabled,
    make_fourier,
    multiply,
    synthesise,
    transform_first,
)
from uqno.types import Reals

# Grid points at full width at once, without gradients; larger grids pass by in tiles.
TILE = 1 << 19


class FNO(NeuralOperator):
    """u = Q ∘ σ(W_L + K_L) ∘ … ∘ σ(W_1 + K_1) ∘ P (a, x): grid functions to grid functions.

    P and Q are pointwise networks, W_l pointwise linear maps, K_l kernel integrals by truncated
    Fourier series.

    Args:
        in_channels: of a (batch, channel, *grid).
        out_channels: of the answer.
        modes: frequencies |k_j| ≤ modes_j / 2 in each of 1 to 3 dimensions.
        width: channels of the hidden functions.
        layers: L.
        domain: (lower, upper) of each dimension, the unit box by default.
        period: of the Fourier basis, in sides of the domain; `periodic` makes it 1.
        periodic: whether the functions are periodic on the domain.
        lifting: width of the hidden layer of P, in widths.
        projection: width of the hidden layer of Q, in widths.
        channel_mlp: width of an MLP after each block, in widths; 0 for none.
        dropout: probability after each block.
        fused: work in pieces that fit the cache; False allows higher derivatives.
        sees_place: whether P sees x. Without, a periodic FNO commutes with shifts of the torus (by
            whole steps of the grid).

    Reference:
        Li et al., Fourier neural operator for parametric partial differential equations, ICLR 2021.

    Example:
        >>> fno = FNO(1, 1, modes=(4, 4), width=8)
        >>> a = torch.rand(2, 1, 9, 9)
        >>> fno(a).shape, fno(a, queries=torch.rand(5, 2)).shape
        (torch.Size([2, 1, 9, 9]), torch.Size([2, 1, 5]))
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        modes: Sequence[int] = (20, 20),
        width: int = 32,
        layers: int = 4,
        *,
        domain: Sequence[tuple[float, float]] | None = None,
        period: float | None = None,
        periodic: bool = False,
        lifting: float = 2.0,
        projection: float = 2.0,
        channel_mlp: float = 0.0,
        dropout: float = 0.0,
        fused: bool = True,
        sees_place: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.width, self.fused, self.sees_place = width, fused, sees_place
        self.fourier = make_fourier(modes, domain, period, periodic)
        inputs = in_channels + (self.fourier.dimensions if sees_place else 0)
        self.lifting = mlp_layers(inputs, round(lifting * width), width)
        self.blocks = Blocks(width, layers, self.fourier, channel_mlp, dropout)
        self.projection = mlp_layers(width, round(projection * width), out_channels)

    @property
    def last(self) -> nn.Linear:
        """The last layer, linear in `features`."""
        return cast(nn.Linear, self.projection[-1])

    @property
    def dimensions(self) -> int:
        """Of the grids that it takes."""
        return self.fourier.dimensions

    def axes(self, shape: Sequence[int]) -> tuple[Reals, ...]:
        """Equally spaced coordinates of its domain; both end points unless periodic."""
        return tuple(self.fourier.axis(j, n) for j, n in enumerate(shape))

    def forward(
        self,
        a: Tensor,
        coordinates: Coordinates | None = None,
        queries: Tensor | None = None,
        a_queries: Tensor | None = None,
    ) -> Tensor:
        """The answer on the grid of a, or at queries.

        Args:
            a: (batch, in, *grid).
            coordinates: one increasing 1-D tensor a dimension; equally spaced by default.
            queries: (q, d) or (batch, q, d), anywhere in the domain.
            a_queries: a at the queries (batch, in, q); interpolated from the grid by default.

        Returns:
            u (batch, out, *grid), or (batch, out, q) at the queries.
        """
        hidden = self._hidden(a, coordinates, queries, a_queries)
        outputs = (mlp(v, self.projection, self._fused) for v in hidden)
        return _assemble(outputs)

    def features(
        self,
        a: Tensor,
        coordinates: Coordinates | None = None,
        queries: Tensor | None = None,
        a_queries: Tensor | None = None,
    ) -> Tensor:
        """φ (batch, hidden, *points) of which the answer is `last`: u = W φ + b at every point."""
        hidden = self._hidden(a, coordinates, queries, a_queries)
        return _assemble(self.projection[:-1](v) for v in hidden)

    @property
    def _fused(self) -> bool:
        # Under autocast the plain expressions run the pointwise layers in half precision.
        return self.fused and not is_autocast_enabled(self.last.weight.device)

    def _hidden(
        self,
        a: Tensor,
        coordinates: Coordinates | None,
        queries: Tensor | None,
        a_queries: Tensor | None,
    ) -> Iterator[Tensor]:
        """The function before the projection (batch, *points, width): on the grid, or in pieces."""
        self._check(a, queries, a_queries)
        a = a.to(self.last.weight.dtype)
        shape = a.shape[2:]
        matrices = self.fourier.matrices(shape, a, coordinates)
        axes = tuple(coordinates) if coordinates is not None else self.fourier.grid(shape, a)
        if queries is None and not torch.is_grad_enabled() and a[:, 0].numel() > 2 * TILE:
            yield from self._in_tiles(a, axes, matrices)
            return
        mesh = torch.stack(torch.meshgrid(*(x.to(a) for x in axes), indexing="ij"), dim=-1)
        v = self._lift(a.movedim(1, -1), mesh)
        if queries is None:
            yield self.blocks(v, matrices, self._fused)
            return
        coefficients = []
        for block in self.blocks:
            coefficients.append(block.coefficients(v, matrices).flatten(1, -2))
            if block.activate:  # the last block's function is wanted at the queries alone
                v = block.fused(v, None, matrices)[0] if self._fused else block(v, matrices)
        del v
        yield from self._at_queries(a, axes, coefficients, queries.to(a), a_queries)

    def _in_tiles(self, a: Tensor, axes: Coordinates, matrices: Matrices) -> Iterator[Tensor]:
        """The grid a few rows at a time, for functions too large to hold at full width.

        A layer's coefficients are sums over the rows; once they are known, the layer can be
        computed on any rows again. So layer by layer all rows pass by, in bounded memory.
        """
        rows = max(1, TILE // (a[:, 0, 0].numel()))
        tiles = [slice(i, i + rows) for i in range(0, a.shape[2], rows)]
        coefficients: list[Tensor] = []
        for block in self.blocks:
            z = sum(
                transform_first(
                    self._rows(a, axes, matrices, some, coefficients).flatten(2),
                    matrices[0][0][:, some],
                )
                for some in tiles
            )
            with full_precision(a):
                r = analyse_others(cast(Tensor, z), matrices, self.width)
                coefficients.append(multiply(r, block.conv.weight, block.conv.bias))
        for some in tiles:
            yield self._rows(a, axes, matrices, some, coefficients)

    def _rows(
        self,
        a: Tensor,
        axes: Coordinates,
        matrices: Matrices,
        some: slice,
        coefficients: list[Tensor],
    ) -> Tensor:
        """The function on some rows after as many blocks as there are coefficients."""
        mesh = torch.meshgrid(axes[0][some].to(a), *(x.to(a) for x in axes[1:]), indexing="ij")
        v = self._lift(a[:, :, some].movedim(1, -1), torch.stack(mesh, dim=-1))
        (analysis, synthesis), *others = matrices
        here = ((analysis[:, some], synthesis[some]), *others)
        for block, r in zip(self.blocks, coefficients, strict=False):
            with full_precision(v):
                integral = synthesise(r, here)
            v = block.pointwise(v, integral, self._fused)
        return v

    def _at_queries(
        self,
        a: Tensor,
        axes: Coordinates,
        coefficients: list[Tensor],
        queries: Tensor,
        a_queries: Tensor | None,
    ) -> Iterator[Tensor]:
        """Every pointwise path at the queries, the integrals from the grid's coefficients."""
        basis_size = coefficients[0].shape[1]
        for some in pieces(queries.shape[-2], a.shape[0] * basis_size // 4, a.device):
            x = queries[..., some, :]
            given = multilinear(a, axes, x) if a_queries is None else a_queries[..., some].to(a)
            basis = self.fourier.at(x)
            v = self._lift(given.movedim(1, -1), x)
            for block, r in zip(self.blocks, coefficients, strict=True):
                with full_precision(v):
                    integral = basis @ r
                v = block.pointwise(v, integral, self._fused)
            yield v

    def _lift(self, a: Tensor, x: Tensor) -> Tensor:
        """P(a, x) (batch, *points, width); x (*points, d) as a fraction of the domain."""
        if not self.sees_place:
            return mlp(a, self.lifting, self._fused)
        lower, upper = a.new_tensor(self.fourier.lower), a.new_tensor(self.fourier.upper)
        x = ((x - lower) / (upper - lower)).expand(*a.shape[:-1], -1)
        if torch.is_grad_enabled() or a.ndim == 3:
            return mlp(torch.cat((a, x), dim=-1), self.lifting, self._fused)
        v = a.new_empty(*a.shape[:-1], self.width)
        for i in range(a.shape[0]):  # a copy of the inputs of one function, not of all
            v[i] = mlp(torch.cat((a[i], x[i]), dim=-1), self.lifting, self._fused)
        return v

    def _check(self, a: Tensor, queries: Tensor | None, a_queries: Tensor | None) -> None:
        check_functions(a, self.in_channels, self.dimensions, queries, a_queries)
        if queries is not None and not queries.is_meta:  # which has shapes alone
            check_inside(queries, self.fourier.lower, self.fourier.upper)


def _assemble(parts: Iterator[Tensor]) -> Tensor:
    """Channels-last pieces of the first dimension of points to (batch, channel, *points)."""
    values = [part.movedim(-1, 1) for part in parts]
    return values[0] if len(values) == 1 else torch.cat(values, dim=2)
