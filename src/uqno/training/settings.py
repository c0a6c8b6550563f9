"""Everything that decides which weights a fit ends in, checked in one place."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

from torch import Tensor, nn

from uqno.conformal.checks import shown
from uqno.training.samples import Augment
from uqno.types import Batch

Loss = Callable[[Tensor, Batch], Tensor]
Keep = Literal["best", "last"]


@dataclass(frozen=True)
class FitSettings:
    """The arguments of `fit` that a resumed run must share with the one it continues.

    They are those of `uqno.training.fit`, under the same names.

    Raises:
        ValueError: a value is out of its bounds.
    """

    loss: Loss
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: float
    clip: float | None
    validation: float
    keep: Keep
    seed: int
    precision: str
    augment: Augment | None

    def __post_init__(self) -> None:
        _whole("epochs", self.epochs)
        _whole("batch_size", self.batch_size)
        _whole("seed", self.seed, least=0)
        _within("learning_rate", self.learning_rate, 0, math.inf, "try 1e-3", above=True)
        _within("weight_decay", self.weight_decay, 0, math.inf, "0 turns it off")
        _within("warmup", self.warmup, 0, 1, "it is a share of all steps, such as 0.05")
        _within("validation", self.validation, 0, 1, "it is a share of the data, 0 for none")
        if self.clip is not None:
            _within("clip", self.clip, 0, math.inf, "None turns it off", above=True)
        if not isinstance(self.keep, str) or self.keep not in ("best", "last"):
            raise ValueError(f"keep must be 'best' or 'last', got {shown(self.keep)}")

    def check_size(self, training: int, samples: int) -> None:
        """Refuse batches that are larger than the data.

        Args:
            training: how many samples are trained on.
            samples: how many there are, with those held out.

        Raises:
            ValueError: the batch size is above `training`.
        """
        if self.batch_size > training:
            raise ValueError(
                f"batch_size={self.batch_size} is above the {training} samples to train on "
                f"(of {samples}, validation={self.validation}): give at most {training}"
            )

    def identity(self, samples: int, operator: nn.Module) -> dict[str, Any]:
        """What must be equal for a checkpoint to be continued, as JSON holds it.

        Args:
            samples: how many there are.
            operator: whose parameters have names and shapes.
        """
        plain = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}
        plain.update(loss=_describe(self.loss), augment=_describe(self.augment), samples=samples)
        shapes = {name: list(p.shape) for name, p in operator.named_parameters()}
        return plain | {f"shape of {name}": shape for name, shape in shapes.items()}


def _whole(name: str, value: Any, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {shown(value)}")


def _within(
    name: str, value: Any, low: float, high: float, remedy: str, above: bool = False
) -> None:
    number: Any = value if isinstance(value, Real) else None
    if number is None:
        raise ValueError(f"{name} must be a number, got {shown(value)}: {remedy}")
    if not (low < number if above else low <= number) or not number < high:
        sign = "<" if above else "≤"
        raise ValueError(f"{name} = {value} is outside {low} {sign} {name} < {high}: {remedy}")


def _plain(value: Any) -> Any:
    """NumPy's numbers are not JSON's."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _describe(function: object) -> str | None:
    """A name that is the same in every process: no addresses, as in the repr of a function."""
    if function is None:
        return None
    if dataclasses.is_dataclass(function):
        return repr(function)
    return str(getattr(function, "__qualname__", type(function).__qualname__))
