"""Points drawn otherwise than independently: one a stratum, or from the nodes of a mesh.

As for independent points the score is the k-th smallest of m ratios, and with

    β ≥ P[ at least k of the m points lie in a band that covers less than 1 − α of the domain ]

any j with (n + 1 − j)/(n + 1) ≤ δ(1 − β) carries the (α, δ) guarantee. What differs is β:

    strata               P[Bin(m, 1 − α) ≥ k], for k ≥ m(1 − α) + 1 alone (Hoeffding 1956)
    without replacement  P[Hyp(N, ⌈N(1 − α)⌉ − 1, m) ≥ k], of N nodes, which are the domain
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction as Rational
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import gammaln

from uqno.conformal import checks
from uqno.conformal.binomial import lower_tail, relative_slack
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees import sentences
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    Solution,
    finite_scale,
    share_in_json,
)
from uqno.conformal.guarantees.designs import AllCandidates, FixedRank, held_pair, held_scores
from uqno.conformal.planning import Plan, plan_for
from uqno.conformal.ranks import Ranks, Request, best_candidate, candidate_ranks, function_rank
from uqno.types import Integers, Reals, Share

if TYPE_CHECKING:
    from uqno.conformal.record import Calibration

# How far the sums of hypergeometric weights may be off, relatively: their logarithms are
# differences of numbers up to 10^8 in double precision.
HYPERGEOMETRIC_SLACK = Rational(1, 10**7)


@dataclass(frozen=True)
class Drawn(Guarantee):
    """The (α, δ) guarantee from m points of each function, drawn by a design of their own."""

    alpha: Share
    delta: Share

    shares: ClassVar[tuple[str, ...]] = ("alpha", "delta")

    # --- what a design says of itself ------------------------------------------------------------

    @property
    @abstractmethod
    def level(self) -> Share | None:
        """The confidence of the promise in the calibration set, or None."""

    @property
    @abstractmethod
    def domain(self) -> str:
        """What the share is of, in sentences."""

    @property
    @abstractmethod
    def design(self) -> str:
        """How the points of a function are supposed to be drawn, in sentences."""

    @abstractmethod
    def least_rank(self, points: int) -> int:
        """The smallest k for which β is known."""

    @abstractmethod
    def shown(self, k: Integers, points: int) -> Reals:
        """1 − β at point ranks k ≥ `least_rank`, in floats."""

    @abstractmethod
    def surely_shown(self, k: int, points: int) -> Rational:
        """1 − β at one k, or a little less."""

    # --- the rule --------------------------------------------------------------------------------

    def hold_exactly(self, *shares: str) -> None:
        """Check these shares, and hold each as the decimal that was written."""
        for name in shares:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.share(name, getattr(self, name)))

    @property
    def request(self) -> Request:
        """What is asked of the ranks, in exact numbers."""
        return Request.of(self.alpha, self.delta, "iid", self.level)

    @property
    def settings(self) -> dict[str, Any]:
        request = self.request
        confidence = None if request.confidence is None else share_in_json(request.confidence)
        shares = {"alpha": share_in_json(request.alpha), "delta": share_in_json(request.delta)}
        return {**shares, "confidence": confidence}

    @property
    def needs_independent_points(self) -> bool:
        return True  # an answer that depends on where the other points lie, depends on the draw

    def feasible(self, functions: int, points: int) -> bool:
        return functions > 1 and self.ranks_for(functions, points) is not None

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        return pair_for(self, functions, points)

    def collector(self, facts: Facts) -> Collector:
        if facts.weighted:
            raise ValueError(
                "weights go with a grid: points drawn from the domain already carry its measure; "
                "leave weights out"
            )
        if facts.sizes is None:
            return AllCandidates(self.request.alpha)
        return FixedRank(point=self._pair(np.array(facts.sizes)).point)

    def solve(self, evidence: Evidence) -> Solution:
        checks.functions(len(evidence))
        pair, scores = self._pair(evidence.sizes), evidence.scores
        if scores.ndim > 1:
            alpha = self.request.alpha
            pair = held_pair(pair, int(evidence.sizes[0]), alpha)
            scores = held_scores(lambda m: pair.point, evidence.sizes, scores, alpha)
        return Solution(finite_scale(scores, pair.function), scores, pair)

    def _pair(self, sizes: Integers) -> Ranks:
        """The pair for functions of so many points each."""
        least, most = int(sizes.min()), int(sizes.max())
        if least != most:
            raise ValueError(
                f"functions have {least} to {most} points: this design needs as many of each; draw "
                "as many, or use sampling='iid' with independent points"
            )
        pair = self.ranks_for(len(sizes), least)
        if pair is None:
            raise InfeasibleError(str(plan_for(self, len(sizes), least)))
        return pair

    # --- words and files -------------------------------------------------------------------------

    def sentence(self, calibration: Calibration) -> str:
        drawn = (
            f", if {self.design} and their number, {calibration.points}, was fixed beforehand or "
            "is the new one's too"
        )
        return sentences.promise_of_share(
            self.alpha,
            self.delta,
            self.level,
            calibration.functions,
            calibration.scale,
            self.domain,
            drawn,
        )

    def promise(self, calibration: Calibration) -> str:
        return sentences.short_promise(self.alpha, self.delta, self.level, self.domain)

    def plan_sentence(self, plan: Plan) -> str:
        return sentences.plan_of_share(self.alpha, self.delta, self.level, plan)

    def check(self, calibration: Calibration) -> None:
        c, pair = calibration, calibration.ranks
        if pair is None or pair.point is None or c.weighted or c.points != c.points_max:
            raise ValueError(
                f"ranks = {pair}, weighted = {c.weighted} and {c.points} to {c.points_max} points "
                f"do not fit the guarantee {self.name!r}"
            )
        k = checks.count("ranks.point", pair.point)
        j = checks.count("ranks.function", pair.function)
        best = function_rank_of(self, k, c.functions, c.points)
        if best is None or not best <= j <= c.functions:
            raise ValueError(f"{pair} do not carry the guarantee that the calibration claims")


@dataclass(frozen=True)
class Strata(Drawn):
    """P[ at least 1 − α of a new function's domain lies in the band ] ≥ 1 − δ, a point a stratum.

    The domain is divided into m strata of equal measure, and one point is drawn in each,
    independently: more even than independent points, with nearly the same scale.

    Args:
        alpha, delta, confidence: as in `Fraction`.
    """

    confidence: Share | None = None
    name: ClassVar[str] = "strata"

    def __post_init__(self) -> None:
        self.hold_exactly("alpha", "delta", "confidence")

    @property
    def level(self) -> Share | None:
        return self.confidence

    @property
    def domain(self) -> str:
        return "the domain"

    @property
    def design(self) -> str:
        return (
            "the points of each function were drawn independently, one in each of as many strata "
            "of equal measure,"
        )

    def least_rank(self, points: int) -> int:
        return ceil(points * (1 - self.request.alpha)) + 1

    def shown(self, k: Integers, points: int) -> Reals:
        return np.asarray(lower_tail(k, points, float(self.request.alpha)))

    def surely_shown(self, k: int, points: int) -> Rational:
        tail = Rational(float(self.shown(np.array(k), points)))
        return tail * (1 - Rational(relative_slack(points)))


@dataclass(frozen=True)
class WithoutReplacement(Drawn):
    """P[ at least 1 − α of N nodes of a new function lie in the band ] ≥ 1 − δ, from m of them.

    The domain is the N nodes of a mesh, and each function is seen at m of them, drawn at random
    without replacement. For m = N it is the rule for a grid.

    Args:
        alpha, delta, confidence: as in `Fraction`.
        of: N, the nodes of each function.
    """

    of: int
    confidence: Share | None = None
    name: ClassVar[str] = "without-replacement"

    def __post_init__(self) -> None:
        checks.count("of", self.of)
        self.hold_exactly("alpha", "delta", "confidence")

    @property
    def level(self) -> Share | None:
        return self.confidence

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "of": self.of}

    @property
    def domain(self) -> str:
        return f"the {self.of} nodes"

    @property
    def design(self) -> str:
        return (
            f"the points of each function were drawn at random without replacement from its "
            f"{self.of} nodes"
        )

    @property
    def most_without(self) -> int:
        """The largest number of nodes in a band that covers less than 1 − α of them."""
        return ceil(self.of * (1 - self.request.alpha)) - 1

    def feasible(self, functions: int, points: int) -> bool:
        return super().feasible(functions, min(points, self.of))

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        if points > self.of:
            raise ValueError(
                f"functions have {points} points, more than of = {self.of} nodes: without "
                "replacement there are at most as many; give the number of nodes as of"
            )
        return super().ranks_for(functions, points)

    def least_rank(self, points: int) -> int:
        return 1

    def shown(self, k: Integers, points: int) -> Reals:
        return below(k, self.of, self.most_without, points)

    def surely_shown(self, k: int, points: int) -> Rational:
        if k > self.most_without:  # so many nodes inside are enough, whatever the others
            return Rational(1)
        return Rational(float(self.shown(np.array(k), points))) * (1 - HYPERGEOMETRIC_SLACK)


def below(k: Integers, nodes: int, inside: int, drawn: int) -> Reals:
    """P[X < k] for X hypergeometric: of `drawn` nodes without replacement, how many are `inside`.

    >>> below(np.array([1, 2, 3]), nodes=5, inside=2, drawn=2).round(3)
    array([0.3, 0.9, 1. ])
    """
    x = np.arange(max(0, drawn + inside - nodes), min(drawn, inside) + 1)
    log = -(
        gammaln(x + 1.0)
        + gammaln(inside - x + 1.0)
        + gammaln(drawn - x + 1.0)
        + gammaln(nodes - inside - drawn + x + 1.0)
    )
    weights = np.exp(log - log.max())
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    place = np.clip(np.asarray(k) - x[0], 0, len(x))
    return np.asarray(sums[place] / sums[-1])


@lru_cache(maxsize=4096)
def pair_for(rule: Drawn, n: int, m: int) -> Ranks | None:
    """The pair with the smallest scale to expect, from n, m, α and δ alone; None if infeasible.

    Args:
        rule: a design; n: functions; m: points of each.
    """
    request = rule.request
    least = rule.least_rank(m)
    if least > m:
        return None
    k = np.unique(np.append(candidate_ranks(m, request.alpha), m))
    k = k[k >= least]
    best = best_candidate(n, float(m), k, rule.shown(k, m), request)
    chosen = m if best is None else int(k[best])
    j = function_rank_of(rule, chosen, n, m)
    if j is None and chosen != m:  # floats took it for admissible: k = m is the most cautious rank
        chosen, j = m, function_rank_of(rule, m, n, m)
    if j is None:
        return None
    ranks = range(least, chosen + 1)

    def admits(k: int) -> bool:
        found = function_rank_of(rule, k, n, m)
        return found is not None and found <= j

    return Ranks(ranks[bisect_left(ranks, True, key=admits)], j)


def function_rank_of(rule: Drawn, k: int, n: int, m: int) -> int | None:
    """The smallest j that is admissible with point rank k, or None."""
    if not rule.least_rank(m) <= k <= m:
        return None
    level = rule.request.delta * rule.surely_shown(k, m)
    return function_rank(n, level, rule.request.confidence)
