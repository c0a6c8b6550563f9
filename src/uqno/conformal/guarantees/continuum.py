"""The whole domain from values on a grid, where bounds say how much happens between its nodes.

Each node stands for a cell of the domain. Let the error in a cell exceed that at its node by at
most a, and the uncertainty fall below that at its node by at most b. Then every ratio in the cell
is at most

    r⁺ = (error + a) / (uncertainty − b)        ∞ where uncertainty ≤ b, unless error + a = 0

and the rule for a grid, given r⁺, promises for the continuum. With Lipschitz constants L of the
error and M of the uncertainty, and h the largest distance of a point from the node of its cell,
a = L h and b = M h.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from uqno.conformal import checks
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees import sentences
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    ScoreCollector,
    Solution,
)
from uqno.conformal.guarantees.fraction import Fraction
from uqno.conformal.planning import Plan, plan_for
from uqno.conformal.ranks import Ranks
from uqno.conformal.scores import Functions
from uqno.types import Integers, Reals, Share

if TYPE_CHECKING:
    from uqno.conformal.record import Calibration


@dataclass
class Widened(ScoreCollector):
    """Keeps what another collector keeps, of ratios that hold in whole cells."""

    inner: ScoreCollector = field(kw_only=True)
    error: float = 0.0
    uncertainty: float = 0.0

    def score(self, functions: Functions) -> Reals:
        return self.inner.score(functions.widened(self.error, self.uncertainty))


@dataclass(frozen=True)
class Continuum(Guarantee):
    """P[ at least 1 − α of the continuous domain of a new function lies in the band ] ≥ 1 − δ.

    Args:
        alpha, delta, confidence: as in `Fraction`.
        error_change: a ≥ 0, by how much the error within a cell may exceed that at its node, in the
            unit of the error; for a vector, of its norm.
        uncertainty_change: b ≥ 0, by how much the uncertainty may fall below that at its node.
        estimated: whether the two were estimated, as by `change_between_nodes`, and not proved; the
            sentence then says so.

    Nodes stand for cells of equal measure; else give the measures of the cells as weights, such as
    `uqno.data.samples.node_weights(shape, "area")` for a grid with nodes on its boundary.
    """

    alpha: Share
    delta: Share
    error_change: float
    uncertainty_change: float
    confidence: Share | None = None
    estimated: bool = False

    name: ClassVar[str] = "continuum"
    shares: ClassVar[tuple[str, ...]] = ("alpha", "delta")

    def __post_init__(self) -> None:
        for name in ("error_change", "uncertainty_change"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not isfinite(value) or value < 0:
                raise ValueError(
                    f"{name} = {value!r} must be a finite number ≥ 0: a Lipschitz constant times "
                    "the largest distance of a point from its node; or estimate it by "
                    "uqno.guarantees.change_between_nodes"
                )
        if not isinstance(self.estimated, bool):
            raise ValueError(f"estimated = {self.estimated!r} must be True or False")
        on_nodes = self.on_nodes  # refuses shares that are out of bounds
        for name in ("alpha", "delta", "confidence"):
            object.__setattr__(self, name, getattr(on_nodes, name))  # as they were written
        for name in ("error_change", "uncertainty_change"):
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def on_nodes(self) -> Fraction:
        """The rule on the grid that ratios of whole cells are given to."""
        return Fraction(self.alpha, self.delta, "grid", self.confidence)

    @property
    def settings(self) -> dict[str, Any]:
        on_nodes = self.on_nodes.settings
        own = ("error_change", "uncertainty_change", "estimated")
        shares = {name: on_nodes[name] for name in ("alpha", "delta", "confidence")}
        return {**shares, **{name: getattr(self, name) for name in own}}

    def feasible(self, functions: int, points: int) -> bool:
        return self.on_nodes.feasible(functions, points)

    def ranks_for(self, functions: int, points: int) -> Ranks | None:
        return self.on_nodes.ranks_for(functions, points)

    def collector(self, facts: Facts) -> Collector:
        n, least = facts.number, min(facts.sizes or (1,))
        if n is not None and self.ranks_for(checks.functions(n), least) is None:
            raise InfeasibleError(str(plan_for(self, n, least)))
        inner = self.on_nodes.collector(Facts(None, None, facts.weighted))
        assert isinstance(inner, ScoreCollector)
        return Widened(
            weighted=facts.weighted,
            inner=inner,
            error=self.error_change,
            uncertainty=self.uncertainty_change,
        )

    def solve(self, evidence: Evidence) -> Solution:
        n, least = len(evidence), int(evidence.sizes.min())
        pair = self.ranks_for(checks.functions(n), least)
        if pair is None:
            raise InfeasibleError(str(plan_for(self, n, least)))
        scale = float(np.partition(evidence.scores, pair.function - 1)[pair.function - 1])
        if not isfinite(scale):
            raise InfeasibleError(
                f"of more than {n - pair.function} of {n} functions the uncertainty is no larger "
                f"than uncertainty_change = {self.uncertainty_change:g} at more nodes than alpha "
                "allows: "
                "use a finer grid, on which less changes between nodes, or an uncertainty with a "
                "floor above that"
            )
        ranks = Ranks(None, pair.function) if evidence.weighted else pair
        return Solution(scale, evidence.scores, ranks)

    def scales(self, evidence: Evidence, splits: Integers) -> Reals:
        return self.on_nodes.scales(evidence, splits)

    def sentence(self, calibration: Calibration) -> str:
        bounds = (
            f", if within a cell the error is at most {self.error_change:g} above and the "
            f"uncertainty at most {self.uncertainty_change:g} below that at its node"
        )
        if self.estimated:
            bounds += " (both numbers were estimated, not proved)"
        return sentences.promise_of_share(
            self.alpha,
            self.delta,
            self.confidence,
            calibration.functions,
            calibration.scale,
            _domain(calibration),
            bounds,
        )

    def promise(self, calibration: Calibration) -> str:
        said = sentences.short_promise(
            self.alpha, self.delta, self.confidence, _domain(calibration)
        )
        return f"{said}, under {'estimated' if self.estimated else 'stated'} bounds between nodes"

    def plan_sentence(self, plan: Plan) -> str:
        return sentences.plan_of_share(self.alpha, self.delta, self.confidence, plan)

    def check(self, calibration: Calibration) -> None:
        self.on_nodes.check(calibration)


def _domain(calibration: Calibration) -> str:
    cells = "by the weights of its cells" if calibration.weighted else "cells of equal measure"
    return f"the continuous domain ({cells})"


def change_between_nodes(values: Any, factor: float = 1.0) -> tuple[float, Reals]:
    """How much functions on a regular grid seem to change within a cell: an estimate, no bound.

    Half the difference of neighbouring nodes, the largest along each axis, summed over the axes:
    what a function changes at most from a node to the corner of its cell, if it is nowhere steeper
    than between some two nodes.

    Args:
        values: errors or uncertainties of *training* functions, (functions, *points).
        factor: a safety factor, at least 1.

    Returns:
        The largest over the functions times the factor, and that of each function, (functions,).

    >>> change_between_nodes(np.array([[0.0, 1.0, 3.0], [0.0, 0.0, 0.5]]))
    (1.0, array([1.  , 0.25]))
    """
    v = np.asarray(checks.real("values", "the functions", values), dtype=np.float64)
    if v.ndim < 2 or 0 in v.shape:
        raise ValueError(
            f"values have shape {v.shape}, expected (functions, *points) on a regular grid"
        )
    checks.finite_error("the functions", v)
    if not factor >= 1:
        raise ValueError(f"factor = {factor!r} must be at least 1")
    each = np.zeros(len(v))
    for axis in range(1, v.ndim):
        if v.shape[axis] > 1:
            each += np.abs(np.diff(v, axis=axis)).reshape(len(v), -1).max(axis=1) / 2
    return float(each.max() * factor), each
