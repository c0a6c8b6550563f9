"""What calibration sees of a model: error and uncertainty of one function after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch

from uqno.conformal import checks
from uqno.conformal.guarantees import Fraction, Guarantee
from uqno.model.inputs import batches, fingerprint
from uqno.operators.padding import unpadded
from uqno.training import pointwise_error
from uqno.types import Array, Sample, Samples
from uqno.uncertainty import Uncertainty
from uqno.uncertainty.contract import Base, Prediction

Level = float | Sequence[float]


class Scored(NamedTuple):
    """One function: its sample, ‖u − Ĝ(a)‖ (points,), E(a) (points,), weights (points,) or None."""

    sample: Sample
    error: Array
    uncertainty: Array
    weights: Array | None


def predicted(base: Base, uncertainty: Uncertainty, batch: Sample) -> Prediction:
    """Ĝ(a) (batch, channel, *points) and E(a) (batch, *points) of a batch, before calibration."""
    ready = base.ready()
    return uncertainty.to(ready.operator.device).eval().predict(ready, batch)


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
        base: Ĝ; uncertainty: the fitted estimator of E.
        data: samples with their truth `u`; batch_size: how many are predicted together.
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
        error = pointwise_error(batch["u"].cpu().double() - prediction.center.cpu().double())
        both = (unpadded(x, batch) for x in (error, prediction.uncertainty.cpu()))
        for sample, e, E in zip(samples, *both, strict=True):
            if weighted and "weights" not in sample:
                raise ValueError("weights=True, but a sample has no field 'weights': add it")
            weights = sample["weights"].flatten().cpu().numpy() if weighted else None
            yield Scored(sample, e.flatten().numpy(), E.flatten().numpy(), weights)


def unless_seen(
    functions: Iterable[Scored], seen: frozenset[str]
) -> Iterator[tuple[Array, Array, Array | None]]:
    """(error, uncertainty, weights) of each function.

    Raises:
        ValueError: at the end, if some functions were used in training; it names them.
    """
    leaked, number = [], 0
    for i, one in enumerate(functions):
        number = i + 1
        if fingerprint(one.sample) in seen:
            leaked.append(i)
        yield one.error, one.uncertainty, one.weights
    if leaked:
        raise ValueError(
            f"{len(leaked)} of {number} calibration functions were used in training "
            f"(indices {leaked[:10]}{' …' if len(leaked) > 10 else ''}): the guarantee needs "
            "functions that the model has not seen; leave these out"
        )


def guarantees_of(
    alpha: Level, delta: Level, sampling: str, confidence: float | None
) -> list[Guarantee]:
    """The paper's guarantee for every pair (α, δ); a single value goes with each of several."""
    alphas = list(alpha) if isinstance(alpha, Iterable) else [alpha]
    deltas = list(delta) if isinstance(delta, Iterable) else [delta]
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
