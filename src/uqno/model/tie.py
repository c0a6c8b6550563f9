"""What ties a calibration to the model that it was found with.

λ̂ belongs to one Ĝ and one E. A calibration carries their digest: a hash of the weights (names,
types and values, wherever they lie) and of the configuration. It is compared when a model is loaded
and before a band is made. Between two bands little can be hashed, so `Glance` looks at what changes
with the weights: the version that torch counts up, the place in memory, and a few of the values.

What has no weights to hash, a callable of the user's, is known by its answers: a `Probe` holds two
of the calibration functions, and what the model answered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from uqno.model.scoring import Scored, predicted
from uqno.operators import Operator
from uqno.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from uqno.types import Sample
from uqno.uncertainty import ESTIMATORS, Uncertainty
from uqno.uncertainty.contract import Base

PROBES = 2
"""Functions by whose answers a model is known."""
TOLERANCE = 1e-4
"""Largest difference of answers that are the same, as a share of the largest value."""
GLANCED = 8
"""Values of each tensor that are looked at before every band."""
COMPILED = "_orig_mod."
"""What torch.compile puts before the names of weights."""


# --- by weights and configuration ----------------------------------------------------------------


def digest(base: Base, uncertainty: Uncertainty) -> str:
    """A hash of all that decides Ĝ and E, but for callables of the user's.

    The device has no part in it and `torch.compile` none; the type of the numbers has.
    """
    content = hashlib.blake2b(_configuration(base, uncertainty).encode(), digest_size=16)
    for k, module in enumerate(_modules(base, uncertainty)):
        state = {n.replace(COMPILED, ""): t for n, t in module.state_dict().items()}
        for name, tensor in sorted(state.items()):
            if isinstance(tensor, Tensor):
                content.update(f"{k} {name} {tensor.dtype} {tuple(tensor.shape)}".encode())
                content.update(_bytes(tensor.detach().cpu()))
    return content.hexdigest()


def _bytes(tensor: Tensor) -> bytes:
    real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return real.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _modules(base: Base, uncertainty: Uncertainty) -> list[nn.Module]:
    features = [f for f in base.features if isinstance(f, nn.Module)]
    return [*base.operators, uncertainty, *features]


def _configuration(base: Base, uncertainty: Uncertainty) -> str:
    content = {
        "operators": [_described(operator) for operator in base.operators],
        "uncertainty": [uncertainty.name, uncertainty.saved().get("config")],
        "symmetries": [g.name for g in base.symmetries],
        "features": len(base.features),
        "deviation": base.deviation,
    }
    return json.dumps(content, sort_keys=True, default=str)


def _described(operator: Operator) -> dict[str, Any]:
    """What an operator is, but for names that a compiled or renamed module has others of."""
    module = getattr(operator.module, "_orig_mod", operator.module)
    left_out = ("class", "defined_in", "config")
    described = {n: x for n, x in operator.describe().items() if n not in left_out}
    return {**described, "config": getattr(module, "config", None)}


@dataclass(frozen=True, eq=False)
class Glance:
    """What a model looked like when its digest was found.

    parts: all that it is made of, by identity; versions: of its tensors; views: a few values of
    each, as they are now; values: as they were.
    """

    parts: tuple[Any, ...]
    versions: tuple[Any, ...]
    configuration: str
    views: tuple[Tensor, ...]
    values: tuple[bytes, ...]
    digest: str = ""

    @classmethod
    def of(cls, base: Base, uncertainty: Uncertainty) -> Glance:
        """The model as it is, with its digest."""
        modules = _modules(base, uncertainty)
        tensors = [t.detach() for t in _tensors(modules)]
        views = tuple(_few(tensor) for tensor in tensors)
        return cls(
            _parts(base, uncertainty),
            _versions(modules),
            _configuration(base, uncertainty),
            views,
            _values(views),
            digest(base, uncertainty),
        )

    def still(self, base: Base, uncertainty: Uncertainty) -> bool:
        """Whether the model is as it was, as far as a glance tells."""
        parts = _parts(base, uncertainty)
        return (
            len(parts) == len(self.parts)
            and all(one is other for one, other in zip(parts, self.parts, strict=True))
            and _versions(_modules(base, uncertainty)) == self.versions
            and _configuration(base, uncertainty) == self.configuration
            and _values(self.views) == self.values
        )


def _parts(base: Base, uncertainty: Uncertainty) -> tuple[Any, ...]:
    called = (getattr(o.module, "function", None) for o in base.operators)
    modules = (o.module for o in base.operators)
    return (*base.operators, *modules, *called, uncertainty, *base.features, *base.symmetries)


def _tensors(modules: Iterable[nn.Module]) -> Iterator[Tensor]:
    for module in modules:
        yield from chain(module.parameters(), module.buffers())


def _versions(modules: Iterable[nn.Module]) -> tuple[Any, ...]:
    """Where each tensor lies, and how often it was changed in place."""
    return tuple(
        (t.data_ptr(), 0 if t.is_inference() else t._version, t.dtype) for t in _tensors(modules)
    )


def _few(tensor: Tensor) -> Tensor:
    """A view of at most `GLANCED` values, from the first to the last."""
    if not tensor.is_contiguous():
        return tensor.reshape(-1)[:0]
    flat = tensor.view(-1)
    return flat[:: max(1, (len(flat) - 1) // (GLANCED - 1) if len(flat) > GLANCED else 1)]


def _values(views: Sequence[Tensor]) -> tuple[bytes, ...]:
    """The values of all views, together for each type of numbers and device."""
    alike: dict[Any, list[Tensor]] = {}
    for view in views:
        alike.setdefault((view.dtype, view.device), []).append(view)
    return tuple(_bytes(torch.cat(some).cpu()) for some in alike.values())


# --- by answers ----------------------------------------------------------------------------------


@dataclass
class Probe:
    """Inputs of a few functions, and what the model answered.

    inputs: the samples without their truth; centers: Ĝ(a) (channel, *points); uncertainties: E(a)
    (*points); all on the CPU.
    """

    inputs: list[Sample] = field(default_factory=list)
    centers: list[Tensor] = field(default_factory=list)
    uncertainties: list[Tensor] = field(default_factory=list)

    def watch(
        self, functions: Iterable[Scored], base: Base, uncertainty: Uncertainty
    ) -> Iterator[Scored]:
        """The functions as they are; the first few are asked for again, twice.

        Raises:
            ValueError: the model answers differently when it is asked twice.
        """
        for i, one in enumerate(functions):
            if i < PROBES:
                self._ask(one.sample, base, uncertainty)
            yield one

    def _ask(self, sample: Sample, base: Base, uncertainty: Uncertainty) -> None:
        inputs = {n: x for n, x in sample.items() if n != "u" and isinstance(x, Tensor)}
        (one, other) = (_answers(base, uncertainty, inputs) for _ in range(2))
        for what, first, second in zip(("prediction", "uncertainty"), one, other, strict=True):
            difference = _difference(first, second)
            if difference > TOLERANCE:  # what is not finite is named where it is scored
                raise ValueError(
                    f"the {what} of one function differs by {difference:.2g} of its largest value "
                    f"when the model is asked twice, at most {TOLERANCE} may be rounding: a scale "
                    "would hold for neither answer; turn off what is random in it, such as dropout"
                )
        self.inputs.append({n: x.detach().cpu() for n, x in inputs.items()})
        self.centers.append(one[0])
        self.uncertainties.append(one[1])

    def check(self, base: Base, uncertainty: Uncertainty) -> None:
        """Compare the answers of a model with those that were stored.

        Raises:
            ValueError: they differ.
        """
        stored = zip(self.inputs, self.centers, self.uncertainties, strict=True)
        for k, (sample, center, radius) in enumerate(stored):
            answers = _answers(base, uncertainty, sample)
            for what, now, before in zip(
                ("prediction", "uncertainty"), answers, (center, radius), strict=True
            ):
                difference = _difference(now, before)
                if not difference <= TOLERANCE:
                    raise ValueError(
                        f"the {what} of stored function {k} differs by {difference:.2g} of its "
                        f"largest value from what it was at calibration, more than {TOLERANCE}: "
                        "this is another base, uncertainty or feature than was calibrated; pass "
                        "the same, or calibrate again"
                    )

    def write(self, file: Path) -> None:
        """As safetensors."""
        tensors = {
            f"{k}.input.{name}": x for k, one in enumerate(self.inputs) for name, x in one.items()
        }
        tensors |= {f"{k}.center": x for k, x in enumerate(self.centers)}
        tensors |= {f"{k}.uncertainty": x for k, x in enumerate(self.uncertainties)}
        write_checkpoint(file, Checkpoint(tensors, {"functions": len(self.inputs)}))

    @classmethod
    def read(cls, file: Path) -> Probe:
        """What `write` wrote."""
        checkpoint = read_checkpoint(file)
        tensors, count = checkpoint.tensors, int(checkpoint.state["functions"])
        if not 0 <= count <= len(tensors):
            raise ValueError(f"{file} declares {count} functions, it has {len(tensors)} tensors")
        numbers = range(count)
        return cls(
            [_with_prefix(tensors, f"{k}.input.") for k in numbers],
            [tensors[f"{k}.center"] for k in numbers],
            [tensors[f"{k}.uncertainty"] for k in numbers],
        )


def _with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): x for n, x in tensors.items() if n.startswith(prefix)}


@torch.no_grad()
def _answers(base: Base, uncertainty: Uncertainty, sample: Sample) -> tuple[Tensor, Tensor]:
    answer = predicted(base, uncertainty, base.batch([sample]))
    return answer.center[0].cpu(), answer.uncertainty[0].cpu()


def _difference(one: Tensor, other: Tensor) -> float:
    """max |one − other| / max |other|; ∞ for other shapes."""
    if one.shape != other.shape:
        return float("inf")
    largest = float(other.abs().max())
    difference = float((one.double() - other.double()).abs().max())
    return difference / largest if largest > 0 else difference


def needs_probe(base: Base, uncertainty: Uncertainty) -> bool:
    """Whether weights and configuration do not tell all: something is the user's own code."""
    own = ESTIMATORS.get(uncertainty.name) is type(uncertainty)
    ours = own and type(uncertainty).__module__.startswith("uqno.")
    return bool(base.features) or not ours or not all(o.is_registered for o in base.operators)


def check(
    before: Glance | None,
    base: Base,
    uncertainty: Uncertainty,
    expected: str,
    probe: Probe | None,
) -> Glance:
    """Refuse a calibration of another model.

    Args:
        before: what an earlier check saw.
        base: Ĝ; uncertainty: E.
        expected: the digest that the calibration carries.
        probe: answers at calibration, for what has no weights to compare.

    Returns:
        What this check saw, for the next one.

    Raises:
        ValueError: weights, configuration or answers are others than were calibrated.
    """
    seen = before
    if seen is None or not seen.still(base, uncertainty):
        seen = Glance.of(base, uncertainty)
        if probe is not None and seen.digest == expected:
            probe.check(base, uncertainty)
    if seen.digest != expected:
        raise ValueError(
            "the weights, their type or the configuration of the model are others than when it "
            "was calibrated, so its scale promises nothing: calibrate it again with "
            "model.calibrate(held_out, alpha, delta), or load the model that was calibrated"
        )
    return seen
