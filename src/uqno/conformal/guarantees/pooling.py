"""Collectors of all ratios of all functions, each with the evidence it can afford: see `pool`."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, inf, sqrt
from typing import Final

import numpy as np

from uqno.conformal.guarantees.contract import Collector
from uqno.conformal.guarantees.pool import Bins, Pool, Pooled, Sketch, Window
from uqno.conformal.scores import Functions
from uqno.types import Reals

# So many ratios are kept, 8 bytes each; of more functions, counts in bins or in a window alone.
KEPT_VALUES: Final = 2**22
# Ratios that a window is guessed from; its half width, in standard deviations of their rank.
SAMPLE_VALUES, REACH = 2**16, 8


@dataclass
class AllRatios(Collector):
    """Keeps all ratios while they are few, and counts them in bins from then on.

    weighted: whether points count by weights.
    """

    weighted: bool = False
    sizes: list[int] = field(default_factory=list)
    ratios: list[Reals] = field(default_factory=list)
    shares: list[Reals | None] = field(default_factory=list)
    kept: int = 0
    bins: Bins | None = None
    unit: int | None = None

    def add(self, functions: Functions) -> None:
        m = functions.points
        r, shares = functions.all_ratios(), functions.shares()
        self.sizes += [m] * len(functions)
        if self.bins is None:
            self.ratios.append(r.ravel())
            self.shares.append(None if shares is None else shares.ravel())
            self.kept += r.size
            if self.kept > KEPT_VALUES:
                self.spill()
        else:
            self._count(r.ravel(), None if shares is None else shares.ravel(), m)

    def spill(self) -> None:
        """From now on count in bins, what was kept so far too."""
        self.bins = Bins()
        first = 0
        for r, shares in zip(self.ratios, self.shares, strict=True):
            m = self.sizes[first]
            self._count(r, shares, m)
            first += r.size // m
        self.ratios, self.shares, self.kept = [], [], 0

    def _count(self, ratios: Reals, shares: Reals | None, points: int) -> None:
        """Numbers of points while all functions have as many and all count alike, else shares."""
        assert self.bins is not None
        if self.unit is None and not self.bins.missed.size and shares is None:
            self.unit = points
        if self.unit is not None and (shares is not None or points != self.unit):
            self.bins.missed = self.bins.missed / self.unit
            self.unit = None
        if shares is None and self.unit is None:
            shares = np.full(ratios.size, 1 / points)
        positive = ratios > 0
        self.bins.add(ratios[positive], None if shares is None else shares[positive])

    def evidence(self) -> Pooled:
        sizes = np.array(self.sizes, dtype=np.int64)
        if self.bins is not None:
            edges, missed = self.bins.edges(), self.bins.missed
            unit = self.unit
            return Sketch(sizes, edges, self.weighted, rounded=True, missed=missed, unit=unit)
        ratios = np.concatenate([np.empty(0), *self.ratios])
        shares = None
        if any(one is not None for one in self.shares):
            each = zip(self.ratios, self.shares, self._sizes_of_parts(), strict=True)
            shares = np.concatenate(
                [np.full(r.size, 1 / m) if s is None else s for r, s, m in each]
            )
        return Pool(sizes, ratios, self.weighted, shares=shares)

    def _sizes_of_parts(self) -> list[int]:
        """The points of each function in every part that was kept."""
        sizes, first = [], 0
        for r in self.ratios:
            sizes.append(self.sizes[first])
            first += r.size // self.sizes[first]
        return sizes


class WindowOfRatios(Collector):
    """Looks at arrays in memory twice: a sample says where the scale lies, then that is counted.

    Args:
        number: n; points: m of each function.
        budget: the share that may be missed, of all functions together.
    """

    def __init__(self, number: int, points: int, budget: Fraction) -> None:
        self.number, self.points, self.budget = number, points, budget
        self.step = max(1, number * points // SAMPLE_VALUES)
        self.step = min(self.step, points) | 1  # odd: less in step with the lines of a grid
        self.sample: list[Reals] = []
        self.bounds: tuple[float, float] | None = None
        self.inside: list[Reals] = []
        self.above = self.held = 0
        self.counted: AllRatios | None = None

    def add(self, functions: Functions) -> None:
        if self.counted is not None:
            self.counted.add(functions)
        elif self.bounds is None:
            self.sample.append(functions.every(self.step).all_ratios().ravel())
        elif self.held <= KEPT_VALUES:
            above, inside = functions.window(*self.bounds)
            self.above += above
            self.held += inside.size
            self.inside.append(inside)

    def again(self) -> bool:
        if self.counted is not None:
            return False
        if self.bounds is None:
            self.bounds = self._guess(np.sort(np.concatenate(self.sample)))
            self.sample = []
            return True
        if self.held <= KEPT_VALUES and self._window().holds(self.budget):
            return False
        self.counted, self.inside = AllRatios(), []
        self.counted.spill()
        return True

    def _guess(self, sample: Reals) -> tuple[float, float]:
        """Two float32 numbers around the scale, by ranks in the sample."""
        missed = float(self.budget) / self.number
        place = sample.size * (1 - missed) - 1
        reach = REACH * sqrt(sample.size * missed * (1 - missed)) + REACH
        last = sample.size - 1
        low, high = floor(place - reach), floor(place + reach) + 1
        with np.errstate(over="ignore"):
            least, most = np.float32(sample[max(0, low)]), np.float32(sample[min(high, last)])
        # The lower end is not part of the window.
        least = np.nextafter(least, np.float32(-np.inf)) if low > 0 else np.float32(-1)
        return float(least), float(most) if high < last else inf

    def _window(self) -> Window:
        sizes = np.full(self.number, self.points)
        return Window(sizes, np.concatenate([np.empty(0), *self.inside]), above=self.above)

    def evidence(self) -> Pooled:
        return self._window() if self.counted is None else self.counted.evidence()
