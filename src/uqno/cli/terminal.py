"""What the command line shows: progress on stderr, tables and where files are on stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from uqno.cli.output import Output

if TYPE_CHECKING:
    from uqno.experiments import table as words
    from uqno.experiments.results import Results

out = Output(highlight=False)


def help_if_alone(context: typer.Context) -> None:
    """Print the help of a group of commands where none of them was asked for."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def words_of(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"


def show_results(results: Results, folder: Path) -> None:
    """Tables on the terminal, and where the files are."""
    from uqno.experiments.table import ablation_tables, narrow_tables

    for one in (*narrow_tables(results), *ablation_tables(results)):
        print_table(one)
    out.print(f"table    {escape(str(folder / 'table.md'))}", soft_wrap=True)
    out.print(f"figures  {escape(str(folder / 'figures'))}", soft_wrap=True)
    page = (folder / "report.html").resolve().as_uri()
    out.print(f"report   [bold]{escape(page)}[/]", soft_wrap=True)


def print_table(table: words.Table) -> None:
    """A table on the terminal, with its title and notes."""
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for column in table.columns:
        shown.add_column(column, justify="left" if column in table.left else "right", no_wrap=True)
    for line in table.cells:
        shown.add_row(*(escape(cell) for cell in line))
    out.print(f"[bold]{escape(table.title)}[/]")
    out.print(shown)
    for note in table.notes:
        out.print(f"[dim]{escape(note)}[/]")
    out.print()


@contextmanager
def stages(remembers: float = 30.0) -> Iterator[Callable[[str, float, float], None]]:
    """A bar for each stage of a run on stderr; where that is no terminal, a line now and then.

    The time left follows the speed of the last seconds that it `remembers`.
    """
    if not sys.stderr.isatty():
        yield _in_lines()
        return
    columns = (
        TextColumn("{task.description:18}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, speed_estimate_period=remembers) as bar:
        tasks: dict[str, TaskID] = {}

        def advance(what: str, done: float, total: float) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield advance


def _in_lines() -> Callable[[str, float, float], None]:
    last: dict[str, float] = {}

    def tell(what: str, done: float, total: float) -> None:
        share = done / total if total else 1.0
        if what not in last or share >= min(1.0, last[what] + 0.1) > last[what]:
            print(f"{what} {100 * share:.0f} %", file=sys.stderr, flush=True)
            last[what] = share

    return tell


@contextmanager
def progress_bar(what: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr that vanishes when done; nothing where stderr is not a terminal."""
    console = Console(stderr=True, quiet=quiet or not sys.stderr.isatty())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
