"""The band of new functions, and what is told of them: their groups and likelihood ratios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from uqno.band import Band
from uqno.conformal import Calibration, checks
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.functionals import Interval
from uqno.conformal.groups import largest_of
from uqno.conformal.guarantees import Shifted
from uqno.conformal.guarantees.shifted import FIELD
from uqno.conformal.membership import Names, memberships, names_of
from uqno.model.answer import band_of, on_grid, triangles_of
from uqno.model.calibrating import quantity_of
from uqno.model.inputs import Places, as_batch, as_calibrated, own_scales, places
from uqno.model.naming import Naming
from uqno.model.quantities import Quantities, center_and_uncertainty
from uqno.model.scoring import predicted_in_parts
from uqno.types import Array, Sample
from uqno.uncertainty.contract import Prediction

if TYPE_CHECKING:
    from uqno.model.uqno import UQNO


@dataclass(frozen=True)
class Told:
    """What `predict` is told of functions; None for what the callables of `calibrate` say."""

    group: Any = None
    likelihood_ratio: Any = None


def band_for(
    model: UQNO,
    calibrations: Sequence[Calibration],
    given: Tensor | Array | Sample,
    naming: Naming,
    at: Places,
    told: Told,
    batch_size: int,
) -> Band:
    """The band of one function or of a batch, as `UQNO.predict` gives it.

    Args:
        model: calibrated; calibrations: one, or one for each group.
        given: the input as an array or sample; naming: its names; at: where the band is wanted.
        told: of the functions; batch_size: how many are predicted together.
    """
    triangles = raw = None
    if isinstance(given, Mapping) and model.dimensions is None:
        raw, triangles = given, triangles_of(given)
        given = as_calibrated(given, model.surfaces)
    fields, is_one = as_batch(model.base, given, model.dimensions)
    operator = model.base.operator
    where, coordinates = places(operator, fields, naming.at(at, fields, operator))
    calibration, samples = told_of(calibrations, _samples(raw, fields), model, told)
    scales = own_scales(calibration, samples)
    answer = predicted_in_parts(model.base, model.uncertainty, fields, where, batch_size)
    if isinstance(at, int | np.integer) or (isinstance(at, Sequence) and at):
        answer = on_grid(answer, coordinates)
    # Coverage is counted as it was calibrated: by the weights, or by points.
    counted = calibration.weighted and at is None and "weights" in fields
    weights = fields["weights"] if counted else None
    band = band_of(answer, calibration, coordinates, triangles, weights, scales, is_one=is_one)
    band = model.memory.add_to(naming.named(band, at), fields, operator, naming)
    if at is not None:  # a quantity is of the function at its own points
        return band
    wanted = intervals_beside(model.intervals, calibration, model.quantities.functionals)
    made = intervals_of(model.quantities, wanted, answer, samples, is_one=is_one)
    return replace(band, functionals=made)


def _samples(raw: Sample | None, fields: Mapping[str, Tensor]) -> list[Sample]:
    """The fields of each function, without its truth: of a geometry as they were given."""
    if raw is not None:
        return [{name: x for name, x in raw.items() if name != "u"}]
    number = len(next(iter(fields.values())))
    return [{name: x[i].cpu() for name, x in fields.items()} for i in range(number)]


# --- which of them a new function takes ----------------------------------------------------------


def groups_of(
    group: Any, grouping: Any, samples: Sequence[Mapping[str, Array]], grouped: bool
) -> tuple[Names, ...]:
    """The groups of each function that is predicted.

    Args:
        group: a label, or several in a set, for all functions; or a list with those of each.
        grouping: the callable of `calibrate`, which is asked where `group` is None.
        samples: the functions, as callables see them; grouped: whether there are groups at all.
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


def told_of(
    calibrations: Sequence[Calibration],
    samples: list[Sample],
    model: UQNO,
    told: Told,
) -> tuple[Calibration, list[Sample]]:
    """The calibration that all functions have in common, and their fields with likelihood ratios.

    Args:
        calibrations: one, or one for each group; samples: the fields of each function.
        model: whose callables are asked for what is not told.
    """
    seen = [model.quantities.shown(sample) for sample in samples]
    names = groups_of(told.group, model.groups, seen, bool(calibrations[0].group))
    calibration = of_groups(calibrations, names)
    given = told.likelihood_ratio
    if not isinstance(calibration.rule, Shifted):
        if given is not None:
            raise ValueError(
                f"likelihood_ratio = {given!r}, but the model was calibrated without a shift: "
                "leave it out, or calibrate with shift="
            )
        return calibration, samples
    ratios: list[Any] = [None] * len(samples)
    if given is not None:
        several = isinstance(given, list | tuple | np.ndarray)
        ratios = [*given] if several else [given] * len(samples)
        checks.same_number(**{"likelihood ratios": len(ratios), "functions": len(samples)})
    elif callable(model.shift):
        ratios = [model.shift(sample) for sample in seen]
    with_ratios = zip(samples, ratios, strict=True)
    return calibration, [s if w is None else {**s, FIELD: w} for s, w in with_ratios]


# --- the intervals of new functions --------------------------------------------------------------


def intervals_of(
    quantities: Quantities,
    calibrations: Mapping[str, Calibration],
    answer: Prediction,
    samples: Sequence[Sample],
    *,
    is_one: bool,
) -> dict[str, Interval]:
    """The interval of each quantity, for one function or all of a batch.

    Args:
        quantities: with their callables; calibrations: of those that are wanted, by name.
        answer: Ĝ and E of the batch; samples: the fields of each function.

    Raises:
        InfeasibleError: no finite scale carries the promise for one of the functions.
    """
    centers = answer.center.cpu().double().numpy()
    uncertainties = answer.uncertainty.cpu().double().numpy()
    made = {}
    for name, calibration in calibrations.items():
        rows = []
        for center, E, sample in zip(centers, uncertainties, samples, strict=True):
            seen = quantities.shown(sample)
            middle, R = center_and_uncertainty(name, quantities, center, E, seen)
            scale = calibration.scale_for(sample)
            if not np.isfinite(scale):
                raise InfeasibleError(f"no finite interval of {name} carries the promise here")
            rows.append((middle, middle - scale * R, middle + scale * R))
        ends = [np.array(x) for x in zip(*rows, strict=True)]
        if ends[0].shape[1] == 1:
            ends = [x[:, 0] for x in ends]
        center, lower, upper = (x[0] for x in ends) if is_one else ends
        made[name] = Interval(center, lower, upper, calibration, calibration.guarantee)
    return made
