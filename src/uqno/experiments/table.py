"""Rows of a record → a table of words: one for each (α, δ), with the paper's own numbers.

Plain data, so that a terminal of 80 columns and a Markdown file show the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from uqno.conformal import words
from uqno.conformal.agreement import verdict as said
from uqno.experiments.results import Ablated, Quoted, Results, Row
from uqno.storage import write_text

NONE: Final = "–"
PASS, NEAR, FAIL = "✓", "≈", "✗"
SIGNS: Final = {"yes": PASS, "doubtful": NEAR, "no": FAIL}
DESIGNS: Final = {
    "none": "raw",
    "grid": "grid",
    "iid": "iid",
    "hoeffding": "Hoeffding",
    "hoeffding best t": "best t",
}
"""How a column calls the way a scale was found."""


@dataclass(frozen=True)
class Table:
    """Cells as text; all columns but those named in `left` are numbers, to the right."""

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    left: tuple[str, ...] = ("method",)
    notes: tuple[str, ...] = ()

    def narrow(self, columns: Sequence[str]) -> Table:
        """The same with these columns alone."""
        unknown = [c for c in columns if c not in self.columns]
        if unknown:
            raise ValueError(
                f"no column {unknown[0]!r}: expected some of {', '.join(self.columns)}"
            )
        places = [self.columns.index(c) for c in columns]
        return replace(
            self,
            columns=tuple(columns),
            cells=tuple(tuple(line[i] for i in places) for line in self.cells),
        )


Column = Callable[[Row, Quoted | None], str]
RELATIVE: Final = "of RMS(u)"

# What each column says of a row and of the paper's number that belongs to it.
COLUMNS: Final[dict[str, Column]] = {
    "method": lambda r, p: r["label"],
    "ranks": lambda r, p: DESIGNS.get(r["sampling"], r["sampling"]),
    "bandwidth": lambda r, p: _bandwidth(r),
    "± sd": lambda r, p: number(r["bandwidth_sd"], 2),
    RELATIVE: lambda r, p: percent(r["relative_bandwidth"], 2),
    "covered": lambda r, p: _verdict(r),
    "p": lambda r, p: _p_value(r["p_value"]),
    "usual": lambda r, p: _range(r["usual"]),
    "paper": lambda r, p: NONE if p is None else number(p["bandwidth"]),
    "paper %": lambda r, p: NONE if p is None else percent(p["calibration_percentage"]),
    "coverage": lambda r, p: percent(r["coverage"]),
    "oracle bandwidth": lambda r, p: number(r["oracle_bandwidth"]),
    "rank correlation": lambda r, p: _correlation(r["rank_correlation"]),
    "across functions": lambda r, p: _correlation(r["function_correlation"]),
    "interval score": lambda r, p: number(r["interval_score"]),
    "error": lambda r, p: percent(r["relative_error"], 2),
    "train [s]": lambda r, p: number(r["train_seconds"], 2),
    "calibrate [s]": lambda r, p: number(r["calibrate_seconds"], 2),
    "predict [s]": lambda r, p: number(r["predict_seconds"], 2),
}
# And of functions on surfaces, where areas count beside points.
AREA_COLUMNS: Final[dict[str, Column]] = {
    "area": lambda r, p: percent(r["area_coverage"]),
    "by area": lambda r, p: percent(r["area_percentage"]),
    "area width": lambda r, p: number(r["area_bandwidth"]),
}
NARROW: Final = ("method", "ranks", "bandwidth", RELATIVE, "covered", "paper")
FURTHER: Final = ("error", "p", *AREA_COLUMNS)
"""Columns that fit a terminal of 80, in two tables; those of them that a record has."""


def unit_column(results: Results) -> str:
    """The column of bandwidths in the unit of the functions; nothing for pure numbers."""
    return "" if results["unit"] is None else f"in {results['unit']['symbol']}"


def has_areas(results: Results) -> bool:
    """Whether functions were measured by area too."""
    return any(row["area_coverage"] is not None for row in results["rows"])


def columns_of(results: Results) -> dict[str, Column]:
    """The columns that a record has: relative to u or in its unit, and by area where it has any."""
    columns = {c: say for c, say in COLUMNS.items() if c != RELATIVE or results["rms"] is not None}
    if unit_column(results):
        columns[unit_column(results)] = lambda r, p: number(r["bandwidth_in_unit"])
    return columns | (AREA_COLUMNS if has_areas(results) else {})


def tables(results: Results) -> tuple[Table, ...]:
    """One table for each (α, δ) of the record, calibrated methods first, narrow bands first."""
    levels = dict.fromkeys((row["alpha"], row["delta"]) for row in results["rows"])
    return tuple(_table(results, alpha, delta) for alpha, delta in levels)


def narrow_tables(results: Results) -> Iterable[Table]:
    """The same in tables that fit a terminal of 80 columns, two for each (α, δ) on surfaces."""
    for one in tables(results):
        first = one.narrow([c for c in NARROW if c in one.columns])
        further = [c for c in (unit_column(results), *FURTHER) if c in one.columns]
        if not unit_column(results):
            yield first
            continue
        yield replace(first, notes=())
        yield one.narrow(["method", "ranks", *further])


def ordered(results: Results, alpha: float, delta: float) -> list[tuple[Row, Quoted | None]]:
    """The rows of one table in their order, each with the paper's number that belongs to it."""
    rows = [r for r in results["rows"] if (r["alpha"], r["delta"]) == (alpha, delta)]
    quoted = {(q["method"], q["sampling"]): q for q in results["paper"] if q["alpha"] == alpha}
    return [(row, quoted.get((row["method"], row["sampling"]))) for row in sorted(rows, key=_order)]


