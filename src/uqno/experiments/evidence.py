"""`scores.npz`: the scores and mean uncertainties of all held-out functions under every method.

It is the small part of the profiles that bandwidths, percentages, ratios and verdicts follow from,
and lies beside `results.json`, whose numbers are recomputed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from uqno.conformal.profile import Profile
from uqno.experiments import measuring, rows
from uqno.experiments.ablation import methods_of, steps
from uqno.experiments.measuring import Measured
from uqno.experiments.methods import METHODS
from uqno.experiments.profiles import read_stamped, write_stamped
from uqno.experiments.results import DIGITS, Results, Row, rounded
from uqno.experiments.runs import DELTAS
from uqno.experiments.settings import Settings
from uqno.types import Integers

FILE: Final = "scores.npz"
FORMAT: Final = "uqno scores"
VERSION: Final = 1
REMEDY: Final = "run the comparison again"
FROM_SCORES: Final = (
    "feasible", "reason", "scale", "scale_sd", "bandwidth", "bandwidth_sd", "relative_bandwidth",
    "bandwidth_in_unit", "calibration_percentage", "failures", "p_value", "usual", "oracle_scale",
    "oracle_bandwidth",
)  # fmt: skip
"""What of a calibrated row follows from the scores."""


def in_single_precision(profile: Profile) -> Profile:
    """The same with scores and mean uncertainties as the file has them."""
    parts = {
        name: getattr(profile, name).astype(np.float32).astype(np.float64)
        for name in ("ratios", "mean_uncertainty")
    }
    return replace(profile, **parts)


def write_scores(path: str | Path, profiles: Mapping[str, Profile], settings: Settings) -> None:
    """Write the scores that the rows, the curves and the ablation of a record are made of.

    Args:
        path: of the file.
        profiles: of every method, in units of the bandwidth.
        settings: of the run.
    """
    arrays: dict[str, Any] = {}
    for name in methods_of(settings):
        profile = profiles[name]
        ranks = _ranks(name, profile.points, settings)
        arrays |= {
            f"{name}:points": np.array(profile.points),
            f"{name}:ranks": ranks,
            f"{name}:scores": profile.scores(ranks).astype(np.float32),
            f"{name}:mean_uncertainty": profile.mean_uncertainty.astype(np.float32),
        }
    write_stamped(path, arrays, FORMAT, VERSION)


def _ranks(name: str, points: int, settings: Settings) -> Integers:
    """The point ranks of a method's rows, of its curves, and of its rows in the ablation."""
    s, designs = settings, set(METHODS[name].samplings)
    if s.ablation:
        designs |= {step.sampling for step in steps(s) if step.method == name}
    levels = [(alpha, s.delta) for alpha in s.alphas]
    curves = [(alpha, delta) for alpha in s.curve_alphas for delta in DELTAS]
    needed = measuring.ranks_needed(points, s.calibration, levels, sorted(designs))
    needed += measuring.ranks_needed(points, s.calibration, curves, ("grid",))
    return np.unique(np.array(needed, dtype=np.int64))


def read_scores(path: str | Path) -> dict[str, Profile]:
    """{method: a profile that has scores and mean uncertainties alone}, in units of the bandwidth.

    Raises:
        ValueError: the file is absent, truncated, foreign or of another version.
    """
    arrays = read_stamped(path, FORMAT, VERSION, REMEDY)
    names = [key.removesuffix(":scores") for key in arrays if key.endswith(":scores")]
    try:
        return {name: _profile(arrays, name) for name in names}
    except KeyError as why:
        raise ValueError(f"{path} lacks {why}: {REMEDY}") from None


def _profile(arrays: Mapping[str, Any], name: str) -> Profile:
    scores = arrays[f"{name}:scores"].astype(np.float64)
    unknown, of_function = np.full(scores.shape, np.nan), np.full(len(scores), np.nan)
    return Profile(
        points=int(arrays[f"{name}:points"]),
        ranks=arrays[f"{name}:ranks"],
        ratios=scores,
        error_above=unknown,
        uncertainty_above=unknown,
        mean_error=of_function,
        mean_uncertainty=arrays[f"{name}:mean_uncertainty"].astype(np.float64),
        correlation=of_function,
    )


def recomputed(results: Results, profiles: Mapping[str, Profile]) -> Results:
    """The record with all that follows from the scores computed from them again.

    These are bandwidths, percentages, p-values and what belongs to them in the calibrated rows,
    the ablation with its ratios, the curves and the targets.

    Args:
        results: the record.
        profiles: what `read_scores` returned.
    """
    measured = _measuring(results, profiles)
    ablation = []
    for alpha in dict.fromkeys(one["alpha"] for one in results["ablation"]):
        recipes = {
            one["name"]: (
                one["label"],
                one["method"],
                measured(one["method"], alpha, one["delta"], one["sampling"]),
            )
            for one in results["ablation"]
            if one["alpha"] == alpha
        }
        ablation += rows.ablated(recipes)
    swept = [
        (c["method"], [measured(c["method"], c["alpha"], delta) for delta in c["delta"]])
        for c in results["curves"]
    ]
    content = {
        "ablation": ablation,
        "curves": [rows.curve(name, some) for name, some in swept],
        "targets": [rows.targets(name, some) for name, some in swept],
    }
    return cast(Results, {**with_rows(results, profiles), **rounded(content, DIGITS)})


def with_rows(results: Results, profiles: Mapping[str, Profile]) -> Results:
    """The record with its calibrated rows alone computed again; see `recomputed`."""
    measured = _measuring(results, profiles)

    def row(old: Row) -> Row:
        if not old["calibrated"]:
            return old
        numbers = measured(old["method"], old["alpha"], old["delta"], old["sampling"])
        new = rows.row("", numbers, "", unit=results["unit"], rms=results["rms"])
        return cast(Row, {**old, **{name: new[name] for name in FROM_SCORES}})

    again = [row(old) for old in results["rows"]]
    return cast(Results, {**results, "rows": rounded(again, DIGITS)})


def _measuring(results: Results, profiles: Mapping[str, Profile]) -> Callable[..., Measured]:
    """(method, α, δ, design) → what the scores say, with the splits of the record."""
    more = {
        "calibration": results["split"]["calibration"],
        "splits": results["settings"]["splits"],
        "seed": results["settings"]["seed"],
    }

    def measured(method: str, alpha: float, delta: float, sampling: str = "grid") -> Measured:
        profile = profiles[method]
        return measuring.calibrated(profile, alpha, delta, sampling, scores_only=True, **more)

    return measured
