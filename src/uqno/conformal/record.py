"""A `Calibration`: λ̂ with all that its guarantee says, and its JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from uqno.conformal import checks
from uqno.conformal.circumstances import Circumstances
from uqno.conformal.guarantees.contract import Guarantee, guarantee_of
from uqno.conformal.ranks import Ranks
from uqno.conformal.scores import coverage
from uqno.types import Reals

FORMAT: Final = "uqno.calibration"
VERSION: Final = 2
# More scores than this are kept beside the JSON, not in it.
MOST_SCORES_IN_JSON: Final = 10_000


@dataclass(frozen=True)
class Calibration:
    """λ̂ with all that its guarantee says. Two are equal when they promise the same."""

    scale: float
    """λ̂: the radius of the band is scale · uncertainty."""
    rule: Guarantee
    """The guarantee that the scale carries."""
    functions: int
    """n, the number of calibration functions."""
    points: int
    """m, the points of a function; the smallest number where they differ."""
    points_max: int
    """The largest number of points."""
    ranks: Ranks | None = None
    """(k, j), for guarantees with such a pair; k belongs to the smallest number of points."""
    weighted: bool = False
    """Whether points count by weights."""
    scores: Reals | None = field(default=None, compare=False, repr=False)
    """The scores of the calibration functions, sorted, (n,); None where they were not kept."""
    details: Mapping[str, Reals] = field(default_factory=dict, compare=False, repr=False)
    """Arrays that the guarantee needs beside the scale; their names and shapes are its own."""
    created: str = field(default="", compare=False)
    """When it was made, in UTC."""
    model: str = field(default="", compare=False)
    """The digest of the model whose functions these were; empty for arrays."""
    circumstances: Circumstances = field(default_factory=Circumstances, compare=False)
    """What is to be said beside the rule: repeated functions, calibrations before this one."""

    @property
    def guarantee(self) -> str:
        """What is promised and what is not, to quote."""
        return self.rule.sentence(self) + self.circumstances.sentence(self.functions)

    @property
    def promise(self) -> str:
        """The guarantee in one line."""
        return self.rule.promise(self)

    @property
    def levels(self) -> dict[str, Any]:
        """What was asked for, by name: alpha, delta, sampling, …; without what was left out."""
        asked = {name: x for name, x in self.rule.settings.items() if x is not None}
        return asked if self.circumstances.repeated is None else {**asked, "repeated": "allow"}

    @property
    def alpha(self) -> float | None:
        """α as a number; None for a guarantee without it."""
        return self._share("alpha")

    @property
    def delta(self) -> float | None:
        """δ as a number; None for a guarantee without it."""
        return self._share("delta")

    def _share(self, name: str) -> float | None:
        value = getattr(self.rule, name, None)
        return None if value is None else float(value)

    def scale_for(self, function: Mapping[str, Any]) -> float:
        """λ̂ for a new function, given its fields; the same for all unless the rule says so."""
        return self.rule.scale_for(self, function)

    def coverage(self, error: Any, uncertainty: Any, weights: Any = None) -> Reals:
        """The covered share of each function, (n,): where ‖error‖ / uncertainty ≤ λ̂."""
        return coverage(error, uncertainty, self.scale, weights)

    def to_json(self, scores: bool = True) -> str:
        """The calibration as text, which `from_json` reads.

        Args:
            scores: whether to include the scores; more than 10 000 are never included.
        """
        listed = None
        if scores and self.scores is not None and len(self.scores) <= MOST_SCORES_IN_JSON:
            listed = [None if np.isinf(s) else float(s) for s in self.scores]
        pair = self.ranks
        content = {
            "format": FORMAT,
            "version": VERSION,
            "scale": self.scale,
            "guarantee": {"name": self.rule.name, **self.rule.settings},
            "ranks": None if pair is None else {"point": pair.point, "function": pair.function},
            "functions": self.functions,
            "points": self.points,
            "points_max": self.points_max,
            "weighted": self.weighted,
            "created": self.created,
            "scores": listed,
            "details": {name: x.tolist() for name, x in self.details.items()},
        }
        if self.model:
            content["model"] = self.model
        if told := self.circumstances.to_json():
            content["circumstances"] = told
        return json.dumps(content, indent=2)

    @classmethod
    def from_json(cls, text: str, scores: Reals | None = None) -> Calibration:
        """The calibration that `to_json` wrote; anything else is refused by name.

        Args:
            text: the JSON.
            scores: the scores, where they lie beside the JSON.
        """
        return _checked_content(_parsed(text), scores)


def checksum(content: Mapping[str, Any]) -> str:
    """Of what JSON holds, whatever its order and spaces; it stops damage, not forgery."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# --- reading JSON ---------------------------------------------------------------------------------

