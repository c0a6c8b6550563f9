"""A Fourier neural operator that the symmetries of a box cannot confuse, in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from uqno.operators.base import NeuralOperator
from uqno.operators.block import mlp_layers
from uqno.operators.checks import check_functions, check_inside
from uqno.operators.heat import smoothed
from uqno.operators.interpolate import multilinear
from uqno.operators.pointwise import mlp, pieces
from uqno.operators.sines import Multiplier, Sines, Waves, analyse, synthesise
from uqno.operators.spectral import Coordinates, full_precision
from uqno.types import Reals

SCALE = 0.05
"""Of the initial kernels beside the pointwise maps, as in the FNO."""
EDGE = 0.1
"""How far from a boundary of value 0 an answer is held down, relative to the box."""


class Fields(NamedTuple):
    """What passes from layer to layer, channels last.

    scalars: (batch, *points, channel).
    vectors: one tensor (batch, *points, channel) for each component; none before the first layer.
    """

    scalars: Tensor
    vectors: tuple[Tensor, ...]


class EquivariantFNO(NeuralOperator):
    """u = Q(v_L, c) of scalar fields v_l and vector fields p_l; c = P(a, smoothed a, place).

    With v̂, p̂ the coefficients of `uqno.operators.sines` and matrices A, B, C, D at each
    frequency that are smooth in it (`Multiplier`), a layer is

        v' = A v̂ + B p̂            q = C v̂ + D p̂ + W_p p
        h  = W v + v' + W_c c
        p  ← q · (W_g h)            h ← h + W_q (p · q)
        v  ← GELU(h) · (1 + G c)    (without GELU in the last layer)

    Flips of the box map answers to answers exactly, and with `turns` so do all symmetries of a
    square or cube, so that no function needs to be seen turned or flipped in training, and one
    pass does what is otherwise a mean over eight. On grids that have the symmetries: equally
    spaced, or with nodes that are mirror images of each other.

    Args:
        in_channels: of a (batch, channel, *grid), scalar fields all.
        out_channels: of the answer, scalar fields all.
        modes: frequencies of each of 1 to 3 dimensions: sin π k t, k = 1 … modes_j.
        width: channels of the scalar fields.
        vectors: channels of the vector fields, 0 for none.
        layers: L.
        domain: (lower, upper) of each dimension, the unit box by default.
        turns: whether dimensions may be swapped: for problems on a square or cube that do not know
            one direction from another. False keeps the flips alone.
        smooth: polynomials that make a multiplier along one dimension.
        heat: deviations of the kernels with which a is smoothed, as fractions of the box.
        vector_channels: of vector fields that are inputs too, `forward`'s `vectors`.
        zero_boundary: whether the answer is exactly 0 on the boundary of the box.
        dropout: probability after each layer.

    Reference:
        Cohen and Welling, Group equivariant convolutional networks, ICML 2016, for the idea;
        Helwig et al., Group equivariant Fourier neural operators for partial differential
        equations, ICML 2023, for turns of the torus. The layer with vector fields is this
        library's own.

    Example:
        >>> operator = EquivariantFNO(1, 1, modes=(6, 6), width=8, vectors=4)
        >>> a = torch.rand(2, 1, 13, 13)
        >>> u = operator(a)
        >>> torch.allclose(operator(a.flip(2)), u.flip(2), atol=1e-5)
        True
        >>> torch.allclose(operator(a.mT), u.mT, atol=1e-5)
        True
        >>> operator(a, queries=torch.rand(5, 2)).shape
        torch.Size([2, 1, 5])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        modes: Sequence[int] = (20, 20),
        width: int = 24,
        vectors: int = 8,
        layers: int = 4,
        *,
        domain: Sequence[tuple[float, float]] | None = None,
        turns: bool = True,
        smooth: int = 6,
        heat: Sequence[float] = (0.03, 0.08, 0.2),
        vector_channels: int = 0,
        zero_boundary: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        box = [(0.0, 1.0)] * len(modes) if domain is None else domain
        self.sines = Sines(
            tuple(int(m) for m in modes),
            tuple(float(lower) for lower, _ in box),
            tuple(float(upper) for _, upper in box),
        )
        if min(width, layers, smooth) < 1 or vectors < 0:
            raise ValueError(
                f"width={width}, layers={layers}, smooth={smooth} must be at least 1, and "
                f"vectors={vectors} at least 0"
            )
        if vector_channels and not vectors:
            raise ValueError(f"vector_channels = {vector_channels} needs vectors of at least 1")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.width, self.turns, self.keeps_zero = width, turns, zero_boundary
        self.heat = tuple(float(h) for h in heat)
        inputs = in_channels * (1 + len(self.heat)) + place_channels(self.sines.dimensions, turns)
        self.lifting = mlp_layers(inputs, 2 * width, width)
        self.vector_lifting = (
            nn.Linear(vector_channels, vectors, bias=False) if vector_channels else None
        )
        self.layers = nn.ModuleList(
            Layer(self.sines.modes, width, vectors, turns, smooth, is_last=i == layers - 1)
            for i in range(layers)
        )
        self.dropout = nn.Dropout(dropout)
        self.projection = mlp_layers(2 * width, 2 * width, out_channels)

    @property
    def last(self) -> nn.Linear:
        """The last layer, linear in `features`."""
        return cast(nn.Linear, self.projection[-1])

    @property
    def dimensions(self) -> int:
        """Of the grids that it takes."""
        return self.sines.dimensions

    def axes(self, shape: Sequence[int]) -> tuple[Reals, ...]:
        """Equally spaced coordinates of its domain, both end points included."""
        return tuple(self.sines.axis(j, n) for j, n in enumerate(shape))

    def forward(
        self,
        a: Tensor,
        coordinates: Coordinates | None = None,
        queries: Tensor | None = None,
        a_queries: Tensor | None = None,
        vectors: Tensor | None = None,
    ) -> Tensor:
        """The answer on the grid of a, or at queries.

        Args:
            a: (batch, in, *grid).
            coordinates: one increasing 1-D tensor a dimension; equally spaced by default.
            queries: (q, d) or (batch, q, d), anywhere in the domain.
            a_queries: a at the queries (batch, in, q); interpolated from the grid by default.
            vectors: (batch, vector_channels · d, *grid), the components of a channel side by side.

        Returns:
            u (batch, out, *grid), or (batch, out, q) at the queries.
        """
        hidden, places = self._hidden(a, coordinates, queries, a_queries, vectors)
        u = mlp(hidden, self.projection)
        return (u * edge(places) if self.keeps_zero else u).movedim(-1, 1)

    def features(
        self,
        a: Tensor,
        coordinates: Coordinates | None = None,
        queries: Tensor | None = None,
        a_queries: Tensor | None = None,
        vectors: Tensor | None = None,
    ) -> Tensor:
        """φ (batch, hidden, *points) of which the answer is `last`: u = W φ + b at every point.

        Raises:
            ValueError: the answer is held at 0 on the boundary, so that it is not linear in φ.
        """
        if self.keeps_zero:
            raise ValueError("the answer with zero_boundary=True is not linear in any features")
        hidden, _ = self._hidden(a, coordinates, queries, a_queries, vectors)
        return cast(Tensor, self.projection[:-1](hidden).movedim(-1, 1))

    # --- the function before the projection -----------------------------------------------------

    def _hidden(
        self,
        a: Tensor,
        coordinates: Coordinates | None,
        queries: Tensor | None,
        a_queries: Tensor | None,
        vectors: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """(v_L, c) (batch, *points, 2 · width), and these points as fractions of the box."""
        self._check(a, queries, a_queries, vectors)
        a = a.to(self.last.weight.dtype)
        axes = self.sines.axes(a.shape[2:], a, coordinates)
        waves = self.sines.waves(axes, a)
        with full_precision(a):
            given = torch.cat((a, *(smoothed(a, axes, width) for width in self.heat)), dim=1)
        t = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).to(a)
        context = self._context(given, t)
        fields = Fields(context, self._lifted(vectors))
        coefficients = []
        for layer in cast(Sequence[Layer], self.layers):
            with full_precision(a):
                coefficients.append(layer.coefficients(fields, waves))
            if queries is None or not layer.is_last:  # it is wanted at the queries alone
                integral = integrals(coefficients[-1], waves, self.width)
                fields = self._after(layer(fields, integral, context))
        if queries is None:
            return torch.cat((fields.scalars, context), dim=-1), t
        t = torch.stack([self.sines.fraction(j, x) for j, x in enumerate(queries.unbind(-1))], -1)
        t = t.to(a)
        there = multilinear(given, axes, t)
        if a_queries is not None:
            there = torch.cat((a_queries.to(a), there[:, self.in_channels :]), dim=1)
        vectors = None if vectors is None else multilinear(vectors.to(a), axes, t)
        return self._at(t, there, vectors, coefficients), t

    def _at(
        self, t: Tensor, given: Tensor, vectors: Tensor | None, coefficients: Sequence[Tensor]
    ) -> Tensor:
        """Every pointwise path at points t, the integrals from the coefficients on the grid."""
        parts = []
        for some in pieces(t.shape[-2], len(given) * coefficients[0].shape[1], given.device):
            x = t[..., some, :]
            context = self._context(given[..., some], x)
            here = None if vectors is None else vectors[..., some]
            fields = Fields(context, self._lifted(here))
            bases = [self.sines.at(x, j) for j in (None, *range(self.dimensions))]
            for layer, r in zip(self.layers, coefficients, strict=True):
                with full_precision(x):
                    split = split_fields(r, self.width, self.dimensions)
                    integral = Fields(
                        bases[0] @ split.scalars,
                        tuple(b @ q for b, q in zip(bases[1:], split.vectors, strict=False)),
                    )
                fields = self._after(layer(fields, integral, context))
            parts.append(torch.cat((fields.scalars, context), dim=-1))
        return torch.cat(parts, dim=1)

    def _context(self, given: Tensor, t: Tensor) -> Tensor:
        """c (batch, *points, width) from fields (batch, channel, *points) and places t."""
        place = places(t, self.turns).expand(len(given), *given.shape[2:], -1)
        return mlp(torch.cat((given.movedim(1, -1), place), dim=-1), self.lifting)

    def _lifted(self, vectors: Tensor | None) -> tuple[Tensor, ...]:
        """The first vector fields, from `vectors` (batch, vector_channels · d, *points)."""
        if self.vector_lifting is None or vectors is None:
            return ()
        d, each = self.dimensions, vectors.to(self.last.weight.dtype).movedim(1, -1)
        return tuple(self.vector_lifting(each[..., j::d]) for j in range(d))

    def _after(self, fields: Fields) -> Fields:
        return fields._replace(scalars=self.dropout(fields.scalars))

    def _check(
        self, a: Tensor, queries: Tensor | None, a_queries: Tensor | None, vectors: Tensor | None
    ) -> None:
        d = self.dimensions
        check_functions(a, self.in_channels, d, queries, a_queries)
        if queries is not None and not queries.is_meta:
            check_inside(queries, self.sines.lower, self.sines.upper)
        channels = 0 if self.vector_lifting is None else self.vector_lifting.in_features
        expected = (len(a), channels * d, *a.shape[2:]) if channels else None
        shape = None if vectors is None else tuple(vectors.shape)
        if shape != expected:
            raise ValueError(
                f"vectors have the shape {shape}, expected {expected}: the {d} components of each "
                f"of vector_channels = {channels} vector fields, on the grid of a"
            )


