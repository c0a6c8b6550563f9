"""λ̂, bandwidth = mean of λ̂ E, calibration percentage = share of functions with c(λ̂) ≥ 1 − α.

The bandwidth of one split of the held-out functions into calibration and test is noise, so it is a
mean over many random splits, with its standard deviation. Ranks depend on numbers alone, so every
function is scored once for all splits; and all methods see the same splits.

The calibration percentage is that of one split, the recorded one: its mean over random splits is
j/(n + 1) for any model, on a grid, and says nothing. With it stands how likely so many failures are
if the promise holds (`uqno.conformal.agreement`).

The paper counts functions with *more than* 1 − α of their points covered. The guarantee says *at
least*, and so do we; the two differ only where (1 − α) m is a whole number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Any, Final

import numpy as np
from scipy.stats import beta

from uqno.conformal import (
    InfeasibleError,
    Ranks,
    calibrate,
    calibrate_splits,
    checks,
    frontier,
    plan,
)
from uqno.conformal.agreement import Agreement, agreement
from uqno.conformal.guarantees import Fraction
from uqno.conformal.profile import Profile, rank_correlation
from uqno.conformal.ranks import Request, grid_point_rank
from uqno.types import Integers, Reals, Share

BEST_T: Final = "hoeffding best t"
SPLITS: Final = 200
CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Measured:
    """One method at one (α, δ): means over the splits; where infeasible, no number at all."""

    alpha: float
    delta: float
    sampling: str
    """"grid", "iid", "hoeffding" or "hoeffding best t"; "none" without calibration."""
    calibrated: bool
    feasible: bool
    reason: str | None = None
    """Why it is infeasible, and what would be feasible."""
    ranks: Ranks | None = None
    scale: float | None = None
    scale_sd: float | None = None
    bandwidth: float | None = None
    bandwidth_sd: float | None = None
    calibration_percentage: float | None = None
    """On the test functions of the recorded split; raw, on all held-out functions. A share, 0 … 1,
    as all percentages here."""
    failures: int | None = None
    """Test functions of the recorded split that are not covered."""
    p_value: float | None = None
    """The probability of so many failures or more, if the promise holds."""
    usual: tuple[float, float] | None = None
    """Where the percentage lies with probability 95 %, if the promise holds."""
    interval: tuple[float, float] | None = None
    """Raw: the exact 95 % interval for the percentage of new functions."""
    coverage: float | None = None
    area_coverage: float | None = None
    """Where functions have areas: the mean share of the area that the same band covers."""
    area_percentage: float | None = None
    """And the share of functions of which it covers 1 − α of the area or more."""
    area_bandwidth: float | None = None
    """The bandwidth of the band whose scale is found by area instead of by points."""
    oracle_scale: float | None = None
    """The smallest λ that reaches 1 − δ on the test set itself."""
    oracle_bandwidth: float | None = None
    rank_correlation: float | None = None
    """The correlation of uncertainty and error over the points, mean over functions."""
    function_correlation: float | None = None
    """The correlation of mean uncertainty and mean error over the functions."""
    interval_score: float | None = None

    @property
    def target(self) -> float:
        return float(1 - checks.share("delta", self.delta))


# --- one row --------------------------------------------------------------------------------


def raw(profile: Profile, alpha: Share, delta: Share) -> Measured:
    """The band as the method gives it, λ = 1, measured on all held-out functions."""
    request = Request.of(alpha, delta)
    everyone = np.arange(len(profile))[np.newaxis]
    scale, share = np.ones(1), float((_needed(profile, request) <= 1).mean())
    measured = _by_scores(profile, request, "none", None, scale, everyone)
    return replace(
        measured,
        calibration_percentage=share,
        interval=exact_interval(share, len(profile)),
        **_by_profile(profile, request, scale, everyone),
    )


def calibrated(
    profile: Profile,
    alpha: Share,
    delta: Share,
    sampling: str = "grid",
    *,
    calibration: int,
    splits: int = SPLITS,
    seed: int = 0,
    scores_only: bool = False,
) -> Measured:
    """The band after calibration on n = `calibration` functions, tested on the others.

    Args:
        profile: the held-out functions, those of the recorded split's calibration set first.
        alpha, delta: the levels.
        sampling: as in `uqno.calibrate`, or "hoeffding best t": the paper's rule at the admissible
            t with the smallest mean bandwidth *on these very splits*, more than anyone could
            choose.
        calibration: n.
        splits: how many random splits bandwidths are averaged over.
        seed: of these splits.
        scores_only: leave out what needs more of a function than scores and mean uncertainty.
    """
    rules = _rules(profile.points, calibration, alpha, delta, sampling)
    if not rules:
        reason = _infeasible(profile.points, calibration, alpha, delta, sampling)
        return _without_numbers(Request.of(alpha, delta), sampling, reason)
    learn, test = random_splits(len(profile), calibration, splits, seed)
    scales = [calibrate_splits(profile, None, rule, learn) for rule in rules]
    with np.errstate(invalid="ignore"):  # ∞ · 0; an infinite scale is refused below
        widths = [float((s * profile.mean_uncertainty[test].mean(axis=1)).mean()) for s in scales]
    best = int(np.argmin(np.nan_to_num(widths, nan=np.inf)))
    request, rule = Request.of(alpha, delta), rules[best]
    pair = rule.ranks or rule.ranks_for(calibration, profile.points)
    measured = _by_scores(profile, request, sampling, pair, scales[best], test)
    if measured.feasible:
        measured = replace(measured, **_judged(profile, request, rule, calibration))
    if scores_only or not measured.feasible:
        return measured
    measured = replace(measured, **_by_profile(profile, request, scales[best], test))
    if sampling != "grid" or profile.area is None:
        return measured
    by_area = calibrate_splits(profile.area, None, rule, learn)
    width = float((by_area * profile.mean_uncertainty[test].mean(axis=1)).mean())
    return replace(measured, area_bandwidth=_number(width))


def sweep(
    profile: Profile,
    alpha: Share,
    deltas: Iterable[Share],
    sampling: str = "grid",
    *,
    calibration: int,
    splits: int = SPLITS,
    seed: int = 0,
) -> tuple[Measured, ...]:
    """`calibrated` at each δ: what the trade-off and the target curves are made of."""
    more: dict[str, Any] = {"calibration": calibration, "splits": splits, "seed": seed}
    return tuple(calibrated(profile, alpha, delta, sampling, **more) for delta in deltas)


def ranks_needed(
    points: int,
    calibration: int,
    levels: Iterable[tuple[Share, Share]],
    samplings: Iterable[str] = ("grid", "iid", "hoeffding", BEST_T),
) -> tuple[int, ...]:
    """The point ranks that `calibrated` and `raw` will ask of a profile, for `profile_ranks`."""
    needed: set[int | None] = set()
    designs = tuple(samplings)
    for alpha, delta in levels:
        needed.add(grid_point_rank(points, Request.of(alpha, delta).alpha))
        for sampling in designs:
            for rule in _rules(points, calibration, alpha, delta, sampling):
                pair = rule.ranks or rule.ranks_for(calibration, points)
                needed.add(None if pair is None else pair.point)
    return tuple(sorted(k for k in needed if k is not None))


# --- the recorded split ------------------------------------------------------------------------


def _agreement(profile: Profile, request: Request, rule: Fraction, calibration: int) -> Agreement:
    cal = calibrate(profile[:calibration], guarantee=rule)
    assert cal.ranks is not None  # every rule here has a pair
    failures = int((_needed(profile, request)[calibration:] > cal.scale).sum())
    return agreement(failures, len(profile) - calibration, calibration, cal.ranks.function)


def _judged(profile: Profile, request: Request, rule: Fraction, calibration: int) -> dict[str, Any]:
    """What the recorded split says, as fields of `Measured`; nothing where it has no scale."""
    try:
        judged = _agreement(profile, request, rule, calibration)
    except InfeasibleError:
        return {}
    low, high = judged.usual
    return {
        "calibration_percentage": judged.percentage,
        "failures": judged.failures,
        "p_value": judged.p_value,
        "usual": (1 - high / judged.functions, 1 - low / judged.functions),
    }


def _needed(profile: Profile, request: Request) -> Reals:
    """The smallest λ that covers 1 − α of each function's points, (n,)."""
    return profile.scores(grid_point_rank(profile.points, request.alpha))


