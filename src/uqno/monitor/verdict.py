"""What a monitor says: each test as it stands, and the verdict of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from uqno.conformal import words

ERRORS: Final = "errors"
INPUTS: Final = "inputs"
FAILURES: Final = "failures"


@dataclass(frozen=True)
class Finding:
    """One test as it stands."""

    name: str
    functions: int
    """How many it has seen."""
    wealth: float
    """Now; it began with 1."""
    largest: float
    """The largest so far."""
    threshold: float
    """The wealth at which it gives alarm."""
    alarm: bool
    since: int | None
    """The number of functions at which it gave alarm."""
    history: tuple[float, ...]
    """The logarithm of the wealth after each function."""
    bound: str
    """What is known of a false alarm."""

    def __str__(self) -> str:
        what = {
            ERRORS: "errors are exchangeable with those of calibration",
            INPUTS: "inputs are exchangeable with those of calibration",
            FAILURES: "failures are no more often than delta",
        }[self.name]
        now = words.rounded_up(self.wealth) if self.wealth > 1e-6 else "0"
        if self.alarm:
            return (
                f"{self.name}: evidence against '{what}' since function {self.since} of "
                f"{self.functions} (wealth up to {self.largest:.3g}, alarm at "
                f"{self.threshold:.3g}; {self.bound})"
            )
        return (
            f"{self.name}: nothing against '{what}' in {self.functions} functions (wealth {now}, "
            f"alarm at {self.threshold:.3g}; {self.bound})"
        )


@dataclass(frozen=True)
class Verdict:
    """What a monitor says."""

    alarm: bool
    """Errors or inputs are not exchangeable with those of calibration; false with at most η."""
    failing: bool
    """Failures exceed δ; false with at most η + 1 − confidence. Never where that is not tested."""
    counted: int
    """How many functions of the last call were new."""
    tests: Mapping[str, Finding]

    def __str__(self) -> str:
        head = "ALARM" if self.alarm or self.failing else "no alarm"
        return "\n".join([head, *map(str, self.tests.values())])

    def as_json(self) -> dict[str, Any]:
        """The same as JSON holds it, without the histories."""
        tests = {name: {**asdict(test), "words": str(test)} for name, test in self.tests.items()}
        for test in tests.values():
            del test["history"], test["name"]
        return {
            "alarm": self.alarm,
            "failing": self.failing,
            "counted": self.counted,
            "tests": tests,
        }
