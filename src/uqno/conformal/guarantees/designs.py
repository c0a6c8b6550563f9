"""Which ratio of a function is its score, for each way of observing functions.

With arrays and lists the number of functions and of points is known first, and one rank for each
function is enough. An iterator tells its length last: for independent points, whose best rank
depends on it, the scores at many candidate ranks are kept, and the pair is chosen in the end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from uqno.conformal.guarantees.contract import ScoreCollector
from uqno.conformal.ranks import (
    CommonTail,
    Ranks,
    Request,
    grid_point_rank,
    held_ranks,
    hoeffding_t,
)
from uqno.conformal.scores import Functions
from uqno.types import Integers, Reals


@dataclass
class RankCollector(ScoreCollector):
    """Keeps the ratio at one rank, which the number of points decides."""

    @abstractmethod
    def point_rank(self, points: int) -> int:
        """k for functions of so many points."""

    def ranks(self, points: int) -> Integers:
        return np.array([self.point_rank(points)])

    def score(self, functions: Functions) -> Reals:
        return functions.scores(self.point_rank(functions.points))


@dataclass
class GridRank(RankCollector):
    """k = ⌈m (1 − α)⌉, for each function's own m."""

    alpha: Fraction = Fraction(1, 2)

    def point_rank(self, points: int) -> int:
        return grid_point_rank(points, self.alpha)


@dataclass
class WeightedShare(ScoreCollector):
    """The smallest λ that covers 1 − α of each function's measure."""

    alpha: Fraction = Fraction(1, 2)

    def score(self, functions: Functions) -> Reals:
        return functions.weighted_scores([1 - self.alpha])[:, 0]


@dataclass
class FixedRank(RankCollector):
    """One k for all functions, from the caller or from the number of functions."""

    point: int | None = None

    def point_rank(self, points: int) -> int:
        if self.point is None or self.point > points:
            raise ValueError(f"ranks.point = {self.point} must lie in 1 … {points}, the points")
        return self.point


class HoeffdingRank(RankCollector):
    """k = ⌈m (1 − α + t)⌉ with one t for all, from the smallest number of points."""

    def __init__(self, request: Request, least: int | None) -> None:
        super().__init__()
        self.request, self.least = request, least

    def point_rank(self, points: int) -> int:
        self.least = points if self.least is None else self.least
        if points < self.least:
            raise ValueError(
                f"a function has {points} points and the first one {self.least}: the paper's rule "
                "must know the smallest number beforehand; pass lists or arrays, not iterators"
            )
        t = hoeffding_t(self.least, self.request) or Fraction(0)
        return ceil(points * (1 - self.request.alpha + t))


class CommonTailRank(ScoreCollector):
    """Each function its own k, at one β common to all; ∞ for a function of too few points."""

    def __init__(self, tail: CommonTail) -> None:
        super().__init__()
        self.tail = tail

    def ranks(self, points: int) -> Integers:
        return np.array([self.tail.point_rank(points) or points])

    def score(self, functions: Functions) -> Reals:
        k = self.tail.point_rank(functions.points)
        scores = functions.scores(k or functions.points)  # read, and so checked, in any case
        return scores if k is not None else np.full_like(scores, np.inf)


class AllCandidates(ScoreCollector):
    """The scores at every candidate rank and at k = m, (functions, candidates + 1)."""

    def __init__(self, alpha: Fraction) -> None:
        super().__init__()
        self.alpha = alpha

    def ranks(self, points: int) -> Integers:
        return held_ranks(points, self.alpha)

    def score(self, functions: Functions) -> Reals:
        return functions.scores(self.ranks(functions.points))


class Subsample(ScoreCollector):
    """Every function at the same number of points, drawn without replacement by (seed, function).

    Args:
        inner: what keeps the scores of the drawn points.
        points: how many are drawn; seed: of the draw.
    """

    def __init__(self, inner: ScoreCollector, points: int, seed: int) -> None:
        super().__init__()
        self.inner, self.points, self.seed = inner, points, seed

    def score(self, functions: Functions) -> Reals:
        return self.inner.score(functions.subsample(self.points, self.seed))

    def add(self, functions: Functions) -> None:
        self.keep(self.score(functions), self.points)


# --- of all that `AllCandidates` kept ----------------------------------------------------------


def held_pair(pair: Ranks, points: int, alpha: Fraction) -> Ranks:
    """The pair with the smallest k that was kept and is no smaller: as admissible as the pair."""
    ranks = held_ranks(points, alpha)
    return Ranks(int(ranks[np.searchsorted(ranks, pair.point or points)]), pair.function)


def held_scores(
    rank_of: Callable[[int], int | None], sizes: Integers, scores: Reals, alpha: Fraction
) -> Reals:
    """The score of each function, (n,), at a k that was kept, by its number of points.

    Args:
        rank_of: k of functions of so many points; None where the score is ∞.
        sizes: (n,); scores: (n, candidates + 1).
        alpha: of the candidates.
    """
    chosen = np.full(len(sizes), np.inf)
    for m in np.unique(sizes).tolist():
        k = rank_of(m)
        if k is not None:
            column = int(np.searchsorted(held_ranks(m, alpha), k))
            chosen[sizes == m] = scores[sizes == m, column]
    return chosen
