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

from uqno.conformal import Calibration, EstimatedShift, FunctionStream, GroupedCalibration, checks
from uqno.conformal.calibration import calibration_of, collect, collect_groups
from uqno.conformal.groups import Names, largest_of, memberships, names_of, rows_of, solve_groups
from uqno.conformal.guarantees import Guarantee, Quantity, Shifted
from uqno.conformal.guarantees.contract import Evidence
from uqno.conformal.guarantees.shifted import FIELD
from uqno.conformal.joint import jointly
from uqno.conformal.told import likelihood_ratio
from uqno.model.quantities import BAND, Quantities, evidence_of, score_of
from uqno.model.scoring import Scored
from uqno.types import Array, Sample

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

    def tied_to(self, digest: str) -> Made:
        """The same, each with the digest of its model."""

        def tied(one: Calibration) -> Calibration:
            return replace(one, model=digest)

        bands = tuple(
            tied(x) if isinstance(x, Calibration)
            else GroupedCalibration({g: tied(one) for g, one in x.calibrations.items()})
            for x in self.bands
        )  # fmt: skip
        return Made(bands, tuple(tied(one) for one in self.intervals))

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
) -> Made:
    """Find all scales that are asked for, in one pass over the functions.

    Args:
        functions: as calibration sees them; rules: the guarantees of bands.
        notes: what else is wanted of them.
        finish: hands on error, uncertainty and weights of each.
        weighted: whether weights measure coverage; joint: whether the band and all quantities are
            promised at once.
    """
    _refuse(rules, notes, joint)
    stream = FunctionStream(finish(notes.watch(functions)), weighted=weighted)
    asked = [notes.shifted(rule) for rule in rules]
    parts: Sequence[Mapping[str, Evidence]]
    if notes.groups is None:
        parts = [{"": evidence} for evidence in collect(stream, None, asked)]
        rows: dict[str, Any] = {"": None}
    else:
        grows = callable(notes.groups)
        parts = collect_groups(stream, None, asked, notes.members, grows=grows)
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


# --- which of them a new function takes ----------------------------------------------------------


def groups_of(
    group: Any, grouping: Any, samples: Sequence[Mapping[str, Array]], grouped: bool
) -> tuple[Names, ...]:
    """The groups of each function that is predicted.

    Args:
        group: a label, or several in a set, for all functions; or a list with those of each.
        grouping: the callable of `calibrate`, which is asked where `group` is None.
        samples: the functions, as the user's callables see them; grouped: whether there are groups at all.
    """
    if not grouped:
        if group is not None:
            raise ValueError(
                f"group = {group!r}, but the model was calibrated for all functions together: "
                "leave group out, or calibrate with groups="
            )
        return ((),) * len(samples)
    if isinstance(group, list):
        return tuple(memberships(group, len(samples)))
    if group is None and callable(grouping):
        return tuple(names_of(grouping(sample)) for sample in samples)
    return (names_of(group),) * len(samples)


def told_of(
    calibrations: Sequence[Calibration],
    raw: Sample | None,
    fields: Mapping[str, Any],
    quantities: Quantities,
    group: tuple[Any, Any],
    ratio: tuple[Any, Any],
) -> tuple[Calibration, list[Sample]]:
    """What is told of functions that are predicted: their calibration, and their fields.

    Args:
        calibrations: one, or one for each group.
        raw: the one function as it was given; None for a batch.
        fields: of the batch; quantities: which fields are truths.
        group, ratio: what `predict` was given, and the callable of `calibrate`.

    Returns:
        The calibration that all functions have in common, and the fields of each with its
        likelihood ratio, if there is one.
    """
    number = len(next(iter(fields.values())))
    samples: list[Sample] = [{n: x[i] for n, x in fields.items()} for i in range(number)]
    if raw is not None:
        samples = [{n: x for n, x in raw.items() if n != "u"}]
    seen = [quantities.shown(sample) for sample in samples]
    names = groups_of(*group, seen, bool(calibrations[0].group))
    calibration = of_groups(calibrations, names)
    given, shift = ratio
    if not isinstance(calibration.rule, Shifted):
        if given is not None:
            raise ValueError(
                f"likelihood_ratio = {given!r}, but the model was calibrated without a shift: "
                "leave it out, or calibrate with shift="
            )
        return calibration, samples
    ratios: list[Any] = [None] * number
    if given is not None:
        ratios = [*given] if isinstance(given, list | tuple | np.ndarray) else [given] * number
        checks.same_number(**{"likelihood ratios": len(ratios), "functions": number})
    elif callable(shift):
        ratios = [shift(sample) for sample in seen]
    with_ratios = zip(samples, ratios, strict=True)
    return calibration, [s if w is None else {**s, FIELD: w} for s, w in with_ratios]


def of_groups(calibrations: Sequence[Calibration], groups: Sequence[Names]) -> Calibration:
    """The calibration that functions in these groups have in common; the first without groups.

    Raises:
        ValueError: a group is not known, or the functions have different calibrations.
    """
    if not calibrations[0].group:
        return calibrations[0]
    each = [largest_of(calibrations, names) for names in groups]
    if len({one.group for one in each}) > 1:
        raise ValueError(
            f"the functions have the scales of {len({one.group for one in each})} groups, each "
            "with a promise of its own: predict those of each group together"
        )
    return each[0]


def intervals_beside(
    intervals: Sequence[Calibration], band: Calibration, wanted: Iterable[str]
) -> dict[str, Calibration]:
    """The intervals that go with the calibration of a band, by the name of the quantity."""

    def level(one: Calibration) -> Any:
        rule: Any = getattr(one.rule, "of", one.rule)
        return one.group, one.delta, getattr(rule, "confidence", None), one.jointly

    fitting = {quantity_of(one): one for one in intervals if level(one) == level(band)}
    return {name: fitting[name] for name in wanted if name in fitting}


def quantity_of(calibration: Calibration) -> str:
    """The name of the quantity that a calibration is of; empty for one of a band."""
    rule: Any = getattr(calibration.rule, "of", calibration.rule)
    return rule.quantity if isinstance(rule, Quantity) else ""
