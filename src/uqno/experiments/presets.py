"""What a run is made of: every number that decides its results, and three sets of them a task."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import prod
from typing import Any, ClassVar

METHODS = (
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
FEWER_METHODS = ("uqno", "uqno-paper", "mc-dropout", "laplace", "nppc", "constant")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every comparison has. Calibration and test functions choose nothing here."""

    task: ClassVar[str]

    seed: int = 0
    """Of the functions, of the networks and of the splits into calibration and test."""
    train: int
    calibration: int
    test: int
    width: int = 32
    layers: int = 4
    epochs: int
    batch_size: int
    learning_rate: float
    uncertainty_share: float = 1.0
    """Epochs of a network that learns errors, as a share of `epochs`."""
    folds: int = 2
    """Of the out-of-fold residuals."""
    committee: int = 1
    """Operators whose mean is Ĝ in ours."""
    symmetric: bool = True
    """Whether ours uses the symmetries of the task, in training and in prediction."""
    deviation: bool = True
    """Whether E of ours sees the deviation over the symmetries and the operators."""
    dropout: float = 0.1
    """Of the network of mc-dropout."""
    members: int = 5
    """Of the ensemble."""
    noise: float = 0.1
    """Of the perturbed labels, as a share of the solutions' standard deviation."""
    alphas: tuple[float, ...]
    delta: float = 0.02
    curve_alphas: tuple[float, ...]
    """Of the figures with several levels."""
    splits: int = 2000
    """Random splits of the held-out functions over which figures are averaged."""
    methods: tuple[str, ...] = METHODS
    ablation: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _checked(field.name, getattr(self, field.name)))
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown:
            raise ValueError(f"methods {unknown} are not known: choose from {', '.join(METHODS)}")
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
        return self.calibration + self.test

    @property
    def uses_symmetries(self) -> bool:
        """Whether the operators of ours are trained with symmetries."""
        return self.symmetric

    @property
    def more_inputs(self) -> str:
        """What the networks of ours see beside what all see, in words; none by default."""
        return ""

    @property
    def uncertainty_epochs(self) -> int:
        return max(1, round(self.epochs * self.uncertainty_share))

    def record(self) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True, kw_only=True)
class DarcySettings(Settings):
    """Darcy flow on the unit square, solved here."""

    task: ClassVar[str] = "darcy"

    train: int = 2000
    calibration: int = 500
    test: int = 1000
    solved_at: int = 211
    """Nodes a side of the grid on which the equation is solved."""
    trained_at: int = 43
    tested_at: int = 43
    """Nodes a side at which bands are calibrated and tested."""
    modes: int = 20
    epochs: int = 25
    batch_size: int = 16
    learning_rate: float = 5e-3
    alphas: tuple[float, ...] = (0.1, 0.02)
    curve_alphas: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("trained_at", "tested_at"):
            kept = getattr(self, name)
            if (self.solved_at - 1) % (kept - 1):
                raise ValueError(
                    f"{name} = {kept} has nodes that are not among the {self.solved_at} of "
                    f"solved_at: {self.solved_at - 1} must be a multiple of {kept - 1}"
                )


@dataclass(frozen=True, kw_only=True)
class CarSettings(Settings):
    """Pressure on the surface of cars: 500 to train and calibrate, 111 to test, as in the paper."""

    task: ClassVar[str] = "cars"

    train: int = 380
    calibration: int = 120
    test: int = 111
    latent: tuple[int, ...] = (32, 12, 12)
    """Nodes of the grid around the car, along each axis."""
    modes: tuple[int, ...] = (12, 6, 4)
    """Frequencies along each axis of that grid."""
    neighbours: tuple[int, ...] = (4, 4)
    """Surface points that a node listens to, and nodes that a surface point listens to."""
    epochs: int = 30
    batch_size: int = 2
    learning_rate: float = 4e-3
    uncertainty_share: float = 0.2
    symmetric: bool = False
    """Whether ours uses the mirror image. Off: the shipped cars are their own, to the last digit,
    so that it changes nothing."""
    shifts: tuple[float, ...] = (0.0, 0.5, 1.25, -1.25)
    """Ours sees cars moved along the flow by so many nodes of the grid, in training and in
    prediction; 0 alone turns it off."""
    ideal_flow: bool = True
    """Whether ours sees the pressure of the ideal flow around a car, found from its shape."""
    deviation: bool = False
    """Off: on training cars of seed 1, E was better without."""
    alphas: tuple[float, ...] = (0.12, 0.04)
    curve_alphas: tuple[float, ...] = (0.04, 0.08, 0.12, 0.2)

    @property
    def uses_symmetries(self) -> bool:
        return self.symmetric or len(self.shifts) > 1

    @property
    def more_inputs(self) -> str:
        return "ideal flow" if self.ideal_flow else ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, length in (("latent", 3), ("modes", 3), ("neighbours", 2)):
            values = getattr(self, name)
            if len(values) != length:
                raise ValueError(f"{name} = {values} must be {length} numbers, joined by commas")
        nodes_in_all = prod(self.latent)
        if self.neighbours[1] > nodes_in_all:
            raise ValueError(
                f"neighbours = {self.neighbours}: a surface point cannot listen to more nodes than "
                f"the {nodes_in_all} of latent = {self.latent}"
            )
        for nodes, modes in zip(self.latent, self.modes, strict=True):
            if nodes <= modes:
                raise ValueError(
                    f"latent = {self.latent} is too coarse for modes = {self.modes}: give each "
                    "axis more nodes than modes"
                )


