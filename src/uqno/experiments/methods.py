"""The methods of a comparison: which operators each needs, and how its model is made of them.

Training is cut into jobs that several processes can do: first operators that methods share, then a
model for each method. Each fit has a folder, so a job that is asked for again goes on or is read.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch

from uqno.experiments.ablation import ladder
from uqno.experiments.presets import Settings
from uqno.experiments.task import Task
from uqno.model import UQNO
from uqno.operators import Operator, as_operator
from uqno.operators.symmetry import Symmetry, augmentation
from uqno.training import CrossFit, RelativeL2, crossfit, fit
from uqno.training.samples import derived_seed
from uqno.types import Samples
from uqno.uncertainty import (
    Components,
    Constant,
    Disagreement,
    Dropout,
    Ensemble,
    Laplace,
    MeanField,
    PerturbedPair,
    Quantile,
)

# The paper's recipe has no floor; an uncertainty must be positive, so it has this share of the error.
NO_FLOOR = 1e-3


@dataclass(frozen=True)
class Workshop:
    """Where operators and models of a run are trained, or read once they are.

    The paper's recipe takes the first half of the training functions for Ĝ, the second for E.
    """

    task: Task
    folder: Path

    @property
    def settings(self) -> Settings:
        return self.task.settings

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Those that ours uses."""
        return self.task.symmetries if self.settings.uses_symmetries else ()

    def train(self, ours: bool = False) -> Samples:
        """All training functions, as ours or as other methods see them; read when asked for."""
        return self._train_ours if ours else self._train

    @cached_property
    def _train(self) -> Samples:
        return self.task.train()

    @cached_property
    def _train_ours(self) -> Samples:
        return self.task.train(ours=True)

    # --- operators that methods share ---------------------------------------------------------

    def cross(self, name: str) -> CrossFit:
        """Operators on all the training functions and on all folds but one: `plain`, `symmetric`,
        `own`, and `own-2`, … from other weights and on other folds."""
        name = as_trained(name, self.settings)
        ours, number = sees_more(name), name.partition("-")[2]
        seed = self.settings.seed
        return crossfit(
            lambda: as_operator(self.task.network(ours=ours)),
            self.train(ours),
            folds=self.settings.folds,
            seed=derived_seed(seed, "member", int(number)) if number else seed,
            augment=augmentation(self.symmetries_of(name)),
            loss=RelativeL2(),
            folder=self.folder / name,
            **self.training(),
        )

    def committee(self) -> list[CrossFit]:
        """Those whose operators' mean is Ĝ in ours."""
        return [self.cross(name) for name in committee(self.settings)]

    def symmetries_of(self, name: str) -> tuple[Symmetry, ...]:
        """Those that an operator is trained with."""
        return self.symmetries if "symmetric" in name or "own" in name else ()

    def single(self, name: str) -> Operator:
        """One operator: on the first half, or on all the training functions with dropout."""
        name = as_trained(name, self.settings)
        of_all, ours = name == "dropout", sees_more(name)
        seed = self.settings.seed + (1 if name.endswith("-2") else 0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            dropout = self.settings.dropout if of_all else 0.0
            operator = as_operator(self.task.network(dropout, ours))
        fit(
            operator,
            self.train() if of_all else self.half(0, ours),
            seed=seed,
            augment=augmentation(self.symmetries_of(name)),
            loss=RelativeL2(),
            folder=self.folder / name,
            **self.training(),
        )
        return operator

    def half(self, which: int, ours: bool = False) -> Samples:
        """The first or the second half of the training functions."""
        train = self.train(ours)
        middle = len(train) // 2
        chosen = range(middle) if which == 0 else range(middle, len(train))
        return torch.utils.data.Subset(train, chosen)  # type: ignore[arg-type]

    def training(self) -> dict[str, Any]:
        """Of every fit alike. No epoch is chosen, so nothing is held out to choose it."""
        s = self.settings
        return {
            "epochs": s.epochs,
            "batch_size": s.batch_size,
            "learning_rate": s.learning_rate,
            "validation": 0.0,
            "progress": False,
            "resume": True,
        }

    # --- models --------------------------------------------------------------------------------

    def model(self, name: str) -> UQNO:
        """The fitted model of a method, read if it is there."""
        method, where = METHODS[name], self.folder / "models" / name
        uncertainty_of = (
            name if method.uncertainty_of is None else same_as(method.uncertainty_of, self.settings)
        )
        if (where / "model.json").is_file():
            return UQNO.load(where, features=method.features(self))
        model = method.make(self)
        base = needed(method, self.settings)[0]
        ours = sees_more(base)
        data = self.half(1, ours) if base.startswith("half") else self.train(ours)
        fits = METHODS[uncertainty_of].fits(self.settings).values()
        model.fit(
            data,
            seed=self.settings.seed,
            folder=self.folder / "uncertainty" / uncertainty_of,
            uncertainty_epochs=max((work.epochs for work in fits), default=None),
            **self.training(),
        )
        model.save(where)
        return model


def _nothing(workshop: Workshop) -> tuple[Any, ...]:
    return ()


class Work(NamedTuple):
    """What a fit takes: functions of an epoch, and epochs."""

    functions: int
    epochs: int


@dataclass(frozen=True)
class Method:
    """What a method is made of.

    operators: names of the shared ones it needs, the first is its base; COMMITTEE for those of
        ours.
    make: the model before `fit`.
    fits: {folder of a fit of its own: what it takes}.
    passes: networks that a prediction takes, of so many symmetries and of a committee of so many;
        for an estimate of the time.
    features: what E sees beside its inputs, if that is not saved with the model.
    raw: whether the paper's table, or anyone, would use it without calibration.
    uncertainty_of: another method whose trained uncertainty it has.
    """

    operators: tuple[str, ...]
    make: Callable[[Workshop], UQNO]
    fits: Callable[[Settings], Mapping[str, Work]]
    passes: Callable[[int, int], int]
    features: Callable[[Workshop], tuple[Any, ...]] = _nothing
    raw: bool = False
    uncertainty_of: str | None = None


def _uncertainty_fit(settings: Settings) -> dict[str, Work]:
    return {"uncertainty": Work(settings.train, settings.uncertainty_epochs)}


def _half_fit(settings: Settings) -> dict[str, Work]:
    return {"uncertainty": Work(settings.train - settings.train // 2, settings.uncertainty_epochs)}


def _no_fit(settings: Settings) -> dict[str, Work]:
    return {}


def _member_fits(settings: Settings) -> dict[str, Work]:
    work = Work(settings.train, settings.epochs)  # each is an operator like the base
    return {f"uncertainty/member-{k}": work for k in range(1, settings.members)}


def _pair_fit(settings: Settings) -> dict[str, Work]:
    return {"uncertainty/member-1": Work(settings.train, settings.epochs)}


def _second_operator(workshop: Workshop) -> tuple[Any, ...]:
    return (Disagreement(workshop.single("half-own-2")),)


def _without_deviation(operator: str) -> Method:
    """The paper's E around an operator with symmetries."""
    return Method(
        (operator,),
        lambda w: UQNO(
            w.cross(operator), Quantile(power=1.0), symmetries=w.symmetries, deviation=False
        ),
        _uncertainty_fit,
        passes=lambda g, k: 2 * g,
    )


COMMITTEE = "committee"

METHODS: Mapping[str, Method] = {
    # Ours, the default: out-of-fold residuals of all the training functions, symmetries, inputs
    # that the task knows of, the mean of several operators where functions are few, their deviation
    # for E, less variation of E.
    "uqno": Method(
        (COMMITTEE,),
        lambda w: UQNO(w.committee(), symmetries=w.symmetries, deviation=w.settings.deviation),
        _uncertainty_fit,
        passes=lambda g, k: (k + 1) * g,
        raw=True,
    ),
    "uqno-paper": Method(
        ("half",),
        lambda w: UQNO(w.single("half"), Quantile(floor=NO_FLOOR, power=1.0)),
        _half_fit,
        passes=lambda g, k: 2,
        raw=True,
    ),
    "mc-dropout": Method(
        ("dropout",),
        lambda w: UQNO(w.single("dropout"), Dropout()),
        _no_fit,
        passes=lambda g, k: 10,
        raw=True,
    ),
    "laplace": Method(
        ("plain",),
        lambda w: UQNO(w.cross("plain").operator, Laplace()),
        _no_fit,
        passes=lambda g, k: 2,
        raw=True,
    ),
    "nppc": Method(
        ("plain",),
        lambda w: UQNO(w.cross("plain"), Components()),
        _uncertainty_fit,
        passes=lambda g, k: 4,
        raw=True,
    ),
    "ensemble": Method(
        ("plain",),
        lambda w: UQNO(w.cross("plain").operator, Ensemble(w.settings.members)),
        _member_fits,
        passes=lambda g, k: 5,
        raw=True,
    ),
    "perturbed-pair": Method(
        ("plain",),
        lambda w: UQNO(w.cross("plain").operator, PerturbedPair(w.settings.noise)),
        _pair_fit,
        passes=lambda g, k: 2,
        raw=True,
    ),
    "constant": Method(
        ("plain",),
        lambda w: UQNO(w.cross("plain"), Constant()),
        _no_fit,
        passes=lambda g, k: 1,
    ),
    "mean-field": Method(
        ("plain",),
        lambda w: UQNO(w.cross("plain"), MeanField()),
        _no_fit,
        passes=lambda g, k: 1,
    ),
    # Of the ablation alone. Ours with one operator, where it has several; see `same_as`.
    "single": Method(
        ("own",),
        lambda w: UQNO(w.cross("own"), symmetries=w.symmetries, deviation=w.settings.deviation),
        _uncertainty_fit,
        passes=lambda g, k: 2 * g,
    ),
    "out-of-fold": Method(
        ("plain",),
        lambda w: UQNO(w.cross("plain"), Quantile(power=1.0)),
        _uncertainty_fit,
        passes=lambda g, k: 2,
    ),
    "no-deviation": _without_deviation("symmetric"),
    "more-inputs": _without_deviation("own"),
    "paper-more-inputs": Method(
        ("half-hinted",),
        lambda w: UQNO(w.single("half-hinted"), Quantile(floor=NO_FLOOR, power=1.0)),
        _half_fit,
        passes=lambda g, k: 2,
    ),
    "with-deviation": Method(
        (COMMITTEE,),
        lambda w: UQNO(w.committee(), symmetries=w.symmetries),
        _uncertainty_fit,
        passes=lambda g, k: (k + 1) * g,
    ),
    "full-variation": Method(
        ("own",),
        lambda w: UQNO(w.cross("own"), Quantile(power=1.0), symmetries=w.symmetries),
        _no_fit,
        passes=lambda g, k: 2 * g,
        uncertainty_of="single",
    ),
    "constant-symmetric": Method(
        (COMMITTEE,),
        lambda w: UQNO(w.committee(), Constant(), symmetries=w.symmetries),
        _no_fit,
        passes=lambda g, k: k * g,
    ),
    "half-symmetric": Method(
        ("half-own",),
        lambda w: UQNO(w.single("half-own"), symmetries=w.symmetries),
        _half_fit,
        passes=lambda g, k: 2 * g,
    ),
    "disagreement": Method(
        ("half-own", "half-own-2"),
        lambda w: UQNO(w.single("half-own"), symmetries=w.symmetries, features=_second_operator(w)),
        _half_fit,
        passes=lambda g, k: 2 * g + 1,
        features=_second_operator,
    ),
}


def trained(settings: Settings) -> tuple[str, ...]:
    """The methods of a run, and those that its ablation shows."""
    shown = [model for *_, model, _ in ladder(settings)] if settings.ablation else []
    return tuple(dict.fromkeys((*settings.methods, *shown)))


def same_as(name: str, settings: Settings) -> str:
    """The method itself, but for `single`, which is ours where that has one operator."""
    return "uqno" if name == "single" and settings.committee == 1 else name


def committee(settings: Settings) -> tuple[str, ...]:
    """The shared operators whose mean is Ĝ in ours."""
    names = ("own", *(f"own-{k}" for k in range(2, settings.committee + 1)))
    return tuple(as_trained(name, settings) for name in names)


def as_trained(name: str, settings: Settings) -> str:
    """The shared operator itself, or the same one by its other name: `own` is trained with
    symmetries and sees more inputs, `symmetric` sees no more than others, `plain` has neither."""
    if not settings.more_inputs:
        name = name.replace("own", "symmetric").replace("half-hinted", "half")
    if not settings.uses_symmetries:
        name = name.replace("half-symmetric", "half").replace("symmetric", "plain")
    return name


def sees_more(name: str) -> bool:
    """Whether a shared operator, named as it is trained, has the inputs of ours."""
    return "own" in name or "hinted" in name


def needed(method: Method, settings: Settings) -> tuple[str, ...]:
    """The shared operators of a method, by name."""

    def names(given: str) -> tuple[str, ...]:
        if given == COMMITTEE:
            return committee(settings)
        return (as_trained(given, settings),)

    return tuple(dict.fromkeys(name for given in method.operators for name in names(given)))


# --- jobs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Something to train in a process of its own: an operator or a model.

    needs: jobs that come first; fits: {folder of a fit: what it takes}.
    """

    name: str
    needs: tuple[str, ...]
    fits: Mapping[str, Work]

    @property
    def work(self) -> int:
        """Functions times epochs."""
        return sum(functions * epochs for functions, epochs in self.fits.values())

    def run(self, workshop: Workshop) -> None:
        kind, name = self.name.split("/", 1)
        if kind == "model":
            workshop.model(name)
        elif is_cross(name):
            workshop.cross(name)
        else:
            workshop.single(name)


def jobs(settings: Settings) -> tuple[Job, ...]:
    """All the training of a run."""
    names = trained(settings)
    operators = dict.fromkeys(o for name in names for o in needed(METHODS[name], settings))
    shared = [Job(f"operator/{o}", (), _operator_fits(o, settings)) for o in operators]
    models = []
    for name in names:
        method = METHODS[name]
        fits = {f"uncertainty/{name}/{f}": work for f, work in method.fits(settings).items()}
        needs = tuple(f"operator/{o}" for o in needed(method, settings))
        if method.uncertainty_of is not None:
            needs += (f"model/{same_as(method.uncertainty_of, settings)}",)
        models.append(Job(f"model/{name}", needs, fits))
    return (*shared, *models)


def _operator_fits(name: str, settings: Settings) -> dict[str, Work]:
    n, k = settings.train, settings.folds
    if is_cross(name):
        counts = {f"{name}/fold-{i}": n - n // k for i in range(k)} | {f"{name}/final": n}
    else:
        counts = {name: n if name == "dropout" else n // 2}
    return {fit: Work(functions, settings.epochs) for fit, functions in counts.items()}


def is_cross(name: str) -> bool:
    """Whether an operator is trained with folds."""
    return name.split("-")[0] in ("plain", "symmetric", "own")


def epochs_done(folder: Path) -> int:
    """Rows of a fit's log."""
    return len(_log(folder))


def train_seconds(folder: Path, name: str, settings: Settings) -> float:
    """Of all fits that a method rests on, those it shares included."""
    known = {job.name: job for job in jobs(settings)}
    job = known[f"model/{name}"]
    fits = [fit for each in (job.name, *job.needs) for fit in known[each].fits]
    return sum(float(row["seconds"]) for fit in fits for row in _log(folder / fit))


def _log(folder: Path) -> list[dict[str, str]]:
    file = folder / "log.csv"
    if not file.is_file():
        return []
    with file.open(encoding="utf8", newline="") as opened:
        return list(csv.DictReader(opened))
