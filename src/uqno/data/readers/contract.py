"""What a reader of files of fields is. Defining one is enough: `uqno.data.open` then asks it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from uqno.data.variables import Content

READERS: list[type[Reader]] = []
"""Every reader that was defined. Those defined last are asked first: a published layout before
the format that it is written in, a reader of one's own before both."""


class Reader(ABC):
    """A file format, or a layout of one. A subclass that names its suffixes is registered.

    >>> class Single(Reader):
    ...     suffixes = (".one",)
    ...
    ...     def open(self, path):
    ...         return Content(str(path), {})
    >>> from uqno.data.readers.contract import known_suffixes
    >>> known_suffixes()[-1]
    '.one'
    >>> del READERS[-1]
    """

    suffixes: ClassVar[tuple[str, ...]]
    """How names of such files end, such as (".nc",)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "suffixes" not in cls.__dict__:
            return
        own = (cls.__module__, cls.__qualname__)
        again = [r for r in READERS if (r.__module__, r.__qualname__) == own]
        for old in again:  # defined again, as in a notebook
            READERS.remove(old)
        READERS.append(cls)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Whether it is for this file, which has one of its suffixes; looks at the head of it."""
        return True

    @abstractmethod
    def open(self, path: Path) -> Content:
        """What the file holds, with as little as possible of it read.

        Raises:
            ValueError: it is damaged or of another kind.
        """


def known_suffixes() -> tuple[str, ...]:
    """The suffixes of all readers."""
    return tuple(dict.fromkeys(suffix for reader in READERS for suffix in reader.suffixes))


def open_content(path: Path) -> Content:
    """What a file holds, by the reader that recognises it.

    Raises:
        ValueError: the file is absent, empty, damaged, or of a kind that no reader knows.
    """
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    for reader in reversed(READERS):
        if path.suffix.lower() not in reader.suffixes:
            continue
        try:
            if reader.recognises(path):
                return reader().open(path)
        except Exception as why:  # each library fails in its own way on a foreign file
            if isinstance(why, ValueError) and not isinstance(why, UnicodeError):
                raise
            raise unreadable(path, why) from why
    raise ValueError(
        f"{path}: expected a name that ends in one of {', '.join(known_suffixes())}, got "
        f"{path.suffix or 'none'!r}"
    )


def unreadable(path: Path, why: Exception) -> ValueError:
    """The error for a file that its library cannot open."""
    reason = " ".join(str(why).split())
    return ValueError(f"{path} cannot be opened: {type(why).__name__}: {reason:.300}")