def _table(results: Results, alpha: float, delta: float) -> Table:
    lines = ordered(results, alpha, delta)
    columns = columns_of(results)
    return Table(
        title=f"alpha = {alpha:g}, delta = {delta:g}: {promised(alpha, delta)}",
        columns=tuple(columns),
        cells=tuple(tuple(column(*line) for column in columns.values()) for line in lines),
        left=("method", "ranks"),
        notes=(*notes(row for row, _ in lines), *unit_notes(results)),
    )


def promised(alpha: float, delta: float) -> str:
    """What every calibrated band of a table promises, in words."""
    return (
        f"at least {words.rest(alpha)} of the points of a new function, with probability at least "
        f"{words.rest(delta)}"
    )


def _order(row: Row) -> tuple[bool, bool, float]:
    width = row["bandwidth"]
    return not row["calibrated"], width is None, width or 0.0


def notes(rows: Iterable[Row]) -> Iterable[str]:
    """What does not fit a column: why a row is infeasible, the share that a subspace explains."""
    for row in rows:
        who = f"{row['label']} ({DESIGNS.get(row['sampling'], row['sampling'])})"
        if not row["feasible"]:
            yield f"{who}: {row['reason']}"
        if row["share_of_variance"] is not None and not row["calibrated"]:
            yield (
                f"{who}: a subspace has no width; its percentage is the share of the error's "
                "variance inside, as in the paper."
            )


def unit_notes(results: Results) -> Iterable[str]:
    """What bandwidths are in, and what the further columns say."""
    if results["unit"] is not None:
        yield (
            f"Bandwidths are in units of {bandwidth_unit(results)}, the standard deviation of the "
            "training functions."
        )
    if has_areas(results):
        yield (
            "area: the share of the area that the same band covers; by area: the share of "
            "functions of which it covers enough; area width: the bandwidth where the scale is "
            "chosen by area."
        )


def bandwidth_unit(results: Results) -> str:
    """What a bandwidth of 1 is; nothing for functions that are pure numbers."""
    unit = results["unit"]
    return "" if unit is None else f"{number(unit['size'])} {unit['symbol']}"


def ablation_tables(results: Results) -> tuple[Table, ...]:
    """What each ingredient contributes, one table for each α; none where no ablation was run."""
    rows = results["ablation"]
    return tuple(
        Table(
            title=f"Ablation, alpha = {alpha:g}",
            columns=("recipe", "ranks", "bandwidth", "tighter"),
            cells=tuple(_ablation_cells(row) for row in rows if row["alpha"] == alpha),
            left=("recipe", "ranks"),
        )
        for alpha in dict.fromkeys(row["alpha"] for row in rows)
    )


