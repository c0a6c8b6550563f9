"""Which ratio of a function is its score, for each way of observing functions.

With arrays and lists the number of functions and of points is known first, and one rank for each
function is enough. An iterator tells its length last: for independent points, whose best rank
depends on it, the scores at many candidate ranks are kept, and the pair is chosen in the end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from uqno.conformal.binomial import lower_tail, relative_slack
from uqno.conformal.guarantees.contract import ScoreCollector
from uqno.conformal.ranks import (
    Ranks,
    Request,
    best_candidate,
    candidate_ranks,
    default_ranks,
    function_rank,
    grid_point_rank,
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


class CommonCandidate(RankCollector):
    """Each function its own k, at one β common to all numbers of points."""

    def __init__(self, alpha: Fraction, candidate: int) -> None:
        super().__init__()
        self.alpha, self.candidate = alpha, candidate

    def point_rank(self, points: int) -> int:
        return int(candidate_ranks(points, self.alpha)[self.candidate])


class AllCandidates(ScoreCollector):
    """The scores at every candidate rank and at k = m, (functions, candidates + 1)."""

    def __init__(self, alpha: Fraction) -> None:
        super().__init__()
        self.alpha = alpha

    def ranks(self, points: int) -> Integers:
        return all_candidates(points, self.alpha)

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


# --- independent points -----------------------------------------------------------------------


def all_candidates(points: int, alpha: Fraction) -> Integers:
    """Every candidate rank for functions of m points, and m: rising, with repetitions."""
    return np.append(candidate_ranks(points, alpha), points)


def iid_choice(request: Request, sizes: Sequence[int]) -> tuple[Ranks | None, int | None]:
    """The pair for the smallest m, and which candidate where functions differ in m.

    Returns:
        (None, None) where no pair is admissible.
    """
    n, least = len(sizes), min(sizes)
    if least == max(sizes):
        return default_ranks(n, least, request), None
    alpha = request.alpha
    each = [lower_tail(candidate_ranks(m, alpha), m, float(alpha)) for m in sorted(set(sizes))]
    one_minus_beta = np.min(each, axis=0)
    ranks = candidate_ranks(least, alpha)
    candidate = best_candidate(n, float(least), ranks, one_minus_beta, request)
    if candidate is None:
        return None, None
    safe = Fraction(float(one_minus_beta[candidate])) * (1 - Fraction(relative_slack(max(sizes))))
    j = function_rank(n, request.delta * safe, request.confidence)
    return (None, None) if j is None else (Ranks(int(ranks[candidate]), j), candidate)


def chosen_column(
    request: Request, sizes: Integers, scores: Reals, pair: Ranks, candidate: int | None
) -> tuple[Ranks, Reals]:
    """The pair and the scores, (n,), at the chosen candidate of all that `AllCandidates` kept."""
    chosen = np.empty(len(sizes))
    least_rank = 0
    for m in np.unique(sizes):
        ranks = all_candidates(int(m), request.alpha)
        wanted = pair.point or int(m)
        if candidate is not None:
            wanted = int(ranks[candidate])
        # Any k above an admissible one is admissible too.
        column = int(np.searchsorted(ranks, wanted))
        chosen[sizes == m] = scores[sizes == m, column]
        least_rank = least_rank or int(ranks[column])
    return Ranks(least_rank, pair.function), chosen
