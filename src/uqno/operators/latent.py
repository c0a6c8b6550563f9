"""The regular grid that an operator on geometries works on, and how geometries meet it."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from uqno.data.surfaces import surface_fields
from uqno.geometry.surface import Surface
from uqno.memory import check_memory
from uqno.operators.neighbours import distance_to_points, nearest, shares
from uqno.types import Array, Integers, Reals, Sample

# What `LatentGrid.prepare` adds to a geometry.
PREPARED = ("sdf", "grid_neighbours", "grid_shares", "query_neighbours")

# Training comes back to every geometry, and looking for the neighbours of a moved one took a sixth
# of its time. So they are stored, under the neighbours of the geometry itself while these live.
MOVED: MutableMapping[Tensor, dict[tuple[Any, ...], Sample]] = WeakTensorKeyDictionary()


@dataclass(frozen=True)
class LatentGrid:
    """A regular grid in a box around every geometry, both ends included.

    A geometry is a sample of `points` (n, d) and `normals` (n, d) and, if any, `features` (n, f),
    `weights` (n), `surface_weights` (n), `sdf` (*shape), `queries` (q, d) with `query_normals` and
    `query_features`. `prepare` adds its neighbours, once; neighbours are looked for on the CPU.

    Attributes:
        box: (lower, upper) along each dimension.
        shape: nodes along each dimension; L of them in all.
        neighbours: how many surface points a node listens to, and how many nodes a query.
    """

    box: tuple[tuple[float, float], ...]
    shape: tuple[int, ...]
    neighbours: tuple[int, int] = (8, 8)

    def __post_init__(self) -> None:
        sides = tuple((float(low), float(high)) for low, high in self.box)
        near_node, near_query = (int(k) for k in self.neighbours)
        object.__setattr__(self, "box", sides)
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "neighbours", (near_node, near_query))
        size = 12 * max(1, len(self.shape)) * prod(max(0, n) for n in self.shape)
        check_memory(f"the latent grid {self.shape}", size, "give it fewer nodes")

    def axes(self) -> tuple[Reals, ...]:
        """The coordinates of the nodes along each dimension."""
        sides = zip(self.box, self.shape, strict=True)
        return tuple(np.linspace(low, high, n) for (low, high), n in sides)

    @cached_property
    def nodes(self) -> Tensor:
        """The nodes (L, d), float32, the last dimension fastest."""
        with torch.inference_mode(False):  # the next caller may want gradients
            axes = (torch.from_numpy(axis).float() for axis in self.axes())
            return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)

    @cached_property
    def size(self) -> Tensor:
        """The sides of the box (d,), float32."""
        return self.nodes[-1] - self.nodes[0]

    @cached_property
    def spacing(self) -> Tensor:
        """The distance of two nodes along each dimension (d,), float32."""
        return self.size / (torch.tensor(self.shape, device="cpu") - 1)

    def prepare(self, sample: Sample) -> dict[str, Tensor]:
        """The sample with its neighbours, and with its signed distance where it has none.

        With `triangles` (t, 3) and no `sdf`, the geometry is a closed surface: normals, areas of
        the vertices and signed distance are then those of `uqno.data.surfaces.surface_fields`, in
        float32. Without triangles, the distance is that to the nearest point.

        Args:
            sample: `points` (n, d) and `normals` (n, d), or `points` and `triangles`; queries
                without normals or features take those of the nearest surface point. A sample that
                is prepared already stays as it is.

        Returns:
            The sample with `sdf` (*shape), `grid_neighbours` and `grid_shares` (L, k), and
            `query_neighbours` (q, k), without triangles.

        Raises:
            ValueError: A field is missing, a point lies outside the box, or the sample was
                prepared for another grid.
        """
        triangles = sample.get("triangles")
        sample = {n: _on_cpu(f) for n, f in sample.items() if n != "triangles"}
        if triangles is not None and "sdf" not in sample:
            sample = self._measured(sample, np.asarray(triangles, dtype=np.int64))
        missing = [name for name in ("points", "normals") if name not in sample]
        if missing:
            raise ValueError(
                f"the sample lacks {' and '.join(missing)}, each (n, {len(self.shape)}); it has "
                f"{', '.join(sorted(sample)) or 'nothing'}"
            )
        if self._is_prepared(sample):
            return dict(sample)
        for field in ("points", "queries"):
            if field in sample:
                self._check_inside(sample[field], field)
        return self._with_neighbours(sample)

    def is_of_points(self, sample: Sample) -> bool:
        """Whether the signed distance of a prepared sample is that to its nearest points."""
        near, points = sample["grid_neighbours"], sample["points"]
        nodes = self.nodes.to(points)
        distance = distance_to_points(points, sample["normals"], nodes, near)
        return torch.equal(distance.view(self.shape), sample["sdf"])

    def reflect(self, sample: Sample, axis: int = 1) -> dict[str, Tensor]:
        """The mirror image x_axis → −x_axis of a prepared sample, neighbours included.

        For geometries whose symmetry plane is the middle of the box, and scalar `u`.
        """
        lower, upper = self.box[axis]
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
            on_grid = sample[field].view(*self.shape, -1)
            sample[field] = on_grid.flip(axis).flatten(0, -2)
        index = sample["query_neighbours"]
        nodes = torch.arange(len(self.nodes), dtype=torch.int32, device=index.device)
        mirrored = nodes.view(self.shape).flip(axis).flatten()
        sample["query_neighbours"] = mirrored[index.long()]
        return sample

    def translate(self, sample: Sample, nodes: float, axis: int = 0) -> dict[str, Tensor]:
        """A prepared sample, moved along an axis: other nodes are near it.

        It may reach out of the box by as much. Its `sdf` is that to the nearest points.

        Args:
            sample: on the CPU.
            nodes: how far, in distances of two nodes.
            axis: along which dimension.

        Returns:
            The moved sample with its new neighbours, which are looked for once a geometry.
        """
        moved = {name: field for name, field in sample.items() if name not in PREPARED}
        moved |= self.shift(moved, nodes, axis)
        stored = MOVED.setdefault(sample["query_neighbours"], {})
        place = (self, nodes, axis, sample["points"].dtype)
        if place not in stored:
            prepared = self._with_neighbours(moved)
            stored[place] = {name: prepared[name] for name in PREPARED}
        return {**moved, **stored[place]}

    def shift(self, fields: Sample, nodes: float, axis: int) -> dict[str, Tensor]:
        """Points and queries (..., d), moved along an axis by so many nodes."""
        way = torch.zeros(len(self.shape))
        way[axis] = nodes * float(self.spacing[axis])
        return {
            name: fields[name] + way.to(fields[name])
            for name in ("points", "queries")
            if name in fields
        }

    def _measured(self, sample: Sample, triangles: Integers) -> dict[str, Tensor]:
        """A closed surface with what follows from its triangles, in float32."""
        if "points" not in sample:
            raise ValueError(
                f"the sample has triangles and lacks points (n, {len(self.shape)}); it has "
                f"{', '.join(sorted(sample)) or 'nothing'}"
            )
        body = Surface(np.asarray(sample["points"], dtype=np.float64), triangles)
        fields = surface_fields(body, latent=self.shape, domain=self.box)
        given = {n: f for n, f in sample.items() if n not in fields or n == "weights"}
        return fields | {n: f.float() if f.is_floating_point() else f for n, f in given.items()}

    def _is_prepared(self, sample: Sample) -> bool:
        if not all(name in sample for name in PREPARED):
            return False
        if "queries" in sample and "query_normals" not in sample:
            return False
        count = len(sample["grid_neighbours"])
        if count != len(self.nodes) or tuple(sample["sdf"].shape) != self.shape:
            raise ValueError(
                f"the sample was prepared for a grid of {count} nodes with a distance of shape "
                f"{tuple(sample['sdf'].shape)}, this one is {self.shape}: prepare it from its "
                f"points again, without {', '.join(PREPARED)}"
            )
        return len(sample["query_neighbours"]) == len(sample.get("queries", sample["points"]))

    def _with_neighbours(self, sample: Sample) -> dict[str, Tensor]:
        sample = dict(sample)
        points, normals = sample["points"], sample["normals"]
        weights = sample.get("surface_weights", sample.get("weights"))
        if weights is not None and len(weights) != len(points):
            weights = None  # they belong to the queries
        nodes = self.nodes.to(points.dtype)
        near = nearest(points, nodes, self.neighbours[0])
        sample["grid_neighbours"], sample["grid_shares"] = near, shares(near, weights, points.dtype)
        if "sdf" not in sample:
            distance = distance_to_points(points, normals, nodes, near)
            sample["sdf"] = distance.view(self.shape)
        queries = sample.get("queries", points)
        if "queries" in sample:
            closest = nearest(points, queries, 1)[:, 0].long()
            for field in ("normals", "features"):
                if field in sample:
                    sample.setdefault(f"query_{field}", sample[field][closest])
        spacing = self.spacing.to(nodes)
        sample["query_neighbours"] = nearest(nodes / spacing, queries / spacing, self.neighbours[1])
        return sample

    def _check_inside(self, points: Tensor, name: str) -> None:
        for j, (lower, upper) in enumerate(self.box):
            low, high = float(points[:, j].min()), float(points[:, j].max())
            if not lower <= low <= high <= upper:
                raise ValueError(
                    f"{name} reach from {low:g} to {high:g} in dimension {j}, outside the domain "
                    f"[{lower:g}, {upper:g}]; set domain= to a box that contains all geometries"
                )


def _on_cpu(field: Tensor | Array) -> Tensor:
    return field.cpu() if isinstance(field, Tensor) else torch.tensor(field)
