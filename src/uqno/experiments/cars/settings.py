"""What the comparison on cars is made of, and its presets."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from uqno.experiments.settings import FEWER_METHODS, Settings, bounded

FURTHEST = 2  # nodes: more would move a car out of the grid


@dataclass(frozen=True, kw_only=True)
class CarSettings(Settings):
    """Pressure on the surface of cars: 500 to train and calibrate, 111 to test, as in the paper."""

    task: ClassVar[str] = "cars"

    train: int = 380
    calibration: int = bounded(120, least=2)
    test: int = 111
    latent: tuple[int, ...] = (32, 12, 12)
    """Nodes of the grid around the car, along each axis."""
    modes: tuple[int, ...] = (12, 6, 4)
    """Frequencies along each axis of that grid."""
    neighbours: tuple[int, ...] = (4, 4)
    """Surface points that a node listens to, and nodes that a surface point listens to."""
    epochs: int = 30
    batch_size: int = 2
    learning_rate: float = bounded(4e-3, positive=True)
    uncertainty_share: float = bounded(0.2, positive=True)
    symmetric: bool = False
    """Whether `uqno` uses the mirror image. The shipped cars are their own mirror images to the
    last digit, so that it would change nothing."""
    shifts: tuple[float, ...] = (0.0, 0.5, 1.25, -1.25)
    """`uqno` sees cars moved along the flow by so many nodes of the grid, in training and in
    prediction; 0 alone turns it off."""
    ideal_flow: bool = True
    """Whether `uqno` sees the pressure of the ideal flow around a car, computed from its shape."""
    deviation: bool = False
    """Off: on training cars of seed 1, E was better without."""
    alphas: tuple[float, ...] = bounded((0.12, 0.04), share=True)
    curve_alphas: tuple[float, ...] = bounded((0.04, 0.08, 0.12, 0.2), share=True)

    @property
    def uses_symmetries(self) -> bool:
        return self.symmetric or len(self.shifts) > 1

    @property
    def extra_inputs(self) -> str:
        return "ideal flow" if self.ideal_flow else ""

    @property
    def aids(self) -> str:
        words = ["the mirror image"] if self.symmetric else []
        words += [f"{len(self.shifts)} places along the flow"] if len(self.shifts) > 1 else []
        return " and ".join([*words, "the ideal flow"] if self.ideal_flow else words)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shifts", tuple(float(nodes) for nodes in self.shifts))
        self._check_shifts()
        for name, length in (("latent", 3), ("modes", 3), ("neighbours", 2)):
            values = getattr(self, name)
            if len(values) != length:
                raise ValueError(f"{name} = {values} must be {length} numbers, joined by commas")
        every = prod(self.latent)
        if self.neighbours[1] > every:
            raise ValueError(
                f"neighbours = {self.neighbours}: a surface point cannot listen to more nodes than "
                f"the {every} of latent = {self.latent}"
            )
        for nodes, modes in zip(self.latent, self.modes, strict=True):
            if nodes <= modes:
                raise ValueError(
                    f"latent = {self.latent} is too coarse for modes = {self.modes}: give each "
                    "axis more nodes than modes"
                )

    def _check_shifts(self) -> None:
        shifts = self.shifts
        if not shifts or shifts[0] != 0 or len(set(shifts)) < len(shifts):
            raise ValueError(f"shifts = {shifts} must begin with 0, and each must be another")
        if not all(abs(nodes) <= FURTHEST for nodes in shifts):
            raise ValueError(f"shifts = {shifts} must be at most {FURTHEST} nodes either way")


PRESETS = {
    "quick": CarSettings(
        train=160,
        calibration=60,
        test=60,
        epochs=12,
        uncertainty_share=0.33,
        splits=200,
        methods=("uqno", "uqno-paper", "mc-dropout"),
    ),
    "standard": CarSettings(),
    "paper": CarSettings(epochs=60, uncertainty_share=0.1, methods=FEWER_METHODS),
}
