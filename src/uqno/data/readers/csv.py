"""Points in a CSV file."""

from pathlib import Path

import numpy as np

from uqno.memory import check_memory
from uqno.types import Reals

# So many times the size of a file is taken while it is read: text becomes words, then numbers.
COPIES = 20


def read_points(path: str | Path) -> Reals:
    """Coordinates of points, a line each, with or without a first line of names.

    Returns:
        Coordinates, (points, d).

    Raises:
        ValueError: the file is absent, or a line does not hold d finite numbers.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    check_memory(str(path), COPIES * path.stat().st_size, "split the file")
    try:
        text = path.read_text(encoding="utf8")
    except UnicodeDecodeError as why:
        raise ValueError(f"{path} is no text of numbers: {why}") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and not _are_numbers(lines[0]):
        lines = lines[1:]
    bad = [i for i, line in enumerate(lines) if not _are_numbers(line)]
    widths = {line.count(",") for line in lines}
    if not lines or bad or len(widths) > 1:
        where = f"line {bad[0] + 1} is {lines[bad[0]]!r:.80}" if bad else f"{len(lines)} lines"
        raise ValueError(f"{path}: expected equally many numbers in each line, got {where}")
    return np.array([[float(x) for x in line.split(",")] for line in lines])


def _are_numbers(line: str) -> bool:
    try:
        return all(np.isfinite(float(x)) for x in line.split(","))
    except ValueError:
        return False