def _ablation_cells(row: Ablated) -> tuple[str, ...]:
    return (
        row["label"],
        DESIGNS.get(row["sampling"], row["sampling"]),
        number(row["bandwidth"]) if row["feasible"] else "infeasible",
        NONE if row["ratio"] is None else f"{row['ratio']:.2f} ×",
    )


# --- words ----------------------------------------------------------------------------------


def number(value: float | None, digits: int = 3) -> str:
    """A few digits that line up and are read at a glance.

    >>> number(0.00015678), number(12.345), number(9876.0), number(317.2, 2), number(None)
    ('1.57e-4', '12.3', '9876', '317', '–')
    """
    if value is None:
        return NONE
    if value != 0 and abs(value) < 1e-2:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    large = abs(value) >= 10**digits - 0.5  # to so many digits, it would be written with a power
    return f"{value:.0f}" if large else f"{value:#.{digits}g}".rstrip(".")


def percent(share: float | None, digits: int = 1) -> str:
    """0.98004 → '98.0 %'; 100 % is said of all alone.

    >>> percent(0.98004), percent(0.99996), percent(1.0), percent(0.003021, 2)
    ('98.0 %', '99.9 %', '100 %', '0.30 %')
    """
    if share is None:
        return NONE
    if 0.999 < share < 1:
        return "99.9 %"
    return "100 %" if share == 1 else f"{100 * share:.{digits}f} %"


def verdict(row: Row) -> str | None:
    """Whether the recorded split agrees with the promise: ✓ yes, ≈ doubtful, ✗ no.

    Of a raw band, which promises nothing: ✓ at the target, ≈ within the exact interval, ✗ below.
    """
    share, interval = row["calibration_percentage"], row["interval"]
    if row["p_value"] is not None:
        return SIGNS[said(row["p_value"])]
    if share is None or interval is None:
        return None
    near = NEAR if interval[1] >= row["target"] else FAIL
    return PASS if share >= row["target"] else near


def _verdict(row: Row) -> str:
    sign, share = verdict(row), row["calibration_percentage"]
    return percent(share) if sign is None else f"{percent(share)} {sign}"


def _correlation(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _bandwidth(row: Row) -> str:
    return number(row["bandwidth"]) if row["feasible"] else "infeasible"


def _p_value(p: float | None) -> str:
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _range(ends: Sequence[float] | None) -> str:
    return NONE if ends is None else f"{percent(ends[0])} to {percent(ends[1])}"


# --- Markdown -------------------------------------------------------------------------------


def markdown(results: Results) -> str:
    """All tables of a record, with the command that made it."""
    shown = (*tables(results), *ablation_tables(results))
    head = (
        f"# {results['task'].capitalize()}, preset {results['preset']}\n\n"
        f"Made by `{results['command']}`, finished {results['finished']}.\n\n{legend(results)}\n"
    )
    return "\n".join([head, *(as_markdown(table) for table in shown)])


def legend(results: Results) -> str:
    """What the columns of the tables say."""
    splits, split = results["settings"]["splits"], results["split"]
    return (
        f"Bandwidths are means over {splits} random splits of the held-out functions into "
        f"{split['calibration']} to calibrate and {split['test']} to test. *covered* is the share "
        "of the test functions of the recorded split with enough points in the band, *p* the "
        "probability of so few or fewer if the promise holds, *usual* where that share lies with "
        "probability 95 % then. *error* is the relative L2 error of the prediction. *aided*: with "
        "the symmetries and extra inputs of ours. *paper*: the paper's own numbers."
    )


def as_markdown(table: Table, level: int = 2) -> str:
    """One table as Markdown, with its notes, under a heading of a level."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = [":--" if column in table.left else "--:" for column in table.columns]
    lines = [f"{'#' * level} {table.title}", "", line(table.columns), line(rule)]
    lines += [line(cells) for cells in table.cells]
    lines += ["", *(f"- {note}" for note in table.notes)] if table.notes else []
    return "\n".join([*lines, ""])


def write_markdown(path: str | Path, results: Results) -> None:
    """`markdown` in a file, written aside, then renamed."""
    write_text(path, markdown(results))
