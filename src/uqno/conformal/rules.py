"""Which ratio of each function is its score, decided while the functions stream by.

With arrays and lists the number of functions and of points is known first, and one rank a
function is enough. An iterator tells its length last, unless the caller does: for `iid`, whose best
rank depends on it, the scores of a ladder of ranks are kept, and the pair is chosen in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Protocol

import numpy as np

from uqno.conformal.binomial import lower_tail, relative_slack
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.planning import plan
from uqno.conformal.ranks import (
    Ranks,
    Request,
    admissible,
    best_function_rank,
    best_rung,
    default_ranks,
    function_rank,
    grid_point_rank,
    hoeffding_t,
    ladder,
)
from uqno.conformal.scores import Largest
from uqno.types import Integers, Reals

Pick = Callable[[int, Reals], Reals]
"""(points, scores of a block) → one score a function."""


class Rule(Protocol):
    def point_ranks(self, m: int) -> int | Integers:
        """The rank, or the ranks among which `decide` chooses, in a function of m points."""

    def largest(self) -> Largest | None:
        """What spares most of the scoring, where the pair is known beforehand."""

    def decide(self, sizes: Sequence[int]) -> tuple[Ranks, Pick]:
        """The pair, once the points of every function are known, and how to pick its scores."""


def rule_for(
    request: Request, number: int | None, sizes: Sequence[int] | None, ranks: Ranks | None
) -> Rule:
    """number: of the functions, sizes: their points; where they are known beforehand."""
    if ranks is not None:
        return Given(request, ranks)
    if request.sampling == "iid":
        return IidStream(request) if sizes is None else IidKnown(request, sizes)
    if request.sampling == "hoeffding":
        return Hoeffding(request, sizes)
    return Grid(request, number, sizes)


def required(request: Request, n: int, m: int) -> Ranks:
    """The default pair, or an error that says what would be feasible."""
    pair = default_ranks(n, m, request)
    return pair if pair is not None else _refuse(request, n, m)


def _refuse(request: Request, n: int, m: int) -> Ranks:
    r = request
    told = plan(r.alpha, r.delta, n, m, r.sampling, r.confidence)
    if told.feasible:  # on a boundary that a single number of points can use and several cannot
        raise InfeasibleError(
            f"not feasible with {n} functions of different numbers of points, {m} and more; "
            "mixed='subsample' is"
        )
    raise InfeasibleError(str(told))


def largest_for(request: Request, sizes: Sequence[int] | None) -> Largest | None:
    """Known sizes give the pair before the work (or fail before it); then n + 1 − j count."""
    if sizes is None:
        return None
    return Largest(len(sizes) + 1 - required(request, len(sizes), min(sizes)).function)


def all_of_it(points: int, scores: Reals) -> Reals:
    return scores


@dataclass(frozen=True)
class Given:
    """A pair of the caller's own."""

    request: Request
    ranks: Ranks

    def point_ranks(self, m: int) -> int:
        if self.ranks.point is None or self.ranks.point > m:
            raise ValueError(f"ranks.point = {self.ranks.point} must lie in 1 … {m}, the points")
        return self.ranks.point

    def largest(self) -> None:
        return None

    def decide(self, sizes: Sequence[int]) -> tuple[Ranks, Pick]:
        n, m = len(sizes), min(sizes)
        if m != max(sizes):
            raise ValueError(
                f"{self.ranks} fits one number of points, the functions have {m} to "
                f"{max(sizes)}: leave ranks out"
            )
        if not admissible(self.ranks, n, m, self.request):
            best = best_function_rank(self.point_ranks(m), n, m, self.request)
            raise InfeasibleError(
                f"{self.ranks} does not carry the guarantee with {n} functions of {m} points: "
                + (f"function must be {best} to {n}" if best else "take a larger point rank")
            )
        return self.ranks, all_of_it


