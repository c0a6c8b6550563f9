"""Errors and uncertainties of calibration functions → λ̂ and the guarantee that it carries."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import numpy as np

from uqno.conformal import checks, words
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.ranks import Ranks, Request, admissible, function_rank
from uqno.conformal.rules import Rule, rule_for
from uqno.conformal.scores import coverage, each_score, each_weighted_score
from uqno.conformal.stream import Functions
from uqno.types import Integers, Mixed, Reals, Sampling, Share

FORMAT = "uqno.calibration"
VERSION = 1


@dataclass(frozen=True)
class Calibration:
    """λ̂ with all that its guarantee says. Two are equal when they promise the same."""

    scale: float
    """λ̂: the band is the prediction ± scale · uncertainty."""
    ranks: Ranks
    """(k, j); k belongs to the smallest number of points where functions differ in it."""
    functions: int
    """n, the number of calibration functions."""
    points: int
    """m, the points of a function; the smallest where they differ, `points_max` the largest."""
    points_max: int
    alpha: float
    delta: float
    sampling: Sampling
    confidence: float | None = None
    weighted: bool = False
    mixed: Mixed = "own"
    created: str = field(default="", compare=False)
    """When, in UTC."""

    @property
    def guarantee(self) -> str:
        """What is promised and what is not, to quote."""
        return words.guarantee(self)

    def coverage(self, error: Any, uncertainty: Any, weights: Any = None) -> Reals:
        """The covered share of each function, (n,): where ‖error‖ / uncertainty ≤ λ̂."""
        return coverage(error, uncertainty, self.scale, weights)

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        """The calibration that `to_json` wrote; anything else is refused by name."""
        return _from_json(text)


def calibrate(
    error: Any,
    uncertainty: Any,
    alpha: Share,
    delta: Share,
    sampling: str = "grid",
    weights: Any = None,
    confidence: Share | None = None,
    *,
    ranks: Ranks | None = None,
    mixed: str = "own",
    seed: int = 0,
    functions: int | None = None,
) -> Calibration:
    """λ̂ such that P[ at least 1 − α of a new function lies in the band ] ≥ 1 − δ.

    error: ‖u − Ĝ(a)‖ or the signed difference, (n, *points), or vectors (n, *points, d); or an
        iterable with one array a function: different lengths, streamed, only scores are kept.
    uncertainty: E(a) ≥ 0, (n, *points) or an iterable alike.
    sampling: "grid", the points are the domain; "iid", they are independent draws from it;
        "hoeffding", the paper's rule for such draws with its ranks corrected.
    weights: μ, (*points) or one a function; with "grid".
    confidence: for a promise that holds for this very calibration set, with this probability.
    ranks: an admissible pair of your own choice, made without the calibration scores.
    mixed: where functions have different numbers of points drawn at random: "own", each its own
        rank (the number of points is part of the random draw); "subsample", all are reduced at
        random (by `seed`) to the smallest number.
    functions: n, where iterators cannot tell and you can: most functions are then only counted,
        not scored, in two thirds of the time. It must be right.

    >>> rng = np.random.default_rng(0)
    >>> cal = calibrate(rng.normal(size=(200, 50)), np.ones((200, 50)), alpha=0.1, delta=0.05)
    >>> cal.ranks, round(cal.scale, 3)
    (Ranks(point=45, function=191), 1.937)
    """
    (cal,) = calibrate_all(
        error,
        uncertainty,
        [(alpha, delta)],
        sampling,
        weights,
        confidence,
        ranks=ranks,
        mixed=mixed,
        seed=seed,
        functions=functions,
    )
    return cal


def calibrate_all(
    error: Any,
    uncertainty: Any,
    levels: Iterable[tuple[Share, Share]],
    sampling: str = "grid",
    weights: Any = None,
    confidence: Share | None = None,
    *,
    ranks: Ranks | None = None,
    mixed: str = "own",
    seed: int = 0,
    functions: int | None = None,
) -> tuple[Calibration, ...]:
    """`calibrate` for several (α, δ) in one pass over the functions."""
    requests = [Request.of(alpha, delta, sampling, confidence) for alpha, delta in levels]
    checks.levels(requests)
    if ranks is not None:
        checks.own_ranks(ranks, weights is not None)
    way = checks.mixed(mixed, checks.sampling(sampling))
    if functions is not None:
        checks.count("functions", functions)
    given = Functions(error, uncertainty, weights, functions)
    if given.number is not None:
        checks.functions(given.number)
    if weights is not None:
        checks.weights_design(checks.sampling(sampling))
    if way == "subsample":
        given = _subsampled(given, seed)
    rules = [rule_for(request, given.number, given.sizes, ranks) for request in requests]
    sizes, columns = _collect(given, rules, requests, weights is not None)
    checks.number_came(given.number, len(sizes))
    return tuple(
        _calibration(request, rule, sizes, parts, way, weights is not None)
        for request, rule, parts in zip(requests, rules, columns, strict=True)
    )


def _collect(
    functions: Functions, rules: list[Rule], requests: list[Request], weighted: bool
) -> tuple[list[int], list[list[tuple[int, Reals]]]]:
    """The points of every function, and for each rule its scores, (points, scores) a block."""
    widths: dict[int, list[int]] = {}

    def point_ranks(m: int) -> int | Integers:
        if len(rules) == 1:
            return rules[0].point_ranks(m)
        each = [np.atleast_1d(rule.point_ranks(m)) for rule in rules]
        widths[m] = [len(k) for k in each]
        return np.concatenate(each)

    if weighted:
        each = each_weighted_score(functions, [1 - request.alpha for request in requests])
    else:
        largest = rules[0].largest() if len(rules) == 1 else None
        each = each_score(functions, point_ranks, largest)
    sizes: list[int] = []
    columns: list[list[tuple[int, Reals]]] = [[] for _ in rules]
    for points, scores in each:
        sizes += [points] * len(scores)
        if len(rules) == 1 and not weighted:
            columns[0].append((points, scores))
            continue
        edges = np.cumsum([1] * len(rules) if weighted else widths[points])[:-1]
        for column, own in zip(columns, np.split(scores, edges, axis=1), strict=True):
            column.append((points, own[:, 0] if own.shape[1] == 1 else own))
    checks.functions(len(sizes))
    return sizes, columns


def _calibration(
    request: Request,
    rule: Rule,
    sizes: list[int],
    parts: list[tuple[int, Reals]],
    mixed: Mixed,
    weighted: bool,
) -> Calibration:
    pair, pick = rule.decide(sizes)
    scores = np.concatenate([pick(m, s) for m, s in parts])
    return Calibration(
        scale=_finite_scale(scores, pair.function),
        ranks=Ranks(None, pair.function) if weighted else pair,
        functions=len(sizes),
        points=min(sizes),
        points_max=max(sizes),
        alpha=float(request.alpha),
        delta=float(request.delta),
        sampling=request.sampling,
        confidence=None if request.confidence is None else float(request.confidence),
        weighted=weighted,
        mixed=mixed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _finite_scale(scores: Reals, j: int) -> float:
    scale = float(np.partition(scores, j - 1)[j - 1])
    if not isfinite(scale):
        raise InfeasibleError(
            f"more than {scores.size - j} of {scores.size} functions have a zero uncertainty where the "
            "error is not, at more points than alpha allows: no finite scale is valid; give the "
            "uncertainty a positive floor"
        )
    return scale


def _subsampled(functions: Functions, seed: int) -> Functions:
    """Every function at min m points, drawn without replacement by (seed, function)."""
    if functions.sizes is None:
        raise ValueError(
            "mixed = 'subsample' must know the smallest number of points beforehand: pass lists "
            "or arrays instead of iterators, or mixed='own'"
        )
    least = min(functions.sizes)
    errors, uncertainties = [], []
    for block in functions.blocks():
        for i in range(len(block.uncertainty)):
            rng = np.random.default_rng([seed, block.first + i])
            index = rng.permutation(block.points)[:least]
            errors.append(block.error[i, index])
            uncertainties.append(block.uncertainty[i, index])
    return Functions(errors, uncertainties)


# --- files -----------------------------------------------------------------------------------


def _from_json(text: str) -> Calibration:
    try:
        found = json.loads(text, parse_constant=lambda name: None)
    except (ValueError, TypeError, RecursionError) as why:
        raise ValueError(f"not a calibration: the text is not JSON ({why})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"not a calibration: expected JSON with format = {FORMAT!r}")
    version = found.get("version")
    if version != VERSION or isinstance(version, bool):
        raise ValueError(
            f"the calibration has format version {version!r}, this uqno reads {VERSION}: "
            "use the uqno that wrote it, or a newer one"
        )
    content = {name: value for name, value in found.items() if name not in ("format", "version")}
    names = set(Calibration.__dataclass_fields__)
    if set(content) != names:
        missing, unknown = sorted(names - set(content)), sorted(set(content) - names)
        raise ValueError(f"not a whole calibration: missing {missing}, unknown {unknown}")
    return _checked_content(content)


def _checked_content(content: dict[str, Any]) -> Calibration:
    """Files may come from anywhere: each field is checked as if a caller had passed it."""
    scale, created, ranks = content["scale"], content["created"], content["ranks"]
    for name in ("scale", "alpha", "delta", "confidence"):
        value = content[name]
        if value is None and name == "confidence":
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1e300:
            raise ValueError(f"{name} = {value!r} in the calibration must be a finite number ≥ 0")
    if not isinstance(created, str) or not isinstance(content["weighted"], bool):
        raise ValueError("created must be text and weighted true or false in the calibration")
    if not isinstance(ranks, dict) or set(ranks) != {"point", "function"}:
        raise ValueError(f"ranks = {ranks!r} in the calibration must hold point and function")
    request = Request.of(
        content["alpha"], content["delta"], content["sampling"], content["confidence"]
    )
    n = checks.count("functions", content["functions"], least=2)
    m = checks.count("points", content["points"])
    point, j = ranks["point"], checks.count("ranks.function", ranks["function"])
    if j > n:
        raise ValueError(f"ranks.function = {j} exceeds the {n} functions of the calibration")
    if (point is None) != content["weighted"] or (
        point is not None and checks.count("ranks.point", point) > m
    ):
        raise ValueError(f"ranks.point = {point!r} does not fit {m} points in the calibration")
    if content["weighted"]:
        checks.weights_design(request.sampling)
    _check_promise(Ranks(point, j), n, m, content["points_max"] == m, request)
    return Calibration(
        scale=float(scale),
        ranks=Ranks(point, j),
        functions=n,
        points=m,
        points_max=checks.count("points_max", content["points_max"], least=m),
        alpha=float(request.alpha),
        delta=float(request.delta),
        sampling=request.sampling,
        confidence=None if request.confidence is None else float(request.confidence),
        weighted=content["weighted"],
        mixed=checks.mixed(content["mixed"], request.sampling),
        created=created,
    )


def _check_promise(ranks: Ranks, n: int, m: int, one_size: bool, request: Request) -> None:
    """A file must not promise more than its ranks carry."""
    if one_size and ranks.point is not None:
        carried = admissible(ranks, n, m, request)
    else:
        least = function_rank(n, request.delta, request.confidence)
        carried = least is not None and ranks.function >= least
    if not carried:
        raise ValueError(f"{ranks} do not carry the guarantee that the calibration claims")
