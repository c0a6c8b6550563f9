"""Geometry-informed neural operator: a surface in, a function on it (or anywhere) out."""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.weak import WeakTensorKeyDictionary

from uqno.operators.block import Blocks, mlp_layers
from uqno.operators.neighbours import nearest, pad, shares, signed_distance
from uqno.operators.pointwise import mean_mlp, mlp
from uqno.operators.spectral import make_fourier
from uqno.types import Sample

# Edges worked on at once between the grid and the queries, to bound the memory.
EDGES = 1 << 17

# Neighbours of geometries that were moved, by those of the geometry itself and for as long as it
# keeps them: training comes back to every geometry, and finding them took a sixth of its time.
MOVED: MutableMapping[Tensor, dict[tuple[Any, ...], Sample]] = WeakTensorKeyDictionary()


class GINO(nn.Module):
    """u(x) = Q(Σ_j κ(x, y_j) v(y_j), x), v = blocks of P(sdf, Σ_i w_i κ(y, p_i), y) on a grid y.

    out_channels: of the answer (batch, out, points)
    domain: (lower, upper) of each dimension; a box around every geometry
    latent: points of the regular grid in the box
    modes, width, layers, channel_mlp, dropout, fused: of the spectral blocks, as in `FNO`
    features: numbers a surface point carries beside its position and normal
    neighbours: surface points a grid node listens to, and grid nodes a query listens to

    A sample is a dict of `points` (n, 3), `normals` (n, 3) and, if any, `features` (n, f),
    `weights` (n), `sdf` (*latent), `queries` (q, 3) with `query_normals` and
    `query_features`. `prepare_geometry` adds the neighbours, once, to be kept with it.
    """

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
        self.config = {
            "out_channels": out_channels,
            "domain": [list(side) for side in domain],
            "latent": list(latent),
            "modes": list(modes),
            "width": width,
            "layers": layers,
            "features": features,
            "neighbours": list(neighbours),
            "channel_mlp": channel_mlp,
            "dropout": dropout,
            "fused": fused,
        }
        self.out_channels, self.feature_channels = out_channels, features
        self.latent, self.neighbours, self.fused = tuple(latent), tuple(neighbours), fused
        self.fourier = make_fourier(modes, domain, None, False)
        self.fourier.check(self.latent)
        d = self.fourier.dimensions
        axes = self.fourier.grid(self.latent, torch.zeros(()))
        mesh = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)
        size = mesh[(-1,) * d] - mesh[(0,) * d]
        # Derived from the arguments: with the model on its device, but not in its files.
        self.register_buffer("mesh", mesh.reshape(-1, d), persistent=False)
        self.register_buffer("size", size, persistent=False)
        self.register_buffer("spacing", size / (torch.tensor(self.latent) - 1), persistent=False)
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

    def like(self, features: int, out_channels: int) -> "GINO":
        """An untrained GINO of the same kind for other channels, without dropout."""
        channels = {"features": features, "out_channels": out_channels, "dropout": 0.0}
        return GINO(**{**self.config, **channels})  # type: ignore[arg-type]

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
    ) -> Tensor:
        """u (batch, out, q) at the queries; the surface points by default.

        points (batch, n, d), normals (batch, n, d), features (batch, n, f), sdf (batch, *latent)
        grid_neighbours, grid_shares: (batch, L, k) surface points of each node, their weights
        query_neighbours: (batch, q, k) grid nodes of each query
        queries, query_normals (batch, q, d), query_features (batch, q, f)
        """
        hidden = self._hidden(
            points,
            normals,
            sdf,
            grid_neighbours,
            grid_shares,
            query_neighbours,
            features,
            queries,
            query_normals,
            query_features,
        )
        parts = [mlp(h, self.projection, self._fused) for h in hidden]
        return torch.cat(parts, dim=1).movedim(-1, 1)

    def features(self, *arguments: Any, **named: Any) -> Tensor:
        """φ (batch, hidden, q) of which the answer is `last`; arguments as in `forward`."""
        parts = [self.projection[:-1](h) for h in self._hidden(*arguments, **named)]
        return torch.cat(parts, dim=1).movedim(-1, 1)

    def prepare_geometry(self, sample: Sample) -> dict[str, Tensor]:
        """The sample with its neighbours (`grid_..`, `query_..`) and, where it has none, `sdf`.

        By kd-tree, once a geometry: keep the result in the data set. Queries without normals
        or features take those of the nearest surface point.
        """
        sample = dict(sample)
        missing = [name for name in ("points", "normals") if name not in sample]
        if missing:
            raise ValueError(
                f"the sample lacks {' and '.join(missing)}, each (n, {self.mesh.shape[1]}); it has "
                f"{', '.join(sorted(sample)) or 'nothing'}"
            )
        for field in ("points", "queries"):
            if field in sample:
                self._check_inside(sample[field], field)
        return self._with_neighbours(sample)

    def _with_neighbours(self, sample: Sample) -> dict[str, Tensor]:
        sample = dict(sample)
        points, normals = sample["points"], sample["normals"]
        weights = sample.get("surface_weights", sample.get("weights"))
        if weights is not None and len(weights) != len(points):
            weights = None  # they belong to the queries
        mesh = self.mesh.to("cpu", points.dtype)
        near, _ = nearest(points, mesh, self.neighbours[0])
        sample["grid_neighbours"], sample["grid_shares"] = near, shares(near, weights, points.dtype)
        if "sdf" not in sample:
            sample["sdf"] = signed_distance(points, normals, mesh, near).view(self.latent)
        queries = sample.get("queries", points)
        if "queries" in sample:
            closest = nearest(points, queries, 1)[0][:, 0].long()
            for field in ("normals", "features"):
                if field in sample:
                    sample.setdefault(f"query_{field}", sample[field][closest])
        spacing = self.spacing.to(mesh)
        sample["query_neighbours"], _ = nearest(
            mesh / spacing, queries / spacing, self.neighbours[1]
        )
        return sample

    def reflect(self, sample: Sample, axis: int = 1) -> dict[str, Tensor]:
        """The mirror image x_axis → −x_axis of a prepared sample, neighbours included.

        For geometries whose symmetry plane is the middle of the domain, and scalar `u`.
        """
        lower, upper = self.fourier.lower[axis], self.fourier.upper[axis]
        if abs(lower + upper) > 1e-6 * (upper - lower):
            raise ValueError(
                f"domain [{lower:g}, {upper:g}] of axis {axis} is not symmetric about 0; give a "
                "symmetric domain to reflect samples"
            )
        sample = dict(sample)
        for field in ("points", "normals", "queries", "query_normals"):
            if field in sample:
                sign = torch.ones_like(sample[field][:1])
                sign[:, axis] = -1
                sample[field] = sample[field] * sign
        sample["sdf"] = sample["sdf"].flip(axis)
        for field in ("grid_neighbours", "grid_shares"):
            on_grid = sample[field].view(*self.latent, -1)
            sample[field] = on_grid.flip(axis).flatten(0, -2)
        nodes = torch.arange(len(self.mesh), dtype=torch.int32).view(self.latent)
        mirrored = nodes.flip(axis).flatten()
        sample["query_neighbours"] = mirrored[sample["query_neighbours"].long()]
        return sample

    def translate(self, sample: Sample, nodes: float, axis: int = 0) -> dict[str, Tensor]:
        """A prepared sample, moved by so many nodes of the latent grid: other nodes are near it.

        It may reach out of the domain by as much. Its `sdf` is found anew, from the points.
        """
        found = ("sdf", "grid_neighbours", "grid_shares", "query_neighbours")
        moved = {name: field for name, field in sample.items() if name not in found}
        way = torch.zeros(len(self.spacing))
        way[axis] = nodes * float(self.spacing[axis])
        for field in ("points", "queries"):
            if field in moved:
                moved[field] = moved[field] + way.to(moved[field])
        kept = MOVED.setdefault(sample["query_neighbours"], {})
        grid = (self.fourier.lower, self.fourier.upper, self.latent, self.neighbours)
        place = (*grid, nodes, axis, sample["points"].dtype)
        if place not in kept:
            prepared = self._with_neighbours(moved)
            kept[place] = {name: prepared[name] for name in found}
        return {**moved, **kept[place]}

    @staticmethod
    def collate(samples: Sequence[Sample]) -> dict[str, Tensor]:
        """Samples with different numbers of points to a batch, padded where `weights` is 0."""
        missing = {"grid_neighbours", "grid_shares", "query_neighbours", "sdf"} - samples[0].keys()
        if missing:
            raise ValueError(
                f"the samples lack {sorted(missing)}; make them once with "
                "gino.prepare_geometry(sample)"
            )
        return pad(samples)

    @property
    def _fused(self) -> bool:
        # Under autocast the plain expressions run the pointwise layers in half precision.
        return self.fused and not torch.is_autocast_enabled(self.mesh.device.type)

    def _hidden(
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
    ) -> Iterator[Tensor]:
        """What the projection takes (batch, some queries, width + normals + features)."""
        surface = self._carried(points, normals, features)
        encoded = self._encode(points, surface, grid_neighbours, grid_shares)
        v = self._on_grid(encoded, sdf)
        if queries is not None:
            if query_normals is None:
                raise ValueError("queries without query_normals; use prepare_geometry(sample)")
            points, surface = queries, self._carried(queries, query_normals, query_features)
        step = max(1, EDGES // (self.neighbours[1] * len(points)))
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
        v = mlp(v, self.lifting, self._fused).view(batch, *self.latent, -1)
        matrices = self.fourier.matrices(self.latent, self.last.weight)
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
        found = 0 if features is None else features.shape[-1]
        d = self.fourier.dimensions
        if found != self.feature_channels or points.shape[-1] != d or normals.shape != points.shape:
            raise ValueError(
                f"expected points and normals (batch, n, {d}) and {self.feature_channels} "
                f"features a point, got {tuple(points.shape)}, {tuple(normals.shape)} and {found}; "
                "make the operator with features= as many as the data has, or give the data the "
                "field 'features' (n, f) that it was trained with"
            )
        return normals if features is None else torch.cat((normals, features), dim=-1)

    def _check_inside(self, points: Tensor, name: str) -> None:
        for j, (lower, upper) in enumerate(
            zip(self.fourier.lower, self.fourier.upper, strict=True)
        ):
            low, high = float(points[:, j].min()), float(points[:, j].max())
            if not lower <= low <= high <= upper:
                raise ValueError(
                    f"{name} reach from {low:g} to {high:g} in dimension {j}, outside the domain "
                    f"[{lower:g}, {upper:g}]; set domain= to a box that contains all geometries"
                )


def _gather(values: Tensor, index: Tensor) -> Tensor:
    """values (batch, n, c) at index (batch, m, k): (batch, m, k, c)."""
    batch, n, channels = values.shape
    shift = torch.arange(batch, device=index.device).view(-1, 1, 1) * n
    flat = (index + shift).flatten()
    return values.reshape(-1, channels).index_select(0, flat).view(*index.shape, channels)


def _length(offset: Tensor) -> Tensor:
    # Offsets are data, so the root at 0 needs no gradient.
    return offset.square().sum(-1, keepdim=True).sqrt()
