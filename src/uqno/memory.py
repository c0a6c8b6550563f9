"""The memory budget: what a file may make the library allocate.

A file from elsewhere may declare any shape. Before memory is taken for what it declares, the size
is compared with the budget: half of the machine's memory, or of what its container may use, unless
the environment variable UQNO_MEMORY_BUDGET says otherwise. `set_budget` sets that variable, so that
worker processes started afterwards have the same budget. What is made by one's own arguments, such
as a larger batch, is not counted.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

VARIABLE = "UQNO_MEMORY_BUDGET"
UNITS = {"": 1, "B": 1, **{f"{p}B": 1000**k for k, p in enumerate("KMGT", 1)}}
UNITS |= {f"{p}IB": 1024**k for k, p in enumerate("KMGT", 1)}
# Where the system does not say how much memory there is.
UNKNOWN = 4 * 1024**3
# Where Linux says what a container may use, in version 2 and 1 of its control groups.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def budget() -> int:
    """How many bytes a file may make the library allocate at once.

    Raises:
        ValueError: the environment variable holds no size.
    """
    text = os.environ.get(VARIABLE)
    return _machine_memory() // 2 if text is None else parsed(text)


def set_budget(size: int | str | None) -> None:
    """Set the budget of this process and of those that it starts.

    Args:
        size: in bytes, or such as "8 GiB" or "500 MB"; None for half of the memory.

    Raises:
        ValueError: it is no size.

    >>> set_budget("2 GiB")
    >>> budget()
    2147483648
    >>> set_budget(None)
    """
    if size is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = str(parsed(str(size)))


def parsed(text: str) -> int:
    """A size in bytes from a text such as "8 GiB".

    Raises:
        ValueError: it is none, or not at least 1 byte.
    """
    parts = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([a-zA-Z]*)\s*", text, re.ASCII)
    if parts is not None and parts[2].upper() in UNITS:
        size = int(float(parts[1]) * UNITS[parts[2].upper()])
        if size >= 1:
            return size
    raise ValueError(
        f"{VARIABLE} is {text!r:.60}, expected at least 1 byte, such as 8GiB, 500MB or 2000000000"
    )


def check_memory(what: str, size: int, remedy: str = "read less of it at once") -> None:
    """Refuse what would take more memory than the budget, before it is taken.

    Args:
        what: takes it; the begin of the message.
        size: in bytes, as declared.
        remedy: what to do about it, beside a larger budget.

    Raises:
        ValueError: the size is negative, or over the budget.
    """
    if size < 0:
        raise ValueError(f"{what} declares the negative size {size}: the file is damaged")
    most = budget()
    if size > most:
        raise ValueError(
            f"{what} declares {in_words(size)}, the memory budget is {in_words(most)}: {remedy}, "
            f"or raise the environment variable {VARIABLE} if you trust the file"
        )


def in_words(size: int) -> str:
    """A size in a unit that a person can read.

    >>> in_words(1_234_567), in_words(12)
    ('1.23 MB', '12 bytes')
    """
    size = min(size, 10**300)  # a file may declare more than a float can hold
    for unit in ("TB", "GB", "MB", "KB"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.3g} {unit}"
    return f"{size} bytes"


@cache
def _machine_memory() -> int:
    """Bytes of memory that the machine has, or that its container may use."""
    total = UNKNOWN
    with suppress(AttributeError, OSError, ValueError):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in LIMITS:
        with suppress(OSError, ValueError):  # "max" is no number
            total = min(total, int(Path(file).read_text()))
    return max(total, 2)
