"""`results.json`: the rows of the table and all that the figures are drawn from, nothing else.

The record is plain JSON data, described by the types below; percentages are shares, 0 … 1, and
null stands for what does not exist (an infeasible row has no bandwidth).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import floor, isfinite, log10
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, TypedDict, cast

from uqno.experiments.measuring import Measured
from uqno.experiments.paper import paper_rows
from uqno.storage import write_text

FORMAT: Final = "uqno results"
VERSION: Final = 1
DIGITS, FIELD_DIGITS = 6, 4

LABELS: Final = {
    "uqno": "UQNO (ours)",
    "uqno-paper": "UQNO (paper)",
    "mc-dropout": "MC dropout",
    "laplace": "Laplace",
    "nppc": "NPPC",
    "ensemble": "Deep ensemble",
    "perturbed-pair": "Perturbed pair",
    "constant": "Constant",
    "mean-field": "Mean error field",
}
"""Names of the methods in files, and how a person calls them."""


Field = list[float] | list[list[float]]
"""Values at the points of a surface, or rows of a grid."""


class Unit(TypedDict):
    """Of functions that are no pure numbers; bandwidths in the record are divided by `size`."""

    symbol: str
    size: float


class Row(TypedDict):
    """One method at one (α, δ), raw or calibrated."""

    method: str
    label: str
    calibrated: bool
    alpha: float
    delta: float
    sampling: str
    feasible: bool
    reason: str | None
    scale: float | None
    scale_sd: float | None
    bandwidth: float | None
    bandwidth_sd: float | None
    calibration_percentage: float | None
    calibration_percentage_sd: float | None
    interval: list[float] | None
    target: float
    coverage: float | None
    bandwidth_in_unit: float | None
    """In the unit of the functions, if they have one."""
    area_coverage: float | None
    """On surfaces: the share of the area that is covered, by the band calibrated by points."""
    area_percentage: float | None
    """And the share of functions of which at least 1 − α of the area is covered."""
    area_bandwidth: float | None
    """Of the band that is calibrated by area instead."""
    relative_error: float | None
    """Mean over held-out functions of ‖u − Ĝ(a)‖ / ‖u‖."""
    oracle_scale: float | None
    oracle_bandwidth: float | None
    rank_correlation: float | None
    function_correlation: float | None
    interval_score: float | None
    share_of_variance: float | None
    """NPPC alone: the share of the error's energy inside its subspace."""
    train_seconds: float | None
    calibrate_seconds: float | None
    predict_seconds: float | None


class Ablated(TypedDict):
    """One recipe of the ablation; ratio: the paper recipe's bandwidth / this one's."""

    name: str
    label: str
    alpha: float
    delta: float
    sampling: str
    feasible: bool
    bandwidth: float | None
    calibration_percentage: float | None
    ratio: float | None


class Curve(TypedDict):
    """Bandwidth and percentage against δ; null where infeasible."""

    method: str
    alpha: float
    delta: list[float]
    bandwidth: list[float | None]
    calibration_percentage: list[float | None]


class Targets(TypedDict):
    """Actual percentage, with its exact interval, against 1 − δ; feasible ones alone."""

    method: str
    alpha: float
    target: list[float]
    actual: list[float]
    low: list[float]
    high: list[float]


class PanelMethod(TypedDict):
    """One method on the function of the panel."""

    method: str
    label: str
    calibrated: bool
    error: Field
    radius: Field
    """Times the scale."""
    coverage: float


class Panel(TypedDict):
    """One test function as every method sees it; on a surface, which is its own input."""

    alpha: float
    delta: float
    input: Field | None
    truth: Field
    prediction: Field
    points: list[list[float]] | None
    """(n, 3) of a surface: along the car, to its side, up."""
    triangles: list[list[int]] | None
    methods: list[PanelMethod]


class Section(TypedDict):
    """A cut through one test function."""

    x: list[float]
    truth: list[float]
    center: list[float]
    lower: list[float]
    upper: list[float]


class Quoted(TypedDict):
    """A number of the paper's own table."""

    method: str
    alpha: float
    bandwidth: float | None
    calibration_percentage: float


