"""What a fit reports: one row an epoch, and the whole."""

import csv
import io
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from uqno.storage import write_text


@dataclass(frozen=True)
class Epoch:
    """One row of the log.

    Args:
        epoch: its number, counted from 1.
        step: the number of steps at its end.
        learning_rate: the one of its last step.
        training_loss: the mean over the samples trained on, each as the operator was then.
        validation_loss: the mean over the samples held out, at the end; None if there are none.
        seconds: how long the epoch took.
    """

    epoch: int
    step: int
    learning_rate: float
    training_loss: float
    validation_loss: float | None
    seconds: float


@dataclass(frozen=True)
class Fit:
    """How a fit went, and on which samples.

    Args:
        history: one row for each epoch.
        chosen_epoch: the epoch whose weights the operator has, counted from 1.
        training: the indices of the samples trained on.
        validation: the indices of the samples held out.
        folder: where the checkpoints are; None if none were written.
    """

    history: tuple[Epoch, ...]
    chosen_epoch: int
    training: tuple[int, ...]
    validation: tuple[int, ...]
    folder: Path | None

    @property
    def chosen(self) -> Epoch:
        """The row of the epoch whose weights the operator has."""
        return self.history[self.chosen_epoch - 1]

    @property
    def seconds(self) -> float:
        """How long all epochs took together."""
        return sum(row.seconds for row in self.history)


def write_log(path: Path, history: list[Epoch]) -> None:
    """Write the history as CSV, the whole of it: after a kill no row is missing, half or double.

    Args:
        path: the file to write.
        history: one row for each epoch.

    Raises:
        OSError: the file could not be written; the old one is untouched.
    """
    write_text(path, log_text(history))


def log_text(history: list[Epoch]) -> str:
    """What `write_log` writes."""
    text = io.StringIO()
    table = csv.DictWriter(text, [f.name for f in fields(Epoch)], lineterminator="\n")
    table.writeheader()
    table.writerows(asdict(row) for row in history)
    return text.getvalue()
