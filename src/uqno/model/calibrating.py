"""One pass over held-out functions, and all that is asked of them: bands, groups, quantities.

While the functions stream by, what the user's own callables say of each is noted: its groups, its
likelihood ratio, the scores of its quantities. The rest is arrays, and belongs to
`uqno.conformal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uqno.conformal import Calibration, EstimatedShift, FunctionStream, GroupedCalibration
from uqno.conformal.calibration import calibration_of, collect, collect_groups
from uqno.conformal.groups import solve_groups
from uqno.conformal.guarantees import Guarantee, Quantity, Shifted
from uqno.conformal.guarantees.contract import Evidence
from uqno.conformal.joint import jointly
from uqno.conformal.membership import Names, memberships, names_of, rows_of
from uqno.conformal.told import likelihood_ratio
from uqno.model.quantities import BAND, Quantities, evidence_of, score_of
from uqno.model.scoring import Scored
from uqno.types import Array

Triples = Iterator[tuple[Array, Array, Array | None]]


@dataclass
class Notes:
    """What is told of each function beside its values, noted as it passes by.

    groups: labels of all, a callable of a sample, or None. shift: ratios of all, a callable of a
    sample, or None. quantities: whose scores are wanted.
    """

    groups: Any
    shift: Any
    quantities: Quantities
    members: list[Names] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    scores: dict[str, list[tuple[float, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.groups is not None and not callable(self.groups):
            self.members = memberships(self.groups)
        self.scores = {name: [] for name in self.quantities.functionals}

    def watch(self, functions: Iterable[Scored]) -> Iterator[Scored]:
        """The functions as they are, each noted."""
        for one in functions:
            if callable(self.groups):
                self.members.append(names_of(self.groups(self.quantities.shown(one.sample))))
            if callable(self.shift):
                self.ratios.append(likelihood_ratio(self.shift(self.quantities.shown(one.sample))))
            for name, scores in self.scores.items():
                scores.append(score_of(name, self.quantities, one))
            yield one

    def shifted(self, rule: Guarantee) -> Guarantee:
        """The guarantee under the shift, if there is one."""
        if self.shift is None:
            return rule
        ratios = (lambda: np.array(self.ratios)) if callable(self.shift) else self.shift
        return Shifted(rule, ratios, isinstance(self.shift, EstimatedShift))


@dataclass(frozen=True)
class Made:
    """What a calibration of a model gives.

    bands: of each guarantee: the calibration, or one for each group.
    intervals: of quantities, for each guarantee and group.
    """

    bands: tuple[Calibration | GroupedCalibration, ...]
    intervals: tuple[Calibration, ...]

    def retold(self, told: Sequence[Calibration]) -> Made:
        """The same with these calibrations of bands, which tell their model and circumstances."""
        by_name = iter(told)
        bands = tuple(
            next(by_name) if isinstance(x, Calibration)
            else GroupedCalibration({group: next(by_name) for group in x.calibrations})
            for x in self.bands
        )  # fmt: skip
        model, said = told[0].model, told[0].circumstances
        intervals = (replace(x, model=model, circumstances=said) for x in self.intervals)
        return Made(bands, tuple(intervals))

    def all_bands(self) -> tuple[Calibration, ...]:
        """The calibrations of bands, those of groups one after the other."""
        each = ([x] if isinstance(x, Calibration) else [*x.values()] for x in self.bands)
        return tuple(one for some in each for one in some)


def calibrated(
    functions: Iterable[Scored],
    rules: Sequence[Guarantee],
    notes: Notes,
    finish: Callable[[Iterator[Scored]], Triples],
    *,
    weighted: bool,
    joint: bool,
    repeated: str = "refuse",
) -> Made:
    """Find all scales that are asked for, in one pass over the functions.

    Args:
        functions: as calibration sees them; rules: the guarantees of bands.
        notes: what else is wanted of them.
        finish: hands on error, uncertainty and weights of each.
        repeated: as in `uqno.calibrate`.
        weighted: whether weights measure coverage; joint: whether the band and all quantities are
            promised at once.
    """
    _refuse(rules, notes, joint)
    stream = FunctionStream(finish(notes.watch(functions)), weighted=weighted)
    asked = [notes.shifted(rule) for rule in rules]
    parts: Sequence[Mapping[str, Evidence]]
    if notes.groups is None:
        evidences, said = collect(stream, None, asked, repeated=repeated)
        parts = [{"": evidence} for evidence in evidences]
        rows: dict[str, Any] = {"": None}
    else:
        grows = callable(notes.groups)
        parts, said = collect_groups(
            stream, None, asked, notes.members, grows=grows, repeated=repeated
        )
        rows = {**rows_of(notes.members)}
    bands: list[Calibration | GroupedCalibration] = []
    intervals: list[Calibration] = []
    for rule, shifted, of_groups in zip(rules, asked, parts, strict=True):
        solved = solve_groups(shifted, calibration_of, of_groups) if notes.groups is not None else {
            "": calibration_of(shifted, of_groups[""])
        }  # fmt: skip
        found = dict(solved)
        for group, evidence in of_groups.items():
            quantities = _of_quantities(rule, notes, rows[group])
            if joint:
                size = notes.quantities.size_of_band(getattr(rule, "alpha", None))
                sizes = {n: _size(notes.quantities, n) for n in quantities} | {BAND: size}
                all_parts = {BAND: (rule, evidence), **quantities}
                made = {n: replace(x, group=group) for n, x in jointly(all_parts, sizes).items()}
                found[group] = made.pop(BAND)
            else:
                made = {n: replace(calibration_of(*x), group=group) for n, x in quantities.items()}
            intervals += [x for x in made.values() if x not in intervals]
        found = {group: replace(one, circumstances=said) for group, one in found.items()}
        bands.append(found[""] if notes.groups is None else GroupedCalibration(found))
    return Made(tuple(bands), tuple(intervals))


def _refuse(rules: Sequence[Guarantee], notes: Notes, joint: bool) -> None:
    """Refuse what does not go together, before functions are read."""
    wanted = notes.quantities.functionals
    if wanted and any(getattr(rule, "delta", None) is None for rule in rules):
        raise ValueError(
            "intervals of quantities need a delta, which the guarantee has not: calibrate with "
            "alpha and delta, or with functionals={}"
        )
    if joint and (not wanted or len(rules) > 1 or notes.shift is not None):
        raise ValueError(
            f"joint=True promises the band and quantities at once, for one alpha and delta and "
            f"without shift=; got {len(wanted)} quantities, {len(rules)} guarantees and shift = "
            f"{notes.shift is not None}: add functionals=, or leave joint out"
        )


def _of_quantities(
    rule: Guarantee, notes: Notes, rows: Any
) -> dict[str, tuple[Guarantee, Evidence]]:
    """Guarantee and evidence of each quantity, for the functions of a group; None for all."""
    parts: dict[str, tuple[Guarantee, Evidence]] = {}
    for name, scores in notes.scores.items():
        confidence = getattr(rule, "confidence", None)
        own = notes.shifted(Quantity(getattr(rule, "delta", 0), name, confidence))
        evidence = evidence_of(scores)
        if rows is not None:
            evidence = evidence.take(rows)
        if isinstance(own, Shifted):
            evidence = own.with_ratios(evidence)
        parts[name] = own, evidence
    return parts


def _size(quantities: Quantities, name: str) -> float:
    learned = quantities.learned.get(name)
    return 1.0 if learned is None else learned.size


def quantity_of(calibration: Calibration) -> str:
    """The name of the quantity that a calibration is of; empty for one of a band."""
    rule: Any = getattr(calibration.rule, "of", calibration.rule)
    return rule.quantity if isinstance(rule, Quantity) else ""
