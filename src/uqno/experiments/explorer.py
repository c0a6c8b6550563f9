"""`explorer.json`: a few test functions to look at, and the scores of all that sliders move over.

A page without Python has to answer "what if α were 0.05?". λ̂ is the j-th smallest calibration
score, so the k-th smallest ratios of every held-out function, k = ⌈m (1 − α)⌉ on a ladder of α,
are all that it takes; fields are stored for the functions that are shown, thinned and quantised.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import numpy as np

from uqno.conformal import checks
from uqno.conformal.profile import Profile
from uqno.conformal.ranks import function_rank, grid_point_rank
from uqno.conformal.words import ordinal
from uqno.experiments import results as records
from uqno.experiments.results import LABELS
from uqno.storage import write_text
from uqno.types import Array, Progress, Reals

if TYPE_CHECKING:
    from uqno.experiments.runs import Run


FORMAT: Final = "uqno explorer"
VERSION: Final = 1
FILE: Final = "explorer.json"
SHOWN: Final = 25  # functions; odd, so that the median is one of them
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


class Packed(TypedDict):
    """An array as base64: little-endian float32, or integers 0 … top that run from low to high."""

    kind: str
    """"float32", "uint16", "uint8", "index16": whole numbers 0 … 65535 as they are, or
    "constant": low everywhere, no data."""
    shape: list[int]
    low: float
    high: float
    data: str


class Domain(TypedDict):
    """Where the fields of functions live.

    "grid": a rectangle, fields (x, y) with both ends of each side. "surface": a mesh of its own for
    each function; `points`, (n, 3), and `triangles`, (t, 3), are then numbers of stored fields.
    """

    kind: str
    nodes: list[int]
    """As calibrated and tested; the fields may be thinner."""
    unit: str | None
    """Of truth, error and uncertainty, as "Pa"; None for pure numbers."""


class Scored(TypedDict):
    """All held-out functions under one method, the calibration functions first."""

    method: str
    label: str
    scores: Packed
    """(held-out functions, α): the k-th smallest ratio error / uncertainty."""
    mean_uncertainty: Packed
    """(held-out functions,), before scaling."""


class View(TypedDict):
    """One function under one method; error and uncertainty (before scaling) are numbers of fields."""

    error: int
    """Signed: truth − prediction."""
    uncertainty: int
    ratios: Packed
    """(rungs,): the ratio at each of `rungs`, for the exact coverage at any λ."""


class Shown(TypedDict):
    """A test function to look at; all but its place are numbers of fields.

    On a surface the input is the surface itself: no `input`, but `points` (n, 3), along the car, to
    its side and up, and `triangles` (t, 3), whose kind is "index16".
    """

    held: int
    """Its place among the held-out functions."""
    place: str
    """Among the test functions, by coverage: "best", "median", "worst", or "5th of 100"."""
    input: int | None
    truth: int
    points: int | None
    triangles: int | None
    views: dict[str, View]


class Explorer(TypedDict):
    """The whole file."""

    format: str
    format_version: int
    task: str
    domain: Domain
    points: int
    """m, of every function."""
    rungs: list[int]
    alphas: list[float]
    ranks: list[int]
    """k of each α: the smallest stored rank that is not below ⌈m (1 − α)⌉, so never too small."""
    exact: list[bool]
    """Whether it is that very rank."""
    deltas: list[int]
    """Millionths."""
    alpha: float
    delta: int
    """Where the sliders start: the run's own."""
    calibration: int
    test: int
    """The recorded split: the first functions calibrate, the others test."""
    methods: list[Scored]
    functions: list[Shown]
    fields: list[Packed]


# --- packing --------------------------------------------------------------------------------