_FIELDS: Final = {
    "scale", "guarantee", "ranks", "functions", "points", "points_max", "weighted", "created",
    "scores", "details", "model", "circumstances",
}  # fmt: skip


def _parsed(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text, parse_constant=lambda name: None)
    except (ValueError, TypeError, RecursionError) as why:
        raise ValueError(f"not a calibration: the text is not JSON ({why})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"not a calibration: expected JSON with format = {FORMAT!r}")
    version = content.get("version")
    if version != VERSION or isinstance(version, bool):
        raise ValueError(
            f"the calibration has format version {version!r}, this uqno reads {VERSION}: "
            "use the uqno that wrote it, or a newer one"
        )
    stored = content.pop("checksum", None)
    if stored is not None and stored != checksum(content):
        raise ValueError(
            "the calibration is damaged, it does not have the checksum it was written with: take "
            "it from where it was saved, or calibrate again"
        )
    fields = {name: value for name, value in content.items() if name not in ("format", "version")}
    fields.setdefault("model", "")
    fields.setdefault("circumstances", {})
    if set(fields) != _FIELDS:
        missing, unknown = sorted(_FIELDS - set(fields)), sorted(set(fields) - _FIELDS)
        raise ValueError(f"not a whole calibration: missing {missing}, unknown {unknown}")
    return fields


def _checked_content(content: dict[str, Any], scores: Reals | None) -> Calibration:
    """Files may come from anywhere: each field is checked as if a caller had passed it."""
    scale, ranks, guarantee = content["scale"], content["ranks"], content["guarantee"]
    number = isinstance(scale, int | float) and not isinstance(scale, bool)
    if not number or not 0 <= scale <= 1e300:
        raise ValueError(f"scale = {scale!r} in the calibration must be a finite number ≥ 0")
    if not isinstance(content["created"], str) or not isinstance(content["weighted"], bool):
        raise ValueError("created must be text and weighted true or false in the calibration")
    if not isinstance(content["model"], str):
        raise ValueError(f"model = {content['model']!r:.60} in the calibration must be text")
    if ranks is not None and (not isinstance(ranks, dict) or set(ranks) != {"point", "function"}):
        raise ValueError(f"ranks = {ranks!r} in the calibration must hold point and function")
    if not isinstance(guarantee, dict):
        raise ValueError(f"guarantee = {guarantee!r:.60} in the calibration must be an object")
    n = checks.count("functions", content["functions"], least=2)
    m = checks.count("points", content["points"])
    listed = content["scores"] if scores is None else scores
    calibration = Calibration(
        scale=float(scale),
        rule=guarantee_of(guarantee),
        functions=n,
        points=m,
        points_max=checks.count("points_max", content["points_max"], least=m),
        ranks=None if ranks is None else Ranks(ranks["point"], ranks["function"]),
        weighted=content["weighted"],
        scores=None if listed is None else checks.sorted_scores(listed, n),
        details=checks.named_arrays(content["details"]),
        created=content["created"],
        model=content["model"],
        circumstances=Circumstances.from_json(content["circumstances"]),
    )
    calibration.rule.check(calibration)
    return calibration
