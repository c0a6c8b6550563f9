"""Operators that methods share, named by what decides their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from uqno.experiments.settings import Settings

Split = Literal["folds", "half", "all"]


class Fit(NamedTuple):
    """What a fit takes: functions of an epoch, and epochs."""

    functions: int
    epochs: int


@dataclass(frozen=True)
class SharedOperator:
    """An operator that several methods may use; it is trained once.

    Args:
        split: which training functions it is trained on: "folds" for one operator on all of
            them and one on all folds but each (for out-of-fold residuals), "half" for the first
            half (the paper's recipe), "all" for all of them.
        symmetric: whether it is trained with the symmetries of the task.
        extra_inputs: whether it sees the inputs that the recipe `uqno` alone has.
        dropout: whether its network has dropout.
        number: 1, or another number for an operator that differs in its random numbers alone.
    """

    split: Split
    symmetric: bool = False
    extra_inputs: bool = False
    dropout: bool = False
    number: int = 1

    @property
    def slug(self) -> str:
        """A readable name, also that of its folder.

        >>> SharedOperator("half", symmetric=True, number=2).slug
        'half-symmetric-2'
        """
        flags = {
            "symmetric": self.symmetric,
            "extra-inputs": self.extra_inputs,
            "dropout": self.dropout,
            str(self.number): self.number > 1,
        }
        return "-".join([self.split, *(name for name, has in flags.items() if has)])

    def fits(self, settings: Settings) -> Mapping[str, Fit]:
        """{folder of a fit: what it takes}."""
        n, k, name = settings.train, settings.folds, f"operators/{self.slug}"
        if self.split == "folds":
            counts = {f"{name}/fold-{i}": n - n // k for i in range(k)} | {f"{name}/final": n}
        else:
            counts = {name: n if self.split == "all" else n // 2}
        return {fit: Fit(functions, settings.epochs) for fit, functions in counts.items()}


def plain(settings: Settings) -> SharedOperator:
    """The operator of most methods: nothing but the network and all training functions."""
    return SharedOperator("folds")


def with_dropout(settings: Settings) -> SharedOperator:
    """The plain operator with dropout, for which no out-of-fold residuals are needed."""
    return SharedOperator("all", dropout=True)


def enriched(
    settings: Settings, split: Split = "folds", number: int = 1, *, extra_inputs: bool = True
) -> SharedOperator:
    """An operator with the symmetries and the extra inputs that these settings have."""
    return SharedOperator(
        split,
        symmetric=settings.uses_symmetries,
        extra_inputs=extra_inputs and bool(settings.extra_inputs),
        number=number,
    )


def committee(settings: Settings) -> tuple[SharedOperator, ...]:
    """The operators whose mean is Ĝ in the recipe `uqno`."""
    return tuple(enriched(settings, number=k) for k in range(1, settings.committee + 1))
