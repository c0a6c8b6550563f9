"""Any torch module or callable as an operator: a batch in, functions out."""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from uqno.data.checks import check_finite
from uqno.data.conversion import Form
from uqno.operators.base import OPERATORS, NeuralOperator, stack, unit_axes
from uqno.operators.fno import FNO
from uqno.operators.latent import LatentGrid
from uqno.operators.normaliser import Normaliser
from uqno.operators.symmetry import Symmetry
from uqno.types import Batch, Reals, Sample, Samples

# A field at queries is standardised like the same field on the grid.
AT_QUERIES = {"a_queries": "a", "query_features": "features"}
# Of a network on grids that is built for a module of the user's own.
MODES = 12
# Fields of a geometry, (points, channel).
CHANNELS_LAST = ("features",)

log = logging.getLogger(__name__)


class Operator(nn.Module):
    """u = mean + std · module(argument = batch[field], ..): (batch, channel, *points).

    What a `NeuralOperator` says of itself (its grid, how its samples are prepared and batched,
    whether it answers at queries) is asked here, for any other module too, with its defaults.

    Args:
        module: a torch module or any callable on tensors.
        fields: {argument: field}; by default every argument named like a field of the batch, and
            where there is none, the first argument is "a".
        normalise: input fields (channel, *points) that `fit_normalisers` standardises.
        output: the field whose mean and deviation the output takes; None to leave it as it is.
        channels_last: the module answers (batch, *points, channel).

    Example:
        >>> double = Operator(lambda a: 2 * a)
        >>> double(double.batch([{"a": torch.ones(1, 3)}]))
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

    def state_dict(self, *arguments: Any, **named: Any) -> Any:
        """The tensors alone, without what a module adds, as neuraloperator's models do."""
        state = super().state_dict(*arguments, **named)
        for name in [name for name, value in state.items() if not isinstance(value, Tensor)]:
            del state[name]
        return state

    # --- functions to functions ---------------------------------------------------------------

    def forward(self, batch: Batch) -> Tensor:
        arguments, named = self._call(batch)
        return self.outputs.inverse(self._channels(self.module(*arguments, **named)))

    def features(self, batch: Batch) -> Tensor:
        """The module's `features` (batch, hidden, *points), from which its last layer is linear."""
        features: Callable[..., Tensor] | None = getattr(self.module, "features", None)
        if features is None:
            raise ValueError(
                f"{type(self.module).__name__} has no features(); add a method that returns "
                "what its last linear layer takes, or use FNO or GINO"
            )
        arguments, named = self._call(batch)
        return self._channels(features(*arguments, **named))

    # --- samples to batches -------------------------------------------------------------------

    def batch(
        self, samples: Sequence[Sample], symmetries: Sequence[Symmetry] = ()
    ) -> dict[str, Tensor]:
        """Samples as a batch on the operator's device, with what the symmetries will need."""
        prepared = [self.prepare(sample) for sample in samples]
        for g in symmetries:
            prepared = [{**sample, **g.prepare(sample)} for sample in prepared]
        return {name: field.to(self.device) for name, field in self.collate(prepared).items()}

    def prepare(self, sample: Sample) -> dict[str, Tensor]:
        """The sample with what is computed once and then belongs to it, such as neighbours."""
        return dict(sample) if self._network is None else self._network.prepare(sample)

    def collate(self, samples: Sequence[Sample]) -> dict[str, Tensor]:
        """Prepared samples as a batch: by the module's own `collate` if any, else stacked."""
        check(samples)
        own: Callable[[Sequence[Sample]], dict[str, Tensor]] | None
        own = getattr(self.module, "collate", None)
        return stack(samples) if own is None else own(samples)

    def axes(self, shape: Sequence[int]) -> tuple[Reals, ...]:
        """The coordinates of a grid of that shape, in each dimension; the unit box by default."""
        return unit_axes(shape) if self._network is None else self._network.axes(shape)

    @property
    def latent(self) -> LatentGrid | None:
        """The grid that an operator on geometries works on."""
        return None if self._network is None else self._network.latent

    @property
    def takes_queries(self) -> bool:
        """Whether it answers at queries, anywhere in the domain."""
        return "queries" in self._taken

    @property
    def answers_depend_on_points(self) -> bool:
        """Whether the answer at one point of a sample depends on where its other points are.

        What the module says of itself; where it says nothing, whether it takes the field `points`.
        Its answers at `queries` do not depend on each other.
        """
        said: bool | None = getattr(self.module, "answers_depend_on_points", None)
        return "points" in self._taken if said is None else said

    @property
    def form(self) -> Form:
        """What it takes, as far as it says: channels of a, dimensions of its grid, precision."""
        weights = (p.dtype for p in self.parameters() if p.is_floating_point())
        channels, dimensions = None, None
        if self._network is not None:
            channels = self._network.config.get("in_channels")
            dimensions = self._network.dimensions
        elif hasattr(self.module, "n_modes"):  # as neuraloperator's networks on grids say it
            channels = getattr(self.module, "in_channels", None)
            dimensions = getattr(self.module, "n_dim", None)
        return Form(channels, dimensions, next(weights, None))

    # --- normalisers and devices --------------------------------------------------------------

    def fit_normalisers(self, data: Samples) -> None:
        """Fit the normalisers on training data, once: a second call changes nothing."""
        if self.is_normalised:
            log.info("the normalisers are fitted already and stay as they are")
            return
        if not len(data):
            raise ValueError("0 samples to fit the normalisers on; give the training data")
        for field, normaliser in self._normalisers().items():
            if field in data[0] or field == self.output:
                keeps_zero = field == self.output and getattr(self.module, "keeps_zero", False)
                normaliser.fit(_values(data, field), centred=not keeps_zero)
            else:
                normaliser.fitted.fill_(True)  # not an input of this data: the identity

    @property
    def is_normalised(self) -> bool:
        """Whether its normalisers are fitted, as they are once it has been trained."""
        return all(bool(normaliser.fitted) for normaliser in self._normalisers().values())

    @property
    def device(self) -> torch.device:
        """Where its weights are; the CPU if it has none."""
        return next(self.parameters(), torch.empty(0)).device

    # --- others of its kind -------------------------------------------------------------------

    @property
    def is_registered(self) -> bool:
        """Whether the module is a `NeuralOperator`, which can be built again from its `config`."""
        return self._network is not None

    def describe(self) -> dict[str, Any]:
        """All but the weights, as JSON: `rebuilt` makes an untrained operator of it."""
        kind = type(self.module)
        return {
            "class": kind.__name__,
            "defined_in": kind.__module__,
            "config": None if self._network is None else self._network.config,
            "fields": self.fields,
            "normalise": sorted(self.inputs),
            "output": self.output,
            "channels_last": self.channels_last,
        }

    @classmethod
    def rebuilt(
        cls, described: Mapping[str, Any], module: Callable[..., Tensor] | None = None
    ) -> "Operator":
        """An untrained operator of the kind described.

        Args:
            described: what `describe` said.
            module: an instance of its class, needed where that is no `NeuralOperator`.

        Raises:
            ValueError: The class is not registered.
        """
        if module is None:
            name = described["class"]
            if described["config"] is None or name not in OPERATORS:
                raise ValueError(
                    f"{name} is not one of the operators that are registered "
                    f"({', '.join(sorted(OPERATORS))}): import {described['defined_in']} first if "
                    "it is a NeuralOperator, else pass an instance of it"
                )
            module = OPERATORS[name](**described["config"])
        return cls(
            module,
            described["fields"],
            normalise=described["normalise"],
            output=described["output"],
            channels_last=described["channels_last"],
        )

    def another(self, instead: str) -> "Operator":
        """A new operator of the same kind with weights of its own, untrained, on the same device.

        Args:
            instead: what to do where the module is no `NeuralOperator`, for the message.
        """
        if not self.is_registered:
            raise ValueError(
                f"{type(self.module).__name__} is not a uqno.operators.NeuralOperator, so others "
                f"like it cannot be built: {instead}"
            )
        return Operator.rebuilt(self.describe()).to(self.device)

    def network_like(self, inputs: int, outputs: int, grid: Sequence[int] | None) -> nn.Module:
        """An untrained network of its kind for other channels, on the CPU.

        Args:
            inputs: channels that it takes.
            outputs: channels of its answer.
            grid: points along each dimension of the coarsest grid; None for geometries.

        Returns:
            The module's own `like`; an FNO for a module on grids that is no `NeuralOperator`, with
            as many modes as the grid carries, at most 12.
        """
        if self._network is not None:
            return self._network.like(inputs, outputs)
        if grid is None:
            raise ValueError(
                f"no network is known for {type(self.module).__name__} on geometries: pass "
                "network= to the uncertainty"
            )
        return FNO(inputs, outputs, modes=[min(MODES, max(1, points - 1)) for points in grid])

    @property
    def _taken(self) -> tuple[str, ...]:
        """The names of the fields that the module may be given."""
        return self.names if self.fields is None else tuple(self.fields.values())

    @property
    def _network(self) -> NeuralOperator | None:
        return self.module if isinstance(self.module, NeuralOperator) else None

    def _normalisers(self) -> dict[str, Normaliser]:
        inputs = {field: cast(Normaliser, n) for field, n in self.inputs.items()}
        return inputs if self.output is None else {**inputs, self.output: self.outputs}

    def _call(self, batch: Batch) -> tuple[list[Tensor], dict[str, Tensor]]:
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

    def _normalised(self, batch: Batch, field: str) -> Tensor:
        value, like = batch[field], AT_QUERIES.get(field, field)
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


def _arguments(module: Callable[..., Tensor]) -> tuple[str, ...]:
    """Names a module can be called with."""
    call = module.forward if isinstance(module, nn.Module) else module
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:  # built-in functions do not say
        return ()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(p.name for p in parameters if p.kind in named)
