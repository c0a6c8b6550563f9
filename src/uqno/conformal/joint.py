"""Several promises at once: the band and quantities, or several output variables.

Each has a score a function; the joint score is the largest of the scores, each divided by a size g
that was fixed without the calibration functions, such as its usual score on training functions:

    s_i = max_v s_iv / g_v,    κ = the j-th smallest s_i,    λ̂_v = κ g_v.

All hold at once where s ≤ κ, so the probability of that is the one of a single promise. The sizes
decide how the width is shared among them, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from uqno.conformal import checks, told
from uqno.conformal.calibration import collect, record_of
from uqno.conformal.guarantees.contract import Evidence, Guarantee, Solution, finite_scale
from uqno.conformal.ranks import Ranks
from uqno.conformal.record import Calibration
from uqno.types import Reals


def calibrate_jointly(
    variables: Mapping[str, tuple[Any, Any]],
    sizes: Mapping[str, float],
    guarantee: Guarantee,
    weights: Any = None,
) -> dict[str, Calibration]:
    """λ̂ of several output variables, whose promises hold at once.

    Args:
        variables: (error, uncertainty) of each as in `uqno.calibrate`, of the same functions in the
            same order.
        sizes: g > 0 of each, fixed without these functions: `usual_size` of the scores of training
            functions, or ones.
        guarantee: of each: one with a score for each function, as `Fraction` or `Quantity`.
        weights: as in `uqno.calibrate`, for all variables.

    Returns:
        A calibration for each variable.

    >>> rng = np.random.default_rng(0)
    >>> ones = np.ones((200, 50))
    >>> both = {"p": (rng.normal(size=(200, 50)), ones), "T": (rng.normal(size=(200, 50)), ones)}
    >>> from uqno.conformal import guarantees
    >>> made = calibrate_jointly(both, {"p": 1.0, "T": 1.0}, guarantees.Fraction(0.1, 0.05))
    >>> made["p"].jointly, round(made["p"].scale, 3)
    (('p', 'T'), 1.945)
    """
    parts = {}
    for name, (error, uncertainty) in variables.items():
        (evidence,), _ = collect(error, uncertainty, [guarantee], weights)
        parts[name] = guarantee, evidence
    return jointly(parts, sizes)


def jointly(
    parts: Mapping[str, tuple[Guarantee, Evidence]], sizes: Mapping[str, float]
) -> dict[str, Calibration]:
    """The calibration of each part, with scales that carry the promises of all at once.

    Args:
        parts: guarantee and evidence of each, of the same functions in the same order.
        sizes: g > 0 of each, fixed without these functions.

    Raises:
        InfeasibleError: no finite scales carry them.
        ValueError: the parts are of different numbers of functions or levels, or a size is no
            positive number.
    """
    checks.same_number(**{name: len(evidence) for name, (_, evidence) in parts.items()})
    told.sizes_of(tuple(parts), sizes)
    told.levels_alike({name: rule for name, (rule, _) in parts.items()})
    solved = {name: rule.solve(evidence) for name, (rule, evidence) in parts.items()}
    ranked = {name: _ranked(name, one) for name, one in solved.items()}
    j = max(ranks.function for ranks, _ in ranked.values())
    largest = np.max([scores / sizes[name] for name, (_, scores) in ranked.items()], axis=0)
    kappa, in_order = finite_scale(largest, j), np.sort(largest)
    made = {}
    for name, (rule, evidence) in parts.items():
        own = Solution(
            _times(kappa, sizes[name]),
            in_order * sizes[name],
            Ranks(ranked[name][0].point, j),
            solved[name].details,
        )
        made[name] = replace(record_of(rule, evidence, own), jointly=tuple(parts))
    return made


def usual_size(scores: Any, share: float = 0.9) -> float:
    """A size from the scores of training functions: what a share of them stays below.

    Args:
        scores: (n,) of functions that are not in the calibration.
        share: of them.

    Returns:
        A positive number; 1 where the scores tell nothing.
    """
    known = np.asarray(scores, dtype=np.float64)
    known = known[np.isfinite(known)]
    size = float(np.quantile(known, share, method="higher")) if known.size else 0.0
    return size if size > 0 else 1.0


def _ranked(name: str, solution: Solution) -> tuple[Ranks, Reals]:
    """The ranks and the scores of a solution that is a ranked score."""
    ranks, scores = solution.ranks, solution.scores
    if ranks is None or scores is None or scores.ndim != 1:
        raise ValueError(
            f"the guarantee of {name} has no scale that is a ranked score, so that it cannot be "
            "promised together with others: use one such as Fraction, or calibrate it alone"
        )
    return ranks, scores


def _times(kappa: float, size: float) -> float:
    """κ g, rounded up: a score s with s / g ≤ κ in floating-point numbers is no larger."""
    return float(np.nextafter(kappa * size * (1 + 2**-51), np.inf)) if kappa > 0 else 0.0
