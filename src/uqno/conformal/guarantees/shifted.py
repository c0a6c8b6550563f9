"""Another guarantee for functions of another law than those of the calibration: weighted scores.

Inputs are calibrated under a law P and used under a law Q; what is true of an input is the same
under both (covariate shift). With w = dQ/dP, the likelihood ratio, at the n calibration inputs, and
w at the new one,

    λ̂(w) = the smallest λ with Σ w_i [s_i ≤ λ] ≥ (1 − δ) (Σ w_i + w):

the (1 − δ)-quantile of the scores by their weights, with the weight of the new function at +∞. It
rises with w, and is infinite where w is more than a share δ of all weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from uqno.conformal import checks, told, words
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    Solution,
    guarantee_of,
)
from uqno.conformal.scores import Functions
from uqno.conformal.selection import weighted_quantile
from uqno.types import Integers, Reals

if TYPE_CHECKING:
    from uqno.conformal.planning import Plan
    from uqno.conformal.record import Calibration

FIELD = "likelihood_ratio"
"""The field of a new function that holds its w."""
SAFE = 1 - 1e-9
"""Share of the largest w with a finite scale that is surely on its finite side."""


@dataclass(frozen=True)
class Shifted(Guarantee):
    """Another guarantee, for new functions whose inputs follow another law.

    Args:
        of: the guarantee: one with a score for each function and a δ, such as `Fraction` on a grid.
        ratios: dQ/dP at the inputs of the calibration functions, (n,), up to a common factor, or a
            callable that gives them once the functions were read; None for a calibration that is
            read from a file, which holds them.
        estimated: whether they were estimated. Then there is no promise at finite n.

    References:
        R. J. Tibshirani, R. Foygel Barber, E. J. Candès, A. Ramdas: Conformal Prediction Under
        Covariate Shift (2019).
    """

    of: Guarantee
    ratios: Any = field(default=None, compare=False, repr=False)
    estimated: bool = False

    name: ClassVar[str] = "shifted"

    def __post_init__(self) -> None:
        why = _unsupported(self.of)
        if why:
            raise ValueError(
                f"shift= does not go with {why}: use alpha and delta with sampling='grid'"
            )
        object.__setattr__(self, "shares", self.of.shares)
        if self.ratios is not None and not callable(self.ratios):
            object.__setattr__(self, "ratios", told.likelihood_ratios(self.ratios))

    @property
    def alpha(self) -> Any:
        """α of the other guarantee, if it has one."""
        return getattr(self.of, "alpha", None)

    @property
    def delta(self) -> Fraction:
        """δ of the other guarantee."""
        return Fraction(str(getattr(self.of, "delta", None)))

    @property
    def settings(self) -> dict[str, Any]:
        return {"of": self.of.name, "estimated": self.estimated, **self.of.settings}

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> Self:
        inner = {n: x for n, x in settings.items() if n not in ("of", "estimated")}
        estimated = settings.get("estimated")
        if not isinstance(estimated, bool):
            raise ValueError(f"estimated = {estimated!r} in the calibration must be true or false")
        return cls(guarantee_of({"name": settings.get("of"), **inner}), estimated=estimated)

    def with_share(self, name: str, value: float) -> Self:
        return replace(self, of=self.of.with_share(name, value))

    # --- the rule -------------------------------------------------------------------------------

    def feasible(self, functions: int, points: int) -> bool:
        return self.of.feasible(functions, points)

    def collector(self, facts: Facts) -> Collector:
        if self.ratios is None:
            raise ValueError(
                "the likelihood ratios are missing: give shift=, one number for each function"
            )
        # Without their number: whether so many suffice is for the weights to say.
        inner = self.of.collector(Facts(None, None, facts.weighted))
        return WithRatios(inner, self)

    def with_ratios(self, kept: Evidence) -> Evidence:
        """The scores that another guarantee keeps, (n,), each with its likelihood ratio, (n, 2)."""
        ratios = told.likelihood_ratios(self.ratios()) if callable(self.ratios) else self.ratios
        checks.same_number(**{"likelihood ratios": len(ratios), "functions": len(kept)})
        both = np.stack([kept.scores, ratios], axis=1)
        return Evidence(kept.sizes, both, kept.weighted)

    def solve(self, evidence: Evidence) -> Solution:
        checks.functions(len(evidence))
        scores, w = evidence.scores[:, 0], evidence.scores[:, 1]
        least, most = float(w[w > 0].min(initial=inf)), float(w.max())
        limit = self._limit(scores, w)
        up_to = min(most, limit * SAFE)
        if not least <= up_to:
            raise InfeasibleError(
                f"the {len(evidence)} calibration functions carry no finite scale under this "
                f"shift: a new function may weigh at most {max(limit, 0):.3g}, the least of "
                f"theirs is {least:.3g}; their effective number is {effective_number(w):.3g}. Add "
                "functions like those of the new law, or raise delta"
            )
        details = {
            "ratios": w[np.argsort(scores, kind="stable")],
            "up_to": np.array([up_to]),
            "limit": np.array([limit]),
        }
        return Solution(self._quantile(scores, w, up_to), scores, details=details)

    def _limit(self, scores: Reals, w: Reals) -> float:
        """The largest w of a new function for which λ̂ is finite; below 0 where there is none."""
        finite = float(w[np.isfinite(scores)].sum())
        return finite / float(1 - self.delta) - float(w.sum())

    def _quantile(self, scores: Reals, w: Reals, new: float) -> float:
        return weighted_quantile(np.append(scores, inf), np.append(w, new), 1 - self.delta)

    def scale_for(self, calibration: Calibration, function: Mapping[str, Any]) -> float:
        if FIELD not in function:
            raise ValueError(
                "the scale depends on the likelihood ratio of the new function, which has no "
                f"field {FIELD}: give it, with predict(a, {FIELD}=…) or in the sample"
            )
        new = told.likelihood_ratio(function[FIELD])
        if calibration.scores is None:
            raise ValueError("the calibration was stored without its scores: calibrate again")
        return self._quantile(calibration.scores, calibration.details["ratios"], new)

    # --- words and files --------------------------------------------------------------------------

    def sentence(self, calibration: Calibration) -> str:
        c = calibration
        known = "estimated" if self.estimated else "known"
        up_to = words.rounded_down(c.details["up_to"][0])
        limit = words.rounded_up(c.details["limit"][0], 6)
        said = (
            f"For a new function of another law, by {known} likelihood ratios: the band of λ̂(w) × "
            f"uncertainty, w the ratio of the new function, {self.of.promise(c)}, over the draw of "
            f"the n = {c.functions} calibration functions (effective number "
            f"{effective_number(c.details['ratios']):.3g}) and of the new one, all independent, "
            "given that the laws differ in the inputs alone, that the new law has no input that "
            "is impossible under the old one, and that prediction, uncertainty and ratios were "
            "made without these functions. λ̂(w) rises with w: it is at most "
            f"{words.rounded_up(c.scale, 6)} up to w = {up_to} and infinite beyond {limit}, where "
            "no finite scale carries the promise."
        )
        if self.estimated:
            said += (
                " As the ratios are estimated, this would hold were they true; for a finite number "
                "of functions nothing is promised."
            )
        return said

    def promise(self, calibration: Calibration) -> str:
        said = f"{self.of.promise(calibration)}, under a shift of the inputs"
        return f"{said} that is estimated: no finite-sample promise" if self.estimated else said

    def plan_sentence(self, plan: Plan) -> str:
        return f"For equal likelihood ratios: {self.of.plan_sentence(plan)}"

    def check(self, calibration: Calibration) -> None:
        c, details = calibration, calibration.details
        shapes = {name: np.shape(x) for name, x in details.items()}
        expected = {"ratios": (c.functions,), "up_to": (1,), "limit": (1,)}
        if shapes != expected:
            raise ValueError(
                f"details of a shifted calibration have shapes {shapes}, expected {expected}"
            )
        w = told.likelihood_ratios(details["ratios"])
        if c.scores is None:
            return
        if c.scale < self._quantile(c.scores, w, float(details["up_to"][0])):
            raise ValueError(f"scale = {c.scale} is less than its scores and ratios carry")


class WithRatios(Collector):
    """What another guarantee keeps, with the likelihood ratio beside each score."""

    def __init__(self, inner: Collector, rule: Shifted) -> None:
        self.inner, self.rule = inner, rule

    def ranks(self, points: int) -> Integers | None:
        return self.inner.ranks(points)

    def add(self, functions: Functions) -> None:
        self.inner.add(functions)

    def evidence(self) -> Evidence:
        return self.rule.with_ratios(self.inner.evidence())


def effective_number(ratios: Reals) -> float:
    """(Σ w)² / Σ w²: how many functions of equal weight these are worth.

    >>> effective_number(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    largest = ratios / ratios.max()
    return float(largest.sum() ** 2 / (largest**2).sum())


def _unsupported(rule: Guarantee) -> str:
    """Why a guarantee cannot be weighted; empty if it can."""
    if getattr(rule, "delta", None) is None:
        return f"guarantee {rule.name!r}, which has no delta"
    if isinstance(rule, Shifted):
        return "a guarantee that is shifted already"
    if rule.needs_independent_points:
        return "points drawn at random, for which no weighted rule is proved here"
    if getattr(rule, "confidence", None) is not None:
        return "confidence, as the weighted rule averages over calibration sets"
    if getattr(rule, "ranks", None) is not None:
        return "ranks, which weights replace"
    return ""
