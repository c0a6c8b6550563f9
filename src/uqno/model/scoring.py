"""What calibration sees of a model: error and uncertainty of one function after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch

from uqno.conformal import Calibration, checks
from uqno.conformal.guarantees import Fraction, Guarantee, require_guarantee
from uqno.model.inputs import batches
from uqno.operators.padding import unpadded
from uqno.training import pointwise_error
from uqno.types import Array, Sample, Samples, Share
from uqno.uncertainty import Uncertainty
from uqno.uncertainty.contract import Base, Prediction, make_ready

Level = float | Sequence[float]


class Scored(NamedTuple):
    """One function as calibration sees it.

    Args:
        sample: its fields.
        error: ‖u − Ĝ(a)‖, (points,).
        uncertainty: E(a), (points,).
        weights: (points,), or None where points count alike.
        center: Ĝ(a), (channel, *points), in float64.
    """

    sample: Sample
    error: Array
    uncertainty: Array
    weights: Array | None
    center: Array


def predicted(base: Base, uncertainty: Uncertainty, batch: Sample) -> Prediction:
    """Ĝ(a) and E(a) of a batch, before calibration.

    Args:
        base: Ĝ.
        uncertainty: the fitted estimator of E; it is moved to the device of the base.
        batch: fields with a leading batch axis.

    Returns:
        The center (batch, channel, *points) and the uncertainty (batch, *points).
    """
    ready = base.ready()
    make_ready(uncertainty, ready.operator.device)
    return uncertainty.predict(ready, batch)


def predicted_in_parts(
    base: Base, uncertainty: Uncertainty, fields: Sample, where: Sample, size: int
) -> Prediction:
    """The same for many functions, `size` of them at a time.

    Args:
        base: Ĝ.
        uncertainty: the fitted estimator of E.
        fields: with a leading axis of functions.
        where: fields that belong to all of them, such as queries.
        size: how many functions are predicted together.
    """
    size = checks.count("batch_size", size)
    count = len(next(iter(fields.values())))
    parts = [
        predicted(base, uncertainty, {**{n: f[i : i + size] for n, f in fields.items()}, **where})
        for i in range(0, count, size)
    ]
    return Prediction(
        torch.cat([part.center for part in parts]), torch.cat([part.uncertainty for part in parts])
    )


@torch.no_grad()
def scored(
    base: Base,
    uncertainty: Uncertainty,
    data: Iterable[Sample] | Samples,
    batch_size: int,
    weighted: bool,
) -> Iterator[Scored]:
    """The functions of `data` in order, each read once; one batch of them is held at a time.

    Args:
        base: Ĝ.
        uncertainty: the fitted estimator of E.
        data: samples with their truth `u`.
        batch_size: how many are predicted together.
        weighted: whether the samples' `weights` measure coverage.

    Raises:
        ValueError: a truth has another shape than its prediction, or weights are missing.
    """
    for samples, batch in batches(base, data, batch_size):
        prediction = predicted(base, uncertainty, batch)
        if batch["u"].shape != prediction.center.shape:
            raise ValueError(
                f"u has shape {tuple(samples[0]['u'].shape)}, the prediction "
                f"{tuple(prediction.center.shape[1:])}, (channel, *points): expected the same"
            )
        # In double, as a Band compares: a float32 difference moves points over the edge.
        center = prediction.center.cpu().double()
        error = pointwise_error(batch["u"].cpu().double() - center)
        all_three = (unpadded(x, batch) for x in (error, prediction.uncertainty.cpu(), center))
        for sample, e, E, c in zip(samples, *all_three, strict=True):
            if weighted and "weights" not in sample:
                raise ValueError("weights=True, but a sample has no field 'weights': add it")
            weights = sample["weights"].flatten().cpu().numpy() if weighted else None
            yield Scored(sample, e.flatten().numpy(), E.flatten().numpy(), weights, c.numpy())


def unless_tied(
    functions: Iterable[Scored], base: Base, uncertainty: Uncertainty
) -> Iterator[Scored]:
    """The functions, if Ĝ and E answer at each of their points whatever the others are.

    Raises:
        ValueError: a function is scored at points that an operator takes as its input, so that
            its answer at one depends on where the others were drawn.
    """
    modules = (*base.operators, *uncertainty.modules())
    tied = [m for m in modules if getattr(m, "answers_depend_on_points", False)]
    names = sorted({type(getattr(m, "module", m)).__name__ for m in tied})
    for i, one in enumerate(functions):
        if names and "queries" not in one.sample:
            raise ValueError(
                "a promise about points drawn at random needs an answer at each that does not "
                f"depend on where the others were drawn, and {', '.join(names)} takes the points "
                f"of function {i} as its input: use sampling='grid' with the mesh as the domain, "
                "or give the geometry as points and, drawn apart from it, queries to be scored at"
            )
        yield one


def guarantees_of(
    alpha: Level, delta: Level, sampling: str, confidence: float | None
) -> list[Guarantee]:
    """The paper's guarantee for every pair (α, δ).

    Args:
        alpha: one or several; one value goes with each of several δ.
        delta: one or several; one value goes with each of several α.
        sampling: "grid", "iid" or "hoeffding".
        confidence: as in `uqno.calibrate`.

    Raises:
        ValueError: the numbers of values differ, or a value is out of its bounds.
    """
    alphas, deltas = (
        checks.elements(name, x, "one level, or several") if isinstance(x, Iterable) else [x]
        for name, x in (("alpha", alpha), ("delta", delta))
    )
    if len(alphas) == 1:
        alphas *= len(deltas)
    if len(deltas) == 1:
        deltas *= len(alphas)
    if len(alphas) != len(deltas) or not alphas:
        raise ValueError(
            f"{len(alphas)} values of alpha and {len(deltas)} of delta: expected equal numbers, or "
            "one of either"
        )
    design = checks.sampling(sampling)
    return [Fraction(a, d, design, confidence) for a, d in zip(alphas, deltas, strict=True)]


def asked_guarantees(
    guarantee: Guarantee | Sequence[Guarantee] | None,
    alpha: Level,
    delta: Level,
    sampling: str,
    confidence: float | None,
) -> tuple[list[Guarantee], bool]:
    """What is to be promised, and whether several promises were asked for.

    Args:
        guarantee: one or several; None for the paper's, of the other arguments.
        alpha, delta, sampling, confidence: as in `guarantees_of`.
    """
    if guarantee is None:
        several = isinstance(alpha, Iterable) or isinstance(delta, Iterable)
        return guarantees_of(alpha, delta, sampling, confidence), several
    several = isinstance(guarantee, Sequence)
    rules = [*guarantee] if isinstance(guarantee, Sequence) else [guarantee]
    for rule in rules:
        require_guarantee(rule)
    return rules, several


def chosen(
    calibrations: Sequence[Calibration], alpha: Share | None, delta: Share | None
) -> Calibration:
    """The first calibration for (α, δ); None for any.

    Raises:
        ValueError: there is none for these levels, or none at all.
    """
    if not calibrations:
        raise ValueError(
            "the model is not calibrated: call model.calibrate(held_out, alpha, delta) with "
            "functions that took no part in training"
        )
    asked = {
        name: checks.share(name, level)
        for name, level in (("alpha", alpha), ("delta", delta))
        if level is not None
    }
    for cal in calibrations:
        own = {name: getattr(cal.rule, name, None) for name in asked}
        if all(x is not None and _is_same(checks.share(n, x), asked[n]) for n, x in own.items()):
            return cal
    known = ", ".join(f"({c.alpha}, {c.delta})" for c in calibrations)
    raise ValueError(
        f"no calibration for alpha = {alpha}, delta = {delta}; there are {known}: calibrate for it "
        "too"
    )


def _is_same(one: Share, other: Share) -> bool:
    """Whether two shares are the same, one of them perhaps as the nearest float."""
    return one == other or float(one) == float(other)
