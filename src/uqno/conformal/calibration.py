"""Errors and uncertainties of calibration functions, and a guarantee → λ̂ that carries it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from uqno.conformal import checks
from uqno.conformal.guarantees.contract import (
    Collector,
    Evidence,
    Facts,
    Guarantee,
    guarantee_of,
    require_guarantee,
)
from uqno.conformal.guarantees.fraction import Fraction
from uqno.conformal.planning import Plan, plan_for
from uqno.conformal.profile import ByArea, Profile
from uqno.conformal.ranks import Ranks
from uqno.conformal.scores import Functions, blocks, coverage
from uqno.conformal.stream import FunctionStream, Stream
from uqno.types import Integers, Reals, Share

FORMAT: Final = "uqno.calibration"
VERSION: Final = 2
# More scores than this are kept beside the JSON, not in it.
MOST_SCORES_IN_JSON: Final = 10_000


@dataclass(frozen=True)
class Calibration:
    """λ̂ with all that its guarantee says. Two are equal when they promise the same."""

    scale: float
    """λ̂: the radius of the band is scale · uncertainty."""
    rule: Guarantee
    """The guarantee that the scale carries."""
    functions: int
    """n, the number of calibration functions."""
    points: int
    """m, the points of a function; the smallest number where they differ."""
    points_max: int
    """The largest number of points."""
    ranks: Ranks | None = None
    """(k, j), for guarantees with such a pair; k belongs to the smallest number of points."""
    weighted: bool = False
    """Whether points count by weights."""
    scores: Reals | None = field(default=None, compare=False, repr=False)
    """The scores of the calibration functions, sorted, (n,); None where they were not kept."""
    details: Mapping[str, Reals] = field(default_factory=dict, compare=False, repr=False)
    """Arrays that the guarantee needs beside the scale; their names and shapes are its own."""
    created: str = field(default="", compare=False)
    """When it was made, in UTC."""
    model: str = field(default="", compare=False)
    """The digest of the model whose functions these were; empty for arrays."""

    @property
    def guarantee(self) -> str:
        """What is promised and what is not, to quote."""
        return self.rule.sentence(self)

    @property
    def promise(self) -> str:
        """The guarantee in one line."""
        return self.rule.promise(self)

    @property
    def levels(self) -> dict[str, Any]:
        """What was asked for, by name: alpha, delta, sampling, …; without what was left out."""
        return {name: x for name, x in self.rule.settings.items() if x is not None}

    @property
    def alpha(self) -> float | None:
        """α as a number; None for a guarantee without it."""
        return self._share("alpha")

    @property
    def delta(self) -> float | None:
        """δ as a number; None for a guarantee without it."""
        return self._share("delta")

    def _share(self, name: str) -> float | None:
        value = getattr(self.rule, name, None)
        return None if value is None else float(value)

    def scale_for(self, function: Mapping[str, Any]) -> float:
        """λ̂ for a new function, given its fields; the same for all unless the rule says so."""
        return self.rule.scale_for(self, function)

    def coverage(self, error: Any, uncertainty: Any, weights: Any = None) -> Reals:
        """The covered share of each function, (n,): where ‖error‖ / uncertainty ≤ λ̂."""
        return coverage(error, uncertainty, self.scale, weights)

    def to_json(self, scores: bool = True) -> str:
        """The calibration as text, which `from_json` reads.

        Args:
            scores: whether to include the scores; more than 10 000 are never included.
        """
        listed = None
        if scores and self.scores is not None and len(self.scores) <= MOST_SCORES_IN_JSON:
            listed = [None if np.isinf(s) else float(s) for s in self.scores]
        pair = self.ranks
        content = {
            "format": FORMAT,
            "version": VERSION,
            "scale": self.scale,
            "guarantee": {"name": self.rule.name, **self.rule.settings},
            "ranks": None if pair is None else {"point": pair.point, "function": pair.function},
            "functions": self.functions,
            "points": self.points,
            "points_max": self.points_max,
            "weighted": self.weighted,
            "created": self.created,
            "scores": listed,
            "details": {name: x.tolist() for name, x in self.details.items()},
        }
        if self.model:
            content["model"] = self.model
        return json.dumps(content, indent=2)

    @classmethod
    def from_json(cls, text: str, scores: Reals | None = None) -> Calibration:
        """The calibration that `to_json` wrote; anything else is refused by name.

        Args:
            text: the JSON.
            scores: the scores, where they lie beside the JSON.
        """
        return _checked_content(_parsed(text), scores)


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
    (cal,) = calibrate_all(error, uncertainty, [asked], weights)
    return cal


def calibrate_all(
    error: Any, uncertainty: Any, guarantees: Iterable[Guarantee], weights: Any = None
) -> tuple[Calibration, ...]:
    """`calibrate` for several guarantees in one pass over the functions.

    Args:
        error, uncertainty, weights: as in `calibrate`.
        guarantees: at least one.
    """
    asked = tuple(checks.elements("guarantees", guarantees, "a sequence of guarantees"))
    checks.some_guarantees(asked)
    for rule in asked:
        require_guarantee(rule)
    source = _Source(error, uncertainty, weights)
    collectors = _collected(source, [rule.collector(source.facts) for rule in asked])
    return tuple(
        _calibration(rule, collector.evidence())
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


def _collected(source: _Source, collectors: Sequence[Collector]) -> Sequence[Collector]:
    """Show every function to every collector, once."""
    several = len(collectors) > 1
    for functions in source.blocks():
        wanted = [c.ranks(functions.points) for c in collectors] if several else []
        ranks: list[Integers] = [k for k in wanted if k is not None]
        if ranks:
            functions.expect(np.unique(np.concatenate(ranks)))
        for collector in collectors:
            collector.add(functions)
    return collectors


def _calibration(rule: Guarantee, evidence: Evidence) -> Calibration:
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
    )


# --- files ---------------------------------------------------------------------------------------

_FIELDS: Final = {
    "scale", "guarantee", "ranks", "functions", "points", "points_max", "weighted", "created",
    "scores", "details", "model",
}  # fmt: skip


def _parsed(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text, parse_constant=lambda name: None)
    except (ValueError, TypeError, RecursionError) as why:
        raise ValueError(f"not a calibration: the text is not JSON ({why})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"not a calibration: expected JSON with format = {FORMAT!r}")
    version = content.get("version")
    if version != VERSION or isinstance(version, bool):
        raise ValueError(
            f"the calibration has format version {version!r}, this uqno reads {VERSION}: "
            "use the uqno that wrote it, or a newer one"
        )
    fields = {name: value for name, value in content.items() if name not in ("format", "version")}
    fields.setdefault("model", "")
    if set(fields) != _FIELDS:
        missing, unknown = sorted(_FIELDS - set(fields)), sorted(set(fields) - _FIELDS)
        raise ValueError(f"not a whole calibration: missing {missing}, unknown {unknown}")
    return fields


def _checked_content(content: dict[str, Any], scores: Reals | None) -> Calibration:
    """Files may come from anywhere: each field is checked as if a caller had passed it."""
    scale, ranks, guarantee = content["scale"], content["ranks"], content["guarantee"]
    number = isinstance(scale, int | float) and not isinstance(scale, bool)
    if not number or not 0 <= scale <= 1e300:
        raise ValueError(f"scale = {scale!r} in the calibration must be a finite number ≥ 0")
    if not isinstance(content["created"], str) or not isinstance(content["weighted"], bool):
        raise ValueError("created must be text and weighted true or false in the calibration")
    if not isinstance(content["model"], str):
        raise ValueError(f"model = {content['model']!r:.60} in the calibration must be text")
    if ranks is not None and (not isinstance(ranks, dict) or set(ranks) != {"point", "function"}):
        raise ValueError(f"ranks = {ranks!r} in the calibration must hold point and function")
    if not isinstance(guarantee, dict):
        raise ValueError(f"guarantee = {guarantee!r:.60} in the calibration must be an object")
    n = checks.count("functions", content["functions"], least=2)
    m = checks.count("points", content["points"])
    listed = content["scores"] if scores is None else scores
    calibration = Calibration(
        scale=float(scale),
        rule=guarantee_of(guarantee),
        functions=n,
        points=m,
        points_max=checks.count("points_max", content["points_max"], least=m),
        ranks=None if ranks is None else Ranks(ranks["point"], ranks["function"]),
        weighted=content["weighted"],
        scores=None if listed is None else checks.sorted_scores(listed, n),
        details=checks.named_arrays(content["details"]),
        created=content["created"],
        model=content["model"],
    )
    calibration.rule.check(calibration)
    return calibration
