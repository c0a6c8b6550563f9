"""The command line: what can be asked; `terminal` shows the answers."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.markup import escape
from rich.table import Table

from uqno import __version__
from uqno.cli.terminal import out, progress_bar, show_results, stages, words_of

app = typer.Typer(
    help="Calibrated uncertainty over whole functions for neural operators.",
    invoke_without_command=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="Make data sets.", invoke_without_command=True)
app.add_typer(data_app, name="data")
run_app = typer.Typer(help="Run a comparison of methods.", invoke_without_command=True)
app.add_typer(run_app, name="run")


class Sampling(StrEnum):
    grid = "grid"
    iid = "iid"
    hoeffding = "hoeffding"


Alpha = Annotated[float, typer.Option(help="Share of the domain that may be missed, in (0, 1).")]
Delta = Annotated[float, typer.Option(help="Share of functions that may fail, in (0, 1).")]
Design = Annotated[
    Sampling,
    typer.Option(
        help="How functions are observed: on a grid that is the domain (grid), at points drawn "
        "independently from it (iid), or the latter by the paper's rule (hoeffding)."
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


def help_if_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


data_app.callback()(help_if_alone)
run_app.callback()(help_if_alone)


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
    alpha: Alpha = 0.1,
    delta: Delta = 0.02,
    functions: Annotated[int, typer.Option(help="Calibration functions, n.")] = 500,
    points: Annotated[int, typer.Option(help="Points of each function, m.")] = 1849,
    sampling: Design = Sampling.grid,
    confidence: Confidence = None,
    as_json: Json = False,
) -> None:
    """Is the guarantee feasible with these numbers, and if not, what would be?"""
    from uqno.conformal import plan as make_plan

    p = make_plan(alpha, delta, functions, points, sampling.value, confidence)
    if as_json:
        out.print_json(json.dumps({**asdict(p), "words": str(p)}))
        return
    out.print(("[bold green]" if p.feasible else "[bold red]") + escape(str(p)))
    table = Table("", "given", "smallest that works", box=None, padding=(0, 2, 0, 0))
    for name, given, least in [
        ("functions n", f"{p.functions}", p.smallest_functions),
        ("points m", f"{p.points}", p.smallest_points),
        ("alpha", f"{p.alpha:g}", p.smallest_alpha),
        ("delta", f"{p.delta:g}", p.smallest_delta),
    ]:
        table.add_row(name, given, _least(least))
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
            help=".npz, NetCDF or .zarr with prediction, truth, uncertainty and optionally weights; "
            "the first dimension counts the functions."
        ),
    ],
    alpha: Alpha = 0.1,
    delta: Delta = 0.02,
    sampling: Design = Sampling.grid,
    confidence: Confidence = None,
    to: Annotated[Path, typer.Option("--out", help="Where the calibration is written.")] = Path(
        "calibration.json"
    ),
    as_json: Json = False,
) -> None:
    """Find the scale of the uncertainty that carries the guarantee, from held-out functions."""
    from uqno.conformal import calibrate as make_calibration
    from uqno.conformal.words import rounded_up
    from uqno.data.calibration_file import open_calibration
    from uqno.storage import write_text

    _keep_input(file, to)
    with (
        progress_bar("calibrating", quiet=as_json) as advance,
        open_calibration(file, advance) as data,
    ):
        cal = make_calibration(
            data.error, data.uncertainty, alpha, delta, sampling.value, data.weights, confidence
        )
    write_text(to, cal.to_json() + "\n")
    if as_json:
        out.print_json(json.dumps({**json.loads(cal.to_json()), "guarantee": cal.guarantee}))
        return
    out.print(
        f"[bold]scale = {rounded_up(cal.scale, 6)}[/]   from {cal.functions} functions of "
        f"{cal.points} points, alpha = {cal.alpha:g}, delta = {cal.delta:g}, {cal.sampling}"
    )
    out.print(f"[green]{escape(cal.guarantee)}[/]")
    out.print(f"written to {escape(str(to))}", soft_wrap=True)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="The folder of a calibrated model.")],
    file: Annotated[
        Path,
        typer.Argument(
            help=".npz, NetCDF or .zarr with `a`, (channel, *grid) or (functions, channel, *grid); "
            "or with points and normals of one geometry, and triangles for a surface."
        ),
    ],
    at: Annotated[
        str | None,
        typer.Option(help="Where: a CSV file of points, or a resolution such as 421 or 85,43."),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Which of several calibrations.")] = None,
    delta: Annotated[float | None, typer.Option(help="Which of several calibrations.")] = None,
    to: Annotated[Path, typer.Option("--out", help="A .nc, .npz, .vtp or .vtr file.")] = Path(
        "band.nc"
    ),
    as_json: Json = False,
) -> None:
    """Predict functions with their calibrated band."""
    from uqno.band.formats import format_of
    from uqno.data.arrays import read_arrays
    from uqno.data.readers.csv import read_points

    format_of(to)  # before the work, refuse what could not be written after it
    _keep_input(file, to)
    where = None if at is None else _resolution(at) or read_points(at)
    fields = read_arrays(file)
    from uqno.model import UQNO

    loaded = UQNO.load(model)
    band = loaded.predict_fields(fields, where, alpha=alpha, delta=delta)
    band.write(to)
    if as_json:
        said = {
            "out": str(to),
            "functions": len(band) if band.is_batch else 1,
            "bandwidth": band.bandwidth,
            "scale": band.calibration.scale,
            "guarantee": band.guarantee,
        }
        out.print_json(json.dumps(said))
        return
    out.print(escape(repr(band)))
    out.print(f"[green]{escape(band.guarantee)}[/]")
    out.print(f"written to {escape(str(to))}", soft_wrap=True)


def _keep_input(file: Path, to: Path) -> None:
    if file.resolve() == to.resolve():
        raise ValueError(f"--out {to} is the file that is read: choose another name")
    if not to.name:
        raise ValueError("--out needs the name of a file")


def _resolution(at: str) -> tuple[int, ...] | int | None:
    parts = at.split(",")
    if not all(p.strip().isdigit() for p in parts):
        return None
    sizes = tuple(int(p) for p in parts)
    if 0 in sizes:
        raise ValueError(f"--at {at}: a resolution is at least 1 along every axis")
    return sizes[0] if len(sizes) == 1 else sizes


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
            show_default="where they were",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report of a run: one page that opens without a network or a server."""
    from uqno.report.page import make_report

    with progress_bar("looking at functions", quiet=as_json) as advance:
        paths = make_report(
            run,
            figures_to=figures,
            data=data,
            progress=lambda what, done, total: advance(int(done), int(total)),
        )
    if as_json:
        out.print_json(json.dumps({"out": [str(path) for path in paths]}))
        return
    for path in paths:
        out.print(f"written to {escape(str(path))}", soft_wrap=True)


