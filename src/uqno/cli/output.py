"""Standard output whatever it is: a terminal of another alphabet, a pipe that closes, a full disk.

Text that the encoding of a stream does not have is written in letters that it has: α as alpha, ≥
as >=. A reader that goes away, as `head` does, is no error: what is asked for is done to its end,
unseen. What a machine reads stays whole: JSON escapes what the encoding does not have.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from typing import Any, TextIO

from rich.console import Console

PLAIN = {
    "α": "alpha", "δ": "delta", "λ": "lambda", "β": "beta", "μ": "mu", "σ": "sigma", "π": "pi",
    "Ĝ": "G", "λ̂": "lambda", "\u0302": "", "≥": ">=", "≤": "<=", "≈": "~", "±": "+-", "×": "x",
    "·": "*", "−": "-", "–": "-", "—": "-", "…": "...", "→": "->", "✓": "yes", "✗": "no",
    "’": "'", "‘": "'", "“": '"', "”": '"', "‖": "||", "∞": "inf", "√": "sqrt", "Σ": "sum",
    "²": "^2", "½": "1/2", "\u00a0": " ", "\u2009": " ", "\u202f": " ",
}  # fmt: skip
HANDLER = "uqno.plain"


def _plain(why: UnicodeError) -> tuple[str, int]:
    """What stands for characters that an encoding does not have."""
    if not isinstance(why, UnicodeEncodeError):
        raise why
    missing = why.object[why.start : why.end]
    text = "".join(PLAIN.get(c) or (PLAIN[c] if c in PLAIN else _escaped(c)) for c in missing)
    return text, why.end


def _escaped(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode("ascii")


def make_writable() -> None:
    """Let standard output and standard error take any text."""
    codecs.register_error(HANDLER, _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=HANDLER)


class Output(Console):
    """Standard output for people; once its reader is gone, it is quiet."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        to_nowhere(sys.stdout)

    def print_record(self, content: Any) -> None:
        """JSON for machines."""
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        wide = encoding.lower().replace("-", "").startswith("utf")
        self.print_json(json.dumps(content), ensure_ascii=not wide)

    def print_text(self, text: str) -> None:
        """Text as it is, for Markdown."""
        if not self.quiet:
            try:
                print(text, flush=True)
            except BrokenPipeError:
                self.on_broken_pipe()


def is_gone(stream: TextIO | None) -> bool:
    """Whether nobody reads a stream any more."""
    try:
        if stream is not None:
            stream.flush()
    except (BrokenPipeError, ValueError):
        return True
    return False


def to_nowhere(stream: TextIO) -> None:
    """Let what is still in the buffer of a stream go nowhere, or Python complains as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
