"""Sine and cosine transforms on a box, and multipliers between them that commute with its flips.

A scalar function is expanded in ∏ sin(π k_j t_j), t the coordinates as fractions of the box, and
the j-th component of a vector field in the same with cos(π k_j t_j) along dimension j. A flip of a
dimension multiplies the coefficients of both, at the same frequency, by the same sign. So any
matrix at each frequency that maps coefficients of scalars and vectors to others commutes with
all flips; and with the turns of a square or cube, if it does not change when its frequencies
and the components of the vectors are permuted together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product

import numpy as np
import torch
from torch import Tensor, nn

from uqno.operators.spectral import (
    CACHED_GRIDS,
    Coordinates,
    check_coordinates,
    transform_first,
    trapezoid,
)
from uqno.types import Reals


@dataclass(frozen=True)
class Waves:
    """The transforms of one dimension on a grid of N nodes, with K frequencies.

    sine, cosine: analysis (K, N), the integral over the box by the trapezoid rule, times 2.
    sines, cosines: synthesis (N, K).
    """

    sine: Tensor
    cosine: Tensor
    sines: Tensor
    cosines: Tensor


@dataclass(frozen=True)
class Sines:
    """The basis sin(π k t), cos(π k t), k = 1 … modes_j, on the box ∏ [lower_j, upper_j]."""

    modes: tuple[int, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.modes) <= 3 or min(self.modes) < 1:
            raise ValueError(
                f"modes={self.modes}: give at least 1 for each of 1 to 3 dimensions, such as 20"
            )
        if not len(self.modes) == len(self.lower) == len(self.upper):
            raise ValueError(
                f"modes={self.modes} and domain {self.lower} to {self.upper} differ in dimension"
            )
        if any(b <= a for a, b in zip(self.lower, self.upper, strict=True)):
            raise ValueError(f"domain {self.lower} to {self.upper} is empty; give lower < upper")

    @property
    def dimensions(self) -> int:
        return len(self.modes)

    def axis(self, j: int, points: int) -> Reals:
        """Equally spaced coordinates of dimension j, both end points included."""
        return np.linspace(self.lower[j], self.upper[j], points)

    def axes(
        self, shape: Sequence[int], like: Tensor, coordinates: Coordinates | None = None
    ) -> tuple[Tensor, ...]:
        """Coordinates of every dimension as fractions of the box, in double precision.

        Args:
            shape: of the grid.
            like: a tensor on the device that is wanted.
            coordinates: one increasing 1-D tensor a dimension; equally spaced by default.
        """
        if coordinates is None:
            return tuple(
                torch.linspace(0, 1, n, dtype=torch.float64, device=like.device) for n in shape
            )
        check_coordinates(coordinates, shape)
        return tuple(self.fraction(j, x.detach().double()) for j, x in enumerate(coordinates))

    def fraction(self, j: int, x: Tensor) -> Tensor:
        """t = (x − lower) / (upper − lower) of coordinates of dimension j."""
        return (x - self.lower[j]) / (self.upper[j] - self.lower[j])

    def waves(self, axes: Sequence[Tensor], like: Tensor) -> tuple[Waves, ...]:
        """The transforms of each dimension, from a cache.

        Args:
            axes: what the method of that name returned.
            like: has the device and the precision that are wanted.

        Raises:
            ValueError: a dimension has too few nodes for its frequencies.
        """
        for j, (t, modes) in enumerate(zip(axes, self.modes, strict=True)):
            if len(t) < modes + 2:
                raise ValueError(
                    f"the grid has {len(t)} points in dimension {j}, but modes={modes} needs at "
                    f"least {modes + 2}: use a finer grid or modes ≤ {max(len(t) - 2, 1)}"
                )
        return tuple(
            _waves(t.cpu().numpy().tobytes(), modes, like.dtype, like.device)
            for t, modes in zip(axes, self.modes, strict=True)
        )

    def at(self, t: Tensor, cosine_along: int | None) -> Tensor:
        """(…, ∏ modes) values of the basis at points t (…, d), fractions of the box.

        Args:
            t: the points.
            cosine_along: the dimension that has cosines, for the component of a vector; or None.
        """
        basis = t.new_ones((*t.shape[:-1], 1))
        for j, modes in enumerate(self.modes):
            angle = t[..., j : j + 1] * (math.pi * torch.arange(1, modes + 1).to(t))
            wave = angle.cos() if j == cosine_along else angle.sin()
            basis = (basis.unsqueeze(-1) * wave.unsqueeze(-2)).flatten(-2)
        return basis


@lru_cache(maxsize=CACHED_GRIDS)
def _waves(key: bytes, modes: int, dtype: torch.dtype, device: torch.device) -> Waves:
    """Computed in double precision, so that every precision sees the same frequencies."""
    with torch.inference_mode(False):  # cached: the next caller may want gradients
        t = torch.tensor(np.frombuffer(key, dtype=np.float64))
        angle = math.pi * torch.arange(1, modes + 1, dtype=torch.float64)[:, None] * t
        sine, cosine, weights = angle.sin(), angle.cos(), 2 * trapezoid(t)

        def ready(matrix: Tensor) -> Tensor:
            return matrix.to(device, dtype).contiguous()

        return Waves(ready(sine * weights), ready(cosine * weights), ready(sine.T), ready(cosine.T))


def analyse(field: Tensor, waves: Sequence[Waves], cosine_along: int | None = None) -> Tensor:
    """Coefficients (batch, ∏ K, channel) of functions (batch, *grid, channel)."""
    batch, channels, done = field.shape[0], field.shape[-1], field.shape[0]
    for j, wave in enumerate(waves):
        matrix = wave.cosine if j == cosine_along else wave.sine
        field = transform_first(field.reshape(done, matrix.shape[1], -1), matrix)
        done *= len(matrix)
    return field.reshape(batch, -1, channels)


def synthesise(
    coefficients: Tensor, waves: Sequence[Waves], cosine_along: int | None = None
) -> Tensor:
    """Functions (batch, *grid, channel) of coefficients (batch, ∏ K, channel)."""
    batch, _, channels = coefficients.shape
    field, before = coefficients, [w.sines.shape[1] for w in waves]
    for j in range(len(waves) - 1, -1, -1):
        matrix = waves[j].cosines if j == cosine_along else waves[j].sines
        field = field.reshape(batch * math.prod(before[:j]), before[j], -1)
        field = transform_first(field, matrix)
    return field.reshape(batch, *(len(w.sines) for w in waves), channels)


class Multiplier(nn.Module):
    """The kernel integral of a layer: a matrix at each frequency, smooth in its logarithm.

    M_k = Σ_n T_n(log k) W_n, with products of Chebyshev polynomials of degree below `smooth`
    in all. Few weights, whatever the number of frequencies, which do not overfit.

    Args:
        scalars: channels of the scalar fields.
        vectors: channels of the vector fields, each of which has a component a dimension.
        modes: frequencies along each dimension.
        turns: whether it commutes with permutations of the dimensions too.
        smooth: the number of polynomials along one dimension.
        scale: of the initial weights, relative to that which keeps the size of a function.
    """

    basis: Tensor

    def __init__(
        self,
        scalars: int,
        vectors: int,
        modes: Sequence[int],
        turns: bool,
        smooth: int,
        scale: float,
    ) -> None:
        super().__init__()
        self.scalars, self.vectors, self.modes = scalars, vectors, tuple(modes)
        self.turns = turns
        if turns and len(set(self.modes)) > 1:
            raise ValueError(
                f"modes={self.modes} differ, and turns=True swaps the dimensions: give equal ones"
            )
        d, total = len(modes), scalars + len(modes) * vectors
        self.degrees = [n for n in product(range(smooth), repeat=d) if sum(n) < smooth]
        basis = smooth_basis(self.modes, self.degrees)
        self.register_buffer("basis", basis, persistent=False)
        std = 2 * scale * (total * len(basis)) ** -0.5

        def weight(kinds: int, inputs: int, outputs: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(kinds, len(basis), inputs, outputs) * std)

        each, pairs = (1, min(d - 1, 1)) if turns else (d, d * (d - 1))
        self.from_scalars = weight(1, scalars, scalars)
        if vectors:
            self.to_scalars = weight(each, vectors, scalars)
            self.to_vectors = weight(each, scalars, vectors)
            self.along = weight(each, vectors, vectors)
            self.across = weight(pairs, vectors, vectors)
        self._remembered: tuple[object, Tensor] | None = None

    def matrix(self) -> Tensor:
        """M (∏ K, scalars + d · vectors, the same): rows are what it takes.

        Without gradients it is made once, and again when a weight has changed.
        """
        if torch.is_grad_enabled() or any(w.is_meta for w in self.parameters()):
            return self._made()
        weights = tuple(self.parameters())
        # Values too, as what is set through `.data` has no version.
        key = tuple(
            (w.data_ptr(), w._version, float(w.sum()), float(w.abs().sum())) for w in weights
        )
        remembered = self._remembered
        if remembered is None or remembered[0] != key:
            remembered = self._remembered = (key, self._made())
        return remembered[1]

    def _made(self) -> Tensor:
        d = len(self.modes)
        scalar = self._weights(self.from_scalars, 0)
        if not self.vectors:
            rows = scalar
        else:
            rows = [torch.cat((scalar[0], *self._weights(self.to_vectors, 1)), dim=-1)]
            back, along = self._weights(self.to_scalars, 1), self._weights(self.along, 1)
            across = iter(self._weights(self.across, 2) if d > 1 else ())
            for j in range(d):
                blocks = [along[j] if i == j else next(across) for i in range(d)]
                rows.append(torch.cat((back[j], *blocks), dim=-1))
        each = torch.cat(rows, dim=-2)
        return (self.basis.T @ each.flatten(1)).view(-1, *each.shape[1:])

    def _weights(self, weight: Tensor, roles: int) -> list[Tensor]:
        """(n, in, out) for each choice of dimensions that play so many roles.

        Without turns each has weights of its own. With turns all share one, in which the dimension
        of the first role comes first and so on: it is made symmetric in the others, and the
        polynomials of a choice are those with their degrees in its order.
        """
        if not self.turns:
            return list(weight)
        d = len(self.modes)
        orders = [(*range(roles), *order) for order in permutations(range(roles, d))]
        even = torch.stack([weight[0, self._reordered(o)] for o in orders]).mean(0)
        choices = permutations(range(d), roles)
        full = ((*choice, *(j for j in range(d) if j not in choice)) for choice in choices)
        return [even[self._reordered(order)] for order in full]

    def _reordered(self, order: Sequence[int]) -> list[int]:
        """Where the polynomials stand whose degrees are those of each in another order."""
        place = {degrees: n for n, degrees in enumerate(self.degrees)}
        return [place[tuple(degrees[j] for j in order)] for degrees in self.degrees]

    def forward(self, coefficients: Tensor) -> Tensor:
        """(batch, ∏ K, some or all of what it takes) to (batch, ∏ K, scalars + d · vectors)."""
        matrix = self.matrix()[:, : coefficients.shape[-1]]
        return torch.bmm(coefficients.transpose(0, 1), matrix).transpose(0, 1)


def smooth_basis(modes: Sequence[int], degrees: Sequence[Sequence[int]]) -> Tensor:
    """(n, ∏ K) products of Chebyshev polynomials in 2 log k / log K − 1.

    Args:
        modes: K of each dimension.
        degrees: n tuples with the degree along each dimension.
    """
    rows = []
    for each in degrees:
        row = torch.ones(1, dtype=torch.float64)
        for count, degree in zip(modes, each, strict=True):
            t = torch.arange(1, count + 1, dtype=torch.float64).log() / max(math.log(count), 1e-9)
            wave = torch.cos(degree * torch.arccos((2 * t - 1).clamp(-1, 1)))
            row = (row[:, None] * wave).flatten()
        rows.append(row)
    return torch.stack(rows).float()
