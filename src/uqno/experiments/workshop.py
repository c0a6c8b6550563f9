"""Where the operators and models of a run are trained, or read once they are.

Training is cut into parts that several processes can do: first the operators that methods share,
then a model for each method. Each fit has a folder, so a part that is asked for again goes on or
is read.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Subset

from uqno.experiments.ablation import methods_of
from uqno.experiments.methods import METHODS, Fit, SharedOperator
from uqno.experiments.settings import Settings
from uqno.experiments.task import Task
from uqno.model import UQNO, files
from uqno.operators import Operator, as_operator
from uqno.operators.symmetry import Symmetry, augmentation
from uqno.storage import DamagedError, recover_folder, set_aside
from uqno.training import CrossFit, RelativeL2, crossfit, fit
from uqno.training.samples import derived_seed
from uqno.types import Samples


@dataclass(frozen=True)
class Workshop:
    """Trains the operators and models of a task in a folder.

    The paper's recipe takes the first half of the training functions for Ĝ, the second for E.
    """

    task: Task
    folder: Path

    @property
    def settings(self) -> Settings:
        return self.task.settings

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Those that the recipe `uqno` uses."""
        return self.task.symmetries if self.settings.uses_symmetries else ()

    # --- training functions -------------------------------------------------------------------

    def train(self, extra_inputs: bool = False) -> Samples:
        """All training functions, read when first asked for."""
        return self._train_with_extra_inputs if extra_inputs else self._train

    @cached_property
    def _train(self) -> Samples:
        return self.task.train()

    @cached_property
    def _train_with_extra_inputs(self) -> Samples:
        return self.task.train(extra_inputs=True)

    def half(self, which: int, extra_inputs: bool = False) -> Samples:
        """The first (0) or the second (1) half of the training functions."""
        train = self.train(extra_inputs)
        middle = len(train) // 2
        chosen = range(middle) if which == 0 else range(middle, len(train))
        return Subset(train, chosen)  # type: ignore[arg-type]

    # --- operators that methods share ---------------------------------------------------------

    def crossfit(self, operator: SharedOperator) -> CrossFit:
        """Operators on all the training functions and on all folds but one."""
        seed, number = self.settings.seed, operator.number
        return crossfit(
            lambda: as_operator(self.task.network(extra_inputs=operator.extra_inputs)),
            self.train(operator.extra_inputs),
            folds=self.settings.folds,
            seed=seed if number == 1 else derived_seed(seed, "member", number),
            **self._training(operator),
        )

    def operator(self, operator: SharedOperator) -> Operator:
        """One operator, on the first half or on all of the training functions."""
        seed, inputs = self.settings.seed + operator.number - 1, operator.extra_inputs
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            dropout = self.settings.dropout if operator.dropout else 0.0
            network = as_operator(self.task.network(dropout, inputs))
        data = self.train(inputs) if operator.split == "all" else self.half(0, inputs)
        fit(network, data, seed=seed, **self._training(operator))
        return network

    def _training(self, operator: SharedOperator) -> dict[str, Any]:
        """How a shared operator is trained, and where."""
        return {
            "augment": augmentation(self.symmetries if operator.symmetric else ()),
            "loss": RelativeL2(),
            "folder": self.folder / "operators" / operator.slug,
            **self._common(),
        }

    def _common(self) -> dict[str, Any]:
        """How every fit is trained. No epoch is chosen, so nothing is held out to choose it."""
        s = self.settings
        return {
            "epochs": s.epochs,
            "batch_size": s.batch_size,
            "learning_rate": s.learning_rate,
            "validation": 0.0,
            "progress": False,
            "resume": True,
        }

    # --- models -------------------------------------------------------------------------------

    def model(self, name: str) -> UQNO:
        """The fitted model of a method, read if it is there."""
        method, where, settings = METHODS[name], self.folder / "models" / name, self.settings
        uncertainty = method.uncertainty(settings)
        recover_folder(where)
        if where.is_dir():
            try:
                return UQNO.load(where, uncertainty=uncertainty, features=method.features(self))
            except DamagedError:
                set_aside(where)
        model = method.make(self, uncertainty)
        base = method.base(settings)
        data = (
            self.half(1, base.extra_inputs)
            if base.split == "half"
            else self.train(base.extra_inputs)
        )
        owner = name if method.uncertainty_of is None else method.uncertainty_of(settings)
        fits = METHODS[owner].fits(settings).values()
        model.fit(
            data,
            seed=settings.seed,
            folder=self.folder / "uncertainty" / owner,
            uncertainty_epochs=max((fit.epochs for fit in fits), default=None),
            **self._common(),
        )
        model.save(where)
        return model


