"""What a comparison is made of: every number that decides its results.

`Settings` has what all tasks share. A task adds its own fields in a subclass, and says with
`bounded` what each may be; a field of whole numbers must be at least 1 unless it says otherwise.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from uqno.conformal.checks import shown

PUBLISHED_METHODS = (
    "uqno",
    "uqno-paper",
    "mc-dropout",
    "laplace",
    "nppc",
    "ensemble",
    "perturbed-pair",
    "constant",
    "mean-field",
)
"""The recipe of this library, and others as they were published."""
ALL_METHODS = PUBLISHED_METHODS + tuple(f"{name}-aided" for name in PUBLISHED_METHODS[1:])
"""What a comparison has unless its settings say otherwise: each method as it was published, and
with the symmetries and extra inputs of `uqno`."""
FEWER_METHODS = ("uqno", "uqno-paper", "mc-dropout", "laplace", "nppc", "constant")
"""For comparisons that shall not take long: the paper's, and a constant uncertainty."""


KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
MOST = 10**18  # of any number in settings


def bounded(
    default: Any = MISSING, *, least: int = 1, share: bool = False, positive: bool = False
) -> Any:
    """A field of settings with its bounds.

    Args:
        default: its value if none is given; a field without one must be given.
        least: whole numbers, alone or in a tuple, must be at least this.
        share: numbers must lie in (0, 1).
        positive: numbers must be positive and finite.
    """
    return field(default=default, metadata={"least": least, "share": share, "positive": positive})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every comparison has. Calibration and test functions choose nothing here."""

    task: ClassVar[str]
    """The name of the task that they are settings of."""

    DEVELOPMENT_SEEDS: ClassVar[tuple[int, ...]] = (0, 1, 2)
    """Seeds whose results may be looked at while a recipe is being worked on."""
    HEADLINE_SEEDS: ClassVar[tuple[int, ...]] = (3, 4, 5)
    """Seeds that are run once, when nothing is left to choose: those of published tables."""

    seed: int = bounded(0, least=0)
    """The seed of the functions, the networks and the splits into calibration and test."""
    train: int
    calibration: int = bounded(least=2)
    test: int
    width: int = 32
    layers: int = 4
    epochs: int
    batch_size: int
    learning_rate: float = bounded(positive=True)
    uncertainty_share: float = bounded(1.0, positive=True)
    """Epochs of a network that learns errors, as a share of `epochs`."""
    folds: int = bounded(2, least=2)
    """The number of folds for out-of-fold residuals."""
    committee: int = 1
    """Operators whose mean is Ĝ in the recipe `uqno`."""
    symmetric: bool = True
    """Whether `uqno` uses the symmetries of the task, in training and in prediction."""
    deviation: bool = True
    """Whether E of `uqno` sees the deviation over the symmetries and the operators."""
    dropout: float = bounded(0.1, share=True)
    """Probability with which the network of mc-dropout leaves a channel out."""
    members: int = bounded(5, least=2)
    """Operators of the ensemble."""
    noise: float = bounded(0.1, positive=True)
    """In the labels of perturbed-pair, as a share of the solutions' standard deviation."""
    alphas: tuple[float, ...] = bounded(share=True)
    delta: float = bounded(0.02, share=True)
    curve_alphas: tuple[float, ...] = bounded(share=True)
    """The levels α in figures with several of them."""
    splits: int = 2000
    """Random splits of the held-out functions over which figures are averaged."""
    methods: tuple[str, ...] = ALL_METHODS
    ablation: bool = False

    def __post_init__(self) -> None:
        kinds = get_type_hints(type(self))
        for one in fields(self):
            value = getattr(self, one.name)
            value = tuple(value) if isinstance(value, list) else value
            _check_kind(one.name, value, kinds[one.name])
            object.__setattr__(self, one.name, value)  # frozen for everyone else
            _check_bounds(one, value)
        _check_methods(self.methods)
        if not self.methods or not self.alphas:
            raise ValueError("methods and alphas must each name at least one")
        if self.folds > self.train:
            raise ValueError(f"folds = {self.folds} must be at most train = {self.train}")
        if self.train < 4 * self.batch_size:
            raise ValueError(
                f"train = {self.train} is too few for batches of {self.batch_size}, as halves are "
                f"halved again: give at least {4 * self.batch_size}"
            )

    @property
    def held_out(self) -> int:
        """Functions that are not trained on."""
        return self.calibration + self.test

    @property
    def uses_symmetries(self) -> bool:
        """Whether the operators of `uqno` are trained with symmetries."""
        return self.symmetric

    @property
    def extra_inputs(self) -> str:
        """What the networks of `uqno` see beside what all see, in words; nothing by default."""
        return ""

    @property
    def aids(self) -> str:
        """What the recipe `uqno` has and methods as they were published have not, in words."""
        words = ["symmetries"] if self.uses_symmetries else []
        return " and ".join([*words, self.extra_inputs] if self.extra_inputs else words)

    @property
    def uncertainty_epochs(self) -> int:
        """Epochs of a network that learns errors."""
        return max(1, round(self.epochs * self.uncertainty_share))

    # --- as text ------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """The settings as JSON-able values; `from_record` makes the settings of them again."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The settings that `record` wrote.

        Raises:
            ValueError: names are missing or unknown, or a value is out of its bounds.
        """
        names = {one.name for one in fields(cls)}
        if names != set(record):
            raise ValueError(
                f"settings of {cls.task} have other names: missing {sorted(names - set(record))}, "
                f"unknown {sorted(set(record) - names)}; run the comparison again"
            )
        return cls(**record)

    def changed(self, changes: Iterable[str]) -> Self:
        """The same with changes `key=value`; a tuple's values are joined by commas.

        Raises:
            ValueError: a key is not known, or a value is none for it.
        """
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        values: dict[str, Any] = {}
        for change in changes:
            key, equals, text = change.partition("=")
            if not equals:
                raise ValueError(f"--set {change} has no '=': write key=value")
            if key not in known:
                near = difflib.get_close_matches(key, known, n=3, cutoff=0.4)
                there = f"the nearest are {', '.join(near)}" if near else ""
                there = there or f"there are {', '.join(known)}"
                raise ValueError(f"--set {change}: there is no setting {key!r}; {there}")
            values[key] = _parsed(key, text, known[key])
        return replace(self, **values)


def _numbers(value: Any) -> Iterator[int | float]:
    """The numbers in a value, alone or in a tuple."""
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, int | float) and not isinstance(one, bool):
            yield one


def _check_methods(names: Iterable[str]) -> None:
    """Refuse names of no method; those of `ALL_METHODS` need no look at the records."""
    others = [name for name in names if name not in ALL_METHODS]
    if others:
        from uqno.experiments.methods import METHODS  # the records import torch

        unknown = [name for name in others if name not in METHODS]
        if unknown:
            raise ValueError(f"methods {unknown} are not known: choose from {', '.join(METHODS)}")


def _check_kind(name: str, value: Any, kind: Any) -> None:
    """Refuse a value of another kind than the field is declared with."""
    if get_origin(kind) is tuple:
        each, kind = value if isinstance(value, tuple) else (value,), get_args(kind)[0]
        fits = isinstance(value, tuple) and all(_is_of(one, kind) for one in each)
        expected = f"values joined by commas, {KINDS.get(kind, 'a value')} each"
    else:
        fits, expected = _is_of(value, kind), KINDS.get(kind, "a value")
    if not fits:
        raise ValueError(f"{name} = {shown(value)} is of another kind: expected {expected}")


def _is_of(value: Any, kind: Any) -> bool:
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is float:
        # What is not finite is of this kind, and refused by the bounds, which say more.
        return isinstance(value, int | float) and not MOST <= abs(value) < float("inf")
    if kind is int:
        return isinstance(value, int) and abs(value) < MOST
    return isinstance(value, kind) if isinstance(kind, type) else True


def _check_bounds(one: Field[Any], value: Any) -> None:
    name, bounds = one.name, one.metadata
    for number in _numbers(value):
        if bounds.get("share") and not 0 < number < 1:
            raise ValueError(f"{name} has the value {number}, expected numbers in (0, 1)")
        if bounds.get("positive") and not 0 < number < float("inf"):
            raise ValueError(f"{name} = {value} must be positive and finite")
        if isinstance(number, int) and number < bounds.get("least", 1):
            raise ValueError(f"{name} = {value} must be at least {bounds.get('least', 1)}")


def _parsed(key: str, text: str, like: Any) -> Any:
    """`text` as a value of the kind of `like`."""
    try:
        if isinstance(like, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(like, tuple):
            kind = type(like[0])
            return tuple(kind(part.strip()) for part in text.split(",") if part.strip())
        return type(like)(text)
    except (ValueError, KeyError):
        expected = KINDS.get(type(like), "values joined by commas")
        raise ValueError(f"--set {key}={text}: expected {expected}, such as {like}") from None
