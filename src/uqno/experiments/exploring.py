"""What the page explores of a finished run: which functions are shown, and at which levels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from uqno.conformal import checks
from uqno.conformal.profile import Profile
from uqno.conformal.ranks import grid_point_rank
from uqno.conformal.words import ordinal
from uqno.experiments.explorer import FILE, FORMAT, VERSION, Explorer, Scored, Shown, View
from uqno.experiments.methods import METHODS
from uqno.experiments.packing import Shelf, packed
from uqno.experiments.pictures import Picture, picture, recorded_calibration, shown
from uqno.experiments.runs import Run
from uqno.storage import write_text
from uqno.types import Array, Progress, Reals

MOST_SHOWN: Final = 25  # functions; odd, so that the median is one of them
NODES: Final = 64  # at most so many a side of a stored field
MILLION: Final = 1_000_000
ALPHAS: Final = (
    0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12, 0.14, 0.16,
    0.18, 0.2, 0.22, 0.25, 0.28, 0.3, 0.35, 0.4, 0.45, 0.5,
)  # fmt: skip
# Millionths, so that a browser computes ranks in whole numbers: 0.2 % … 50 %.
DELTAS: Final = (
    *range(2000, 50_000, 1000),
    *range(50_000, 100_000, 5000),
    *range(100_000, 500_001, 10_000),
)


# --- which numbers --------------------------------------------------------------------------


def alpha_stops(wanted: Iterable[float]) -> list[float]:
    """The stops of the slider, those of the run among them."""
    return sorted({*ALPHAS, *wanted})


def delta_stops(delta: float) -> tuple[list[int], int]:
    """The stops in millionths, the run's own among them (to the millionth below), and which."""
    own = int(checks.share("delta", delta) * MILLION)
    return sorted({*DELTAS, max(own, 1)}), max(own, 1)


def ranks_of(points: int, rungs: Array, alphas: Iterable[float]) -> tuple[list[int], list[bool]]:
    """The stored rank for each α, and whether it is exactly the one that the rule asks for."""
    asked = np.array([grid_point_rank(points, checks.share("alpha", a)) for a in alphas])
    taken = rungs[np.searchsorted(rungs, asked)]  # the last rung is m: there always is one
    return taken.tolist(), (taken == asked).tolist()


def chosen(coverage: Reals, score: Reals, most: int = MOST_SHOWN) -> list[tuple[int, str]]:
    """(function, place) of best, median and worst coverage, then evenly in between, from the best.

    Among functions with the same coverage, the one that needs the smaller scale is the better.
    """
    order = np.lexsort((score, -coverage))
    n = len(order)
    picks = np.unique(np.round(np.linspace(0, n - 1, min(most, n))).astype(int))
    names = {0: "best", int(picks[len(picks) // 2]): "median", n - 1: "worst"}
    pairs = [(int(order[p]), names.get(int(p), f"{ordinal(int(p) + 1)} of {n}")) for p in picks]
    first = ["best", "median", "worst"]
    return sorted(pairs, key=lambda f: first.index(f[1]) if f[1] in first else len(first))


# --- from a run -----------------------------------------------------------------------------


def write_explorer(
    run: Run, progress: Progress = lambda what, done, total: None, count: int = MOST_SHOWN
) -> Path:
    """RUN/explorer.json of a finished run, written aside, then renamed; kept if it is there."""
    path = run.folder / FILE
    if not path.is_file():
        content = json.dumps(explorer(run, progress, count), allow_nan=False, separators=(",", ":"))
        write_text(path, content)
    return path


def explorer(
    run: Run, progress: Progress = lambda what, done, total: None, count: int = MOST_SHOWN
) -> Explorer:
    """All that the page explores."""
    s = run.settings
    drawn = [name for name in s.methods if not METHODS[name].aided] or list(s.methods)
    profiles = {name: run.profile(name) for name in drawn}
    lead = profiles.get("uqno", profiles[drawn[0]])
    alphas = alpha_stops((*s.alphas, *s.curve_alphas))
    ranks, exact = ranks_of(lead.points, lead.ranks, alphas)
    deltas, delta = delta_stops(s.delta)
    picks = _picked(run, lead, count)
    shelf = Shelf()
    functions = _functions(run, picks, profiles, shelf, progress)
    return Explorer(
        format=FORMAT,
        format_version=VERSION,
        task=run.task.name,
        domain=run.task.domain,
        points=lead.points,
        rungs=lead.ranks.tolist(),
        alphas=alphas,
        ranks=ranks,
        exact=exact,
        deltas=deltas,
        alpha=s.alphas[0],
        delta=delta,
        calibration=s.calibration,
        test=s.test,
        methods=[_scored(name, held, ranks) for name, held in profiles.items()],
        functions=functions,
        fields=shelf.fields,
    )


def _scored(name: str, held: Profile, ranks: list[int]) -> Scored:
    return Scored(
        method=name,
        label=METHODS[name].label,
        scores=packed(np.stack([held.scores(k) for k in ranks], axis=1)),
        mean_uncertainty=packed(held.mean_uncertainty),
    )


def _picked(run: Run, lead: Profile, most: int) -> list[tuple[int, str]]:
    """Test functions by their coverage at λ̂ of the recorded split; at λ = 1 where there is none."""
    n, alpha = run.settings.calibration, checks.share("alpha", run.settings.alphas[0])
    coverage = lead.coverage(recorded_calibration(run, lead).scale)[n:, 0]
    picks = chosen(coverage, lead.scores(grid_point_rank(lead.points, alpha))[n:], most)
    return [(n + which, place) for which, place in picks]


def _functions(
    run: Run,
    picks: list[tuple[int, str]],
    profiles: Mapping[str, Profile],
    shelf: Shelf,
    progress: Progress,
) -> list[Shown]:
    """Each chosen function and what every method says of it; a model is read once."""
    scenes = {held: run.task.scene(held, NODES) for held, _ in picks}
    truths = {held: shown(run.task.held()[held]["u"].numpy()) for held, _ in picks}
    views: dict[int, dict[str, View]] = {held: {} for held, _ in picks}
    total = len(picks) * len(profiles)
    for i, (name, profile) in enumerate(profiles.items()):
        model, data = run.model(name), run.held(name)
        calibration = recorded_calibration(run, profile)
        for k, (held, scene) in enumerate(scenes.items()):
            progress("storing functions to look at", i * len(picks) + k, total)
            one = picture(model, data[held], scene, calibration)
            views[held][name] = _view(one, profile.ratios[held], shelf)
    return [
        Shown(
            held=held,
            place=place,
            input=shelf.put_some(scenes[held].input, "uint8"),
            truth=shelf.put(scenes[held].thin(truths[held])),
            points=shelf.put_some(scenes[held].points, "uint16"),
            triangles=shelf.put_some(scenes[held].triangles, "index16"),
            views=views[held],
        )
        for held, place in picks
    ]


def _view(one: Picture, ratios: Reals, shelf: Shelf) -> View:
    thin, band = one.scene.thin, one.band
    magnitude = None if band.channels == 1 else thin(shown(band.center))
    return View(
        residual=shelf.put(thin(one.residual)),
        uncertainty=shelf.put(thin(band.uncertainty)),
        magnitude=shelf.put_some(magnitude, "uint16"),
        ratios=packed(ratios),
    )