# --- guarantees -----------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _rules(
    points: int, calibration: int, alpha: Share, delta: Share, sampling: str
) -> tuple[Fraction, ...]:
    """The guarantee of the design, or for the best t one for every pair that is worth a try."""
    n = checks.count("calibration", calibration, least=2)
    if sampling != BEST_T:
        rule = Fraction(alpha, delta, checks.sampling(sampling))
        return (rule,) if rule.feasible(n, points) else ()
    pairs = frontier(n, points, alpha, delta, "hoeffding")
    return tuple(Fraction(alpha, delta, "hoeffding", ranks=pair) for pair in pairs)


@lru_cache(maxsize=256)
def _infeasible(points: int, calibration: int, alpha: Share, delta: Share, sampling: str) -> str:
    if sampling == BEST_T:
        reason = plan(alpha, delta, calibration, points, "hoeffding")
        return f"No t is admissible. At the authors' t: {reason}"
    return str(plan(alpha, delta, calibration, points, sampling))


# --- splits ---------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def random_splits(
    functions: int, calibration: int, splits: int, seed: int
) -> tuple[Integers, Integers]:
    """Indices of the calibration functions, (splits, n), and of the others, by a seed."""
    checks.count("splits", splits)
    if calibration >= functions:
        raise ValueError(
            f"calibration = {calibration} leaves no test function of {functions}: take fewer, or "
            "hold out more functions"
        )
    order = np.tile(np.arange(functions), (splits, 1))
    np.random.default_rng(seed).permuted(order, axis=1, out=order)
    order.flags.writeable = False  # shared by all who ask for the same splits
    return order[:, :calibration], order[:, calibration:]


