"""Symmetries of a problem: if g maps solutions to solutions, so should an operator.

An operator G is augmented in training by g at random, and averaged at prediction,
Ḡ(a) = mean_g g⁻¹ G(g a). The deviation of g⁻¹ G(g a) over g costs nothing more and shows where G is
unsure.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from uqno.operators.latent import PREPARED, LatentGrid
from uqno.operators.padding import pad, unpad
from uqno.types import Batch, Fields, Sample


class Symmetry(ABC):
    """One element g of the group."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How a saved model names it."""

    @abstractmethod
    def apply(self, fields: Fields) -> dict[str, Tensor]:
        """g on a sample or a batch: every field, truth and queries included."""

    @abstractmethod
    def undo(self, output: Tensor, at_queries: bool) -> Tensor:
        """g⁻¹ on an answer (batch, channel, *points); an answer at queries stays where it is."""

    def prepare(self, sample: Sample) -> dict[str, Tensor]:
        """Fields `field@name` that `apply` will need, computed once on the CPU; none by default."""
        return {}


@dataclass(frozen=True)
class SquareSymmetry(Symmetry):
    """Quarter turns after a flip, for scalar fields on the square grid.

    Attributes:
        turns: how many quarter turns, 0 to 3.
        flip: whether the last dimension is reversed first.
    """

    turns: int
    flip: bool

    @property
    def name(self) -> str:
        return f"square-{self.turns}{'-flip' if self.flip else ''}"

    def apply(self, fields: Fields) -> dict[str, Tensor]:
        moved = {}
        for name, field in fields.items():
            if name == "queries":
                moved[name] = self._move(field)
            else:  # values at queries stay with their queries
                moved[name] = field if name == "a_queries" else self._turn(field)
        return moved

    def undo(self, output: Tensor, at_queries: bool) -> Tensor:
        if at_queries:
            return output
        back = torch.rot90(output, -self.turns, (-2, -1))
        return back.flip(-1) if self.flip else back

    def _turn(self, field: Tensor) -> Tensor:
        if field.shape[-1] != field.shape[-2]:
            raise ValueError(
                f"the symmetries of the square need a square grid, got {tuple(field.shape[-2:])}"
            )
        return torch.rot90(field.flip(-1) if self.flip else field, self.turns, (-2, -1))

    def _move(self, queries: Tensor) -> Tensor:
        """Where a point (…, 2) of the unit square goes when its grid is turned."""
        x, y = queries.unbind(-1)
        if self.flip:
            y = 1 - y
        for _ in range(self.turns):
            x, y = 1 - y, x
        return torch.stack((x, y), dim=-1)


def square() -> tuple[SquareSymmetry, ...]:
    """The eight symmetries of the unit square, the identity first."""
    return tuple(SquareSymmetry(turns, flip) for flip in (False, True) for turns in range(4))


@dataclass(frozen=True)
class Reflection(Symmetry):
    """The mirror image of a geometry in its plane x_axis = 0, or the geometry as it is.

    Points stay in their order, so a scalar answer needs no undoing.

    Attributes:
        grid: the latent grid of the operator.
        axis: the dimension whose sign changes.
        mirrored: False for the identity.
    """

    grid: LatentGrid
    axis: int
    mirrored: bool

    @property
    def name(self) -> str:
        return f"reflection-{self.axis}{'' if self.mirrored else '-none'}"

    def apply(self, fields: Fields) -> dict[str, Tensor]:
        if not self.mirrored:
            return dict(fields)
        fields = _without_prepared(fields)
        if fields["points"].ndim == 2:
            return self.grid.reflect(fields, self.axis)
        each = [
            self.grid.reflect({name: field[i] for name, field in fields.items()}, self.axis)
            for i in range(len(fields["points"]))
        ]
        return {name: torch.stack([one[name] for one in each]) for name in each[0]}

    def undo(self, output: Tensor, at_queries: bool) -> Tensor:
        return output


def reflection(grid: LatentGrid, axis: int = 1) -> tuple[Reflection, ...]:
    """The two symmetries of geometries with a left and a right, the identity first."""
    return Reflection(grid, axis, False), Reflection(grid, axis, True)


