"""The progress bar of a fit: epoch, loss, time left. On a terminal only, unless asked."""

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Bar:
    """A progress bar as a context manager.

    Args:
        shown: whether it is drawn; if not, it does nothing.
        steps: of the whole run.
        done: steps that were done before.
        epochs: of the whole run.
    """

    def __init__(self, shown: bool, steps: int, done: int, epochs: int) -> None:
        self._epochs = epochs
        self._progress = _progress() if shown else None
        if self._progress is not None:
            self._task = self._progress.add_task("training", total=steps, completed=done, loss="")

    def __enter__(self) -> "Bar":
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, epoch: int, loss: float) -> None:
        """Count one step, in the epoch of this number, with the mean loss of the epoch so far."""
        if self._progress is not None:
            words = f"epoch {epoch}/{self._epochs}"
            self._progress.update(self._task, advance=1, description=words, loss=f"{loss:.4g}")


def wanted(progress: bool | None) -> bool:
    """Whether a bar is drawn: what was asked for, and with None if there is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=4,  # drawing competes with the training for the interpreter
    )
