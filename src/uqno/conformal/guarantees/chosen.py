"""(α, δ) chosen after looking: a promise that holds for all choices at once.

With confidence 1 − γ in the draw of the calibration functions, the scale of every pair (α, δ) that
a reader may choose carries it. Over δ by bounds on all order statistics at once, exactly; over α
by the same bounds on one score for all levels (`Curve`), or with γ divided among listed levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from uqno.conformal import checks, words
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees import settings as ask
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    ScoreCollector,
    Solution,
    share_in_json,
)
from uqno.conformal.guarantees.curve import ROUNDED, CurveScore
from uqno.conformal.guarantees.shape import Shape, point_ranks
from uqno.conformal.planning import Plan, plan_for, require
from uqno.conformal.ranks import Ranks
from uqno.conformal.scores import Functions
from uqno.conformal.simultaneous import feasible_at_once, simultaneous_rank
from uqno.types import Integers, Reals, Sampling, Share

if TYPE_CHECKING:
    from uqno.conformal.record import Calibration

WHY_GRID = "at random points the best point rank depends on the choice"


@dataclass
class ListedScores(ScoreCollector):
    """The least λ that covers 1 − α, at each listed level: (functions, levels)."""

    alphas: tuple[Fraction, ...] = ()

    def ranks(self, points: int) -> Integers | None:
        return None if self.weighted else point_ranks(points, self.alphas)

    def score(self, functions: Functions) -> Reals:
        if self.weighted:
            return functions.weighted_scores([1 - x for x in self.alphas])
        ranks = point_ranks(functions.points, self.alphas)
        if len(ranks) == 1:
            return functions.scores(int(ranks[0]))[:, np.newaxis]
        return functions.scores(ranks)


@dataclass(frozen=True)
class Chosen(Guarantee):
    """With confidence, for all choices at once at least 1 − δ of new functions have 1 − α inside.

    Args:
        alpha, delta: the choice that is shown first; `calibration.at(alpha=…, delta=…)` shows any
            other.
        confidence: 1 − γ, the probability over the draw of the calibration functions that the
            promise holds for all choices.
        alphas: the levels α to choose from, `alpha` among them; by default `alpha` alone, and the
            choice is over δ. They share γ.
        shape: instead, a `Shape` as in `Curve`, or "half-normal": then α is any, at the one γ.
        sampling: "grid".

    The calibration functions, and new ones, must be independent draws from one law.
    """

    alpha: Share = 0.1
    delta: Share = 0.02
    confidence: Share = 0.9
    alphas: Any = None
    shape: Any = None
    sampling: Sampling = "grid"

    name: ClassVar[str] = "chosen"
    shares: ClassVar[tuple[str, ...]] = ("delta",)

    def __post_init__(self) -> None:
        exact: dict[str, Any] = {
            name: checks.share(name, getattr(self, name))
            for name in ("alpha", "delta", "confidence")
        }
        exact["sampling"] = ask.grid_only(self.name, self.sampling, WHY_GRID)
        if self.shape is not None:
            ask.no_alphas_beside_shape(self.alphas)
            shape = Shape.given(None if self.shape == "half-normal" else self.shape)
            exact["shape"], exact["alphas"] = shape, None
            shape.at(self.alpha)
        else:
            listed = (self.alpha,) if self.alphas is None else tuple(self.alphas)
            exact["alphas"] = tuple(sorted({checks.share("one of alphas", x) for x in listed}))
            ask.among("alpha", exact["alpha"], exact["alphas"])
        for name, value in exact.items():
            object.__setattr__(self, name, value)  # frozen for everyone else

    @property
    def settings(self) -> dict[str, Any]:
        names = ("alpha", "delta", "confidence")
        settings = {name: share_in_json(Fraction(getattr(self, name))) for name in names}
        alphas = None if self.alphas is None else [share_in_json(x) for x in self.alphas]
        shape = None if self.shape is None else self.shape.settings
        if self.shape == Shape.half_normal():
            shape = "half-normal"
        return {**settings, "alphas": alphas, "shape": shape, "sampling": self.sampling}

    # --- the rule -------------------------------------------------------------------------------

    @property
    def miss(self) -> Fraction:
        """γ, or the part of it that each listed level has."""
        return (1 - Fraction(self.confidence)) / (1 if self.alphas is None else len(self.alphas))

    @property
    def factor(self) -> float:
        """λ̂ is so much of the j-th smallest score."""
        return 1.0 if self.shape is None else self.shape.at(self.alpha) * ROUNDED

    def feasible(self, functions: int, points: int) -> bool:
        return feasible_at_once(functions, Fraction(self.delta), self.miss)

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        j = simultaneous_rank(functions, Fraction(self.delta), self.miss)
        return None if j is None else Ranks(None, j)

    def collector(self, facts: Facts) -> Collector:
        if facts.number is not None and facts.sizes:
            require(self, facts.number, min(facts.sizes))
        if self.shape is not None:
            return CurveScore(weighted=facts.weighted, curve=self.shape)
        return ListedScores(weighted=facts.weighted, alphas=self.alphas)

    def solve(self, evidence: Evidence) -> Solution:
        n = checks.functions(len(evidence))
        require(self, n, int(evidence.sizes.min()))
        scores = np.sort(evidence.scores.reshape(n, -1), axis=0).T  # a row for each level
        scale, ranks = self._scale(scores)
        return Solution(scale, scores[self._row], ranks, {"scores": scores})

    def _scale(self, scores: Reals) -> tuple[float, Ranks]:
        """λ̂ at the present choice, from sorted scores, (levels, n)."""
        n = scores.shape[1]
        ranks = self.ranks_for(n, 1)
        if ranks is None:
            raise InfeasibleError(str(plan_for(self, n, 1)))
        scale = float(scores[self._row, ranks.function - 1])
        if np.isinf(scale):
            raise InfeasibleError(
                f"the score at rank {ranks.function} of {n} is infinite: some functions have zero "
                "uncertainty where the error is not zero; choose a larger delta or alpha, or give "
                "the uncertainty a positive floor"
            )
        return scale * self.factor, ranks

    @property
    def _row(self) -> int:
        """Which scores belong to the present α."""
        return 0 if self.alphas is None else self.alphas.index(self.alpha)

    def at(self, calibration: Calibration, **levels: Share) -> Calibration:
        ask.only_levels(self.name, levels, ("alpha", "delta"))
        rule = self.of_settings({**self.settings, **levels})
        scores = calibration.details["scores"]
        scale, ranks = rule._scale(scores)
        return replace(calibration, rule=rule, scale=scale, ranks=ranks, scores=scores[rule._row])

    # --- words ----------------------------------------------------------------------------------

    def _choices(self) -> str:
        """What a reader may choose, and when."""
        if self.shape is not None:
            smallest = words.percent(self.shape.levels[0])
            return f"for every delta and every alpha from {smallest} on at once"
        if len(self.alphas) == 1:
            return f"for every delta at once, at alpha = {words.percent(self.alpha)}"
        listed = ", ".join(words.percent(x) for x in self.alphas)
        return f"for every delta and every alpha among {listed} at once"

    def sentence(self, calibration: Calibration) -> str:
        c = calibration
        finely = words.about_points("grid", "own", False, c.points, c.points_max)
        return (
            f"With confidence {words.percent(self.confidence)} in the draw of the n = "
            f"{c.functions} calibration functions, {self._choices()}, also if they are chosen "
            "after the results were seen, at least 1 − delta of the new functions drawn "
            "independently from the same law have at least 1 − alpha of "
            f"{words.domain('grid', c.weighted)} in the band of that choice: with alpha = "
            f"{words.percent(self.alpha)} and delta = {words.percent(self.delta)}, the band of "
            f"{words.rounded_up(c.scale, 6)} × uncertainty around the prediction, given that the "
            "calibration functions are independent draws from one law and that prediction and "
            f"uncertainty were made without them{finely}; nothing is promised about methods or "
            "models that were chosen by these results, about other points than those functions "
            "are calibrated at, about which points are missed, about functions picked for their "
            "input, or about data of another kind."
        )

    def promise(self, calibration: Calibration) -> str:
        domain = words.domain("grid", calibration.weighted)
        return (
            f"covers ≥ {words.rest(self.alpha)} of {domain} for ≥ {words.rest(self.delta)} of new "
            f"functions, {self._choices()}, confidence {words.percent(self.confidence)}"
        )

    def plan_sentence(self, plan: Plan) -> str:
        given = (
            f"alpha = {float(self.alpha):g} and delta = {float(self.delta):g} chosen after "
            f"looking, confidence = {float(self.confidence):g}"
        )
        done = ""
        if plan.ranks is not None:
            rank = words.ordinal(plan.ranks.function)
            done = (
                f"the scale is from the {rank} smallest score of {plan.functions}; then, with "
                f"confidence {words.percent(self.confidence)} in the draw of the calibration "
                f"functions, {self._choices()}, the band of the choice covers 1 − alpha for 1 − "
                "delta of new functions"
            )
        return words.plan(plan, given, done)

    def check(self, calibration: Calibration) -> None:
        c = calibration
        levels = 1 if self.alphas is None else len(self.alphas)
        scores = c.details.get("scores")
        if scores is None or scores.shape != (levels, c.functions):
            raise ValueError(
                f"details of the calibration must hold scores of shape {(levels, c.functions)}"
            )
        for row in scores:
            checks.sorted_scores(row, c.functions)
        scale, ranks = self._scale(scores)
        if c.scale < scale or c.ranks != ranks:
            raise ValueError(
                f"scale = {c.scale!r} by {c.ranks} is not what the scores of the calibration give, "
                f"{scale!r} by {ranks}"
            )
