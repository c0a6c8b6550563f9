"""The paper's guarantee: P[ at least 1 − α of a new function lies in the band ] ≥ 1 − δ.

The score of a function is its k-th smallest ratio, λ̂ the j-th smallest of the n scores; `ranks`
says which pairs (k, j) carry the guarantee, in each of three ways of observing functions:

    grid       the points are the domain, and are measured by weights where there are any
    iid        the points are independent draws from the domain
    hoeffding  the same by the paper's own, looser rule, its ranks corrected
"""

from __future__ import annotations

import fractions
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from uqno.conformal import checks, words
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    ScoreCollector,
    Solution,
    finite_scale,
    share_in_json,
)
from uqno.conformal.guarantees.designs import (
    AllCandidates,
    CommonTailRank,
    FixedRank,
    GridRank,
    HoeffdingRank,
    Subsample,
    WeightedShare,
    held_pair,
    held_scores,
)
from uqno.conformal.planning import Plan, plan_for
from uqno.conformal.ranks import (
    CommonTail,
    Ranks,
    Request,
    admissible,
    best_function_rank,
    common_tail,
    default_misses,
    default_ranks,
    feasible,
    function_rank,
)
from uqno.types import Integers, Mixed, Reals, Sampling, Share

if TYPE_CHECKING:
    from uqno.conformal.record import Calibration

DOMAIN = {
    "grid": "the function's grid points",
    "weighted": "the function's domain, measured by the weights",
    "iid": "the function's domain",
    "hoeffding": "the function's domain",
}