class Layer(nn.Module):
    """One layer of `EquivariantFNO`, which has the formula.

    Args:
        modes: frequencies along each dimension.
        width: channels of the scalar fields, and of the context.
        vectors: channels of the vector fields.
        turns: whether dimensions may be swapped.
        smooth: polynomials along a dimension.
        is_last: whether there is no GELU.
    """

    def __init__(
        self,
        modes: Sequence[int],
        width: int,
        vectors: int,
        turns: bool,
        smooth: int,
        is_last: bool,
    ) -> None:
        super().__init__()
        self.is_last, self.vectors = is_last, vectors
        self.kernel = Multiplier(width, vectors, modes, turns, smooth, SCALE)
        self.skip = nn.Linear(width, width)
        self.from_context = nn.Linear(width, width, bias=False)
        self.gain = nn.Linear(width, width)
        if vectors:
            self.vector_skip = nn.Linear(vectors, vectors, bias=False)
            self.gate = nn.Linear(width, vectors)
            self.inner = nn.Linear(vectors, width, bias=False)

    def coefficients(self, fields: Fields, waves: Sequence[Waves]) -> Tensor:
        """Those of v' and q, (batch, ∏ K, width + d · vectors)."""
        parts = [analyse(fields.scalars, waves)]
        parts += [analyse(p, waves, cosine_along=j) for j, p in enumerate(fields.vectors)]
        return cast(Tensor, self.kernel(torch.cat(parts, dim=-1)))

    def forward(self, fields: Fields, integral: Fields, context: Tensor) -> Fields:
        """The pointwise half: fields, (v', q) and c at points, in any layout of points."""
        h = self.skip(fields.scalars) + integral.scalars + self.from_context(context)
        vectors = integral.vectors
        if self.vectors:
            if fields.vectors:
                vectors = tuple(
                    q + self.vector_skip(p) for q, p in zip(vectors, fields.vectors, strict=True)
                )
            gate = self.gate(h)
            squares = sum((q * q for q in vectors[1:]), start=vectors[0] * vectors[0])
            h = h + self.inner(gate * squares)  # p · q with p = q · gate
            vectors = tuple(q * gate for q in vectors)
        h = h if self.is_last else F.gelu(h)
        return Fields(h * (1 + self.gain(context)), vectors)