def packed(values: Any, kind: str = "float32") -> Packed:
    """An array as text; integers are off by at most half a step, (high − low) / top / 2.

    >>> unpacked(packed([[1.0, 2.0]], "uint8")).tolist()
    [[1.0, 2.0]]
    """
    x = np.asarray(values, dtype=np.float64)
    if kind == "index16":
        return _indices(x)
    finite = x[np.isfinite(x)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if kind != "float32":
        if finite.size != x.size:
            raise ValueError(f"{x.size - finite.size} values are not finite: pack as float32")
        if low == high:
            return Packed(kind="constant", shape=list(x.shape), low=low, high=high, data="")
        top = np.iinfo(kind).max
        x = np.round((x - low) / (high - low) * top)
    data = b64encode(x.astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")
    return Packed(kind=kind, shape=list(x.shape), low=low, high=high, data=data)


def _indices(x: Reals) -> Packed:
    """Corners of triangles: exact, so that any number that is no index is refused."""
    top = np.iinfo(np.uint16).max
    if not ((x >= 0) & (x <= top) & (x == np.floor(x))).all():
        raise ValueError(f"index16 holds whole numbers 0 … {top}, got others: pack as float32")
    data = b64encode(x.astype("<u2").tobytes()).decode("ascii")
    return Packed(kind="index16", shape=list(x.shape), low=0.0, high=float(top), data=data)


def unpacked(held: Packed) -> Reals:
    """What a page reads out of `packed`."""
    if held["kind"] == "constant":
        return np.full(held["shape"], held["low"])
    name = "uint16" if held["kind"] == "index16" else held["kind"]
    kind = np.dtype(name).newbyteorder("<")
    x = np.frombuffer(b64decode(held["data"]), dtype=kind).reshape(held["shape"]).astype(float)
    if held["kind"] in ("float32", "index16"):
        return np.asarray(x)
    top = np.iinfo(name).max
    return np.asarray(held["low"] + x * ((held["high"] - held["low"]) / top))


@dataclass
class Shelf:
    """Fields by number; the same field is stored once (methods share predictions)."""

    fields: list[Packed] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def put(self, values: Any, kind: str = "uint16") -> int:
        held = packed(values, kind)
        place = self.places.setdefault(json.dumps(held), len(self.fields))
        if place == len(self.fields):
            self.fields.append(held)
        return place

    def put_some(self, values: Any | None, kind: str) -> int | None:
        """`put`, of what there may not be."""
        return None if values is None else self.put(values, kind)


# --- which numbers --------------------------------------------------------------------------


def alpha_ladder(wanted: Iterable[float]) -> list[float]:
    """The stops of the slider, those of the run among them."""
    return sorted({*ALPHAS, *wanted})


def delta_ladder(delta: float) -> tuple[list[int], int]:
    """The stops in millionths, the run's own among them (to the millionth below), and which."""
    own = int(checks.share("delta", delta) * MILLION)
    return sorted({*DELTAS, max(own, 1)}), max(own, 1)


def ranks_of(points: int, rungs: Array, alphas: Iterable[float]) -> tuple[list[int], list[bool]]:
    """The stored rank for each α, and whether it is exactly the one that the rule asks for."""
    asked = np.array([grid_point_rank(points, checks.share("alpha", a)) for a in alphas])
    taken = rungs[np.searchsorted(rungs, asked)]  # the last rung is m: there always is one
    return taken.tolist(), (taken == asked).tolist()


def chosen(coverage: Reals, score: Reals, most: int = SHOWN) -> list[tuple[int, str]]:
    """(function, place) of best, median and worst coverage, then evenly in between, from the best.

    Of functions with the same coverage, the one that needs the smaller scale is the better.
    """
    order = np.lexsort((score, -coverage))
    n = len(order)
    picks = np.unique(np.round(np.linspace(0, n - 1, min(most, n))).astype(int))
    names = {0: "best", int(picks[len(picks) // 2]): "median", n - 1: "worst"}
    found = [(int(order[p]), names.get(int(p), f"{ordinal(int(p) + 1)} of {n}")) for p in picks]
    first = ["best", "median", "worst"]
    return sorted(found, key=lambda f: first.index(f[1]) if f[1] in first else len(first))


# --- from a run -----------------------------------------------------------------------------


def write_explorer(
    run: Run, progress: Progress = lambda what, done, total: None, shown: int = SHOWN
) -> Path:
    """RUN/explorer.json of a finished run, written aside, then renamed; kept if it is there."""
    path = run.folder / FILE
    if not path.is_file():
        content = json.dumps(explorer(run, progress, shown), allow_nan=False, separators=(",", ":"))
        write_text(path, content)
    return path


def explorer(
    run: Run, progress: Progress = lambda what, done, total: None, shown: int = SHOWN
) -> Explorer:
    """All that the page explores."""
    s = run.settings
    profiles = {name: run.profile(name) for name in s.methods}
    lead = profiles.get("uqno", profiles[s.methods[0]])
    alphas = alpha_ladder((*s.alphas, *s.curve_alphas))
    ranks, exact = ranks_of(lead.points, lead.ranks, alphas)
    deltas, delta = delta_ladder(s.delta)
    picks = _picked(lead, ranks[alphas.index(s.alphas[0])], s.calibration, s.delta, shown)
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
        label=LABELS[name],
        scores=packed(np.stack([held.scores(k) for k in ranks], axis=1)),
        mean_uncertainty=packed(held.mean_uncertainty),
    )


def _picked(
    lead: Profile, rank: int, calibration: int, delta: float, most: int
) -> list[tuple[int, str]]:
    """Test functions by their coverage at λ̂ of the recorded split; at λ = 1 where there is none."""
    scores = lead.scores(rank)
    j = function_rank(calibration, Fraction(str(delta)))
    scale = 1.0 if j is None else float(np.sort(scores[:calibration])[j - 1])
    coverage = lead.coverage(scale if np.isfinite(scale) else 1.0)[calibration:, 0]
    found = chosen(coverage, scores[calibration:], most)
    return [(calibration + which, place) for which, place in found]


def _functions(
    run: Run,
    picks: list[tuple[int, str]],
    profiles: Mapping[str, Profile],
    shelf: Shelf,
    progress: Progress,
) -> list[Shown]:
    """Each chosen function and what every method says of it; a model is read once."""
    from uqno.experiments.runs import loaded

    scenes = {held: run.task.scene(held, NODES) for held, _ in picks}
    truths = {held: run.task.held()[held]["u"][0] for held, _ in picks}
    views: dict[int, dict[str, View]] = {held: {} for held, _ in picks}
    total = len(picks) * len(profiles)
    for i, (name, profile) in enumerate(profiles.items()):
        model, data = loaded(run, name), run.held(name)
        for k, (held, truth) in enumerate(truths.items()):
            progress("storing functions to look at", i * len(picks) + k, total)
            prediction = model.uncalibrated(data[held])
            error = truth.double() - prediction.center[0, 0].double()
            thin = scenes[held].thin
            views[held][name] = View(
                error=shelf.put(thin(error.numpy())),
                uncertainty=shelf.put(thin(prediction.uncertainty[0].double().numpy())),
                ratios=packed(profile.ratios[held]),
            )
    return [
        Shown(
            held=held,
            place=place,
            input=shelf.put_some(scenes[held].input, "uint8"),
            truth=shelf.put(scenes[held].thin(truths[held].numpy())),
            points=shelf.put_some(scenes[held].points, "uint16"),
            triangles=shelf.put_some(scenes[held].triangles, "index16"),
            views=views[held],
        )
        for held, place in picks
    ]


def reopened(folder: str | Path, data: str | Path | None) -> Run | None:
    """The run of a folder, for more to be made of it; None where its models or data are gone.

    data: where its functions are, if not where they were when it was run; other ones are refused.
    """
    from uqno.experiments.presets import recorded
    from uqno.experiments.runs import Run, claim

    folder = Path(folder)
    if not (folder / "settings.json").is_file() or not (folder / "results.json").is_file():
        return None
    record = records.read(folder / "results.json")
    is_given = data is not None
    if not is_given:
        started = json.loads((folder / "settings.json").read_text(encoding="utf8"))
        data = started.get("data", {}).get("source")
    run = Run(
        recorded(record["task"], record["settings"]), folder, None if data is None else Path(data)
    )
    parts = [run.folder / "models" / name / "model.json" for name in run.settings.methods]
    parts += [run.chunk_file(name, c) for name in run.settings.methods for c in run.chunks()]
    try:
        claim(run)
        there = run.task.is_made()
    except (ValueError, OSError):  # a set of cars that has gone, or is another now
        if is_given:
            raise
        there = False
    if is_given and not there:
        raise ValueError(f"{data} does not have the functions of the run {folder}")
    return run if there and all(part.exists() for part in parts) else None


def read_explorer(path: str | Path) -> Explorer | None:
    """What `write_explorer` wrote, None where there is none; a foreign or newer file is refused."""
    path = Path(path)
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf8"))
    except ValueError as why:
        raise ValueError(f"{path} is not whole JSON: {why}; remove it to have it made") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not an explorer file of uqno: remove it to have it made")
    if content.get("format_version", 0) > VERSION:
        raise ValueError(f"{path} is of a newer uqno: update uqno")
    missing = [key for key in Explorer.__annotations__ if key not in content]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}: remove it to have it made")
    return cast(Explorer, content)
