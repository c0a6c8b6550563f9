"""The command line: what can be asked; `terminal` shows the answers."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from uqno import __version__
from uqno.cli.arguments import Inputs, Outputs, Use, names, resolution
from uqno.cli.data import data_app
from uqno.cli.failing import fail, fail_by, log_into
from uqno.cli.groups import Group, Groups, Ratio, Shift, write_groups
from uqno.cli.guarantee import Rule, Settings, guarantee
from uqno.cli.inspection import inspect
from uqno.cli.monitor import monitor
from uqno.cli.output import is_gone, make_writable, to_nowhere
from uqno.cli.run import run_app
from uqno.cli.terminal import help_if_alone, out, print_table, progress_bar
from uqno.stopping import Listener, listening

app = typer.Typer(
    help="Calibrated uncertainty over whole functions for neural operators.",
    invoke_without_command=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.add_typer(run_app, name="run")
app.command()(inspect)
app.command()(monitor)


class Repeated(StrEnum):
    refuse = "refuse"
    allow = "allow"


class Sampling(StrEnum):
    grid = "grid"
    iid = "iid"
    hoeffding = "hoeffding"


Alpha = Annotated[
    float | None,
    typer.Option(help="Share of the domain that may be missed, in (0, 1).", show_default="0.1"),
]
Delta = Annotated[
    float | None,
    typer.Option(help="Share of functions that may fail, in (0, 1).", show_default="0.02"),
]
Design = Annotated[
    Sampling | None,
    typer.Option(
        help="How functions are observed: on a grid that is the domain (grid), at points drawn "
        "independently from it (iid), or the latter by the paper's rule (hoeffding).",
        show_default="grid",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(help="Promise it for this very calibration set, with this probability."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def version(wanted: bool) -> None:
    if wanted:
        out.print(f"uqno {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    show: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    help_if_alone(context)


@app.command()
def plan(
    alpha: Alpha = None,
    delta: Delta = None,
    functions: Annotated[int, typer.Option(help="Calibration functions, n.")] = 500,
    points: Annotated[int, typer.Option(help="Points of each function, m.")] = 1849,
    sampling: Design = None,
    confidence: Confidence = None,
    rule: Rule = "fraction",
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Is the guarantee feasible with these numbers, and if not, what would be?"""
    from uqno.conformal import plan as make_plan

    levels: dict[str, Any] = {"alpha": alpha, "delta": delta, "confidence": confidence}
    levels["sampling"] = None if sampling is None else sampling.value
    p = make_plan(functions=functions, points=points, guarantee=guarantee(rule, settings, **levels))
    if as_json:
        ranks = None if p.ranks is None else asdict(p.ranks)
        content = {"feasible": p.feasible, "ranks": ranks, "functions": p.functions}
        content |= {"points": p.points, **p.rule.settings, "ranks": ranks}
        out.print_record({**content, "smallest": dict(p.smallest), "words": str(p)})
        return
    out.print(("[bold green]" if p.feasible else "[bold red]") + escape(str(p)))
    table = Table("", "given", "smallest that works", box=None, padding=(0, 2, 0, 0))
    given = {"functions": p.functions, "points": p.points, **p.rule.settings}
    for name, least in p.smallest.items():
        table.add_row(name, f"{float(given[name]):g}", _least(least))
    out.print(table)


def _least(value: float | None) -> str:
    from uqno.conformal.words import rounded_up

    if value is None:
        return "none"
    return rounded_up(value, digits=20 if value >= 1 else 3) if value else "any"


@app.command()
def calibrate(
    file: Annotated[
        Path,
        typer.Argument(
            help=".npz, NetCDF or .zarr with prediction, truth, uncertainty and optionally "
            "weights; the first dimension counts the functions."
        ),
    ],
    alpha: Alpha = None,
    delta: Delta = None,
    sampling: Design = None,
    confidence: Confidence = None,
    rule: Rule = "fraction",
    settings: Settings = None,
    groups: Groups = None,
    shift: Shift = None,
    to: Annotated[Path, typer.Option("--out", help="Where the calibration is written.")] = Path(
        "calibration.json"
    ),
    repeated: Annotated[
        Repeated,
        typer.Option(help="Functions that equal another: refuse them, or say that they occurred."),
    ] = Repeated.refuse,
    as_json: Json = False,
) -> None:
    """Find the scale of the uncertainty that carries the guarantee, from held-out functions."""
    from uqno.conformal import Calibration, GroupedCalibration
    from uqno.conformal import calibrate as make_calibration
    from uqno.conformal.words import rounded_up
    from uqno.data.calibration_file import open_calibration
    from uqno.data.calibrations import write_calibration

    levels: dict[str, Any] = {"alpha": alpha, "delta": delta, "confidence": confidence}
    levels["sampling"] = None if sampling is None else sampling.value
    asked = guarantee(rule, settings, **levels)
    _keep_input(file, to)
    with (
        progress_bar("calibrating", quiet=as_json) as advance,
        open_calibration(file, advance, [name for name in (groups, shift) if name]) as data,
    ):
        more: dict[str, Any] = {
            "guarantee": asked,
            "repeated": repeated.value,
            "groups": None if groups is None else data.beside[groups],
            "shift": None if shift is None else data.beside[shift],
        }
        cal: Calibration | GroupedCalibration = make_calibration(
            data.error, data.uncertainty, weights=data.weights, **more
        )
    if isinstance(cal, GroupedCalibration):
        write_groups(cal, to, as_json)
        return
    write_calibration(to, cal)
    if as_json:
        content = json.loads(cal.to_json(scores=False))
        out.print_record({**content, "words": cal.guarantee})
        return
    out.print(
        f"[bold]scale = {rounded_up(cal.scale, 6)}[/]   from {cal.functions} functions of "
        f"{cal.points} points, {', '.join(_levels(cal.levels))}"
    )
    out.print(f"[green]{escape(cal.guarantee)}[/]")
    out.print(f"written to {escape(str(to))}", soft_wrap=True)


