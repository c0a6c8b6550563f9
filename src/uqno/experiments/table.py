"""Rows of a record → a table of words: one for each (α, δ), with the paper's own numbers.

Plain data, so that a terminal of 80 columns and a Markdown file show the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from uqno.conformal import words
from uqno.experiments.results import Ablated, Quoted, Results, Row
from uqno.storage import write_text

NONE: Final = "–"
PASS, NEAR, FAIL = "✓", "≈", "✗"
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

# What each column says of a row and of the paper's number that belongs to it.
COLUMNS: Final[dict[str, Column]] = {
    "method": lambda r, p: r["label"],
    "ranks": lambda r, p: DESIGNS.get(r["sampling"], r["sampling"]),
    "bandwidth": lambda r, p: _bandwidth(r),
    "± sd": lambda r, p: number(r["bandwidth_sd"], 2),
    "calibrated": lambda r, p: _verdict(r),
    "95 % interval": lambda r, p: _interval(r["interval"]),
    "paper": lambda r, p: NONE if p is None else number(p["bandwidth"]),
    "paper %": lambda r, p: NONE if p is None else percent(p["calibration_percentage"]),
    "coverage": lambda r, p: percent(r["coverage"]),
    "oracle bandwidth": lambda r, p: number(r["oracle_bandwidth"]),
    "rank correlation": lambda r, p: _correlation(r["rank_correlation"]),
    "across functions": lambda r, p: _correlation(r["function_correlation"]),
    "interval score": lambda r, p: number(r["interval_score"]),
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
NARROW: Final = ("method", "ranks", "bandwidth", "calibrated", "paper", "paper %")
"""Columns that fit a terminal of 80."""


def unit_column(results: Results) -> str:
    """The column of bandwidths in the unit of the functions; nothing for pure numbers."""
    return "" if results["unit"] is None else f"in {results['unit']['symbol']}"


def has_areas(results: Results) -> bool:
    """Whether functions were measured by area too."""
    return any(row["area_coverage"] is not None for row in results["rows"])


def further_columns(results: Results) -> dict[str, Column]:
    """What a record says beyond `COLUMNS`: in units, by area, and then how large errors are."""
    columns: dict[str, Column] = {}
    if unit_column(results):
        columns[unit_column(results)] = lambda r, p: number(r["bandwidth_in_unit"])
    if has_areas(results):
        columns |= AREA_COLUMNS
    if columns:
        columns["error"] = lambda r, p: percent(r["relative_error"])
    return columns


def tables(results: Results) -> tuple[Table, ...]:
    """One table for each (α, δ) of the record, calibrated methods first, narrow bands first."""
    levels = dict.fromkeys((row["alpha"], row["delta"]) for row in results["rows"])
    return tuple(_table(results, alpha, delta) for alpha, delta in levels)


def ordered(results: Results, alpha: float, delta: float) -> list[tuple[Row, Quoted | None]]:
    """The rows of one table in their order, each with the paper's number that belongs to it."""
    rows = [r for r in results["rows"] if (r["alpha"], r["delta"]) == (alpha, delta)]
    quoted = {(q["method"], q["sampling"]): q for q in results["paper"] if q["alpha"] == alpha}
    return [(row, quoted.get((row["method"], row["sampling"]))) for row in sorted(rows, key=_order)]


def _table(results: Results, alpha: float, delta: float) -> Table:
    lines = ordered(results, alpha, delta)
    columns = COLUMNS | further_columns(results)
    return Table(
        title=(
            f"alpha = {alpha:g}, delta = {delta:g}: at least {words.rest(alpha)} of the points "
            f"of at least {words.rest(delta)} of the functions"
        ),
        columns=tuple(columns),
        cells=tuple(tuple(column(*line) for column in columns.values()) for line in lines),
        left=("method", "ranks"),
        notes=(*notes(row for row, _ in lines), *unit_notes(results)),
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
            yield f"{who}: {percent(row['share_of_variance'])} of the error lies in its subspace."


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
            "chosen by area; error: ‖u − Ĝ(a)‖ / ‖u‖."
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
            columns=("recipe", "ranks", "bandwidth", "calibrated", "tighter"),
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
        percent(row["calibration_percentage"]),
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


def percent(share: float | None) -> str:
    """0.98004 → '98.0 %'; 100 % is said of all alone.

    >>> percent(0.98004), percent(0.99996), percent(1.0)
    ('98.0 %', '99.9 %', '100 %')
    """
    if share is None:
        return NONE
    return "100 %" if share == 1 else f"{min(100 * share, 99.9):.1f} %"


def verdict(row: Row) -> str | None:
    """✓ at the target, ≈ below it but within the exact interval, ✗ surely below it."""
    share, interval = row["calibration_percentage"], row["interval"]
    if share is None or interval is None:
        return None
    near = NEAR if interval[1] >= row["target"] else FAIL
    return PASS if share >= row["target"] else near


def _verdict(row: Row) -> str:
    sign = verdict(row)
    return NONE if sign is None else f"{percent(row['calibration_percentage'])} {sign}"


def _correlation(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _bandwidth(row: Row) -> str:
    return number(row["bandwidth"]) if row["feasible"] else "infeasible"


def _interval(ends: Sequence[float] | None) -> str:
    return NONE if ends is None else f"{percent(ends[0])} to {percent(ends[1])}"


# --- Markdown -------------------------------------------------------------------------------


def markdown(results: Results) -> str:
    """All tables of a record, with the command that made it."""
    shown = (*tables(results), *ablation_tables(results))
    head = (
        f"# {results['task'].capitalize()}, preset {results['preset']}\n\n"
        f"Made by `{results['command']}`, finished {results['finished']}. Means over random "
        "splits into calibration and test functions; paper: the paper's own numbers.\n"
    )
    return "\n".join([head, *(_markdown(table) for table in shown)])


def _markdown(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = [":--" if column in table.left else "--:" for column in table.columns]
    lines = [f"## {table.title}", "", line(table.columns), line(rule)]
    lines += [line(cells) for cells in table.cells]
    lines += ["", *(f"- {note}" for note in table.notes)] if table.notes else []
    return "\n".join([*lines, ""])


def write_markdown(path: str | Path, results: Results) -> None:
    """`markdown` in a file, written aside, then renamed."""
    write_text(path, markdown(results))
