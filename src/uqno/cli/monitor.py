"""`uqno monitor`: does the promise still stand for the functions that came in?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from uqno.cli.arguments import Inputs, Outputs, Use, names
from uqno.cli.terminal import out, progress_bar


def monitor(
    model: Annotated[
        Path, typer.Argument(help="The folder of a calibrated model, or a calibration.json.")
    ],
    observed: Annotated[
        Path,
        typer.Argument(
            help="What came in: inputs and truths, of a model; prediction, truth and uncertainty, "
            "of a calibration.json."
        ),
    ],
    state: Annotated[
        Path, typer.Option(help="The file that keeps what was seen; made if it is not there.")
    ] = Path("monitor.json"),
    inputs: Inputs = None,
    outputs: Outputs = None,
    without_truth: Annotated[
        bool, typer.Option("--without-truth", help="Look at the inputs alone.")
    ] = False,
    false_alarm: Annotated[
        float, typer.Option(help="The probability of a false alarm, over all time.")
    ] = 0.01,
    page: Annotated[Path | None, typer.Option(help="Also write a page, an .html file.")] = None,
    use: Use = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Look at functions that came in, each once, and give alarm if something changed.

    Exit code 1 where there is an alarm, now or earlier, and 0 where there is none. A function that
    was seen before, with the same values, is not counted again.

    Examples:  uqno monitor model this_week.nc --state model-monitor.json --page monitor.html
    uqno monitor calibration.json this_week.nc --json
    """
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--page {page} must end in .html")
    from uqno.monitor import Monitor

    roles = (names(inputs), names(outputs))
    watched: Any = _of_model(model) if model.is_dir() else _of_arrays(model)
    watch = Monitor(watched, false_alarm, state)
    pairs = (
        _from_model(watched, observed, roles, truth=not without_truth)
        if model.is_dir()
        else _from_arrays(watch.calibration, observed)
    )
    counted = 0
    with progress_bar("observing", quiet=as_json) as advance:
        for done, total, band, truth in pairs:
            counted += watch.observe(band, truth).counted
            advance(done, total)
    verdict = watch.verdict(counted)
    if page is not None:
        from uqno.monitor.page import write_page

        write_page(page, verdict, watch.calibration.guarantee, model.name)
    bad = verdict.alarm or verdict.failing
    if as_json:
        out.print_record(verdict.as_json() | {"state": str(state)})
    else:
        out.print(f"{counted} new functions")
        out.print(f"[{'bold red' if bad else 'green'}]{escape(str(verdict))}[/]", soft_wrap=True)
        if page is not None:
            out.print(f"written to {escape(str(page))}", soft_wrap=True)
    raise typer.Exit(1 if bad else 0)


def _of_model(folder: Path) -> Any:
    from uqno.model import UQNO

    return UQNO.load(folder)


def _of_arrays(file: Path) -> Any:
    from uqno.data.calibrations import read_calibration

    return read_calibration(file)


def _from_model(
    model: Any, file: Path, roles: tuple[Any, Any], *, truth: bool
) -> Iterator[tuple[int, int, Any, Any]]:
    """(done, of how many, band, truth) of each function of a file of inputs and truths."""
    from uqno.data.opening import open as open_data

    functions = open_data(file, *roles, dimensions=model.dimensions, truth=truth)
    for i in range(len(functions)):
        sample = functions[i]
        band = model.predict({name: x for name, x in sample.items() if name != "u"})
        yield i + 1, len(functions), band, sample["u"].numpy() if truth else None


def _from_arrays(calibration: Any, file: Path) -> Iterator[tuple[int, int, Any, Any]]:
    """The same of predictions, truths and uncertainties: the band around 0, the error its truth."""
    import numpy as np

    from uqno.band import Band
    from uqno.data.calibration_file import open_calibration

    with open_calibration(file) as data:
        n = len(data.uncertainty)
        for i in range(n):
            error, uncertainty = data.error[i : i + 1][0], data.uncertainty[i : i + 1][0]
            weights: Any = data.weights
            if weights is not None and weights.shape == data.uncertainty.shape:
                weights = weights[i : i + 1][0]
            vector = error.ndim > uncertainty.ndim
            channels = np.moveaxis(error, -1, 0) if vector else error[np.newaxis]
            flat = channels.reshape(len(channels), -1)
            band = Band(
                np.zeros_like(flat),
                uncertainty.ravel(),
                calibration,
                (np.arange(flat.shape[1], dtype=np.float64),),
                weights=None if weights is None else np.ravel(weights),
            )
            yield i + 1, n, band, flat