def _levels(levels: dict[str, Any]) -> list[str]:
    """The numbers that were asked for, and how functions were observed."""
    names = [n for n in ("alpha", "delta", "confidence") if levels.get(n) is not None]
    said = [f"{name} = {float(levels[name]):g}" for name in names]
    return [*said, str(levels["sampling"])] if "sampling" in levels else said


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="The folder of a calibrated model.")],
    file: Annotated[
        Path,
        typer.Argument(
            help="NetCDF, .zarr, HDF5, .npz, .pt or .mat with the input; or with points and "
            "normals of one geometry, and triangles for a surface."
        ),
    ],
    inputs: Inputs = None,
    outputs: Outputs = None,
    at: Annotated[
        str | None,
        typer.Option(help="Where: a CSV file of points, or a resolution such as 421 or 85,43."),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Which of several calibrations.")] = None,
    delta: Annotated[float | None, typer.Option(help="Which of several calibrations.")] = None,
    group: Group = None,
    likelihood_ratio: Ratio = None,
    to: Annotated[Path, typer.Option("--out", help="A .nc, .npz, .vtp or .vtr file.")] = Path(
        "band.nc"
    ),
    use: Use = None,
    as_json: Json = False,
) -> None:
    """Predict functions with their calibrated band."""
    import numpy as np

    from uqno.band.formats import format_of
    from uqno.data.opening import fields_of
    from uqno.data.readers.csv import read_points

    format_of(to)  # before the work, refuse what could not be written after it
    _keep_input(file, to)
    where = None if at is None else resolution(at) or read_points(at)
    geometry = fields_of(file, "points")  # before torch is loaded, a file that cannot be read
    from uqno.model import UQNO

    roles: dict[str, Any] = {"inputs": names(inputs), "outputs": names(outputs)}
    given = file if geometry is None else geometry
    told: dict[str, Any] = {"group": group, "likelihood_ratio": likelihood_ratio}
    band = UQNO.load(model).predict(given, where, **roles, alpha=alpha, delta=delta, **told)
    band.write(to)
    if as_json:
        said = {
            "out": str(to),
            "functions": len(band) if band.is_batch else 1,
            "bandwidth": band.bandwidth,
            "scale": np.asarray(band.applied_scale).tolist(),
            "guarantee": band.guarantee,
            "novelty": None if band.novelty is None else band.novelty.p_value.tolist(),
        }
        out.print_record(said)
        return
    out.print(escape(repr(band)))
    out.print(f"[green]{escape(band.guarantee)}[/]")
    out.print(f"written to {escape(str(to))}", soft_wrap=True)


def _keep_input(file: Path, to: Path) -> None:
    if file.resolve() == to.resolve():
        raise ValueError(f"--out {to} is the file that is read: choose another name")
    if not to.name:
        raise ValueError("--out needs the name of a file")


@app.command()
def table(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders of finished runs, or of folders seed-N that are such."),
    ],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Recompute the table of a run, or of several that differ in their seed, from their scores."""
    from uqno.experiments import seeds

    read = seeds.read_runs(runs)
    if markdown:
        out.print_text(seeds.markdown(read))
        return
    out.print(escape(seeds.heading(read)))
    for one in seeds.tables(read):
        print_table(one.narrow([c for c in seeds.NARROW if c in one.columns]))


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    figures: Annotated[
        Path | None, typer.Option(help="Also write every figure as PNG and SVG, here.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Where the functions of the run lie, to look at some of them.",
            show_default="in the run, or in the task's place",
        ),
    ] = None,
    use: Use = None,
    as_json: Json = False,
) -> None:
    """Write the report of a run: one page that opens without a network or a server."""
    from uqno.report.page import make_report

    log_into(run)
    with progress_bar("looking at functions", quiet=as_json) as advance:
        paths = make_report(
            run,
            figures_to=figures,
            data=data,
            progress=lambda what, done, total: advance(int(done), int(total)),
        )
    if as_json:
        out.print_record({"out": [str(path) for path in paths]})
        return
    for path in paths:
        out.print(f"written to {escape(str(path))}", soft_wrap=True)


def main() -> None:
    """Run; what the user can mend is said in one line on stderr, with exit code 2.

    Stopped by a signal, it says so in one line, with exit code 128 and the signal's number. A fault
    of ours is one line too, with exit code 1 and a log.
    """
    make_writable()
    with listening(_leave) as listener:
        try:
            code = app(standalone_mode=False)
            if code == 130:  # typer's answer to Ctrl-C
                raise KeyboardInterrupt
        except (typer.Abort, KeyboardInterrupt):
            fail(str(listener), listener.code)
        except Exception as why:
            if listener.by is not None:  # an error on the way out
                fail(str(listener), listener.code)
            fail_by(why)
    if is_gone(sys.stdout):
        to_nowhere(sys.stdout)
    sys.exit(code or 0)


def _leave(listener: Listener) -> NoReturn:
    """Fail without an exception."""
    try:
        Console(stderr=True).show_cursor(True)  # which a progress bar hides
        fail(str(listener), listener.code)
    finally:
        os._exit(listener.code)
