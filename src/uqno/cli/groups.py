"""How a calibration by groups is written and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from uqno.cli.terminal import out

if TYPE_CHECKING:
    from uqno.conformal import GroupedCalibration

Groups = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A scale for each group: the variable with the group of each function, a text or a "
        "whole number.",
    ),
]
Shift = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="For functions of another law: the variable with the likelihood ratio of each "
        "function, new law over old.",
    ),
]
Group = Annotated[
    str | None, typer.Option(help="The group of the functions, after a calibration by groups.")
]
Ratio = Annotated[
    float | None,
    typer.Option(help="The likelihood ratio of the functions, after one with a shift."),
]


def write_groups(made: GroupedCalibration, to: Path, as_json: bool) -> None:
    """Write the calibrations of all groups into one file, and show them."""
    from uqno.conformal.words import rounded_up
    from uqno.storage import write_text

    write_text(to, made.to_json() + "\n")
    if as_json:
        said = {name: one.guarantee for name, one in made.items()}
        out.print_json(json.dumps({**json.loads(made.to_json(scores=False)), "words": said}))
        return
    table = Table("group", "functions", "scale", box=None, padding=(0, 2, 0, 0))
    for name, one in made.items():
        table.add_row(escape(name), str(one.functions), rounded_up(one.scale, 6))
    out.print(table)
    for one in made.values():
        out.print(f"[green]{escape(one.guarantee)}[/]")
    out.print(f"written to {escape(str(to))}", soft_wrap=True)