# --- parts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Something to train in a process of its own: a shared operator, or the model of a method.

    Args:
        name: by which other parts need it.
        needs: names of the parts that come first.
        fits: {folder of a fit: what it takes}.
        operator: the operator, if it is one.
        method: the name of the method, if it is a model.
    """

    name: str
    needs: tuple[str, ...]
    fits: Mapping[str, Fit]
    operator: SharedOperator | None = None
    method: str | None = None

    @property
    def work(self) -> int:
        """Functions times epochs."""
        return sum(fit.functions * fit.epochs for fit in self.fits.values())

    def behind(self, folder: Path) -> int:
        """Functions times epochs that are done already, in the folder of a run."""
        return sum(f.functions * len(_log(folder / where)) for where, f in self.fits.items())

    def is_done(self, folder: Path) -> bool:
        """Models are saved last, and must be whole; an operator is done when its last fit is."""
        if self.method is not None:
            try:
                files.check(folder / "models" / self.method)
            except ValueError:
                return False
            return True
        return self.behind(folder) >= self.work

    def train(self, workshop: Workshop) -> None:
        """Train it, or go on with it."""
        if self.method is not None:
            workshop.model(self.method)
        elif self.operator is not None and self.operator.split == "folds":
            workshop.crossfit(self.operator)
        elif self.operator is not None:
            workshop.operator(self.operator)


def parts(settings: Settings) -> tuple[Part, ...]:
    """All the training of a run."""
    names = methods_of(settings)
    operators = dict.fromkeys(o for name in names for o in METHODS[name].operators(settings))
    shared = [_operator_part(operator, settings) for operator in operators]
    return (*shared, *(_model_part(name, settings) for name in names))


def _operator_part(operator: SharedOperator, settings: Settings) -> Part:
    return Part(f"operator {operator.slug}", (), operator.fits(settings), operator=operator)


def _model_part(name: str, settings: Settings) -> Part:
    method = METHODS[name]
    operators = dict.fromkeys(method.operators(settings))
    needs = tuple(f"operator {operator.slug}" for operator in operators)
    if method.uncertainty_of is not None:
        needs += (f"model {method.uncertainty_of(settings)}",)
    fits = {f"uncertainty/{name}/{where}": fit for where, fit in method.fits(settings).items()}
    return Part(f"model {name}", needs, fits, method=name)


def train_seconds(folder: Path, name: str, settings: Settings) -> float:
    """The time of all fits that a method rests on, those it shares included."""
    known = {part.name: part for part in parts(settings)}
    part = known[f"model {name}"]
    fits = [fit for each in (part.name, *part.needs) for fit in known[each].fits]
    return sum(float(row["seconds"]) for fit in fits for row in _log(folder / fit))


def _log(folder: Path) -> list[dict[str, str]]:
    """The whole rows of a fit's log, one an epoch; what a disk damaged is none."""
    file = folder / "log.csv"
    if not file.is_file():
        return []
    whole, _, _ = file.read_text(encoding="utf8", errors="replace").rpartition("\n")
    return [row for row in csv.DictReader(whole.splitlines()) if row.get("seconds")]