class Results(TypedDict):
    """The whole record. `panel` and `section` may be null, the lists empty."""

    format: str
    format_version: int
    task: str
    preset: str
    command: str
    started: str
    finished: str
    settings: dict[str, Any]
    versions: dict[str, str]
    machine: str
    split: dict[str, int]
    points: int
    """Of every held-out function."""
    unit: Unit | None
    rows: list[Row]
    ablation: list[Ablated]
    curves: list[Curve]
    targets: list[Targets]
    panel: Panel | None
    section: Section | None
    paper: list[Quoted]


PARTS: Final[dict[str, Any]] = {
    "rows": Row,
    "ablation": Ablated,
    "curves": Curve,
    "targets": Targets,
    "panel": Panel,
    "section": Section,
    "paper": Quoted,
    "unit": Unit,
}
SINGLE_PARTS: Final = ("panel", "section", "unit")
NUMBERS: Final = ("alpha", "delta", "bandwidth", "bandwidth_in_unit", "calibration_percentage")
# What records did not have before there were cars.
ADDED_TO_ROWS: Final = (
    "bandwidth_in_unit",
    "area_coverage",
    "area_percentage",
    "area_bandwidth",
    "relative_error",
)
ADDED_TO_PANELS: Final = ("points", "triangles")


# --- parts ----------------------------------------------------------------------------------


def row(
    method: str,
    measured: Measured,
    *,
    label: str | None = None,
    unit: Unit | None = None,
    share_of_variance: float | None = None,
    relative_error: float | None = None,
    train_seconds: float | None = None,
    calibrate_seconds: float | None = None,
    predict_seconds: float | None = None,
) -> Row:
    """A row of the table from what was measured; the label is the method's own by default."""
    numbers = asdict(measured)
    del numbers["ranks"]
    width = measured.bandwidth
    found = {
        "method": method,
        "label": label or LABELS.get(method, method),
        "bandwidth_in_unit": None if unit is None or width is None else width * unit["size"],
        "share_of_variance": share_of_variance,
        "relative_error": relative_error,
        "train_seconds": train_seconds,
        "calibrate_seconds": calibrate_seconds,
        "predict_seconds": predict_seconds,
        "target": measured.target,
        **numbers,
    }
    return cast(Row, {key: found[key] for key in Row.__annotations__})


def ablated(recipes: Mapping[str, tuple[str, Measured]], reference: str) -> list[Ablated]:
    """{name: (label, measured)} at one (α, δ) → rows; ratio = reference's bandwidth / its own."""
    if reference not in recipes:
        raise ValueError(f"reference = {reference!r} must be one of {', '.join(recipes)}")
    theirs = recipes[reference][1].bandwidth
    return [
        Ablated(
            name=name,
            label=label,
            alpha=m.alpha,
            delta=m.delta,
            sampling=m.sampling,
            feasible=m.feasible,
            bandwidth=m.bandwidth,
            calibration_percentage=m.calibration_percentage,
            ratio=theirs / m.bandwidth if theirs is not None and m.bandwidth else None,
        )
        for name, (label, m) in recipes.items()
    ]


def curve(method: str, swept: Sequence[Measured]) -> Curve:
    """The trade-off of one method at one α, from `measuring.sweep`."""
    return Curve(
        method=method,
        alpha=swept[0].alpha,
        delta=[m.delta for m in swept],
        bandwidth=[m.bandwidth for m in swept],
        calibration_percentage=[m.calibration_percentage for m in swept],
    )


def targets(method: str, swept: Sequence[Measured]) -> Targets:
    """Actual against target of one method at one α, from `measuring.sweep`."""
    known = [m for m in swept if m.calibration_percentage is not None and m.interval is not None]
    return Targets(
        method=method,
        alpha=swept[0].alpha,
        target=[m.target for m in known],
        actual=[cast(float, m.calibration_percentage) for m in known],
        low=[m.interval[0] for m in known if m.interval is not None],
        high=[m.interval[1] for m in known if m.interval is not None],
    )


def quoted(task: str) -> list[Quoted]:
    """The paper's own numbers for this task."""
    return [
        Quoted(
            method=r.method,
            alpha=r.alpha,
            bandwidth=r.bandwidth,
            calibration_percentage=r.calibration_percentage,
        )
        for r in paper_rows(task)
    ]


