"""Geometry-informed neural operator: a surface in, a function on it (or anywhere) out."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from uqno.operators.base import NeuralOperator
from uqno.operators.block import Blocks, mlp_layers
from uqno.operators.latent import PREPARED, LatentGrid
from uqno.operators.padding import pad
from uqno.operators.pointwise import mean_mlp, mlp
from uqno.operators.spectral import is_autocast_enabled, make_fourier
from uqno.types import Sample

# Edges worked on at once between the grid and the queries, to bound the memory.
EDGES = 1 << 17


class GINO(NeuralOperator):
    """u(x) = Q(Σ_j κ(x, y_j) v(y_j), x), v = blocks of P(sdf, Σ_i w_i κ(y, p_i), y) on a grid y.

    A sample is a geometry as `LatentGrid` says; `prepare` adds its neighbours, once, to be stored
    with it.

    Args:
        out_channels: of the answer (batch, out, points).
        domain: (lower, upper) of each dimension; a box around every geometry.
        latent: points of the regular grid in the box.
        modes: of the spectral blocks on that grid, as in `FNO`.
        width: channels of the hidden functions.
        layers: number of spectral blocks.
        channel_mlp: width of an MLP after each block, in widths; 0 for none.
        dropout: probability after each block.
        fused: work in pieces that fit the cache; False allows higher derivatives.
        features: numbers a surface point carries beside its position and normal.
        neighbours: surface points a grid node listens to, and grid nodes a query listens to.

    Attributes:
        latent: the `LatentGrid` of these arguments.

    Reference:
        Li et al., Geometry-informed neural operator for large-scale 3D PDEs, NeurIPS 2023.
    """

    latent: LatentGrid
    answers_depend_on_points = True  # the latent function is a sum over them
    mesh: Tensor
    spacing: Tensor
    size: Tensor

    def __init__(
        self,
        out_channels: int,
        domain: Sequence[tuple[float, float]] = ((-1.0, 1.0),) * 3,
        latent: Sequence[int] = (32, 16, 16),
        modes: Sequence[int] = (16, 8, 8),
        width: int = 32,
        layers: int = 4,
        *,
        features: int = 0,
        neighbours: tuple[int, int] = (8, 8),
        channel_mlp: float = 0.0,
        dropout: float = 0.0,
        fused: bool = True,
    ) -> None:
        super().__init__()
        self.out_channels, self.feature_channels, self.fused = out_channels, features, fused
        self.latent = LatentGrid(tuple(domain), tuple(latent), neighbours)
        self.fourier = make_fourier(modes, domain, None, False)
        self.fourier.check(self.latent.shape)
        d = self.fourier.dimensions
        # Derived from the arguments: with the model on its device, but not in its files.
        self.register_buffer("mesh", self.latent.nodes, persistent=False)
        self.register_buffer("size", self.latent.size, persistent=False)
        self.register_buffer("spacing", self.latent.spacing, persistent=False)
        point = d + features  # what a surface point carries: normal and features
        self.encoder = mlp_layers(d + 1 + point, 2 * width, width)
        self.lifting = mlp_layers(width + 1 + d, 2 * width, width)
        self.blocks = Blocks(width, layers, self.fourier, channel_mlp, dropout)
        self.decoder = mlp_layers(d + 1 + point, 2 * width, width)
        self.projection = mlp_layers(width + point, 2 * width, out_channels)

    @property
    def last(self) -> nn.Linear:
        """The last layer, linear in `features`."""
        return cast(nn.Linear, self.projection[-1])

    def like(self, inputs: int, outputs: int) -> NeuralOperator:
        """An untrained GINO of the same kind for other channels, without dropout.

        Args:
            inputs: features of a surface point.
            outputs: channels of the answer.
        """
        return self._with(features=inputs, out_channels=outputs)

    def prepare(self, sample: Sample) -> dict[str, Tensor]:
        """The geometry with its neighbours on the latent grid; see `LatentGrid.prepare`."""
        return self.latent.prepare(sample)

    def collate(self, samples: Sequence[Sample]) -> dict[str, Tensor]:
        """Samples with different numbers of points to a batch, padded where `weights` is 0."""
        missing = sorted(set(PREPARED) - samples[0].keys())
        if missing:
            raise ValueError(f"the samples lack {missing}; add them once with prepare(sample)")
        return pad(samples)

    def forward(
        self,
        points: Tensor,
        normals: Tensor,
        sdf: Tensor,
        grid_neighbours: Tensor,
        grid_shares: Tensor,
        query_neighbours: Tensor,
        features: Tensor | None = None,
        queries: Tensor | None = None,
        query_normals: Tensor | None = None,
        query_features: Tensor | None = None,
        *,
        as_features: bool = False,
    ) -> Tensor:
        """The answer at the queries; at the surface points by default.

        Args:
            points, normals: (batch, n, d).
            sdf: (batch, *latent), the signed distance at the nodes.
            grid_neighbours, grid_shares: (batch, L, k) surface points of each node, their weights.
            query_neighbours: (batch, q, k) grid nodes of each query.
            features: (batch, n, f).
            queries, query_normals: (batch, q, d).
            query_features: (batch, q, f).
            as_features: return what the last layer takes, not the answer.

        Returns:
            u (batch, out, q), or φ (batch, hidden, q).
        """
        hidden = self._hidden(
            (points, normals, features),
            sdf,
            (grid_neighbours, grid_shares, query_neighbours),
            (queries, query_normals, query_features),
        )
        if as_features:
            parts = [self.projection[:-1](h) for h in hidden]
        else:
            parts = [mlp(h, self.projection, self._fused) for h in hidden]
        return torch.cat(parts, dim=1).movedim(-1, 1)

    def features(self, *arguments: Any, **named: Any) -> Tensor:
        """φ (batch, hidden, q) of which the answer is `last`; arguments as in `forward`."""
        return self.forward(*arguments, **named, as_features=True)

    @property
    def _fused(self) -> bool:
        # Under autocast the plain expressions run the pointwise layers in half precision.
        return self.fused and not is_autocast_enabled(self.mesh.device)

    def _hidden(
        self,
        body: tuple[Tensor, Tensor, Tensor | None],
        sdf: Tensor,
        neighbours: tuple[Tensor, Tensor, Tensor],
        wanted: tuple[Tensor | None, Tensor | None, Tensor | None],
    ) -> Iterator[Tensor]:
        """What the projection takes (batch, some queries, width + normals + features).

        Args:
            body: points, normals and features of the surface.
            sdf: the signed distance at the nodes of the grid.
            neighbours: of the nodes among surface points, their shares, and of the queries among
                nodes.
            wanted: points, normals and features of the queries.
        """
        points, surface = body[0], self._carried(*body)
        grid_neighbours, grid_shares, query_neighbours = neighbours
        encoded = self._encode(points, surface, grid_neighbours, grid_shares)
        v = self._on_grid(encoded, sdf)
        queries, query_normals, query_features = wanted
        if queries is not None:
            if query_normals is None:
                raise ValueError("queries without query_normals; use prepare(sample)")
            points, surface = queries, self._carried(queries, query_normals, query_features)
        step = max(1, EDGES // (self.latent.neighbours[1] * len(points)))
        several = points.shape[1] > step and torch.is_grad_enabled()
        for start in range(0, points.shape[1], step):
            some = slice(start, start + step)
            parts = (v, points[:, some], surface[:, some], query_neighbours[:, some])
            # Millions of edges do not fit beside their gradients: compute them again.
            decoded = checkpoint(self._decode, *parts, use_reentrant=False) if several else None
            decoded = self._decode(*parts) if decoded is None else decoded
            yield torch.cat((decoded, surface[:, some]), dim=-1)

    def _encode(self, points: Tensor, surface: Tensor, index: Tensor, shares: Tensor) -> Tensor:
        """Σ_i w_i κ(y, p_i) (batch, L, width)."""
        offset = (_gather(points, index) - self.mesh.unsqueeze(1)) / self.size
        edges = torch.cat((offset, _length(offset), _gather(surface, index)), dim=-1)
        return mean_mlp(edges, shares, self.encoder, self._fused)

    def _on_grid(self, encoded: Tensor, sdf: Tensor) -> Tensor:
        """The latent function (batch, L, width) after the spectral blocks."""
        batch = len(encoded)
        distance = sdf.flatten(1).unsqueeze(-1) / self.size.max()
        x = (self.mesh - self.mesh[0]) / self.size
        v = torch.cat((encoded, distance.to(encoded), x.expand(batch, -1, -1)), dim=-1)
        v = mlp(v, self.lifting, self._fused).view(batch, *self.latent.shape, -1)
        matrices = self.fourier.matrices(self.latent.shape, self.last.weight)
        return cast(Tensor, self.blocks(v, matrices, self._fused)).flatten(1, -2)

    def _decode(self, v: Tensor, queries: Tensor, carried: Tensor, index: Tensor) -> Tensor:
        """mean_j κ(x, y_j) v(y_j) (batch, q, width) over the grid nodes y_j near the query x."""
        nodes = self.mesh.index_select(0, index.flatten()).view(*index.shape, -1)
        offset = (queries.unsqueeze(-2) - nodes) / self.spacing
        at_query = carried.unsqueeze(-2).expand(*index.shape, -1)
        edges = torch.cat((offset, _length(offset), at_query), dim=-1)
        kernel = mlp(edges, self.decoder, self._fused)
        return (kernel * _gather(v, index)).mean(-2)

    def _carried(self, points: Tensor, normals: Tensor, features: Tensor | None) -> Tensor:
        """Normals and features (batch, n, d + f) of points, checked."""
        channels = 0 if features is None else features.shape[-1]
        d = self.fourier.dimensions
        if (
            channels != self.feature_channels
            or points.shape[-1] != d
            or normals.shape != points.shape
        ):
            raise ValueError(
                f"expected points and normals (batch, n, {d}) and {self.feature_channels} "
                f"features a point, got {tuple(points.shape)}, {tuple(normals.shape)} and "
                f"{channels}; make the operator with features= as many as the data has, or give "
                "the data the field 'features' (n, f) that it was trained with"
            )
        return normals if features is None else torch.cat((normals, features), dim=-1)


def _gather(values: Tensor, index: Tensor) -> Tensor:
    """values (batch, n, c) at index (batch, m, k): (batch, m, k, c)."""
    batch, n, channels = values.shape
    shift = torch.arange(batch, device=index.device).view(-1, 1, 1) * n
    flat = (index + shift).flatten()
    return values.reshape(-1, channels).index_select(0, flat).view(*index.shape, channels)


def _length(offset: Tensor) -> Tensor:
    # Offsets are data, so the root at 0 needs no gradient.
    return offset.square().sum(-1, keepdim=True).sqrt()