def split_fields(r: Tensor, width: int, dimensions: int) -> Fields:
    """Channels (…, width + d · vectors) as scalars and the components of vectors."""
    scalars, rest = r[..., :width], r[..., width:]
    if not rest.shape[-1]:
        return Fields(scalars, ())
    return Fields(scalars, tuple(rest.chunk(dimensions, dim=-1)))


def integrals(r: Tensor, waves: Sequence[Waves], width: int) -> Fields:
    """(v', q) on the grid (batch, *grid, channel) from coefficients (batch, ∏ K, channel)."""
    split = split_fields(r, width, len(waves))
    with full_precision(r):
        vectors = tuple(synthesise(q, waves, j) for j, q in enumerate(split.vectors))
        return Fields(synthesise(split.scalars, waves), vectors)


def places(t: Tensor, turns: bool) -> Tensor:
    """What a network may know of points t (…, d) without telling symmetric ones apart: (…, n)."""
    distance = torch.minimum(t, 1 - t)
    sines = torch.sin(math.pi * distance)
    fields = [
        2 * sines.prod(-1) - 1,
        8 * distance.amin(-1) - 1.3,
        (4 * distance).prod(-1) - 1,
    ]
    if not turns and t.shape[-1] > 1:
        fields += (2 * sines - 1).unbind(-1)
    return torch.stack(fields, dim=-1)


def place_channels(dimensions: int, turns: bool) -> int:
    """How many fields `places` gives."""
    return 3 + (dimensions if not turns and dimensions > 1 else 0)


def edge(t: Tensor) -> Tensor:
    """(…, 1): 0 on the boundary, near 1 inside, smooth in between, at points t (…, d)."""
    sines = torch.sin(math.pi * torch.minimum(t, 1 - t))
    return ((1 + EDGE) * sines / (sines + EDGE)).prod(-1, keepdim=True)
