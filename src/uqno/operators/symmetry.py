"""Symmetries of a problem: if g maps solutions to solutions, so should an operator.

An operator G is augmented in training by g at random, and averaged at prediction,
Ḡ(a) = mean_g g⁻¹ G(g a). The deviation of g⁻¹ G(g a) over g costs nothing more and tells where G is
unsure.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from uqno.operators.gino import GINO
from uqno.operators.neighbours import unpad
from uqno.types import Fields


class Symmetry(Protocol):
    """One element g of the group; `name` is how a saved model finds it again."""

    @property
    def name(self) -> str: ...

    def apply(self, fields: Fields) -> dict[str, Tensor]:
        """g on a sample or a batch: every field, truth and query points included."""

    def undo(self, output: Tensor, at_points: bool) -> Tensor:
        """g⁻¹ on an answer (batch, channel, *points); at points it stays where it is."""


@dataclass(frozen=True)
class SquareSymmetry:
    """A quarter turn `turns` times after a flip: scalar fields on the square grid."""

    turns: int
    flip: bool

    @property
    def name(self) -> str:
        return f"square-{self.turns}{'-flip' if self.flip else ''}"

    def apply(self, fields: Fields) -> dict[str, Tensor]:
        moved = {}
        for name, field in fields.items():
            if name == "points":
                moved[name] = self._move(field)
            else:  # values at points stay with their points
                moved[name] = field if name == "a_points" else self._turn(field)
        return moved

    def undo(self, output: Tensor, at_points: bool) -> Tensor:
        if at_points:
            return output
        back = torch.rot90(output, -self.turns, (-2, -1))
        return back.flip(-1) if self.flip else back

    def _turn(self, field: Tensor) -> Tensor:
        if field.shape[-1] != field.shape[-2]:
            raise ValueError(
                f"the symmetries of the square need a square grid, got {tuple(field.shape[-2:])}"
            )
        return torch.rot90(field.flip(-1) if self.flip else field, self.turns, (-2, -1))

    def _move(self, points: Tensor) -> Tensor:
        """Where a point (…, 2) of the unit square goes when its grid is turned."""
        x, y = points.unbind(-1)
        if self.flip:
            y = 1 - y
        for _ in range(self.turns):
            x, y = 1 - y, x
        return torch.stack((x, y), dim=-1)


def square() -> tuple[SquareSymmetry, ...]:
    """The eight symmetries of the unit square, the identity first."""
    return tuple(SquareSymmetry(turns, flip) for flip in (False, True) for turns in range(4))


@dataclass(frozen=True)
class Reflection:
    """The mirror image of a geometry in its plane x_axis = 0, or the geometry as it is.

    Points keep their order, so a scalar answer needs no undoing.
    """

    gino: GINO
    axis: int
    mirrored: bool

    @property
    def name(self) -> str:
        return f"reflection-{self.axis}{'' if self.mirrored else '-none'}"

    def apply(self, fields: Fields) -> dict[str, Tensor]:
        if not self.mirrored:
            return dict(fields)
        if fields["points"].ndim == 2:
            return self.gino.reflect(fields, self.axis)
        each = [
            self.gino.reflect({name: field[i] for name, field in fields.items()}, self.axis)
            for i in range(len(fields["points"]))
        ]
        return {name: torch.stack([one[name] for one in each]) for name in each[0]}

    def undo(self, output: Tensor, at_points: bool) -> Tensor:
        return output


def reflection(gino: GINO, axis: int = 1) -> tuple[Reflection, ...]:
    """The two symmetries of geometries with a left and a right, the identity first."""
    return Reflection(gino, axis, False), Reflection(gino, axis, True)


@dataclass(frozen=True)
class Translation:
    """A geometry moved along an axis by so many nodes of the latent grid, which stays where it is.

    For problems to which the place along that axis does not matter. Moved by parts of a node, a
    geometry is seen through other nodes: the mean of several looks has less of the grid in it.
    """

    gino: GINO
    axis: int
    nodes: float

    @property
    def name(self) -> str:
        return f"translation-{self.axis}:{self.nodes!r}"

    def apply(self, fields: Fields) -> dict[str, Tensor]:
        if self.nodes == 0:
            return dict(fields)
        device = fields["points"].device
        here = {name: field.cpu() for name, field in fields.items()}  # where neighbours are found
        if here["points"].ndim == 2:
            moved = self.gino.translate(here, self.nodes, self.axis)
        else:
            each = [unpad({n: f[i] for n, f in here.items()}) for i in range(len(here["points"]))]
            moved = self.gino.collate(
                [self.gino.translate(one, self.nodes, self.axis) for one in each]
            )
        return {name: field.to(device) for name, field in moved.items()}

    def undo(self, output: Tensor, at_points: bool) -> Tensor:
        return output


def translations(
    gino: GINO, axis: int = 0, nodes: Sequence[float] = (0.0, 0.5, 1.25, -1.25)
) -> tuple[Translation, ...]:
    """A geometry as it is and moved by so many nodes along the axis, the identity first."""
    if not nodes or nodes[0] != 0 or len(set(nodes)) < len(nodes):
        raise ValueError(f"nodes = {tuple(nodes)} must begin with 0, and each must be another")
    if not all(math.isfinite(n) for n in nodes):
        raise ValueError(f"nodes = {tuple(nodes)} must be finite")
    return tuple(Translation(gino, axis, float(n)) for n in nodes)


def _translation(name: str, gino: GINO) -> dict[str, Symmetry]:
    """{name: the translation of that name}; empty if there is none."""
    found = re.fullmatch(r"translation-([0-2]):(-?[0-9.]+(?:e[+-]?[0-9]+)?)", name)
    if found is None:
        return {}
    try:
        nodes = float(found[2])
    except ValueError:
        return {}
    return {name: Translation(gino, int(found[1]), nodes)} if math.isfinite(nodes) else {}


def by_name(names: Sequence[str], module: object) -> tuple[Symmetry, ...]:
    """The symmetries of a saved model; a ValueError names those that must be passed in."""
    known: dict[str, Symmetry] = {g.name: g for g in square()}
    if isinstance(module, GINO):
        known |= {g.name: g for axis in range(3) for g in reflection(module, axis)}
        for name in names:
            known |= _translation(name, module)
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
    operator: Callable[[Fields], Tensor],
    batch: Fields,
    symmetries: Sequence[Symmetry],
    others: Sequence[Callable[[Fields], Tensor]] = (),
) -> tuple[Tensor, Tensor | None]:
    """mean of g⁻¹ G(g a) over g and over operators G, and its deviation: (batch, channel, *points).

    Without symmetries and others the operator's own answer, and no deviation.
    """
    if not symmetries and not others:
        return operator(batch), None
    return moments(_answers((operator, *others), batch, symmetries))


def _answers(
    operators: Sequence[Callable[[Fields], Tensor]], batch: Fields, symmetries: Sequence[Symmetry]
) -> Iterator[Tensor]:
    if not symmetries:
        yield from (operator(batch) for operator in operators)
    at_points = "points" in batch and "a" in batch
    for g in symmetries:
        moved = g.apply(batch)
        yield from (g.undo(operator(moved), at_points) for operator in operators)


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
