"""Calibrations as files: JSON, and beside it the scores where they are many.

calibration.json          the scale, the guarantee, up to 10 000 scores
calibration.scores.npy    the scores, sorted, where there are more
"""

from __future__ import annotations

import json
from pathlib import Path

from uqno.conformal import Calibration
from uqno.numpy_files import read_npy
from uqno.storage import write_npy, write_text


def scores_file(path: str | Path) -> Path:
    """Where the scores of the calibration at `path` lie, if they are not in it."""
    return Path(path).with_suffix(".scores.npy")


def write_calibration(path: str | Path, calibration: Calibration) -> None:
    """Write a calibration, its scores first, so that a file that is there is whole.

    Raises:
        ValueError: it could not be read again, as its guarantee is not registered; nothing is
            written.
    """
    text = calibration.to_json()
    read = Calibration.from_json(text, calibration.scores)
    if read != calibration:
        raise ValueError(f"the calibration reads back as {read}, not as {calibration}")
    if calibration.scores is not None and json.loads(text)["scores"] is None:
        write_npy(scores_file(path), calibration.scores)
    write_text(path, text + "\n")


def read_calibration(path: str | Path) -> Calibration:
    """The calibration that `write_calibration` wrote.

    Raises:
        ValueError: a file is absent, damaged, or promises more than its numbers carry.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf8")
    except (OSError, UnicodeDecodeError) as why:
        raise ValueError(f"{path} cannot be read: {why}") from None
    beside = scores_file(path)
    try:
        scores = read_npy(beside) if beside.is_file() else None
        return Calibration.from_json(text, scores)
    except (ValueError, OSError, EOFError) as why:
        raise ValueError(f"{path}: {why}") from None
