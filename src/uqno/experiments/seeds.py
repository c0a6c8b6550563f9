"""Runs that differ in their seed alone, in one table: means over the seeds, with their range.

Every number is computed again from the scores in the folders of the runs (`evidence`), so that a
table can be checked from what is kept of finished runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uqno.experiments import results as records
from uqno.experiments.evidence import FILE, read_scores, with_rows
from uqno.experiments.results import Results, Row
from uqno.experiments.table import (
    DESIGNS,
    NONE,
    RELATIVE,
    Table,
    as_markdown,
    number,
    percent,
    promised,
    verdict,
)

RECIPE: Final = "uqno"
"""Whose band comes first, and is compared with."""


def read_runs(folders: Iterable[str | Path]) -> list[Results]:
    """The records of finished runs, rows recomputed from their scores, in the order of their seeds.

    Args:
        folders: of runs, or folders that hold some, `seed-3` and so on.

    Raises:
        ValueError: there is no run, a file is missing or damaged, or the runs differ in more than
            their seed.
    """
    runs = [run for folder in folders for run in _runs_in(Path(folder))]
    content = [
        with_rows(records.read(run / "results.json"), read_scores(run / FILE)) for run in runs
    ]
    content.sort(key=_seed)
    for other in content[1:]:
        _refuse_other(content[0], other)
    return content


def _runs_in(folder: Path) -> list[Path]:
    if (folder / "results.json").is_file():
        return [folder]
    inside = sorted(path.parent for path in folder.glob("seed-*/results.json"))
    if not inside:
        raise ValueError(
            f"{folder} has no results.json, nor folders seed-N that have one: give the folder of a "
            "finished run"
        )
    return inside


def _seed(results: Results) -> int:
    return int(results["settings"]["seed"])


def _refuse_other(first: Results, other: Results) -> None:
    """Refuse runs whose means would mix different things."""
    settings = [{**r["settings"], "task": r["task"]} for r in (first, other)]
    one, two = settings
    different = sorted(key for key in {**one, **two} if one.get(key) != two.get(key))
    if different == []:
        raise ValueError(f"two runs have the seed {_seed(first)}: give each once")
    if different != ["seed"]:
        raise ValueError(
            f"runs differ in {', '.join(different)}: means are over runs that differ in their seed "
            "alone"
        )


# --- tables -----------------------------------------------------------------------------------


def heading(runs: Sequence[Results]) -> str:
    """What the tables are made of, in a few sentences."""
    first, split = runs[0], runs[0]["split"]
    splits = first["settings"]["splits"]
    seeds = ", ".join(str(_seed(one)) for one in runs)
    seeds = f"the seeds {seeds}, with their range" if len(runs) > 1 else f"the seed {seeds}"
    aids = f" *Aided*: with {first['aids']}, as ours." if first["aids"] else ""
    return (
        f"{first['title']} {split['train']} functions to train, {split['calibration']} to "
        f"calibrate and {split['test']} to test. Bandwidths are means over {splits} random splits "
        f"of the held-out functions, and over {seeds}. *Covered* and *agrees* are of the recorded "
        "split of each seed: the share of test functions with enough points in the band, "
        "and whether that agrees with the promise, ✓ yes, ≈ doubtful (p < 0.05), ✗ no (p < 0.01)."
        f"{aids}"
    )


def markdown(runs: Sequence[Results]) -> str:
    """Heading and tables as Markdown, to be put under a heading of the second level."""
    return "\n".join([heading(runs), "", *(as_markdown(one, level=3) for one in tables(runs))])


def tables(runs: Sequence[Results]) -> tuple[Table, ...]:
    """One table for each (α, δ): the calibrated rows, ours first, then the narrowest.

    Args:
        runs: what `read_runs` returned, at least one.
    """
    rows = runs[0]["rows"]
    levels = dict.fromkeys((row["alpha"], row["delta"]) for row in rows)
    return tuple(_table(runs, *level) for level in levels)


def _table(runs: Sequence[Results], alpha: float, delta: float) -> Table:
    per_run = [
        {
            (row["method"], row["sampling"]): row
            for row in run["rows"]
            if row["calibrated"] and (row["alpha"], row["delta"]) == (alpha, delta)
        }
        for run in runs
    ]
    lines = sorted(
        (Line([rows[key] for rows in per_run]) for key in per_run[0]), key=lambda line: line.order
    )
    ours = next((x.bandwidth for x in lines if (x.method, x.sampling) == (RECIPE, "grid")), None)
    columns: dict[str, Callable[[Line], str]] = {
        "band around": lambda line: line.label,
        "ranks": lambda line: DESIGNS[line.sampling],
        "bandwidth": lambda line: number(line.bandwidth) if line.bandwidth else "infeasible",
        "range": lambda line: line.range(),
        RELATIVE: lambda line: percent(line.mean("relative_bandwidth"), 2),
        "ours is": lambda line: line.times(ours),
        "covered": lambda line: percent(line.mean("calibration_percentage")),
        "agrees": lambda line: line.verdicts(),
        "error": lambda line: percent(line.mean("relative_error"), 2),
        "train [s]": lambda line: number(line.mean("train_seconds"), 2),
        "predict [s]": lambda line: number(line.mean("predict_seconds"), 2),
    }
    if len(runs) == 1:
        del columns["range"]
    if runs[0]["rms"] is None:
        del columns[RELATIVE]  # a bandwidth is relative already
    return Table(
        title=f"α = {alpha:g}, δ = {delta:g}: {promised(alpha, delta)}",
        columns=tuple(columns),
        cells=tuple(tuple(say(line) for say in columns.values()) for line in lines),
        left=("band around", "ranks"),
        notes=(
            "*ours is*: how many times narrower our band is than this one, where both are "
            "calibrated by the same ranks.",
        ),
    )


@dataclass(frozen=True)
class Line:
    """A calibrated row, of every run.

    Args:
        rows: one a run.
    """

    rows: Sequence[Row]

    @property
    def method(self) -> str:
        return self.rows[0]["method"]

    @property
    def label(self) -> str:
        return self.rows[0]["label"]

    @property
    def sampling(self) -> str:
        return self.rows[0]["sampling"]

    @property
    def bandwidth(self) -> float | None:
        """The mean over the runs; None where it is infeasible in one of them."""
        return self.mean("bandwidth")

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Ours first, what is infeasible last, and the narrowest first in between."""
        return self.method != RECIPE, self.bandwidth is None, self.bandwidth or 0.0

    def mean(self, name: str) -> float | None:
        """The mean of a number of the row, where every run has it."""
        values = [row[name] for row in self.rows]  # type: ignore[literal-required]
        return None if None in values else sum(values) / len(values)

    def range(self) -> str:
        """The smallest and the largest bandwidth."""
        widths = [row["bandwidth"] for row in self.rows if row["bandwidth"] is not None]
        return f"{number(min(widths))} to {number(max(widths))}" if widths else NONE

    def times(self, ours: float | None) -> str:
        """How many times narrower our band is, both calibrated by the ranks for the grid."""
        if self.bandwidth is None or not ours or self.sampling != "grid":
            return NONE
        return f"{self.bandwidth / ours:.2f} ×"

    def verdicts(self) -> str:
        """Whether the test set agrees, a sign for each run."""
        return " ".join(verdict(row) or NONE for row in self.rows)


NARROW: Final = ("band around", "ranks", "bandwidth", RELATIVE, "ours is", "agrees")
"""Columns that fit a terminal of 80, those of them that there are."""
