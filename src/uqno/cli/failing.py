"""How the command line ends when it fails: one line on standard error, and a log where it helps.

What the user can mend is said in full, with exit code 2. Anything else is a fault of ours: its
traceback goes into a file, in the folder of the run or in a temporary one, with exit code 1.
"""

from __future__ import annotations

import platform
import secrets
import sys
import tempfile
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from uqno import __version__
from uqno.cli.output import is_gone, to_nowhere
from uqno.storage import write_text

_folders: list[Path] = []


def log_into(folder: Path) -> None:
    """Where the log of a fault shall lie, if that folder is there then: the folder of a run."""
    _folders[:] = [folder]


def note(message: str) -> None:
    """One line on standard error that is no end."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"uqno: {' '.join(message.split())}", file=sys.stderr, flush=True)


def fail(message: str, code: int) -> NoReturn:
    """End with one line on standard error."""
    note(message)
    sys.exit(code)


def fail_by(why: Exception) -> NoReturn:
    """End by what a command raised."""
    if isinstance(why, BrokenPipeError) and is_gone(sys.stdout):
        to_nowhere(sys.stdout)
        sys.exit(0)
    if hasattr(why, "format_message"):  # typer's own, of the arguments
        fail(f"{why.format_message()} (uqno --help explains)", 2)
    if isinstance(why, ValueError | OSError | MemoryError):
        fail(str(why) or "out of memory", 2)
    log = write_log(why)
    where = "its traceback could not be written" if log is None else f"the traceback is in {log}"
    fail(f"a fault in uqno, {type(why).__name__}: {_short(why)}; {where}: please report it", 1)


def _short(why: Exception) -> str:
    try:
        return f"{why!s:.200}"
    except Exception:  # an exception whose text fails too
        return "without words"


def write_log(why: Exception) -> Path | None:
    """A file with the traceback; None where none can be written."""
    now = datetime.now(UTC)
    trace = "".join(traceback.format_exception(why))
    head = f"uqno {__version__}, Python {platform.python_version()}, {now.isoformat()}\n"
    text = f"{head}{sys.argv}\n\n{trace}".encode("utf8", "backslashreplace").decode("utf8")
    name = f"uqno-fault-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.log"
    for folder in (*(f for f in _folders if f.is_dir()), Path(tempfile.gettempdir())):
        with suppress(OSError):
            write_text(folder / name, text)
            return folder / name
    return None
