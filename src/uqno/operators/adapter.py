"""Any torch module or callable as an operator: a batch in, functions out."""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from uqno.data.checks import check_finite
from uqno.operators.normaliser import Normaliser
from uqno.types import Sample, Samples

Batch = dict[str, Tensor]

# A field at points is standardised like the same field on the grid.
AT_POINTS = {"a_points": "a", "query_features": "features"}
# Fields of a geometry, (points, channel).
CHANNELS_LAST = ("features",)

log = logging.getLogger(__name__)


class Operator(nn.Module):
    """u = mean + std · module(argument = batch[field], ..): (batch, channel, *points).

    module: a torch module or any callable on tensors
    fields: {argument: field}; by default every argument named like a field of the batch, and
        where there is none, the first argument is "a"
    normalise: input fields (channel, *points) that `prepare` standardises
    output: the field whose mean and deviation the output takes; None to leave it as it is
    channels_last: the module answers (batch, *points, channel)

    >>> double = Operator(lambda a: 2 * a)
    >>> double(double.collate([{"a": torch.ones(1, 3)}]))
    tensor([[[2., 2., 2.]]])
    """

    def __init__(
        self,
        module: Callable[..., Tensor],
        fields: Mapping[str, str] | None = None,
        *,
        normalise: Sequence[str] = ("a",),
        output: str | None = "u",
        channels_last: bool = False,
    ) -> None:
        super().__init__()
        self.module: nn.Module = module if isinstance(module, nn.Module) else _Function(module)
        self.fields = None if fields is None else dict(fields)
        self.output, self.channels_last = output, channels_last
        self.names = _arguments(module)
        taken = set(self.names) if fields is None else set(fields.values())
        wanted = [f for f in normalise if f in taken or (fields is None and f == "a")]
        self.inputs = nn.ModuleDict({field: Normaliser() for field in wanted})
        self.outputs = Normaliser()
        self.register_state_dict_post_hook(_tensors_only)  # type: ignore[no-untyped-call]

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        arguments, named = self._call(batch)
        return self.outputs.inverse(self._channels(self.module(*arguments, **named)))

    def features(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The module's `features` (batch, hidden, *points), from which its last layer is linear."""
        features: Callable[..., Tensor] | None = getattr(self.module, "features", None)
        if features is None:
            raise ValueError(
                f"{type(self.module).__name__} has no features(); add a method that returns "
                "what its last linear layer takes, or use FNO or GINO"
            )
        arguments, named = self._call(batch)
        return self._channels(features(*arguments, **named))

    def collate(self, samples: Sequence[Sample]) -> Batch:
        """Samples to a batch: the module's own `collate` where it has one, else stacked."""
        check(samples)
        own: Callable[[Sequence[Sample]], Batch] | None = getattr(self.module, "collate", None)
        return stack(samples) if own is None else own(samples)

    def prepare(self, data: Samples) -> None:
        """Fit the normalisers on training data, once: a second call changes nothing."""
        if self.prepared:
            log.info("normalisers are fitted already; kept")
            return
        if not len(data):
            raise ValueError("0 samples to prepare on; give the training data")
        for field, normaliser in self._normalisers().items():
            if field in data[0] or field == self.output:
                normaliser.fit(_values(data, field))
            else:
                normaliser.fitted.fill_(True)  # not an input of this data: the identity

    @property
    def device(self) -> torch.device:
        """Where its weights are; the CPU if it has none."""
        return next(self.parameters(), torch.empty(0)).device

    @property
    def prepared(self) -> bool:
        return all(bool(normaliser.fitted) for normaliser in self._normalisers().values())

    def _normalisers(self) -> dict[str, Normaliser]:
        inputs = {field: cast(Normaliser, n) for field, n in self.inputs.items()}
        return inputs if self.output is None else {**inputs, self.output: self.outputs}

    def _call(self, batch: Mapping[str, Tensor]) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Positional and named arguments of the module, normalised."""
        fields = self.fields
        if fields is None:
            fields = {name: name for name in self.names if name in batch}
        missing = [field for field in fields.values() if field not in batch]
        if missing or (not fields and "a" not in batch):
            raise ValueError(
                f"the batch has the fields {sorted(batch)}, but {type(self.module).__name__} "
                f"needs {missing or ['a']}; name them with fields={{argument: field}}"
            )
        if not fields:
            return [self._normalised(batch, "a")], {}
        return [], {name: self._normalised(batch, field) for name, field in fields.items()}

    def _normalised(self, batch: Mapping[str, Tensor], field: str) -> Tensor:
        value, like = batch[field], AT_POINTS.get(field, field)
        if like not in self.inputs:
            return value
        if like in CHANNELS_LAST:
            return cast(Tensor, self.inputs[like](value.movedim(-1, 1))).movedim(1, -1)
        return cast(Tensor, self.inputs[like](value))

    def _channels(self, output: Tensor) -> Tensor:
        return output.movedim(-1, 1) if self.channels_last else output


def as_operator(module: Callable[..., Tensor]) -> Operator:
    """`module` itself if it is an operator, else `Operator(module)`."""
    return module if isinstance(module, Operator) else Operator(module)


def check(samples: Sequence[Sample]) -> None:
    """Refuse what would train a model on nonsense: no samples, other fields, NaN or infinity."""
    if not samples:
        raise ValueError("0 samples in a batch; give at least 1")
    for i, sample in enumerate(samples):
        if sample.keys() != samples[0].keys():
            raise ValueError(
                f"sample {i} of the batch has the fields {sorted(sample)}, sample 0 "
                f"{sorted(samples[0])}; give every sample the same fields"
            )
        for field, value in sample.items():
            check_finite(f"field {field!r}", f"sample {i}", value)


def stack(samples: Sequence[Sample]) -> Batch:
    """Samples of one shape to a batch with a leading axis."""
    batch = {}
    for field, first in samples[0].items():
        for i, sample in enumerate(samples):
            shape, expected = tuple(sample[field].shape), tuple(first.shape)
            if shape == expected:
                continue
            if shape[0] != expected[0]:
                problem, remedy = "channels", "give every sample the same channels"
            else:
                problem, remedy = "resolutions", "batch samples of one resolution together"
            raise ValueError(
                f"mixed {problem} in one batch: '{field}' is {expected} in sample 0 and {shape} "
                f"in sample {i}; {remedy}"
            )
        batch[field] = torch.stack([sample[field] for sample in samples])
    return batch


def _values(data: Samples, field: str) -> Iterator[tuple[Tensor, Tensor | None]]:
    for i in range(len(data)):
        sample = data[i]
        if field not in sample:
            raise ValueError(
                f"sample {i} has the fields {sorted(sample)} and no '{field}' to fit a normaliser "
                "on; name another field with normalise= or output=, or set it to () or None"
            )
        value, weights = sample[field], sample.get("weights")
        check_finite(f"field {field!r}", f"sample {i}", value)
        value = value.movedim(-1, 0) if field in CHANNELS_LAST else value
        fits = weights is not None and weights.shape == value.shape[1:]
        yield value, weights if fits else None


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any, **named: Any) -> Tensor:
        return self.function(*arguments, **named)


def _tensors_only(_: nn.Module, state: dict[str, Any], *__: object) -> None:
    """Drop what a module adds to its state beside tensors, as neuraloperator's models do."""
    for name in [name for name, value in state.items() if not isinstance(value, Tensor)]:
        del state[name]


def _arguments(module: Callable[..., Tensor]) -> tuple[str, ...]:
    """Names a module can be called with."""
    call = module.forward if isinstance(module, nn.Module) else module
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:  # built-in functions do not say
        return ()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(p.name for p in parameters if p.kind in named)
