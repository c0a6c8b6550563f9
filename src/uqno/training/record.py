"""What a fit reports: one row an epoch, and the whole."""

import csv
import io
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from uqno.storage import write_bytes


@dataclass(frozen=True)
class Epoch:
    """One row of the log: losses are means over the samples; epoch and step count from 1."""

    epoch: int
    step: int
    learning_rate: float
    training_loss: float
    validation_loss: float | None
    seconds: float


@dataclass(frozen=True)
class Fit:
    """How a fit went, and on which samples.

    kept_epoch: the epoch whose weights the operator has.
    training, validation: the indices of the samples trained on and of those held out.
    """

    history: tuple[Epoch, ...]
    kept_epoch: int
    training: tuple[int, ...]
    validation: tuple[int, ...]
    folder: Path | None

    @property
    def kept(self) -> Epoch:
        return self.history[self.kept_epoch - 1]

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.history)


def write_log(path: Path, history: list[Epoch]) -> None:
    """The history as CSV, rewritten whole: after a kill no row is missing, half or double."""
    text = io.StringIO()
    table = csv.DictWriter(text, [f.name for f in fields(Epoch)], lineterminator="\n")
    table.writeheader()
    table.writerows(asdict(row) for row in history)
    write_bytes(path, text.getvalue().encode())
