"""All ratios of all functions together: the scale at which they miss a given share in all.

A function misses at the scale λ the share L_i(λ) = μ_i{ x : r_i(x) > λ } of its points. The least λ
with Σ_i L_i(λ) ≤ budget is one of the ratios: the pooled ratios, each with the share of its
function that it stands for, are taken off from the largest on until the budget is spent.

    Pool      all ratios: exact, and for parts of the functions too
    Window    how many lie above it, and all within it: exact, at any size
    Sketch    how many lie in bins 6e-5 wide: λ is rounded up to the end of its bin
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, inf, lcm
from typing import Final

import numpy as np

from uqno.conformal.guarantees.contract import Evidence
from uqno.types import Integers, Reals

# How far λ may be rounded up where not all ratios are kept.
ROUNDING: Final = 1e-4
# Of the bits of a float64, those left out in the bins of a sketch: 14 of the mantissa are kept.
BITS: Final = 38
# How far sums of shares in floats may be off, relatively: charged to the budget.
SLACK: Final = Fraction(1, 10**9)


@dataclass(frozen=True)
class Pooled(Evidence, ABC):
    """What tells the least scale of a budget; `scores` is what its kind keeps."""

    rounded: bool = field(default=False, kw_only=True)
    """Whether the scale is rounded up, by at most `ROUNDING`."""

    @abstractmethod
    def least_scale(self, budget: Fraction) -> float:
        """The least λ ≥ 0 with Σ_i L_i(λ) ≤ budget, or a little more where it says `rounded`."""

    def take(self, index: Integers) -> Evidence:
        raise ValueError(
            f"of {len(self)} functions with {int(self.sizes.sum())} values in all only counts were "
            "kept, which cannot be told apart by function: calibrate each part of the functions "
            "by itself, or thin out their points"
        )


@dataclass(frozen=True)
class Pool(Pooled):
    """All ratios, in the order of the functions.

    scores: (values,), those of one function after the other.
    shares: (values,), what each stands for, or None where the points of a function count alike.
    """

    shares: Reals | None = field(default=None, kw_only=True)

    def take(self, index: Integers) -> Pool:
        if self.shares is None and (self.sizes == self.sizes[0]).all():
            rows = self.scores.reshape(len(self), -1)[index]
            return Pool(self.sizes[index], rows.ravel(), self.weighted)
        ends = np.cumsum(self.sizes)
        places = np.concatenate([np.arange(ends[i] - self.sizes[i], ends[i]) for i in index])
        shares = None if self.shares is None else self.shares[places]
        return Pool(self.sizes[index], self.scores[places], self.weighted, shares=shares)

    def least_scale(self, budget: Fraction) -> float:
        first = int(self.sizes[0])
        if self.shares is None and (self.sizes == first).all():  # ranks
            place = self.scores.size - 1 - floor(budget * first)
            return float(np.partition(self.scores, place)[place])
        order = np.argsort(-self.scores)
        missed, limit = self._missed(order, budget)
        return float(self.scores[order[np.searchsorted(missed, limit, side="right")]])

    def _missed(self, order: Integers, budget: Fraction) -> tuple[Reals | Integers, float | int]:
        """Sums of the shares in this order and what they may come to: in integers if these do."""
        if self.shares is not None:
            return np.cumsum(self.shares[order]), float(budget * (1 - SLACK))
        unit = lcm(*set(self.sizes.tolist()))
        if unit * len(self) >= 2**62:
            shares = np.repeat(1 / self.sizes, self.sizes)
            return np.cumsum(shares[order]), float(budget * (1 - SLACK))
        return np.cumsum(np.repeat(unit // self.sizes, self.sizes)[order]), floor(budget * unit)


@dataclass(frozen=True)
class Window(Pooled):
    """Ratios of functions of the same number of points, from a window of values.

    scores: (values,), those in the window; above: how many lie above it.
    """

    above: int = field(default=0, kw_only=True)

    def holds(self, budget: Fraction) -> bool:
        """Whether the window holds the scale."""
        return 0 <= self._left(budget) < self.scores.size

    def least_scale(self, budget: Fraction) -> float:
        place = self.scores.size - 1 - self._left(budget)
        return float(np.partition(self.scores, place)[place])

    def _left(self, budget: Fraction) -> int:
        """How many values of the window the budget lets pass."""
        return floor(budget * int(self.sizes[0])) - self.above


@dataclass(frozen=True)
class Sketch(Pooled):
    """Shares in bins of values.

    scores: (bins,), the largest value of each bin, rising; values that are 0 are in none.
    missed: (bins,), the share in all that the values of a bin have: or their number, `unit` to one
        function, where functions have the same number of points, and points count alike.
    """

    missed: Reals = field(default_factory=lambda: np.empty(0), kw_only=True)
    unit: int | None = field(default=None, kw_only=True)

    def least_scale(self, budget: Fraction) -> float:
        limit = budget * (1 - SLACK) if self.unit is None else Fraction(floor(budget * self.unit))
        sums = np.cumsum(self.missed[::-1])
        place = int(np.searchsorted(sums, float(limit), side="right"))
        return float(self.scores[::-1][place]) if place < sums.size else 0.0


@dataclass
class Bins:
    """Shares in bins of equal relative width, in a range that grows."""

    low: int = 0
    missed: Reals = field(default_factory=lambda: np.empty(0))

    def add(self, values: Reals, shares: Reals | None) -> None:
        """Add values > 0, (values,), with what each stands for; None for 1 each."""
        if not values.size:
            return
        bins = values.view(np.int64) >> BITS
        low = int(bins.min())
        self._add(low, np.bincount(bins - low, shares).astype(np.float64))

    def _add(self, low: int, missed: Reals) -> None:
        if not self.missed.size:
            self.low = low
        first = min(low, self.low)
        end = max(low + missed.size, self.low + self.missed.size)
        if (first, end) != (self.low, self.low + self.missed.size):
            grown = np.zeros(end - first)
            grown[self.low - first : self.low - first + self.missed.size] = self.missed
            self.low, self.missed = first, grown
        self.missed[low - first : low - first + missed.size] += missed

    def edges(self) -> Reals:
        """The largest value of each bin, rising; ∞ is a bin of its own."""
        end = np.arange(self.low + 1, self.low + 1 + self.missed.size, dtype=np.int64) << BITS
        largest: Reals = (end - 1).view(np.float64)
        return np.where(np.isnan(largest), inf, largest)
