"""`results.json`: the rows of the table and all that the figures are drawn from, nothing else.

The record is plain JSON data, described by the types below; percentages are shares, 0 … 1, and
null stands for what does not exist (an infeasible row has no bandwidth).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import floor, isfinite, log10
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, TypedDict, cast

from uqno.experiments.scene import Domain
from uqno.storage import write_text

FORMAT: Final = "uqno results"
VERSION: Final = 2
DIGITS, FIELD_DIGITS = 6, 4

Field = list[float] | list[list[float]]
"""Values at the points of a surface, or rows of a grid."""


class Unit(TypedDict):
    """The unit of functions that are no pure numbers; bandwidths are divided by `size`."""

    symbol: str
    size: float


class Look(TypedDict):
    """How a method is called and drawn, in every table and figure.

    `aided` methods are others with what the recipe `uqno` has; they are not drawn.
    """

    name: str
    label: str
    colour: str
    marker: str
    reference: str
    aided: bool


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
    relative_bandwidth: float | None
    """The bandwidth divided by the root mean square of the functions; where they have a unit, by
    that, so that it is the bandwidth itself."""
    calibration_percentage: float | None
    """On the test functions of the recorded split; raw, on all held-out functions."""
    failures: int | None
    """Test functions of the recorded split that are not covered."""
    p_value: float | None
    """The probability of so many failures or more, if the promise holds."""
    usual: list[float] | None
    """Where the percentage lies with probability 95 %, if the promise holds."""
    interval: list[float] | None
    """Raw: the exact 95 % interval for the percentage of new functions."""
    target: float
    coverage: float | None
    bandwidth_in_unit: float | None
    """In the unit of the functions, if they have one."""
    area_coverage: float | None
    """On surfaces: the share of the area that is covered, by the band calibrated by points."""
    area_percentage: float | None
    """And the share of functions of which at least 1 − α of the area is covered."""
    area_bandwidth: float | None
    """The bandwidth of the band that is calibrated by area instead."""
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
    """One recipe of the ablation; ratio: the paper recipe's bandwidth / this one's, both
    calibrated by the same design."""

    name: str
    label: str
    method: str
    """Whose bands it shows."""
    alpha: float
    delta: float
    sampling: str
    feasible: bool
    bandwidth: float | None
    ratio: float | None


class Curve(TypedDict):
    """Bandwidth against δ; null where infeasible."""

    method: str
    alpha: float
    delta: list[float]
    bandwidth: list[float | None]


class Targets(TypedDict):
    """The percentage on the recorded split against 1 − δ; feasible ones alone.

    `low` and `high` are where it lies with probability 95 % if the promise holds.
    """

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
    """Scale times uncertainty; the uncertainty itself where it is not calibrated."""
    coverage: float


class Panel(TypedDict):
    """One test function as every method sees it; a surface is its own input.

    Truth and prediction of a vector-valued function are shown by their magnitude.
    """

    alpha: float
    delta: float
    input: Field | None
    truth: Field
    prediction: Field
    points: list[list[float]] | None
    """(n, 3) of a surface: along, to the side, up."""
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
    sampling: str
    """The rule by which it was calibrated; "none" where it was not."""
    alpha: float
    bandwidth: float | None
    calibration_percentage: float


def quoted(
    method: str,
    alpha: float,
    bandwidth: float | None,
    calibration_percentage: float,
    sampling: str = "none",
) -> Quoted:
    """One cell pair of the paper's table; the percentage as a share."""
    return Quoted(
        method=method,
        sampling=sampling,
        alpha=alpha,
        bandwidth=bandwidth,
        calibration_percentage=calibration_percentage,
    )


class Results(TypedDict):
    """The whole record. `panel` and `section` may be null, the lists empty."""

    format: str
    format_version: int
    task: str
    title: str
    """What is predicted from what, a sentence."""
    preset: str
    command: str
    started: str
    finished: str
    settings: dict[str, Any]
    aids: str
    """What the recipe `uqno` has and methods as they were published have not, in words."""
    versions: dict[str, str]
    machine: str
    split: dict[str, int]
    points: int
    """The number of points of every held-out function."""
    unit: Unit | None
    rms: float | None
    """The root mean square of the training functions; null where they have a unit."""
    domain: Domain
    """Where the functions live."""
    methods: list[Look]
    """The methods of the run, and others that the paper has numbers of."""
    rows: list[Row]
    ablation: list[Ablated]
    curves: list[Curve]
    targets: list[Targets]
    panel: Panel | None
    section: Section | None
    paper: list[Quoted]


PARTS: Final[dict[str, Any]] = {
    "domain": Domain,
    "methods": Look,
    "rows": Row,
    "ablation": Ablated,
    "curves": Curve,
    "targets": Targets,
    "panel": Panel,
    "section": Section,
    "paper": Quoted,
    "unit": Unit,
}
SINGLE_PARTS: Final = ("domain", "panel", "section", "unit")
NUMBERS: Final = (
    "alpha", "delta", "bandwidth", "relative_bandwidth", "bandwidth_in_unit",
    "calibration_percentage", "p_value",
)  # fmt: skip

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
    _check_parts(path, content)
    return cast(Results, content)


def _check_format(path: str | Path, content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{path} is not a record of results: expected {FORMAT!r}, got {got!r}")
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