# --- numbers --------------------------------------------------------------------------------


def _by_scores(
    profile: Profile,
    request: Request,
    sampling: str,
    pair: Ranks | None,
    scales: Reals,
    test: Integers,
) -> Measured:
    """What scores and mean uncertainties say.

    Args:
        profile: the held-out functions.
        request: the levels.
        sampling: the design.
        pair: its ranks; None without calibration.
        scales: of each split, (splits,).
        test: the test functions of each split, (splits, functions).
    """
    if not np.isfinite(scales).all():
        why = (
            f"The uncertainty is zero at more than {float(request.alpha):g} of the points of some "
            "functions while the error is not, so no finite scale covers them: give the "
            "uncertainty a positive floor"
        )
        return _without_numbers(request, sampling, why)
    needed = _needed(profile, request)
    width = profile.mean_uncertainty[test].mean(axis=1)
    oracle = _oracle(needed[test], request)
    return Measured(
        alpha=float(request.alpha),
        delta=float(request.delta),
        sampling=sampling,
        calibrated=sampling != "none",
        feasible=True,
        ranks=pair,
        scale=float(scales.mean()),
        scale_sd=_deviation(scales),
        bandwidth=float((scales * width).mean()),
        bandwidth_sd=_deviation(scales * width),
        oracle_scale=_number(oracle.mean()),
        oracle_bandwidth=_number((oracle * width).mean()),
    )


def _by_profile(
    profile: Profile, request: Request, scales: Reals, test: Integers
) -> dict[str, Any]:
    """What more of the functions says, as fields of `Measured`; arguments as in `_by_scores`."""
    covered, score = _over_test(profile, request, scales, test)
    area_covered, area_reached = _by_area(profile, request, scales, test)
    return {
        "coverage": covered,
        "area_coverage": area_covered,
        "area_percentage": area_reached,
        "rank_correlation": _mean_number(profile.correlation),
        "function_correlation": _number(
            rank_correlation(profile.mean_uncertainty, profile.mean_error)
        ),
        "interval_score": score,
    }


def _without_numbers(request: Request, sampling: str, reason: str) -> Measured:
    return Measured(
        alpha=float(request.alpha),
        delta=float(request.delta),
        sampling=sampling,
        calibrated=sampling != "none",
        feasible=False,
        reason=reason,
    )


def _oracle(needed: Reals, request: Request) -> Reals:
    """The smallest λ that covers 1 − α of the points of 1 − δ of the test functions, (splits,)."""
    enough = ceil((1 - request.delta) * needed.shape[1]) - 1
    return np.asarray(np.partition(needed, enough, axis=1)[:, enough])


def _over_test(
    profile: Profile, request: Request, scales: Reals, test: Integers
) -> tuple[float, float]:
    """Mean coverage, and mean interval score 2 λ E + (2/α) max(0, e − λ E), of test functions."""
    # λ̂ is one of few scores, so few different scales serve all splits.
    lam, which = np.unique(scales, return_inverse=True)
    covered = profile.coverage(lam)
    outside = 2 / float(request.alpha) * profile.excess(lam)
    score = 2 * lam * profile.mean_uncertainty[:, np.newaxis] + outside
    column = which[:, np.newaxis]
    return float(covered[test, column].mean()), float(score[test, column].mean())


def _by_area(
    profile: Profile, request: Request, scales: Reals, test: Integers
) -> tuple[float | None, float | None]:
    """Mean share of the area that the same scales cover, and of functions with 1 − α covered."""
    if profile.area is None:
        return None, None
    lam, which = np.unique(scales, return_inverse=True)
    covered = profile.area.coverage(profile.ratios, lam)[test, which[:, np.newaxis]]
    reached = profile.area.scores_at(request.alpha)[test] <= scales[:, np.newaxis]
    return float(covered.mean()), float(reached.mean())


def exact_interval(
    share: float, functions: int, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Clopper–Pearson: the p for which `share` of n = `functions` is no surprise from either side.

    >>> [round(p, 3) for p in exact_interval(0.98, 1000)]
    [0.969, 0.988]
    """
    hits, tail = share * functions, (1 - confidence) / 2
    low = beta.ppf(tail, hits, functions - hits + 1) if hits > 0 else 0.0
    high = beta.ppf(1 - tail, hits + 1, functions - hits) if hits < functions else 1.0
    return float(low), float(high)


def _deviation(values: Reals) -> float | None:
    return float(values.std(ddof=1)) if values.size > 1 else None


def _number(value: float) -> float | None:
    """None for what is not a number or infinite: JSON has neither."""
    return float(value) if np.isfinite(value) else None


def _mean_number(values: Reals) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None
