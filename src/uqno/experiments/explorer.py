"""`explorer.json`: a few test functions to look at, and the scores of all that sliders move over.

A page without Python has to answer "what if α were 0.05?". λ̂ is the j-th smallest calibration
score, so the k-th smallest ratios of every held-out function, k = ⌈m (1 − α)⌉ on a list of α,
are all that it takes; fields are stored for the functions that are shown, thinned and quantised.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, TypedDict, cast

from uqno.experiments.packing import Packed
from uqno.experiments.scene import Domain
from uqno.storage import DamagedError

FORMAT: Final = "uqno explorer"
VERSION: Final = 1
FILE: Final = "explorer.json"


class Scored(TypedDict):
    """All held-out functions under one method, the calibration functions first."""

    method: str
    label: str
    scores: Packed
    """(held-out functions, α): the k-th smallest ratio error / uncertainty."""
    mean_uncertainty: Packed
    """(held-out functions,), before scaling."""


class View(TypedDict):
    """One function under one method; all but the ratios are numbers of fields."""

    residual: int
    """Truth − prediction, signed; its norm where functions are vector-valued."""
    uncertainty: int
    """Before scaling."""
    magnitude: int | None
    """The magnitude of the prediction, where functions are vector-valued."""
    ratios: Packed
    """(rungs,): the ratio at each of `rungs`, for the exact coverage at any λ."""


class Shown(TypedDict):
    """A test function to look at; all but its place are numbers of fields.

    On a surface the input is the surface itself: no `input`, but `points` (n, 3), along, to the
    side and up, and `triangles` (t, 3), whose kind is "index16".
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


def read_explorer(path: str | Path) -> Explorer | None:
    """What `write_explorer` wrote, None where there is none.

    Raises:
        DamagedError: it is not whole JSON.
        ValueError: it is foreign, or of a newer uqno.
    """
    path = Path(path)
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf8"))
    except ValueError as why:
        raise DamagedError(f"{path} is not whole JSON: {why}; remove it to have it made") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not an explorer file of uqno: remove it to have it made")
    if content.get("format_version", 0) > VERSION:
        raise ValueError(f"{path} is of a newer uqno: update uqno")
    missing = [key for key in Explorer.__annotations__ if key not in content]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}: remove it to have it made")
    return cast(Explorer, content)
