"""Calibrations as files: JSON, and beside it the scores where they are many.

calibration.json                    the scale, the guarantee, up to 10 000 scores, a checksum
calibration.scores-0123456789ab.npy the scores, sorted, where there are more

The name of the scores follows from the JSON they belong to. So a calibration that takes the place
of an older one never shares a file with it: whoever is stopped between the two files leaves the
older one, whole.
"""

from __future__ import annotations

import glob
import hashlib
import json
import time
from pathlib import Path

from uqno.conformal import Calibration
from uqno.conformal.record import checksum
from uqno.numpy_files import read_npy
from uqno.storage import remove_file, write_npy, write_text

# Scores that nothing belongs to any more are removed after so many seconds: a writer may be slow.
HOUR = 3600


def scores_file(path: str | Path, text: str) -> Path:
    """Where the scores lie that belong to the calibration `text` at `path`, if not in it.

    Its time and checksum do not count: the same command, given again, writes the same name.
    """
    content = {k: v for k, v in json.loads(text).items() if k not in ("created", "checksum")}
    digest = hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=6)
    path = Path(path)
    return path.with_name(f"{path.stem}.scores-{digest.hexdigest()}.npy")


def write_calibration(path: str | Path, calibration: Calibration) -> None:
    """Write a calibration, its scores first, so that a file that is there is whole.

    Raises:
        ValueError: it could not be read again, as its guarantee is not registered; nothing is
            written.
    """
    text = calibration.to_json()
    read = Calibration.from_json(text, calibration.scores)
    if (read, read.circumstances) != (calibration, calibration.circumstances):
        raise ValueError(f"the calibration reads back as {read}, not as {calibration}")
    path, own = Path(path), None
    replaced = _named_by(path)
    if calibration.scores is not None and json.loads(text)["scores"] is None:
        own = scores_file(path, text)
        write_npy(own, calibration.scores)
    content = json.loads(text)
    write_text(path, json.dumps({**content, "checksum": checksum(content)}, indent=2) + "\n")
    for other in path.parent.glob(f"{glob.escape(path.stem)}.scores-{'[0-9a-f]' * 12}.npy"):
        if other != own and _is_old(other):
            remove_file(other)
    if replaced is not None and replaced != own:
        remove_file(replaced)


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
    beside = _scores_beside(path, text)
    try:
        scores = read_npy(beside) if beside is not None else None
        return Calibration.from_json(text, scores)
    except (ValueError, OSError, EOFError) as why:
        raise ValueError(f"{path}: {why}") from None


def _scores_beside(path: Path, text: str) -> Path | None:
    """The file of the scores that are not in `text`; uqno 0.1 gave it a name without a digest."""
    try:
        if json.loads(text)["scores"] is not None:
            return None
        files = (scores_file(path, text), path.with_suffix(".scores.npy"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # not a calibration, as who reads it says
    return next((file for file in files if file.is_file()), None)


def _named_by(path: Path) -> Path | None:
    """The file of the scores of the calibration that is there now."""
    try:
        return _scores_beside(path, path.read_text(encoding="utf8"))
    except (OSError, UnicodeDecodeError):
        return None


def _is_old(file: Path) -> bool:
    try:
        return time.time() - file.stat().st_mtime > HOUR
    except OSError:
        return False  # another process has removed it
