"""What a monitor has seen, as one small JSON file: written whole or not at all.

Only observations are kept: identities (hashed), scores, failures. Wealth and p-values follow from
them and from the seed, so a file that was changed by hand cannot disagree with itself; a checksum
tells damage.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uqno.storage import DamagedError, read_json, write_text

FORMAT: Final = "uqno.monitor"
VERSION: Final = 1
REMEDY: Final = (
    "begin again with another name, or with the last copy of it; the promise of the false alarms "
    "is for a monitor that has seen everything"
)


@dataclass
class Stream:
    """What came in of one kind, in order.

    ids: hashes of the identities; scores: one each; failed: whether the function left its band.
    """

    ids: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = set(self.ids)

    def add(self, identity: str, score: float, failed: bool) -> None:
        """Keep one function."""
        self.ids.append(identity)
        self.known.add(identity)
        self.scores.append(score)
        self.failed.append(failed)


@dataclass
class State:
    """What a monitor is of, and what it has seen.

    calibration: the fingerprint of what it monitors; false_alarm: η; seed: of the smoothing.
    """

    calibration: str
    false_alarm: float
    seed: int
    errors: Stream = field(default_factory=Stream)
    inputs: Stream = field(default_factory=Stream)


def write_state(path: Path, state: State) -> None:
    """Replace the file by the state."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "calibration": state.calibration,
        "false_alarm": state.false_alarm,
        "seed": state.seed,
        "errors": _listed(state.errors),
        "inputs": _listed(state.inputs),
    }
    write_text(path, json.dumps({**content, "checksum": checksum(content)}, allow_nan=False))


def _listed(stream: Stream) -> dict[str, Any]:
    scores = [None if math.isinf(s) else s for s in stream.scores]
    return {"ids": stream.ids, "scores": scores, "failed": stream.failed}


def checksum(content: Mapping[str, Any]) -> str:
    """Of all but the checksum."""
    return hashlib.sha256(json.dumps(dict(content), sort_keys=True).encode()).hexdigest()


def read_state(path: Path) -> State:
    """The state that `write_state` wrote.

    Raises:
        DamagedError: the file is damaged.
        ValueError: it is something else, or of another version.
    """
    content = read_json(path, REMEDY)
    if content.get("format") != FORMAT:
        raise ValueError(
            f"{path} is not the state of a monitor, its format is {content.get('format')!r:.40}, "
            f"expected {FORMAT!r}: give another name"
        )
    version = content.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise ValueError(
            f"{path} has version {version!r}, this uqno reads {VERSION}: "
            + ("use the newer uqno that wrote it" if newer else REMEDY)
        )
    said = content.pop("checksum", None)
    if said != checksum(content):
        raise DamagedError(f"{path} is damaged, its checksum is wrong: {REMEDY}")
    try:
        return State(
            calibration=str(content["calibration"]),
            false_alarm=float(content["false_alarm"]),
            seed=int(content["seed"]),
            errors=_stream(content["errors"]),
            inputs=_stream(content["inputs"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as why:
        raise DamagedError(f"{path} is no whole state ({why!r:.100}): {REMEDY}") from None


def _stream(content: Any) -> Stream:
    ids, failed = content["ids"], content["failed"]
    scores = [math.inf if s is None else float(s) for s in content["scores"]]
    whole = len(ids) == len(scores) == len(failed) == len(set(ids))
    typed = all(isinstance(i, str) for i in ids) and all(isinstance(f, bool) for f in failed)
    if not whole or not typed or not all(s >= 0 for s in scores):
        raise ValueError("identities, scores and failures do not fit together")
    return Stream(ids, scores, failed)
