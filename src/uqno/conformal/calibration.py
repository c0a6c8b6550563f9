"""Errors and uncertainties of calibration functions, and a guarantee → λ̂ that carries it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from uqno.conformal import checks
from uqno.conformal.circumstances import Circumstances
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    require_guarantee,
)
from uqno.conformal.guarantees.fraction import Fraction
from uqno.conformal.planning import Plan, plan_for
from uqno.conformal.profile import ByArea, Profile
from uqno.conformal.ranks import Ranks
from uqno.conformal.record import Calibration
from uqno.conformal.repeats import Repeats, choice
from uqno.conformal.scores import Block, Functions, blocks
from uqno.conformal.stream import FunctionStream, Stream
from uqno.types import Integers, Reals, Share

# --- the two questions: can it be done, and do it ------------------------------------------------


def plan(
    alpha: Share | None = None,
    delta: Share | None = None,
    functions: int = 0,
    points: int = 1,
    sampling: str = "grid",
    confidence: Share | None = None,
    *,
    guarantee: Guarantee | None = None,
) -> Plan:
    """Whether n = `functions` of m = `points` can carry a guarantee, and if not, what would.

    Args:
        alpha, delta, sampling, confidence: of the paper's guarantee, `guarantees.Fraction`.
        functions: n; points: m.
        guarantee: another one, instead of these.

    >>> plan(alpha=0.1, delta=0.02, functions=500, points=1849, sampling="iid").ranks
    Ranks(point=1681, function=492)
    >>> plan(alpha=0.1, delta=0.02, functions=40, points=1849).smallest["functions"]
    49
    """
    asked = _asked(guarantee, alpha, delta, sampling=sampling, confidence=confidence)
    return plan_for(asked, functions, points)


def calibrate(
    error: Any,
    uncertainty: Any = None,
    alpha: Share | None = None,
    delta: Share | None = None,
    sampling: str = "grid",
    weights: Any = None,
    confidence: Share | None = None,
    *,
    guarantee: Guarantee | None = None,
    ranks: Ranks | None = None,
    mixed: str = "own",
    misses: int | None = None,
    seed: int = 0,
    repeated: str = "refuse",
) -> Calibration:
    """λ̂ such that P[ at least 1 − α of a new function lies in the band ] ≥ 1 − δ.

    Args:
        error: ‖u − Ĝ(a)‖ or the signed difference, (n, *points), or vectors (n, *points, d); or
            an iterable with one array for each function: different lengths, streamed, only scores
            are kept. Or, without `uncertainty`, a `FunctionStream` of (error, uncertainty,
            weights), or a `Profile` of functions.
        uncertainty: E(a) ≥ 0, (n, *points), or an iterable alike.
        alpha, delta, sampling, confidence, ranks, mixed, misses, seed: of the paper's guarantee,
            see `guarantees.Fraction`.
        weights: μ, (*points) or one set for each function; with sampling="grid".
        guarantee: another guarantee, instead of alpha, delta and so on.
        repeated: "refuse" functions that are equal to another, point by point, in at least 32
            different values; or "allow" them, if each was drawn anew: the guarantee then tells.

    Returns:
        The calibration: λ̂ in `scale`, and the guarantee in words.

    Raises:
        InfeasibleError: no finite λ̂ carries the guarantee; the message says what would.
        ValueError: an argument is out of bounds; the message says which, and the remedy.

    >>> rng = np.random.default_rng(0)
    >>> cal = calibrate(rng.normal(size=(200, 50)), np.ones((200, 50)), alpha=0.1, delta=0.05)
    >>> cal.ranks, round(cal.scale, 3)
    (Ranks(point=45, function=191), 1.937)
    """
    more = {"sampling": sampling, "confidence": confidence, "ranks": ranks, "mixed": mixed}
    asked = _asked(guarantee, alpha, delta, misses=misses, seed=seed, **more)
    (cal,) = calibrate_all(error, uncertainty, [asked], weights, repeated=repeated)
    return cal


def calibrate_all(
    error: Any,
    uncertainty: Any,
    guarantees: Iterable[Guarantee],
    weights: Any = None,
    *,
    repeated: str = "refuse",
) -> tuple[Calibration, ...]:
    """`calibrate` for several guarantees in one pass over the functions.

    Args:
        error, uncertainty, weights, repeated: as in `calibrate`.
        guarantees: at least one.
    """
    asked = tuple(checks.elements("guarantees", guarantees, "a sequence of guarantees"))
    checks.some_guarantees(asked)
    for rule in asked:
        require_guarantee(rule)
    refused = choice(repeated) == "refuse"
    source = _Source(error, uncertainty, weights)
    repeats = Repeats(source.stream)
    collectors = _collected(source, [rule.collector(source.facts) for rule in asked], repeats)
    if refused:
        repeats.refuse()
    told = Circumstances(None if refused else len(repeats.found()))
    return tuple(
        _calibration(rule, collector.evidence(), told)
        for rule, collector in zip(asked, collectors, strict=True)
    )


def calibrate_splits(
    error: Any, uncertainty: Any, guarantee: Guarantee, splits: Any, weights: Any = None
) -> Reals:
    """λ̂ of each of many calibration sets drawn from the same functions, (sets,).

    Every function is scored once, whatever the number of sets.

    Args:
        error, uncertainty, weights: as in `calibrate`.
        guarantee: one for all sets.
        splits: (sets, n) indices of the functions of each set.

    Returns:
        The scales; ∞ where no finite one carries the guarantee.
    """
    index = checks.calibration_sets(splits)
    source = _Source(error, uncertainty, weights)
    sizes = source.facts.sizes
    alike = sizes is not None and len(set(sizes)) == 1
    facts = Facts(
        index.shape[1], sizes[: index.shape[1]] if sizes and alike else None, source.weighted
    )
    (collector,) = _collected(source, [guarantee.collector(facts)])
    evidence = collector.evidence()
    checks.indices_of("splits", index, len(evidence))
    return guarantee.scales(evidence, index)


def _asked(guarantee: Guarantee | None, alpha: Any, delta: Any, **more: Any) -> Guarantee:
    """The guarantee itself, or the paper's with these levels."""
    if guarantee is None:
        missing = [n for n, x in (("alpha", alpha), ("delta", delta)) if x is None]
        if missing:
            raise ValueError(
                f"{' and '.join(missing)} must be given, such as alpha=0.1, delta=0.02; or a "
                "guarantee= of another kind"
            )
        return Fraction(alpha, delta, **more)
    if alpha is not None or delta is not None:
        raise ValueError("give either alpha and delta or guarantee=, which has its own levels")
    require_guarantee(guarantee)
    return guarantee


