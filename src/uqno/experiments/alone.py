"""One process at a time makes something in a folder."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Have a folder for oneself; the lock ends with the process, however that ends.

    Args:
        folder: is created if it is not there. The lock is its file `.lock`, which stays, empty. A
            disk that knows no locks gives none, which is logged.

    Raises:
        ValueError: another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another process is at work in {folder}: let it finish or stop it, or choose "
                "another folder with --out"
            ) from None
        except OSError as why:
            log.warning("%s cannot be locked (%s): let one process work there", folder, why)
        yield
