"""What every guarantee answers: its rule for the scale, what is feasible, its words, its JSON.

A guarantee says how the scale λ̂ is found from calibration functions, in three steps:

    collector(facts)    decides what is kept of a function, before any is read
    collector.add(…)    is shown the functions, a few at a time, and keeps that: the evidence
    solve(evidence)     finds the scale

Calibrator, planner, band, report and command line know nothing else of it, so a new guarantee is
one file with one class: defining it gives it its name in files and in `GUARANTEES`. Some keep one
score of a function, some its whole coverage curve; a guarantee with another scale for each new
function overrides `scale_for`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from uqno.conformal.checks import InfeasibleError, shown
from uqno.conformal.ranks import Ranks
from uqno.conformal.scores import Functions
from uqno.types import Integers, Reals

if TYPE_CHECKING:
    from uqno.conformal.planning import Plan
    from uqno.conformal.record import Calibration

GUARANTEES: dict[str, type[Guarantee]] = {}
"""Every guarantee by the name that files have it under."""


@dataclass(frozen=True)
class Facts:
    """What is known of the calibration functions before they are read."""

    number: int | None
    """n; None for an iterator, which tells it last."""
    sizes: tuple[int, ...] | None
    """The points of each function; None for an iterator."""
    weighted: bool
    """Whether points count by weights."""


@dataclass(frozen=True)
class Evidence:
    """What a guarantee keeps of n calibration functions.

    sizes: (n,), the points of each function.
    scores: (n,) or (n, …), what the rule works with; one row for each function.
    weighted: whether points count by weights.
    """

    sizes: Integers
    scores: Reals
    weighted: bool = False

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, index: Integers) -> Evidence:
        """The evidence of some of the functions."""
        return Evidence(self.sizes[index], self.scores[index], self.weighted)


@dataclass(frozen=True)
class Solution:
    """The scale that a rule finds, and what it was found from.

    scale: λ̂, finite and ≥ 0.
    scores: (n,), one for each function; the calibration keeps them, sorted.
    ranks: the pair (k, j), for rules that have one.
    details: arrays by name that `scale_for` needs to find the scale of a new function.
    """

    scale: float
    scores: Reals
    ranks: Ranks | None = None
    details: Mapping[str, Reals] = field(default_factory=dict)


class Collector(ABC):
    """Keeps of the functions that pass by what a rule needs."""

    def ranks(self, points: int) -> Integers | None:
        """The point ranks that will be asked of functions of so many points, if only ranks are."""
        return None

    @abstractmethod
    def add(self, functions: Functions) -> None:
        """Keep what is needed of these functions."""

    @abstractmethod
    def evidence(self) -> Evidence:
        """What was kept of all functions, in their order."""


@dataclass
class ScoreCollector(Collector):
    """Keeps one array of scores for each function; `score` says which."""

    weighted: bool = False
    # Two growing buffers: small arrays kept between large temporary ones would tear the heap.
    sizes: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    shape: tuple[int, ...] = ()

    @abstractmethod
    def score(self, functions: Functions) -> Reals:
        """The scores of these functions, (functions,) or (functions, …)."""

    def add(self, functions: Functions) -> None:
        self.keep(self.score(functions), functions.points)

    def keep(self, scores: Reals, points: int) -> None:
        """Keep the scores of functions of so many points."""
        self.shape = scores.shape[1:]
        self.values.frombytes(np.asarray(scores, dtype=np.float64).tobytes())
        self.sizes.extend([points] * len(scores))

    def evidence(self) -> Evidence:
        scores = np.array(self.values).reshape(len(self.sizes), *self.shape)
        return Evidence(np.array(self.sizes), scores, self.weighted)


class Guarantee(ABC):
    """A promise about a new function, and the rule that finds the scale which carries it.

    name: what files and the command line call it; a class without one is not registered.
    shares: those of its settings that are shares in (0, 1), which a planner may vary.
    """

    name: ClassVar[str] = ""
    shares: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.name:
            GUARANTEES[cls.name] = cls

    # --- what is asked for --------------------------------------------------------------------

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments that make it again, as JSON holds them; shares as numbers, or exactly as
        text, "1/3", where no decimal number is the share."""

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The guarantee with these settings; each is checked as if a caller had passed it."""
        return cls(**settings)

    def with_share(self, name: str, value: float) -> Self:
        """The same guarantee with another value of one of its `shares`."""
        return self.of_settings({**self.settings, name: value})

    @property
    def needs_independent_points(self) -> bool:
        """Whether it supposes that a function's points are independent draws from its domain.

        Then the answer at a point must not depend on where the others were drawn.
        """
        return False

    # --- the rule -------------------------------------------------------------------------------

    @abstractmethod
    def feasible(self, functions: int, points: int) -> bool:
        """Whether n functions of m points each can carry it."""

    @abstractmethod
    def collector(self, facts: Facts) -> Collector:
        """What keeps the evidence.

        Raises:
            InfeasibleError: these facts already rule out a finite scale.
            ValueError: the guarantee does not go with them, such as weights with random points.
        """

    @abstractmethod
    def solve(self, evidence: Evidence) -> Solution:
        """The scale from the evidence of one calibration set.

        Raises:
            InfeasibleError: no finite scale carries the guarantee; the message says what would.
        """

    def scales(self, evidence: Evidence, splits: Integers) -> Reals:
        """The scale of each of many calibration sets, (sets,); ∞ where there is none.

        Args:
            evidence: of all functions; splits: (sets, n) indices of the functions of each set.
        """
        return np.array([self._scale_or_infinity(evidence.take(index)) for index in splits])

    def _scale_or_infinity(self, evidence: Evidence) -> float:
        try:
            return self.solve(evidence).scale
        except InfeasibleError:
            return inf

    def scale_for(self, calibration: Calibration, function: Mapping[str, Any]) -> float:
        """The scale for a new function, given its fields; by default the same for all."""
        return calibration.scale

    # --- words and files ------------------------------------------------------------------------

    @abstractmethod
    def sentence(self, calibration: Calibration) -> str:
        """What is promised, on what condition, and what is not: a sentence to quote."""

    @abstractmethod
    def promise(self, calibration: Calibration) -> str:
        """The same in one line."""

    @abstractmethod
    def plan_sentence(self, plan: Plan) -> str:
        """Whether it is feasible, how, and if not, what would be."""

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        """The pair (k, j) that n functions of m points give, for rules that have one."""
        return None

    def check(self, calibration: Calibration) -> None:  # noqa: B027 - most have nothing to check
        """Refuse a calibration from a file that promises more than its numbers carry.

        Raises:
            ValueError: the numbers do not carry the guarantee.
        """


def finite_scale(scores: Reals, j: int) -> float:
    """The j-th smallest score.

    Raises:
        InfeasibleError: it is infinite.
    """
    scale = float(np.partition(scores, j - 1)[j - 1])
    if not isfinite(scale):
        raise InfeasibleError(
            f"more than {scores.size - j} of {scores.size} functions have zero uncertainty where "
            "the error is not zero, at more points than alpha allows: no finite scale is valid; "
            "give the uncertainty a positive floor"
        )
    return scale


def require_guarantee(rule: Any) -> None:
    """Refuse what is no guarantee."""
    if not isinstance(rule, Guarantee):
        raise ValueError(
            f"guarantee = {shown(rule)} must be a guarantee, such as "
            "uqno.guarantees.Fraction(alpha=0.1, delta=0.02)"
        )


def share_in_json(value: Fraction) -> float | str:
    """A share as a number where that number means it exactly, else as text.

    >>> share_in_json(Fraction(1, 10)), share_in_json(Fraction(1, 3))
    (0.1, '1/3')
    """
    number = float(value)
    return number if Fraction(str(number)) == value else str(value)


def guarantee_of(content: Mapping[str, Any]) -> Guarantee:
    """The guarantee that a file describes by `name` and its settings.

    Raises:
        ValueError: the name is not known, or a setting is missing, unknown or out of bounds.
    """
    settings = dict(content)
    name = settings.pop("name", None)
    if name not in GUARANTEES:
        raise ValueError(
            f"guarantee {name!r} is not known, there are {', '.join(sorted(GUARANTEES))}: import "
            "the module that defines it, or use the uqno that wrote it"
        )
    try:
        return GUARANTEES[name].of_settings(settings)
    except TypeError as why:
        raise ValueError(f"the settings of guarantee {name!r} do not fit it: {why}") from None
