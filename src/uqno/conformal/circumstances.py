"""What a guarantee must tell beside its rule: repeated functions, and calibrations before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from uqno.conformal import checks


@dataclass(frozen=True)
class Circumstances:
    """How a calibration came about, as far as its promise depends on it.

    Args:
        repeated: how many functions repeat another, where that was allowed; None where such
            functions were refused.
        together: the promises that were made from one pass over the functions.
        here: how often this model was calibrated on these functions before.
        elsewhere: how often it was calibrated on others before.
    """

    repeated: int | None = None
    together: int = 1
    here: int = 0
    elsewhere: int = 0

    def sentence(self, functions: int) -> str:
        """What there is to say, of a calibration on so many functions; empty if nothing is."""
        return "".join((self._of_repeats(functions), self._of_the_pass(), self._of_the_past()))

    def _of_repeats(self, functions: int) -> str:
        if self.repeated is None:
            return ""
        if not self.repeated:
            return " Repeated functions were allowed, and none was found."
        return (
            f" Repeated functions were allowed, and {self.repeated} of the {functions} repeat "
            "another: this is a promise about distinct draws, and nothing is promised unless each "
            "of them was drawn anew, not copied."
        )

    def _of_the_pass(self) -> str:
        if self.together == 1:
            return ""
        return (
            f" This is one of {self.together} promises made from the same functions: each holds "
            "alone, not all of them jointly."
        )

    def _of_the_past(self) -> str:
        if not self.here + self.elsewhere:
            return ""
        where = [
            f"{times(count)} on {which}"
            for count, which in ((self.here, "these functions"), (self.elsewhere, "others"))
            if count
        ]
        return (
            f" This model was calibrated before, {' and '.join(where)}: the promise is for a "
            "calibration that was settled on before its result was seen, not for one that was "
            "chosen among several by their results."
        )

    def to_json(self) -> dict[str, int | None]:
        """What differs from a calibration of which nothing is to be said."""
        usual = Circumstances()
        both = {f.name: (getattr(self, f.name), getattr(usual, f.name)) for f in fields(self)}
        return {name: value for name, (value, other) in both.items() if value != other}

    @classmethod
    def from_json(cls, content: Any) -> Circumstances:
        """What `to_json` gave.

        Raises:
            ValueError: it is something else.
        """
        known = {f.name for f in fields(cls)}
        if not isinstance(content, Mapping) or not set(content) <= known:
            raise ValueError(
                f"circumstances = {content!r:.80} in the calibration must be an object of "
                f"{', '.join(sorted(known))}"
            )
        least = {"together": 1}
        return cls(
            **{name: checks.count(name, x, least.get(name, 0)) for name, x in content.items()}
        )


def times(count: int) -> str:
    """1 → 'once', 3 → '3 times'."""
    return "once" if count == 1 else f"{count} times"
