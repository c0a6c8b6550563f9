"""`uqno run`: a comparison of methods on any task that is registered.

The commands are built when they are asked for, one a task, so that files given with --use can
define some. Torch is imported when a comparison is run, not for help and settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup
from typer.main import get_command

from uqno.cli.arguments import Use
from uqno.cli.failing import log_into, note
from uqno.cli.terminal import help_if_alone, out, show_results, stages, words_of

if TYPE_CHECKING:
    from uqno.experiments.description import TaskDescription

Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting.")
]
RunFolder = Annotated[
    Path | None,
    typer.Option("--out", help="The run's folder.", show_default="runs/TASK-PRESET"),
]
Workers = Annotated[int, typer.Option(min=0, help="Processes; 0 for one a core.")]
ShowSettings = Annotated[bool, typer.Option("--settings", help="Print the settings and stop.")]


class TaskCommands(TyperGroup):
    """One command for each task."""

    def list_commands(self, ctx: Any) -> list[str]:
        from uqno.experiments.description import known_tasks

        return sorted(known_tasks())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from uqno.experiments.description import known_tasks

        task = known_tasks().get(cmd_name)
        return None if task is None else _command(task)


run_app = typer.Typer(
    help="Run a comparison of methods.", invoke_without_command=True, cls=TaskCommands
)


@run_app.callback()
def load(context: typer.Context, use: Use = None) -> None:
    help_if_alone(context)


def _command(task: type[TaskDescription]) -> Any:
    """The command `uqno run TASK`."""
    words, default = task.data_help
    names = ", ".join(task.presets)
    first = next(iter(task.presets))
    app = typer.Typer(add_completion=False)

    def compare(
        context: typer.Context,
        preset: Annotated[str, typer.Option(help=f"One of {names}.")] = first,
        changes: Changes = None,
        to: RunFolder = None,
        data: Annotated[Path | None, typer.Option(help=words, show_default=default)] = None,
        workers: Workers = 0,
        show: ShowSettings = False,
    ) -> None:
        used = (context.parent.params.get("use") or []) if context.parent is not None else []
        _compare(task, used, preset, changes or [], to, data, workers, show)

    # Annotations that are text would be looked up where these names are not known.
    compare.__annotations__["preset"] = Annotated[str, typer.Option(help=f"One of {names}.")]
    compare.__annotations__["data"] = Annotated[
        Path | None, typer.Option(help=words, show_default=default)
    ]
    compare.__doc__ = (
        f"{task.title} Compare all methods: table, figures, report. Stopped, it goes on."
    )
    app.command(task.name)(compare)
    command = get_command(app)
    command.name = task.name
    return command


def _compare(
    task: type[TaskDescription],
    used: list[str],
    preset: str,
    changes: list[str],
    to: Path | None,
    data: Path | None,
    workers: int,
    show: bool,
) -> None:
    """What `uqno run TASK` does."""
    settings = task.preset(preset, changes)
    if show:
        out.print_record(settings.record())
        return
    from uqno.experiments import experiment, runs
    from uqno.experiments.table import write_markdown
    from uqno.report.page import make_report

    folder = to or Path("runs") / f"{task.name}-{preset}"
    run = runs.begin(settings, folder, data)
    log_into(folder)
    done = run.is_done()
    if done:
        out.print(f"{escape(str(folder))} is done; remove it to run it again", soft_wrap=True)
    else:
        _say_how_long(experiment.estimate(run, workers or None))
    options = [f"--use {source}" for source in used]
    changed = [f"--set {change}" for change in changes]
    changed += [] if data is None else [f"--data {data}"]
    command = " ".join(["uqno run", *options, task.name, f"--preset {preset}", *changed])
    with stages() as progress:
        results = experiment.compare(
            run, preset=preset, command=command, workers=workers or None, progress=progress
        )
        try:  # all that is written is on disk before any of it is shown
            write_markdown(folder / "table.md", results)
            make_report(folder, figures_to=folder / "figures", data=data, progress=progress)
        except OSError as why:
            if not done:
                raise
            note(f"the report was not written again: {why}")
    show_results(results, folder)


def _say_how_long(seconds: float | None) -> None:
    how_long = "" if seconds is None else f"about {words_of(seconds)} on this machine; "
    out.print(f"{how_long}stop it at any time, it goes on")
