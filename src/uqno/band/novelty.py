"""Whether an input is like those that the model was calibrated on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uqno.types import Reals

UNLIKE: Final = 0.01
"""A p-value at or below which an input is called unlike the calibration inputs."""


@dataclass(frozen=True)
class Novelty:
    """How far inputs are from the training inputs, among the calibration inputs.

    Args:
        score: the distance from the training inputs, (functions,).
        p_value: (1 + calibration inputs at least as far) / (n + 1), (functions,): for an input
            that is exchangeable with the calibration inputs it is at most p with probability ≤ p.
        functions: n, the calibration inputs.
    """

    score: Reals
    p_value: Reals
    functions: int

    def __getitem__(self, which: Any) -> Novelty:
        """Of one function of a batch, or of some of them."""
        rows = np.atleast_1d(self.score[which]), np.atleast_1d(self.p_value[which])
        return replace(self, score=rows[0], p_value=rows[1])

    @property
    def far(self) -> NDArray[np.bool_]:
        """Which inputs are unlike the calibration inputs: p ≤ 1 %, or farther than all of them."""
        return np.asarray(self.p_value <= max(UNLIKE, 1 / (self.functions + 1)))

    @property
    def words(self) -> str:
        """What is to be said of the inputs, in a line."""
        n, number, far = self.functions, len(self.p_value), int(self.far.sum())
        p = f"p = {self.p_value.min():.2g}"
        if not far:
            return f"inputs like the {n} calibration inputs ({p})"
        which = "the input is" if number == 1 else f"{far} of {number} inputs are"
        return (
            f"{which} unlike the {n} calibration inputs ({p}): the promise is about functions like "
            "those"
        )
