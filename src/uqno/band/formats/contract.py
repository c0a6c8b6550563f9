"""What a file format for bands is. Defining one is enough: `Band.write` then knows its suffixes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from uqno.storage import write_file

if TYPE_CHECKING:
    from uqno.band.band import Band

FORMATS: dict[str, type[BandFormat]] = {}
"""Every format that was defined, by suffix."""


class BandFormat(ABC):
    """A file format. A subclass that names its suffixes is registered when it is defined.

    What a band file holds, whatever its format, is in `uqno.band.formats.content`: `variables`
    (center, uncertainty, radius, …), `axes` (x, y, z) and `attributes` (the guarantee, …).

    >>> class Mean(BandFormat):
    ...     suffixes = (".mean",)
    ...
    ...     def write(self, band, path):
    ...         path.write_text(str(band.bandwidth))
    >>> format_of("band.mean").__name__
    'Mean'
    >>> del FORMATS[".mean"]
    """

    suffixes: ClassVar[tuple[str, ...]]
    """How names of such files end, such as (".nc",)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for suffix in cls.__dict__.get("suffixes", ()):
            known = FORMATS.setdefault(suffix, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ValueError(
                    f"{cls.__qualname__} is for {suffix}, which {known.__module__}."
                    f"{known.__qualname__} writes already: choose another suffix"
                )
            FORMATS[suffix] = cls  # defined again, as in a notebook

    @abstractmethod
    def write(self, band: Band, path: Path) -> None:
        """Write the band into a file.

        Args:
            band: one function or a batch.
            path: an empty file to write into. Its name is a temporary one with the suffix that was
                asked for: it is renamed once it is whole.
        """

    def check(self, band: Band, path: Path) -> None:
        """Refuse what a file of this format cannot hold, before anything is written.

        Args:
            band: one function or a batch.
            path: the name that was asked for.

        Raises:
            ValueError: what is wrong and what to do instead.
        """
        check_suffix(path, self.suffixes)

    def save(self, band: Band, path: str | Path) -> None:
        """Replace the file at `path` by the band, whole or not at all."""
        path = Path(path)
        self.check(band, path)
        write_file(path, lambda aside: self.write(band, aside))


def check_suffix(path: Path, allowed: tuple[str, ...]) -> None:
    """Refuse a path that ends in none of the suffixes."""
    if path.suffix not in allowed:
        raise ValueError(f"{path} must end in {' or '.join(allowed)} for this band")


def suffixes() -> tuple[str, ...]:
    """The suffixes of all formats."""
    return tuple(FORMATS)


def format_of(path: str | Path) -> type[BandFormat]:
    """The format that a file is written in, by the suffix of its name.

    Raises:
        ValueError: no format has this suffix.
    """
    path = Path(path)
    if path.suffix not in FORMATS:
        raise ValueError(f"{path} must end in one of {', '.join(FORMATS)}")
    return FORMATS[path.suffix]
