"""`uqno inspect`: what a data set holds, and what it can carry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from uqno.cli.arguments import Inputs, Outputs, names
from uqno.cli.terminal import out, progress_bar

if TYPE_CHECKING:
    from uqno.data.inspection import Inspection, PromiseSummary


def inspect(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="A file of functions, or two: inputs and outputs. NetCDF, .zarr, HDF5, .npz, "
            ".npy, .pt, .safetensors or .mat.",
        ),
    ],
    inputs: Inputs = None,
    outputs: Outputs = None,
    functions: Annotated[
        str | None,
        typer.Option(
            metavar="DIMENSION",
            help="The dimension that counts the functions.",
            show_default="sample, … or the first",
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Share of the domain that may be missed.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Share of functions that may fail.")] = 0.02,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Show what a data set holds: variables, grid, missing values, the split, the guarantees.

    Examples:  uqno inspect flow.nc --inputs k --outputs p
    uqno inspect burgers.hdf5 --inputs "tensor[0]" --outputs "tensor[-1]"
    """
    from uqno.data.inspection import inspect as look

    if len(data) > 2:
        raise ValueError(f"{len(data)} files: expected one, or two (inputs, outputs)")
    path = data[0] if len(data) == 1 else (data[0], data[1])
    with progress_bar("reading", quiet=as_json) as advance:
        seen = look(
            path,
            names(inputs),
            names(outputs),
            functions=functions,
            alpha=alpha,
            delta=delta,
            progress=advance,
        )
    if as_json:
        out.print_record(seen.record())
    else:
        _show(seen)


def _show(seen: Inspection) -> None:
    layout = f"  [dim]{escape(seen.layout)}[/]" if seen.layout else ""
    out.print(f"[bold]{escape(seen.source)}[/]{layout}", soft_wrap=True)
    out.print(f"{_functions(seen)}\n")
    _show_variables(seen)
    if seen.coordinates:
        table = _table("coordinate", "points", "from", "to", "units", "order")
        for one in seen.coordinates:
            cells = (one.name, str(one.points), one.first, one.last, one.units, one.order)
            table.add_row(*map(escape, cells))
        out.print(table)
        out.print()
    if seen.split:
        out.print("split      " + ", ".join(f"{n} {role}" for role, n in seen.split.items()))
    if seen.promises:
        _show_promises(seen.promises)
    for problem in seen.problems:
        out.print(f"[bold red]![/] {escape(problem)}")
    if not seen.problems:
        out.print("[green]No missing values, no duplicates.[/]")


def _functions(seen: Inspection) -> str:
    size = " × ".join(str(n) for n in seen.grid.values())
    if seen.kind == "mesh":
        return "a mesh of " + " and ".join(f"{n} {name}" for name, n in seen.grid.items())
    if not seen.functions:
        return "inputs and outputs are not known"
    axes = ", ".join(seen.grid)
    return (
        f"{seen.functions} functions on a grid of {size} ({axes}): "
        f"{', '.join(seen.inputs)} → {', '.join(seen.outputs)}"
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _show_variables(seen: Inspection) -> None:
    table = _table("variable", "role", "shape", "type", "units", "missing", "range")
    for one in seen.variables:
        ends = "" if one.smallest is None else f"{one.smallest:.3g} … {one.largest:.3g}"
        shape = " × ".join(map(str, one.shape))
        missing = "" if one.missing is None else str(one.missing)
        cells = (one.name, one.role, shape, one.dtype, one.units, missing, ends)
        table.add_row(*map(escape, cells))
    out.print(table)
    out.print()


def _show_promises(promises: list[PromiseSummary]) -> None:
    table = _table("alpha", "delta", "on average", "for this calibration set, 90 %")
    for delta in dict.fromkeys(p.delta for p in promises):
        average, conditional = (p for p in promises if p.delta == delta)
        cells = (_can(p) for p in (average, conditional))
        table.add_row(f"{average.alpha:g}", f"{delta:g}", *cells)
    out.print("guarantees that these calibration functions carry")
    out.print(table)
    out.print()


def _can(promise: PromiseSummary) -> str:
    if promise.feasible:
        return "[green]yes[/]"
    needed = "none would" if promise.needed is None else f"needs {promise.needed}"
    return f"[red]no[/], {needed}"
