"""The paper's guarantee: P[ at least 1 − α of a new function lies in the band ] ≥ 1 − δ.

The score of a function is its k-th smallest ratio, λ̂ the j-th smallest of the n scores; `ranks`
says which pairs (k, j) carry the guarantee, in each of three ways of observing functions:

    grid       the points are the domain, and are measured by weights where there are any
    iid        the points are independent draws from the domain
    hoeffding  the same by the paper's own, looser rule, its ranks corrected
"""

from __future__ import annotations

import fractions
from dataclasses import dataclass
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
    CommonCandidate,
    FixedRank,
    GridRank,
    HoeffdingRank,
    Subsample,
    WeightedShare,
    chosen_column,
    iid_choice,
)
from uqno.conformal.planning import Plan, plan_for
from uqno.conformal.ranks import (
    Ranks,
    Request,
    admissible,
    best_function_rank,
    default_ranks,
    feasible,
    function_rank,
)
from uqno.types import Integers, Mixed, Reals, Sampling, Share

if TYPE_CHECKING:
    from uqno.conformal.calibration import Calibration

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

    name: ClassVar[str] = "fraction"
    shares: ClassVar[tuple[str, ...]] = ("alpha", "delta")

    def __post_init__(self) -> None:
        exact: dict[str, Any] = {n: checks.share(n, getattr(self, n)) for n in self.shares}
        if self.confidence is not None:
            exact["confidence"] = checks.share("confidence", self.confidence)
        exact["sampling"] = checks.sampling(self.sampling)
        exact["mixed"] = checks.mixed(self.mixed, exact["sampling"])
        exact["seed"] = checks.count("seed", self.seed, least=0)
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
        pair = self.ranks
        settings["ranks"] = (
            None if pair is None else {"point": pair.point, "function": pair.function}
        )
        return settings

    # --- the rule -------------------------------------------------------------------------------

    def feasible(self, functions: int, points: int) -> bool:
        return feasible(functions, points, self.request)

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        return default_ranks(functions, points, self.request)

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
        pair, candidate = self._iid_choice(sizes)
        if candidate is None:
            return FixedRank(point=pair.point)
        return CommonCandidate(request.alpha, candidate)

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
        least = int(sizes.min())
        if self.ranks is not None:
            return self._own_pair(n, least, int(sizes.max())), scores
        if self.sampling != "iid":
            return self._pair(n, least), scores
        pair, candidate = self._iid_choice(sizes.tolist())
        if scores.ndim == 1:
            return pair, scores
        return chosen_column(self.request, sizes, scores, pair, candidate)

    def _pair(self, n: int, m: int) -> Ranks:
        """The default pair, or an error that says what would be feasible."""
        pair = default_ranks(n, m, self.request)
        return pair if pair is not None else self._refuse(n, m)

    def _iid_choice(self, sizes: Any) -> tuple[Ranks, int | None]:
        pair, candidate = iid_choice(self.request, sizes)
        return (pair if pair is not None else self._refuse(len(sizes), min(sizes))), candidate

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

    def _refuse(self, n: int, m: int) -> Ranks:
        plan = plan_for(self, n, m)
        if plan.feasible:  # on a boundary that a single number of points can use and several cannot
            raise InfeasibleError(
                f"not feasible with {n} functions of different numbers of points, {m} and more; "
                "mixed='subsample' is"
            )
        raise InfeasibleError(str(plan))

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
        if self.sampling != "grid":
            said += ", that each function's points are independent draws from the domain"
        if c.points != c.points_max and self.mixed == "own":
            said += ", that how finely a function is observed is part of its draw"
            if self.sampling != "grid":
                said += f" and a new one is observed at no fewer than {c.points} points"
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
        if pair is None or (pair.point is None) != c.weighted:
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
        if c.points == c.points_max and pair.point is not None:
            carried = admissible(pair, c.functions, c.points, self.request)
        else:
            least = function_rank(c.functions, self.request.delta, self.request.confidence)
            carried = least is not None and pair.function >= least
        if not carried:
            raise ValueError(f"{pair} do not carry the guarantee that the calibration claims")