@dataclass(frozen=True)
class Fraction(Guarantee):
    """With probability at least 1 − δ, at least 1 − α of a new function lies in the band.

    Args:
        alpha: the share of the domain that may be missed, in (0, 1).
        delta: the probability that more is missed, in (0, 1).
        sampling: "grid", "iid" or "hoeffding", how functions are observed.
        confidence: for a promise that holds for this very calibration set, with this probability.
        mixed: where functions have different numbers of points drawn at random: "own", each its
            own rank (the number of points is part of the random draw); "subsample", all are
            reduced at random to the smallest number.
        ranks: an admissible pair of your own choice, made without the calibration scores.
        seed: decides the draw of mixed="subsample".
        misses: ℓ = n + 1 − j of mixed="own", fixed before the calibration functions are seen, their
            numbers of points included: the promise then holds for a new function of any number of
            points even where those of the calibration functions are all the same. By default
            about 0.9 (n + 1) δ where they differ.

    References:
        Z. Ma, K. Azizzadenesheli, A. Anandkumar: Calibrated Uncertainty Quantification for
        Operator Learning via Conformal Prediction (2024).
    """

    alpha: Share
    delta: Share
    sampling: Sampling = "grid"
    confidence: Share | None = None
    mixed: Mixed = "own"
    ranks: Ranks | None = None
    seed: int = 0
    misses: int | None = None

    name: ClassVar[str] = "fraction"
    shares: ClassVar[tuple[str, ...]] = ("alpha", "delta")

    def __post_init__(self) -> None:
        exact: dict[str, Any] = {n: checks.share(n, getattr(self, n)) for n in self.shares}
        if self.confidence is not None:
            exact["confidence"] = checks.share("confidence", self.confidence)
        exact["sampling"] = checks.sampling(self.sampling)
        exact["mixed"] = checks.mixed(self.mixed, exact["sampling"])
        exact["seed"] = checks.count("seed", self.seed, least=0)
        if self.misses is not None:
            more = (exact["sampling"], exact["mixed"], self.ranks)
            exact["misses"] = checks.misses(self.misses, *more)
        for name, value in exact.items():
            object.__setattr__(self, name, value)  # frozen for everyone else
        if self.ranks is not None:
            checks.own_ranks(self.ranks)

    @property
    def request(self) -> Request:
        """What is asked of the ranks, in exact numbers."""
        return Request.of(self.alpha, self.delta, self.sampling, self.confidence)

    @property
    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            name: None if value is None else share_in_json(fractions.Fraction(value))
            for name, value in (
                ("alpha", self.alpha),
                ("delta", self.delta),
                ("confidence", self.confidence),
            )
        }
        settings |= {"sampling": self.sampling, "mixed": self.mixed, "seed": self.seed}
        settings["misses"], pair = self.misses, self.ranks
        settings["ranks"] = (
            None if pair is None else {"point": pair.point, "function": pair.function}
        )
        return settings

    @property
    def needs_independent_points(self) -> bool:
        return self.sampling != "grid"

    # --- the rule -------------------------------------------------------------------------------

    def feasible(self, functions: int, points: int) -> bool:
        if self.misses is not None:
            return functions > 1 and self.ranks_for(functions, points) is not None
        return feasible(functions, points, self.request)

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        if self.misses is None:
            return default_ranks(functions, points, self.request)
        tail = common_tail(functions, self.request, self.misses)
        point = None if tail is None else tail.point_rank(points)
        return None if tail is None or point is None else Ranks(point, tail.function)

    def collector(self, facts: Facts) -> Collector:
        if facts.weighted:
            checks.weights_design(self.sampling)
            checks.no_ranks_beside_weights(self.ranks)
            return WeightedShare(weighted=True, alpha=self.request.alpha)
        if self.mixed == "subsample":
            if facts.sizes is None:
                raise ValueError(
                    "mixed = 'subsample' must know the smallest number of points beforehand: pass "
                    "lists or arrays instead of iterators, or mixed='own'"
                )
            least = min(facts.sizes, default=1)
            alike = Facts(facts.number, (least,) * len(facts.sizes), weighted=False)
            return Subsample(self._rank_collector(alike), least, self.seed)
        return self._rank_collector(facts)

    def _rank_collector(self, facts: Facts) -> ScoreCollector:
        """What keeps one ratio of each function, or those among which `solve` chooses."""
        request, sizes = self.request, facts.sizes or None
        if self.ranks is not None:
            return FixedRank(point=self.ranks.point)
        if self.sampling == "grid":
            if sizes is not None:
                self._pair(len(sizes), min(sizes))  # what is infeasible is refused before reading
            return GridRank(alpha=request.alpha)
        if self.sampling == "hoeffding":
            if sizes is not None:
                self._pair(len(sizes), min(sizes))
            return HoeffdingRank(request, None if sizes is None else min(sizes))
        if sizes is None:
            return AllCandidates(request.alpha)
        if self._by_tail(min(sizes), max(sizes)):
            return CommonTailRank(self._tail(np.array(sizes)))
        return FixedRank(point=self._pair(len(sizes), min(sizes)).point)

    def solve(self, evidence: Evidence) -> Solution:
        checks.functions(len(evidence))
        pair, scores = self._decide(evidence)
        ranks = Ranks(None, pair.function) if evidence.weighted else pair
        return Solution(finite_scale(scores, pair.function), scores, ranks)

    def scales(self, evidence: Evidence, splits: Integers) -> Reals:
        one_pair = self.sampling == "grid" or len(np.unique(evidence.sizes)) == 1
        if not one_pair or evidence.scores.ndim > 1:
            return super().scales(evidence, splits)
        try:
            pair, _ = self._decide(evidence.take(splits[0]))
        except InfeasibleError:
            return np.full(len(splits), np.inf)
        j = pair.function - 1
        return np.asarray(np.partition(evidence.scores[splits], j, axis=1)[:, j])

    def _decide(self, evidence: Evidence) -> tuple[Ranks, Reals]:
        """The pair, once the points of every function are known, and the scores at its k, (n,)."""
        n, sizes, scores = len(evidence), evidence.sizes, evidence.scores
        least, most = int(sizes.min()), int(sizes.max())
        if self.ranks is not None:
            return self._own_pair(n, least, most), scores
        alpha, several = self.request.alpha, scores.ndim > 1  # scores, to choose among
        if self._by_tail(least, most):
            tail = self._tail(sizes)
            pair = Ranks(tail.point_rank(least), tail.function)
            return pair, held_scores(tail.point_rank, sizes, scores, alpha) if several else scores
        pair = self._pair(n, least)
        if not several:
            return pair, scores
        pair = held_pair(pair, least, alpha)
        return pair, held_scores(lambda m: pair.point, sizes, scores, alpha)

    def _by_tail(self, least: int, most: int) -> bool:
        """Whether functions of so many points have one β in common, and each its own k."""
        return self.sampling == "iid" and (self.misses is not None or least != most)

    def _pair(self, n: int, m: int) -> Ranks:
        """The default pair, or an error that says what would be feasible."""
        pair = default_ranks(n, m, self.request)
        if pair is None:
            raise InfeasibleError(str(plan_for(self, n, m)))
        return pair

    def _tail(self, sizes: Integers) -> CommonTail:
        """The rule for different numbers of points, or an error that says what would be feasible.

        No more functions may have too few points for a score than scores may exceed the scale.
        """
        n = len(sizes)
        misses = default_misses(n, self.request) if self.misses is None else self.misses
        tail, coarse = common_tail(n, self.request, misses), 0
        if tail is not None:
            coarse = sum(tail.point_rank(m) is None for m in sizes.tolist())
        if tail is None or coarse > n - tail.function:
            why = str(plan_for(replace(self, misses=misses), n, int(sizes.min())))
            if coarse:
                why = (
                    f"{coarse} of {n} functions have too few points for a score, at most "
                    f"{misses - 1} may with misses = {misses}: fix fewer misses before another set "
                    "is seen, or for this one if numbers of points tell nothing of the functions. "
                    + why
                )
            raise InfeasibleError(why)
        return tail

    def _own_pair(self, n: int, least: int, most: int) -> Ranks:
        """The pair of the caller, if it carries the guarantee."""
        pair = self.ranks
        assert pair is not None
        if least != most:
            raise ValueError(
                f"{pair} fits one number of points, the functions have {least} to {most}: leave "
                "ranks out"
            )
        if not admissible(pair, n, least, self.request):
            best = best_function_rank(pair.point or least, n, least, self.request)
            raise InfeasibleError(
                f"{pair} does not carry the guarantee with {n} functions of {least} points: "
                + (f"function must be {best} to {n}" if best else "take a larger point rank")
            )
        return pair

    # --- words and files --------------------------------------------------------------------------

    def sentence(self, calibration: Calibration) -> str:
        c = calibration
        domain = DOMAIN["weighted" if c.weighted else self.sampling]
        inside = (
            f"the band of {words.rounded_up(c.scale, 6)} × uncertainty around the prediction "
            f"covers at least {words.rest(self.alpha)} of {domain}"
        )
        n = f"n = {c.functions} calibration functions"
        if self.confidence is None:
            said = (
                f"With probability at least {words.rest(self.delta)} over the draw of the {n} and "
                f"of a new function exchangeable with them, {inside}"
            )
            unsaid = "about this calibration set alone, "
        else:
            said = (
                f"With confidence {words.percent(self.confidence)} in the draw of the {n}, for at "
                f"least {words.rest(self.delta)} of new functions drawn independently from the "
                f"same law {inside}"
            )
            unsaid = ""
        said += ", given that prediction and uncertainty were made without these functions"
        by_tail = self._by_tail(c.points, c.points_max)
        said += words.about_points(self.sampling, self.mixed, by_tail, c.points, c.points_max)
        if self.sampling == "grid":
            unsaid += "about other points than those functions are calibrated at, "
        return (
            f"{said}, whatever the law and however good the model; nothing is promised {unsaid}"
            "about which points are missed, about functions picked for their input, or about data "
            "of another kind."
        )

    def promise(self, calibration: Calibration) -> str:
        domain = DOMAIN["weighted" if calibration.weighted else self.sampling]
        part = f"covers ≥ {words.rest(self.alpha)} of {domain}"
        if self.confidence is None:
            return f"{part} with probability ≥ {words.rest(self.delta)}"
        return (
            f"{part} for ≥ {words.rest(self.delta)} of new functions, "
            f"confidence {words.percent(self.confidence)}"
        )

    def plan_sentence(self, plan: Plan) -> str:
        given = (
            f"{plan.functions} calibration functions of {plan.points} points each, "
            f"alpha = {float(self.alpha):g}, delta = {float(self.delta):g}, "
            f"sampling = '{self.sampling}'"
        )
        if self.confidence is not None:
            given += f", confidence = {float(self.confidence):g}"
        if self.misses is not None:
            given += f", misses = {self.misses}"
        if plan.ranks is not None and plan.ranks.point is not None:
            covered = (
                f"the band covers at least {words.rest(self.alpha)} of {DOMAIN[self.sampling]}"
            )
            promised = f"with probability at least {words.rest(self.delta)}, {covered}"
            if self.confidence is not None:
                promised = (
                    f"with confidence {words.percent(self.confidence)} in the draw of the "
                    f"calibration functions, {covered} for at least {words.rest(self.delta)} of "
                    "new functions"
                )
            return (
                f"Feasible with {given}: the score of a function is its "
                f"{words.ordinal(plan.ranks.point)} smallest ratio of {plan.points}, the scale the "
                f"{words.ordinal(plan.ranks.function)} smallest score of {plan.functions}; then, "
                f"{promised}."
            )
        remedies = []
        least = plan.smallest
        if least["functions"] is not None:
            remedies.append(f"at least {least['functions']} functions")
        if least["points"] is not None and self.sampling != "grid":
            remedies.append(f"at least {least['points']} points per function")
        for name in self.shares:
            if least[name]:
                remedies.append(f"{name} of at least {words.rounded_up(least[name] or 0.0)}")
        if self.sampling == "hoeffding":
            remedies.append("sampling = 'iid', whose exact tails need fewer points")
        instead = ", or ".join(remedies) if remedies else "no single change; change several at once"
        return f"Not feasible with {given}. What would be: {instead}."

    def check(self, calibration: Calibration) -> None:
        c, pair = calibration, calibration.ranks
        if c.weighted:
            checks.weights_design(self.sampling)
        by_tail = not c.weighted and self._by_tail(c.points, c.points_max)
        if pair is None or (pair.point is None and not by_tail) != c.weighted:
            raise ValueError(
                f"ranks = {pair} do not fit a calibration with weighted = {c.weighted}"
            )
        if checks.count("ranks.function", pair.function) > c.functions:
            raise ValueError(
                f"ranks.function = {pair.function} exceeds the {c.functions} functions of the "
                "calibration"
            )
        if pair.point is not None and checks.count("ranks.point", pair.point) > c.points:
            raise ValueError(f"ranks.point = {pair.point} does not fit {c.points} points")
        if by_tail:
            tail = common_tail(
                c.functions, self.request, self.misses or c.functions + 1 - pair.function
            )
            carried = tail is not None and pair == Ranks(tail.point_rank(c.points), tail.function)
        elif c.points == c.points_max and pair.point is not None:
            carried = admissible(pair, c.functions, c.points, self.request)
        else:
            least = function_rank(c.functions, self.request.delta, self.request.confidence)
            carried = least is not None and pair.function >= least
        if not carried:
            raise ValueError(f"{pair} do not carry the guarantee that the calibration claims")
