"""Names of what a write sets aside, and what becomes of it when its process is gone.

    .uqno-MACHINE-PROCESS-RANDOM.part     a write that is not finished
    .uqno-MACHINE-PROCESS-RANDOM.old/     a folder that is being replaced

Nobody can foresee the name, and it says which process of which machine writes there: what a killed
one left is swept by the next write into the same place. Asides of other machines are swept after a
day.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import shutil
import socket
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)

NAME = re.compile(r"\.uqno-([0-9a-f]{12})-([0-9]+)-[0-9a-f]{16}\.(part|old)")
# After so many seconds an aside of another machine is of a process that is gone.
DAY = 86_400


def path_in(folder: Path, kind: str, suffix: str = "") -> Path:
    """A new path in a folder, of the kind "part" or "old"; a short suffix is kept."""
    name = f".uqno-{machine()}-{os.getpid()}-{secrets.token_hex(8)}.{kind}"
    return folder / (name + (suffix if len(suffix) <= 16 else ""))


def new_file(path: Path) -> Path:
    """An empty file beside `path` that was not there before."""
    aside = path_in(path.parent, "part", path.suffix)
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return aside


def new_folder(folder: Path, kind: str) -> Path:
    """An empty folder in `folder` that was not there before."""
    aside = path_in(folder, kind)
    aside.mkdir()
    return aside


def sweep(folder: Path) -> None:
    """Remove what processes that are gone left aside in a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            parts = NAME.match(entry.name)
            if parts is None or not _is_left(parts[1], int(parts[2]), entry):
                continue
            path = Path(entry.path)
            if parts[3] == "old" and not all((folder / p.name).exists() for p in path.iterdir()):
                continue  # the only copy: `recover_folder` puts it back
            log.info("%s was left by a process that is gone: removed", path)
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_left(machine_of: str, process: int, entry: os.DirEntry[str]) -> bool:
    """Whether an aside is of a process that is gone."""
    if machine_of != machine() or os.name != "posix":
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > DAY
    try:
        os.kill(process, 0)  # asks whether it is there, and does nothing to it
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it is another user's
    return False


@cache
def machine() -> str:
    """A name of this machine since it was started, within which process numbers mean something."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        parts.append(str(os.stat("/proc/self/ns/pid").st_ino))
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()