def thinning(nodes: int, most: int) -> int:
    """The smallest s for which every s-th of `nodes` are at most `most`, both ends among them.

    The record of nine methods at 421 × 421 would be 30 MB, and no figure has so many dots.

    >>> thinning(43, 64), thinning(421, 64)
    (1, 7)
    """
    step = max(1, -(-(nodes - 1) // (most - 1)))
    while (nodes - 1) % step:
        step += 1
    return step


# --- files ----------------------------------------------------------------------------------


def write(path: str | Path, results: Results) -> None:
    """The record as JSON, numbers to 6 digits, those of fields to 4; aside, then renamed."""
    _check_format(path, results)
    _check_parts(path, results)
    fields = ("panel", "section")
    content = {
        key: rounded(value, FIELD_DIGITS if key in fields else DIGITS)
        for key, value in results.items()
    }
    parts = ",\n".join(f"{_json(key)}:{_lines(value)}" for key, value in content.items())
    write_text(path, f"{{\n{parts}\n}}\n")


def _lines(value: Any) -> str:
    """JSON with a line for each member of a list: a changed row is a changed line."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(_json(item) for item in value) + "\n]"
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def read(path: str | Path) -> Results:
    """What `write` wrote; a foreign, newer or truncated file is refused by name."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} does not exist: `uqno run` writes it")
    try:
        content = json.loads(path.read_text(encoding="utf8"))
    except ValueError as why:
        raise ValueError(
            f"{path} is not whole JSON, truncated or foreign ({why}): remove it, and `uqno run` "
            "concludes again from what is trained"
        ) from None
    _check_format(path, content)
    _complete_older(content)
    _check_parts(path, content)
    return cast(Results, content)


def _complete_older(content: dict[str, Any]) -> None:
    """Add to a record from before there were cars what it says by leaving it out."""
    if "points" in content:
        return
    settings, rows, panel = (content.get(key) for key in ("settings", "rows", "panel"))
    side = settings.get("tested_at") if isinstance(settings, dict) else None
    content["points"] = side**2 if isinstance(side, int) else 0
    content["unit"] = None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            row |= {key: None for key in ADDED_TO_ROWS if key not in row}
    if isinstance(panel, dict):
        panel |= dict.fromkeys(ADDED_TO_PANELS)


def _check_format(path: str | Path, content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{path} is not a record of results: expected {FORMAT!r}, got {found!r}")
    version = content.get("format_version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(
            f"{path} has format_version {version!r}, this uqno reads up to {VERSION}: update uqno"
        )


def _check_parts(path: str | Path, content: Any) -> None:
    _complete(path, "the record", content, Results)
    if not isinstance(content["settings"], dict):
        raise ValueError(f"{path}: settings must be an object")
    for name, kind in PARTS.items():
        part = content[name]
        if name in SINGLE_PARTS:
            if part is not None:
                _complete(path, name, part, kind)
            continue
        if not isinstance(part, list):
            raise ValueError(f"{path}: {name} must be a list, got {type(part).__name__}")
        for i, one in enumerate(part):
            _complete(path, f"{name}[{i}]", one, kind)
    for i, row in enumerate(content["rows"]):
        for key in NUMBERS:
            value = row[key]
            if value is not None and not (isinstance(value, int | float) and isfinite(value)):
                raise ValueError(f"{path}: {key} of rows[{i}] is {value!r:.40}, expected a number")


def _complete(path: str | Path, where: str, part: Any, kind: Any) -> None:
    if not isinstance(part, dict):
        raise ValueError(f"{path}: {where} must be an object, got {type(part).__name__}")
    missing = [key for key in kind.__annotations__ if key not in part]
    if missing:
        raise ValueError(
            f"{path}: {where} lacks {', '.join(missing)}; write it with uqno.experiments"
        )


def rounded(value: Any, digits: int) -> Any:
    """Every number in lists and dictionaries to so many significant digits.

    >>> rounded({"a": [1 / 3, 12345678, None, True]}, 3)
    {'a': [0.333, 12345678, None, True]}
    """
    if isinstance(value, Mapping):
        return {str(key): rounded(item, digits) for key, item in value.items()}
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return rounded(value.tolist(), digits)
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    if isinstance(value, Real) and not isinstance(value, Integral):
        return _rounded(float(value), digits)
    return value


def _rounded(x: float, digits: int) -> float:
    if not isfinite(x):
        raise ValueError(f"{x} cannot be written: JSON has no such number; write None for 'none'")
    return 0.0 if x == 0 else round(x, digits - 1 - floor(log10(abs(x))))