@dataclass(frozen=True)
class Translation(Symmetry):
    """A geometry moved along an axis of the latent grid, which stays where it is.

    For problems to which the place along that axis does not matter. Moved by parts of a node, a
    geometry is seen through other nodes: the mean of several such answers has less of the grid in
    it. Neighbours are looked for on the CPU, by `prepare`, so that a batch on another device
    carries them; `apply` on a batch that does not looks for them anew.

    Attributes:
        grid: the latent grid of the operator.
        axis: the dimension along which the geometry moves.
        nodes: how far, in distances of two nodes.
    """

    grid: LatentGrid
    axis: int
    nodes: float

    @property
    def name(self) -> str:
        return f"translation-{self.axis}:{self.nodes!r}"

    def prepare(self, sample: Sample) -> dict[str, Tensor]:
        if self.nodes == 0:
            return {}
        moved = self.grid.translate(sample, self.nodes, self.axis)
        return {self._field(name): moved[name] for name in PREPARED}

    def apply(self, fields: Fields) -> dict[str, Tensor]:
        if self.nodes == 0:
            return dict(fields)
        if all(self._field(name) in fields for name in PREPARED):
            near = {name: fields[self._field(name)] for name in PREPARED}
            moved = _without_prepared(fields) | self.grid.shift(fields, self.nodes, self.axis)
            return moved | near
        device = fields["points"].device
        here = {name: field.cpu() for name, field in _without_prepared(fields).items()}
        if here["points"].ndim == 2:
            moved = self.grid.translate(here, self.nodes, self.axis)
        else:
            moved = pad([self.grid.translate(one, self.nodes, self.axis) for one in unpad(here)])
        return {name: field.to(device) for name, field in moved.items()}

    def undo(self, output: Tensor, at_queries: bool) -> Tensor:
        return output

    def _field(self, name: str) -> str:
        return f"{name}@{self.name}"


def _without_prepared(fields: Fields) -> dict[str, Tensor]:
    """Without what symmetries prepared: a geometry that has moved needs something else."""
    return {name: field for name, field in fields.items() if "@" not in name}


def translations(
    grid: LatentGrid, axis: int = 0, nodes: Sequence[float] = (0.0, 0.5, 1.25, -1.25)
) -> tuple[Translation, ...]:
    """A geometry as it is and moved by so many nodes along the axis, the identity first."""
    if not nodes or nodes[0] != 0 or len(set(nodes)) < len(nodes):
        raise ValueError(f"nodes = {tuple(nodes)} must begin with 0, and each must be another")
    if not all(math.isfinite(n) for n in nodes):
        raise ValueError(f"nodes = {tuple(nodes)} must be finite")
    return tuple(Translation(grid, axis, float(n)) for n in nodes)


def _translation(name: str, grid: LatentGrid) -> dict[str, Symmetry]:
    """{name: the translation of that name}; empty if there is none."""
    parts = re.fullmatch(r"translation-([0-2]):(-?[0-9.]+(?:e[+-]?[0-9]+)?)", name)
    if parts is None:
        return {}
    try:
        nodes = float(parts[2])
    except ValueError:
        return {}
    return {name: Translation(grid, int(parts[1]), nodes)} if math.isfinite(nodes) else {}


def by_name(names: Sequence[str], grid: LatentGrid | None) -> tuple[Symmetry, ...]:
    """The symmetries of a saved model.

    Args:
        names: as the symmetries call themselves.
        grid: the latent grid of the operator; None for one on grids.

    Raises:
        ValueError: It names those that must be passed in.
    """
    known: dict[str, Symmetry] = {g.name: g for g in square()}
    if grid is not None:
        known |= {g.name: g for axis in range(3) for g in reflection(grid, axis)}
        for name in names:
            known |= _translation(name, grid)
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"symmetries {missing} are not uqno's own: pass them with symmetries=")
    return tuple(known[name] for name in names)


def augmentation(
    symmetries: Sequence[Symmetry],
) -> Callable[[Fields, torch.Generator], dict[str, Tensor]] | None:
    """`augment=` of `uqno.training.fit`: one of the symmetries at random."""
    if not symmetries:
        return None

    def augment(sample: Fields, generator: torch.Generator) -> dict[str, Tensor]:
        chosen = int(torch.randint(len(symmetries), (), generator=generator))
        return symmetries[chosen].apply(sample)

    return augment


def averaged(
    operator: Callable[[Batch], Tensor],
    batch: Batch,
    symmetries: Sequence[Symmetry],
    others: Sequence[Callable[[Batch], Tensor]] = (),
) -> tuple[Tensor, Tensor | None]:
    """The mean of g⁻¹ G(g a) over symmetries g and operators G, and the deviation around it.

    Args:
        operator: G, from a batch to (batch, channel, *points).
        batch: the functions.
        symmetries: the g; none for the identity alone.
        others: further operators.

    Returns:
        Mean and deviation (batch, channel, *points); with one operator and no symmetries its own
        answer, and no deviation.
    """
    if not symmetries and not others:
        return operator(batch), None
    return moments(_answers((operator, *others), batch, symmetries))


def _answers(
    operators: Sequence[Callable[[Batch], Tensor]], batch: Batch, symmetries: Sequence[Symmetry]
) -> Iterator[Tensor]:
    if not symmetries:
        yield from (operator(batch) for operator in operators)
    at_queries = "queries" in batch
    for g in symmetries:
        moved = g.apply(batch)
        yield from (g.undo(operator(moved), at_queries) for operator in operators)


def moments(answers: Iterable[Tensor], correction: int = 0) -> tuple[Tensor, Tensor]:
    """mean and (Σ (answer − mean)² / (n − correction))^½ of n answers, each of their shape."""
    mean = squares = torch.zeros(())
    count = 0
    for value in answers:  # Welford: one answer in memory at a time
        count += 1
        delta = value - mean
        mean = mean + delta / count
        squares = squares + delta * (value - mean)
    return mean, (squares / (count - correction)).clamp_min(0).sqrt()