# Settings that runs once did not have, and what they were then.
OLDER = {
    "committee": 1,
    "uncertainty_share": 1.0,
    "symmetric": True,
    "deviation": True,
    "shifts": [0.0],
    "ideal_flow": False,
}

# What each number may be; the rest must be at least 1.
_SHARES = ("delta", "alphas", "curve_alphas")
_FURTHEST = 2  # nodes: more would move a car out of the grid
_LEAST = {
    "seed": 0,
    "calibration": 2,
    "folds": 2,
    "members": 2,
    "solved_at": 3,
    "trained_at": 3,
    "tested_at": 3,
}


def _checked(name: str, value: Any) -> Any:
    if name in _SHARES:
        for share in value if isinstance(value, tuple | list) else (value,):
            if not 0 < share < 1:
                raise ValueError(f"{name} has the value {share}, expected numbers in (0, 1)")
    elif name == "shifts":
        value = tuple(float(nodes) for nodes in value)
        if not value or value[0] != 0 or len(set(value)) < len(value):
            raise ValueError(f"shifts = {value} must begin with 0, and each must be another")
        if not all(abs(nodes) <= _FURTHEST for nodes in value):
            raise ValueError(f"shifts = {value} must be at most {_FURTHEST} nodes either way")
    elif name == "dropout" and not 0 < value < 1:
        raise ValueError(f"dropout = {value} must lie in (0, 1)")
    elif name in ("learning_rate", "uncertainty_share", "noise") and not 0 < value < float("inf"):
        raise ValueError(f"{name} = {value} must be positive and finite")
    else:
        for number in value if isinstance(value, tuple | list) else (value,):
            whole = isinstance(number, int) and not isinstance(number, bool)
            if whole and number < _LEAST.get(name, 1):
                raise ValueError(f"{name} = {value} must be at least {_LEAST.get(name, 1)}")
    return tuple(value) if isinstance(value, list) else value


PRESETS: Mapping[str, Mapping[str, Settings]] = {
    "darcy": {
        "quick": DarcySettings(
            train=600,
            calibration=200,
            test=400,
            modes=12,
            epochs=8,
            splits=200,
            methods=FEWER_METHODS,
            ablation=False,
        ),
        "standard": DarcySettings(),
        "paper": DarcySettings(
            train=5000,
            test=500,
            modes=12,
            epochs=15,
            solved_at=421,
            tested_at=421,
            methods=FEWER_METHODS,
            ablation=False,
        ),
    },
    "cars": {
        "quick": CarSettings(
            train=160,
            calibration=60,
            test=60,
            epochs=12,
            uncertainty_share=0.33,
            splits=200,
            methods=("uqno", "uqno-paper", "mc-dropout"),
            ablation=False,
        ),
        "standard": CarSettings(),
        "paper": CarSettings(
            epochs=60, uncertainty_share=0.1, methods=FEWER_METHODS, ablation=False
        ),
    },
}


def preset(task: str, name: str, changes: Iterable[str] = ()) -> Settings:
    """The settings of a preset with changes `key=value`; a tuple's values are joined by commas.

    >>> preset("darcy", "quick", ["epochs=2", "alphas=0.1,0.05"]).alphas
    (0.1, 0.05)
    """
    presets = PRESETS[task]
    if name not in presets:
        raise ValueError(f"preset {name!r} is not known: choose from {', '.join(presets)}")
    settings = presets[name]
    known = {field.name: getattr(settings, field.name) for field in fields(settings)}
    changed: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise ValueError(f"--set {change} has no '=': write key=value")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=3, cutoff=0.4)
            raise ValueError(
                f"--set {change}: there is no setting {key!r}; "
                + (
                    f"the nearest are {', '.join(near)}"
                    if near
                    else f"there are {', '.join(known)}"
                )
            )
        changed[key] = _parsed(key, text, known[key])
    return replace(settings, **changed)


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
        kinds = {bool: "true or false", tuple: "values joined by commas", int: "a whole number"}
        expected = kinds.get(type(like), "a number")
        raise ValueError(f"--set {key}={text}: expected {expected}, such as {like}") from None


def recorded(task: str, record: Mapping[str, Any]) -> Settings:
    """The settings that `record` describes."""
    kinds = {kind.task: kind for kind in (DarcySettings, CarSettings)}
    if task not in kinds:
        raise ValueError(f"task = {task!r} is not known: expected one of {', '.join(kinds)}")
    known = {field.name for field in fields(kinds[task])}
    older = {name: value for name, value in OLDER.items() if name in known}
    return kinds[task](**{**older, **record})
