"""`uqno data`: making data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from uqno.cli.arguments import resolution
from uqno.cli.terminal import help_if_alone, out, progress_bar, stages

data_app = typer.Typer(help="Make data sets.", invoke_without_command=True)
data_app.callback()(help_if_alone)


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
    solved_at: Annotated[
        int, typer.Option("--resolution", min=3, help="Nodes a side of the solver.")
    ] = 421,
    keep: Annotated[
        str, typer.Option(help="Resolutions to store, joined by commas.")
    ] = "43,85,421",
    coefficient: Annotated[str, typer.Option(help="two-valued or lognormal.")] = "two-valued",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 for one a core.")] = 0,
) -> None:
    """Solve Darcy flow for random coefficients; stopped, it goes on when called again."""
    from uqno.experiments.darcy import Recipe, generate
    from uqno.experiments.jobs import cores

    nodes = resolution(keep)
    if nodes is None:
        raise ValueError(f"--keep {keep}: expected resolutions joined by commas, such as 43,421")
    recipe = Recipe(
        seed, solved_at, (nodes,) if isinstance(nodes, int) else nodes, coefficient=coefficient
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
    reports = [folder.read(index).report for index in chosen]

    from uqno.experiments.cars import histograms  # they draw: not before the cars are there

    if figure is not None:
        histograms.save(reports, figure)
    if packed is not None:
        pack(to, packed, count)
    noun = "car" if count == 1 else "cars"
    out.print(f"{count} {noun} in {escape(str(to))}, {refused} refused", soft_wrap=True)
    for words, (low, middle, high) in histograms.ranges(reports).items():
        out.print(f"{words}: {low:.2f} to {high:.2f}, median {middle:.2f}")
    for what, where in (("drawn in", figure), ("packed into", packed)):
        if where is not None:
            out.print(f"{what} {escape(str(where))}", soft_wrap=True)