@dataclass(frozen=True)
class Grid:
    """k = ⌈m (1 − α)⌉ for each function's own m."""

    request: Request
    number: int | None
    sizes: Sequence[int] | None

    def point_ranks(self, m: int) -> int:
        return grid_point_rank(m, self.request.alpha)

    def largest(self) -> Largest | None:
        """Known n gives j, whatever the points; then the n + 1 − j largest scores count."""
        if self.sizes is not None:
            return largest_for(self.request, self.sizes)
        if self.number is None:
            return None
        j = function_rank(self.number, self.request.delta, self.request.confidence)
        return None if j is None else Largest(self.number + 1 - j)

    def decide(self, sizes: Sequence[int]) -> tuple[Ranks, Pick]:
        return required(self.request, len(sizes), min(sizes)), all_of_it


class Hoeffding:
    """k = ⌈m (1 − α + t)⌉ with one t for all, from the smallest number of points."""

    def __init__(self, request: Request, sizes: Sequence[int] | None) -> None:
        self.request, self.sizes = request, sizes
        self.least = None if sizes is None else min(sizes)

    def point_ranks(self, m: int) -> int:
        self.least = m if self.least is None else self.least
        if m < self.least:
            raise ValueError(
                f"a function has {m} points and the first one {self.least}: the paper's rule must "
                "know the smallest number beforehand; pass lists or arrays, not iterators"
            )
        t = hoeffding_t(self.least, self.request) or Fraction(0)
        return ceil(m * (1 - self.request.alpha + t))

    def largest(self) -> Largest | None:
        return largest_for(self.request, self.sizes)

    def decide(self, sizes: Sequence[int]) -> tuple[Ranks, Pick]:
        return required(self.request, len(sizes), min(sizes)), all_of_it


class IidKnown:
    """One number of points: the default pair. Several: each its own k, at one common β."""

    def __init__(self, request: Request, sizes: Sequence[int]) -> None:
        self.request = request
        self.pair, self.rung = _iid_choice(request, sizes)
        self.count = len(sizes) + 1 - self.pair.function

    def point_ranks(self, m: int) -> int:
        if self.rung is not None:
            return int(ladder(m, self.request.alpha)[self.rung])
        return self.pair.point or m

    def largest(self) -> Largest:
        return Largest(self.count)

    def decide(self, sizes: Sequence[int]) -> tuple[Ranks, Pick]:
        return self.pair, all_of_it


@dataclass(frozen=True)
class IidStream:
    """The whole ladder of each function is kept: a few hundred numbers instead of one."""

    request: Request

    def point_ranks(self, m: int) -> Integers:
        return np.unique([*ladder(m, self.request.alpha), m])

    def largest(self) -> None:
        return None

    def decide(self, sizes: Sequence[int]) -> tuple[Ranks, Pick]:
        pair, rung = _iid_choice(self.request, sizes)

        def column(m: int) -> int:
            wanted = pair.point or m if rung is None else ladder(m, self.request.alpha)[rung]
            # Any k above an admissible one is admissible too.
            return int(np.searchsorted(self.point_ranks(m), wanted))

        first = self.point_ranks(min(sizes))[column(min(sizes))]
        return Ranks(int(first), pair.function), lambda m, scores: scores[:, column(m)]


def _iid_choice(request: Request, sizes: Sequence[int]) -> tuple[Ranks, int | None]:
    """The pair for the smallest m, and the common rung where functions differ in m."""
    n, least = len(sizes), min(sizes)
    if least == max(sizes):
        return required(request, n, least), None
    alpha = request.alpha
    each = [lower_tail(ladder(m, alpha), m, float(alpha)) for m in sorted(set(sizes))]
    one_minus_beta = np.min(each, axis=0)
    rung = best_rung(n, float(least), ladder(least, alpha), one_minus_beta, request)
    if rung is None:
        return _refuse(request, n, least), None
    safe = Fraction(float(one_minus_beta[rung])) * (1 - Fraction(relative_slack(max(sizes))))
    j = function_rank(n, request.delta * safe, request.confidence)
    if j is None:
        return _refuse(request, n, least), None
    return Ranks(int(ladder(least, alpha)[rung]), j), rung