class _Source:
    """Calibration functions, whatever they come in."""

    def __init__(self, error: Any, uncertainty: Any, weights: Any) -> None:
        self.stream: Profile | ByArea | FunctionStream | Stream
        if isinstance(error, Profile | ByArea | FunctionStream):
            checks.nothing_beside_stream(uncertainty, weights)
            self.stream = error
        else:
            checks.uncertainty_given(uncertainty)
            self.stream = Stream(error, uncertainty, weights)

    @property
    def weighted(self) -> bool:
        return self.stream.weighted

    @property
    def facts(self) -> Facts:
        if isinstance(self.stream, Profile | ByArea):
            n = len(self.stream)
            facts = Facts(n, (self.stream.points,) * n, self.stream.weighted)
        else:
            facts = Facts(self.stream.number, self.stream.sizes, self.stream.weighted)
        if facts.number is not None:
            checks.functions(facts.number)
        return facts

    def blocks(self) -> Iterator[Functions]:
        if isinstance(self.stream, Profile | ByArea):
            return iter([self.stream])
        return iter(blocks(self.stream))


def _collected(
    source: _Source, collectors: Sequence[Collector], repeats: Repeats | None = None
) -> Sequence[Collector]:
    """Show every function to every collector, once, and to what looks for repeats."""
    several = len(collectors) > 1
    for functions in source.blocks():
        wanted = [c.ranks(functions.points) for c in collectors] if several else []
        ranks: list[Integers] = [k for k in wanted if k is not None]
        if ranks:
            functions.expect(np.unique(np.concatenate(ranks)))
        for collector in collectors:
            collector.add(functions)
        if repeats is not None and isinstance(functions, Block):
            repeats.see(functions.chunk)
    return collectors


def _calibration(rule: Guarantee, evidence: Evidence, told: Circumstances) -> Calibration:
    checks.functions(len(evidence))
    solution = rule.solve(evidence)
    return Calibration(
        scale=solution.scale,
        rule=rule,
        functions=len(evidence),
        points=int(evidence.sizes.min()),
        points_max=int(evidence.sizes.max()),
        ranks=solution.ranks,
        weighted=evidence.weighted,
        scores=np.sort(solution.scores),
        details=solution.details,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        circumstances=told,
    )
