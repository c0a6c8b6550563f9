"""How often a model was calibrated, and on which functions.

A promise is for a calibration that was settled on beforehand. Who calibrates again until the band
looks good has chosen by the result, and nothing in one calibration shows it; the model's history
does. It is kept through fits, saved with the model, and told by the guarantee of every calibration
that was not the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from uqno.conformal import checks


@dataclass(frozen=True)
class Past:
    """One calibration.

    Args:
        when: in UTC.
        digest: of its functions, inputs and truths, in any order.
        functions: how many there were.
        levels: what was asked for, by name; one entry for each promise made from them.
    """

    when: str
    digest: str
    functions: int
    levels: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """As `history_of` reads it."""
        return {**asdict(self), "levels": [dict(one) for one in self.levels]}


def counted(history: Sequence[Past], digest: str) -> tuple[int, int]:
    """How many calibrations were on the functions of this digest, and on others."""
    here = sum(past.digest == digest for past in history)
    return here, len(history) - here


def history_of(content: Any) -> tuple[Past, ...]:
    """The calibrations that a file tells of.

    Raises:
        ValueError: it tells something else.
    """
    expected = {"when": str, "digest": str, "functions": int, "levels": list}
    history = []
    for one in content if isinstance(content, list) else [content]:
        fits = isinstance(one, dict) and set(one) == set(expected)
        fits = fits and all(isinstance(one[name], kind) for name, kind in expected.items())
        if not fits or not all(isinstance(level, dict) for level in one["levels"]):
            raise ValueError(
                f"the history of the model holds {one!r:.80}: expected calibrations with "
                f"{', '.join(expected)}; take the model from where it was saved"
            )
        functions = checks.count("functions", one["functions"])
        history.append(Past(one["when"], one["digest"], functions, tuple(one["levels"])))
    return tuple(history)
