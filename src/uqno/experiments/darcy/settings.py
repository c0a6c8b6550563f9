"""What the comparison on Darcy flow is made of, and its presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqno.experiments.settings import FEWER_METHODS, Settings, bounded

COEFFICIENTS = ("lognormal", "two-valued")
"""The laws of the permeability."""


@dataclass(frozen=True, kw_only=True)
class DarcySettings(Settings):
    """Darcy flow on the unit square, solved here."""

    task: ClassVar[str] = "darcy"

    coefficient: str = "lognormal"
    """The law of the permeability: "lognormal", the one of the paper's functions as far as its
    authors' released data show, or "two-valued", the classic benchmark."""
    train: int = 2000
    calibration: int = bounded(500, least=2)
    test: int = 1000
    solved_at: int = bounded(211, least=3)
    """Nodes a side of the grid on which the equation is solved."""
    trained_at: int = bounded(43, least=3)
    """Nodes a side at which operators are trained."""
    tested_at: int = bounded(43, least=3)
    """Nodes a side at which bands are calibrated and tested."""
    modes: int = 20
    epochs: int = 25
    batch_size: int = 16
    learning_rate: float = bounded(5e-3, positive=True)
    alphas: tuple[float, ...] = bounded((0.1, 0.02), share=True)
    curve_alphas: tuple[float, ...] = bounded((0.02, 0.05, 0.1, 0.2), share=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coefficient not in COEFFICIENTS:
            raise ValueError(
                f"coefficient = {self.coefficient!r} is not known: expected one of "
                f"{', '.join(COEFFICIENTS)}"
            )
        for name in ("trained_at", "tested_at"):
            nodes = getattr(self, name)
            if (self.solved_at - 1) % (nodes - 1):
                raise ValueError(
                    f"{name} = {nodes} has nodes that are not among the {self.solved_at} of "
                    f"solved_at: {self.solved_at - 1} must be a multiple of {nodes - 1}"
                )


PRESETS = {
    "quick": DarcySettings(
        train=600,
        calibration=200,
        test=400,
        modes=12,
        epochs=8,
        splits=200,
        methods=FEWER_METHODS,
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
    ),
}
