"""Values on surfaces as samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from uqno.data.samples import MEASURES, GeometrySample
from uqno.geometry.distance import distance_on_grid
from uqno.geometry.ideal_flow import Stream, ideal_pressure
from uqno.geometry.surface import Surface
from uqno.types import Box, Reals

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class SurfaceSamples:
    """A sequence of geometry samples (float32): surfaces of n vertices with a pressure on them.

    A sample has points, normals, surface_weights, weights and u (1, n), with `latent` also sdf, and
    with `stream` also features (n, 1), the pressure coefficient of the ideal flow.

    Args:
        surface_of: makes or reads surface i.
        pressure: u of all functions, (functions, n).
        positions: which functions, in which order.
        measure: "points" counts vertices alike, as the paper does; "area" by their area.
        latent: the shape of the operator's latent grid.
        domain: the box that the latent grid fills.
        cache: a folder that stores signed distances and ideal flows.
        stream: where the ideal flow goes.
    """

    surface_of: Callable[[int], Surface]
    pressure: NDArray[np.float32]
    positions: tuple[int, ...]
    measure: str = "points"
    latent: tuple[int, ...] | None = None
    domain: Box | None = None
    cache: Path | None = None
    stream: Stream | None = None

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure must be one of {MEASURES}, got {self.measure!r}")
        if self.latent is not None and self.domain is None:
            raise ValueError(f"latent grid {self.latent} without the domain that it fills: give it")
        outside = [i for i in self.positions if not 0 <= i < len(self.pressure)]
        if outside:
            raise ValueError(
                f"positions must lie in 0 to {len(self.pressure) - 1}, got {outside[:5]}"
            )

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, i: int) -> GeometrySample:
        import torch

        position = self.positions[i]  # its IndexError ends a plain for loop
        body, values = self.surface_of(position), self.pressure[position]
        fields = surface_fields(
            body, self.measure, self.latent, self.domain, self.cache, self.stream
        )
        return cast(
            GeometrySample, {**fields, "u": torch.tensor(values[None], dtype=torch.float32)}
        )

    def __iter__(self) -> Iterator[GeometrySample]:
        return (self[i] for i in range(len(self)))

    def subset(self, indices: Iterable[int]) -> SurfaceSamples:
        """The samples `indices` of this sequence, in that order, not computed yet."""
        return replace(self, positions=tuple(self.positions[i] for i in indices))

    def surface(self, i: int) -> Surface:
        """The surface of sample i, with its triangles."""
        return self.surface_of(self.positions[i])


def surface_fields(
    body: Surface,
    measure: str = "points",
    latent: Sequence[int] | None = None,
    domain: Box | None = None,
    cache: Path | None = None,
    stream: Stream | None = None,
) -> dict[str, torch.Tensor]:
    """What an operator sees of a closed surface: the same to train, to calibrate and to predict.

    Args:
        body: n vertices and their triangles.
        measure: how `weights` count the vertices, as in `SurfaceSamples`.
        latent: nodes of the operator's grid along each dimension; None for no signed distance.
        domain: the box of that grid.
        cache: a folder that stores signed distances and ideal flows.
        stream: which way the ideal flow goes; None for none.

    Returns:
        float32 tensors: `points` (n, 3), `normals` (n, 3), `surface_weights` (n) and `weights` (n),
        `sdf` (*latent) with a latent grid, `features` (n, 1) with an ideal flow.
    """
    import torch

    fields: dict[str, Any] = {
        "points": body.points,
        "normals": body.normals,
        "surface_weights": body.areas,
        "weights": vertex_weights(body, measure),
    }
    if latent is not None and domain is not None:
        fields["sdf"] = distance_on_grid(body, domain, latent, cache)
    if stream is not None:
        fields["features"] = ideal_pressure(body, stream, cache)[:, None]
    return {name: torch.tensor(value, dtype=torch.float32) for name, value in fields.items()}


def vertex_weights(body: Surface, measure: str) -> Reals:
    """The measure μ of the vertices, (n,), with sum 1.

    Args:
        body: a surface of n vertices.
        measure: "points" weighs vertices alike; "area" by their areas.
    """
    if measure == "points":
        return np.full(len(body.points), 1 / len(body.points))
    weights: Reals = body.areas / body.areas.sum()
    return weights


def domain_of(bodies: Sequence[Surface], margin: float = 0.1, mirror: int | None = None) -> Box:
    """A box around all surfaces.

    Args:
        bodies: the surfaces.
        margin: how much wider the box is on each side, relative to the extent of the surfaces.
        mirror: an axis along which the box is made symmetric about 0; None for none.

    Returns:
        (lower, upper) along each axis.
    """
    low = np.min([body.points.min(axis=0) for body in bodies], axis=0)
    high = np.max([body.points.max(axis=0) for body in bodies], axis=0)
    spare = margin * (high - low)
    low, high = low - spare, high + spare
    if mirror is not None:
        high[mirror] = max(high[mirror], -low[mirror])
        low[mirror] = -high[mirror]
    return tuple((float(a), float(b)) for a, b in zip(low, high, strict=True))