@data_app.command()
def example(
    to: Annotated[Path, typer.Option("--out", help="A .npz file.")] = Path("data/example.npz"),
    functions: Annotated[int, typer.Option(min=1, help="Functions.")] = 500,
    points: Annotated[int, typer.Option(min=2, help="Points of each function.")] = 256,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write a small synthetic set to try `uqno calibrate` on."""
    from uqno.data.example import write_example

    write_example(to, functions, points, seed)
    out.print(
        f"{functions} functions of {points} points written to {escape(str(to))}", soft_wrap=True
    )


@data_app.command()
def darcy(
    to: Annotated[Path, typer.Option("--out", help="A .zarr folder.")] = Path("data/darcy.zarr"),
    functions: Annotated[int, typer.Option(min=1, help="Functions.")] = 1600,
    resolution: Annotated[int, typer.Option(min=3, help="Nodes a side of the solver.")] = 421,
    keep: Annotated[
        str, typer.Option(help="Resolutions to store, joined by commas.")
    ] = "43,85,421",
    coefficient: Annotated[str, typer.Option(help="two-valued or lognormal.")] = "two-valued",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 for one a core.")] = 0,
) -> None:
    """Solve Darcy flow for random coefficients; stopped, it goes on when called again."""
    from uqno.experiments.darcy import Recipe, generate
    from uqno.experiments.darcy.generation import cores

    kept = _resolution(keep)
    if kept is None:
        raise ValueError(f"--keep {keep}: expected resolutions joined by commas, such as 43,421")
    recipe = Recipe(
        seed, resolution, (kept,) if isinstance(kept, int) else kept, coefficient=coefficient
    )
    with progress_bar("solving", quiet=False) as advance:
        generate(to, recipe, functions, workers=workers or cores(), progress=advance)
    out.print(f"{functions} functions at {keep} in {escape(str(to))}", soft_wrap=True)


@data_app.command()
def cars(
    count: Annotated[int, typer.Option("--cars", min=1, help="Cars.")] = 611,
    workers: Annotated[int, typer.Option(min=1, help="Cars at a time, a core each.")] = 2,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    to: Annotated[Path, typer.Option("--out", help="A folder.")] = Path("data/cars"),
    packed: Annotated[
        Path | None, typer.Option("--pack", help="Put the cars into one .npz file as well.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Histograms of forces and pressures, a .png or .svg.")
    ] = None,
) -> None:
    """Solve the flow around cars with OpenFOAM; stopped, it goes on when called again."""
    from uqno.experiments.cars import generate_cars, pack

    if figure is not None and figure.suffix not in (".png", ".svg"):
        raise ValueError(f"--figure {figure}: expected a name that ends in .png or .svg")
    if packed is not None and packed.suffix != ".npz":
        raise ValueError(f"--pack {packed}: expected a name that ends in .npz")

    with stages(remembers=3600) as advance:
        folder = generate_cars(
            to, count, seed, workers, lambda done, total: advance("cars", done, total)
        )
    chosen = folder.accepted(count)
    refused = len(folder.refused(chosen[-1]))
    noun = "car" if count == 1 else "cars"
    out.print(f"{count} {noun} in {escape(str(to))}, {refused} refused", soft_wrap=True)
    reports = [folder.read(index).report for index in chosen]

    from uqno.report import car_set  # it draws: not before the cars are there

    for words, (low, middle, high) in car_set.ranges(reports).items():
        out.print(f"{words}: {low:.2f} to {high:.2f}, median {middle:.2f}")
    if figure is not None:
        car_set.save(reports, figure)
        out.print(f"drawn in {escape(str(figure))}", soft_wrap=True)
    if packed is not None:
        pack(to, packed, count)
        out.print(f"packed into {escape(str(packed))}", soft_wrap=True)


Preset = Annotated[str, typer.Option(help="quick, standard or paper.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting.")
]
RunFolder = Annotated[
    Path | None,
    typer.Option("--out", help="The run's folder.", show_default="runs/TASK-PRESET"),
]
Workers = Annotated[int, typer.Option(min=0, help="Processes; 0 for one a core.")]
ShowSettings = Annotated[bool, typer.Option("--settings", help="Print the settings and stop.")]


@run_app.command("darcy")
def run_darcy(
    preset: Preset = "quick",
    changes: Changes = None,
    to: RunFolder = None,
    data: Annotated[
        Path | None, typer.Option(help="Where functions are kept.", show_default="data")
    ] = None,
    workers: Workers = 0,
    show: ShowSettings = False,
) -> None:
    """Compare all methods on Darcy flow: table, figures, report. Stopped, it goes on."""
    compare("darcy", preset, changes or [], to, data, workers, show)


@run_app.command("cars")
def run_cars(
    preset: Preset = "quick",
    changes: Changes = None,
    to: RunFolder = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A file of cars (uqno data cars --pack), or a folder of ShapeNet-Car.",
            show_default="the set that comes with uqno",
        ),
    ] = None,
    workers: Workers = 0,
    show: ShowSettings = False,
) -> None:
    """Compare all methods on the pressure on cars: table, figures, report. Stopped, it goes on."""
    compare("cars", preset, changes or [], to, data, workers, show)


def compare(
    task: str,
    preset: str,
    changes: list[str],
    to: Path | None,
    data: Path | None,
    workers: int,
    show: bool,
) -> None:
    """What `uqno run` does, of any task."""
    from uqno.experiments.presets import preset as settings_of

    settings = settings_of(task, preset, changes)
    if show:
        out.print_json(json.dumps(settings.record()))
        return
    from uqno.experiments import experiment, runs
    from uqno.report.page import make_report

    folder = to or Path("runs") / f"{task}-{preset}"
    made = runs.Run(settings, folder, data)
    runs.claim(made)
    if runs.is_done(made):
        out.print(f"{escape(str(folder))} is done; remove it to run it again", soft_wrap=True)
    else:
        took = experiment.estimate(made, workers or None)
        out.print(f"about {words_of(took)} on this machine; stop it at any time, it goes on")
    given = [f"--set {change}" for change in changes]
    given += [] if data is None else [f"--data {data}"]
    command = " ".join([f"uqno run {task} --preset {preset}", *given])
    with stages() as progress:
        results = experiment.run(
            settings,
            folder,
            data=data,
            preset=preset,
            command=command,
            workers=workers or None,
            progress=progress,
        )
        make_report(folder, figures_to=folder / "figures", data=data, progress=progress)
    show_results(results, folder)


def main() -> None:
    """Run; what the user can mend is said in one line on stderr, with exit code 2."""
    try:
        code = app(standalone_mode=False)
        if code == 130:  # typer's answer to Ctrl-C
            fail("stopped", 130)
    except (typer.Abort, KeyboardInterrupt):
        fail("stopped", 130)
    except Exception as why:
        if hasattr(why, "format_message"):  # typer's own, of the arguments
            fail(f"{why.format_message()} (uqno --help explains)", 2)
        if isinstance(why, ValueError | OSError | MemoryError):
            fail(str(why) or "out of memory", 2)
        raise
    sys.exit(code or 0)


def fail(message: str, code: int) -> NoReturn:
    print(f"uqno: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
