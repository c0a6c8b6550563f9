"""How a band grows as less may be missed: g(α) at listed levels, fixed before calibration."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np
from scipy.special import ndtri

from uqno.conformal import checks
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees import settings as ask
from uqno.conformal.guarantees.contract import share_in_json
from uqno.conformal.ranks import grid_point_rank
from uqno.conformal.scores import function_scores
from uqno.types import Integers, Reals, Share

# Levels that people ask for; dense, as one between two is served by the smaller.
LEVELS: Final = (
    0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.075,
    0.1, 0.125, 0.15, 0.175, 0.2,
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """g(α) > 0, not rising, at some levels α; between two levels, the value at the smaller one.

    Args:
        levels: rising, in (0, 1). Above the last, its value; below the first, nothing.
        values: g at each.

    >>> Shape((0.1, 0.2), (1.5, 1.0)).at(0.15)
    1.5
    """

    levels: tuple[Share, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        levels = tuple(checks.share("a level of the shape", x) for x in self.levels)
        ask.shape_of_curve(levels, self.values)
        object.__setattr__(self, "levels", levels)  # frozen for everyone else
        object.__setattr__(self, "values", tuple(map(float, self.values)))

    @classmethod
    def half_normal(cls, levels: Sequence[Share] = LEVELS) -> Self:
        """The quantiles of |N(0, 1)|: for errors that are normal where uncertainty is one size."""
        exact = [checks.share("a level of the shape", x) for x in levels]
        return cls(tuple(exact), tuple(-ndtri(float(x) / 2) for x in exact))

    @classmethod
    def of_residuals(
        cls,
        error: Any,
        uncertainty: Any,
        levels: Sequence[Share] = LEVELS,
        quantile: float = 0.9,
    ) -> Self:
        """The shape that residuals of *training* functions have, out of fold or held out for it.

        Args:
            error, uncertainty: as in `uqno.calibrate`; never those of calibration or test
                functions.
            levels: α.
            quantile: g(α) is this quantile over the functions of the least λ that covers 1 − α.
        """
        exact = [checks.share("a level of the shape", x) for x in levels]
        scores = function_scores(error, uncertainty, lambda m: point_ranks(m, exact))
        checks.functions(len(scores))
        values = np.quantile(scores, quantile, axis=0, method="inverted_cdf")
        return cls(tuple(exact), tuple(values.tolist()))

    @classmethod
    def given(cls, value: Any) -> Self:
        """A shape as callers and files have it: one, its `settings`, or None for half-normal."""
        if value is None or isinstance(value, cls):
            return value or cls.half_normal()
        if not isinstance(value, Mapping) or set(value) != {"levels", "values"}:
            raise ValueError(
                f"shape = {value!r:.60} must be a guarantees.Shape(levels, values), or an object "
                "with levels and values"
            )
        return cls(tuple(value["levels"]), tuple(value["values"]))

    @property
    def settings(self) -> dict[str, Any]:
        """The shape as JSON holds it."""
        levels = [share_in_json(Fraction(x)) for x in self.levels]
        return {"levels": levels, "values": list(self.values)}

    def at(self, alpha: Share) -> float:
        """g(α).

        Raises:
            InfeasibleError: α lies below all levels.
        """
        place = bisect_right([Fraction(x) for x in self.levels], checks.share("alpha", alpha))
        if not place:
            raise InfeasibleError(
                f"alpha = {float(alpha):g} lies below the smallest level of the shape, "
                f"{float(self.levels[0]):g}: calibrate with a shape that has a level as small"
            )
        return self.values[place - 1]

    def point_ranks(self, points: int) -> Integers:
        """k = ⌈m (1 − α)⌉ at each level."""
        return point_ranks(points, self.levels)

    @property
    def sizes(self) -> Reals:
        """g at each level, as an array."""
        return np.array(self.values)


def point_ranks(points: int, levels: Iterable[Share]) -> Integers:
    """k = ⌈m (1 − α)⌉ at each level."""
    return np.array([grid_point_rank(points, Fraction(x)) for x in levels])
