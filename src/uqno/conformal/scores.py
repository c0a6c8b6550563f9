"""Ratios r(x) = ‖u(x) − Ĝ(a)(x)‖ / E(a)(x), and one score a function: an order statistic of them.

Every ratio is compared as a float64 number, whatever the input's precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from uqno.conformal import checks
from uqno.conformal.selection import (
    LARGE,
    Scratch,
    behind,
    exact_sum,
    finite_nonnegative,
    large_largest,
    large_ratio,
    large_window,
    weighted_quantile,
)
from uqno.conformal.stream import Chunk, FunctionStream, Stream
from uqno.types import Floats, Integers, Reals, Share


class Functions(Protocol):
    """A few functions of the same number of points, as a guarantee sees them."""

    @property
    def points(self) -> int:
        """m, the number of points of each function."""

    def __len__(self) -> int: ...

    def names(self) -> Iterator[str]:
        """What the functions are called in messages."""

    def expect(self, ranks: Integers) -> None:
        """Be told of all ranks that will be asked for, where several will be."""

    def scores(self, ranks: int | Integers) -> Reals:
        """The k-th smallest ratio of each function: (functions,) for one k, (functions, ranks)."""

    def weighted_scores(self, shares: Sequence[Fraction]) -> Reals:
        """The smallest λ that covers these shares of each function's measure: (functions, s)."""

    def all_ratios(self) -> Reals:
        """All ratios, (functions, points)."""

    def subsample(self, points: int, seed: int) -> Functions:
        """The same functions at so many points, drawn at random by the seed."""

    def shares(self) -> Reals | None:
        """The share of its function that each point stands for, (functions, points); None: alike"""

    def largest(self, ranks: Integers, sizes: Reals) -> Reals:
        """max_l of the ratio at the l-th of these falling ranks over its size, (functions,)."""

    def every(self, step: int) -> Functions:
        """The same functions at every so many points."""

    def window(self, low: float, high: float) -> tuple[int, Reals]:
        """How many ratios lie above high, and all in (low, high], both to float32 precision."""

    def widened(self, error: float, uncertainty: float) -> Functions:
        """The same functions, with errors so much larger and uncertainties so much smaller."""


class Block:
    """The functions of one chunk of a stream, with their ratios.

    Args:
        chunk: errors, uncertainties and weights.
        scratch: buffers shared by the blocks of a stream.
    """

    def __init__(self, chunk: Chunk, scratch: Scratch | None = None) -> None:
        self.chunk, self.scratch = chunk, scratch or Scratch()
        self._ordered: tuple[int, Reals] | None = None

    @property
    def points(self) -> int:
        return int(self.chunk.uncertainty.shape[1])

    def __len__(self) -> int:
        return len(self.chunk.uncertainty)

    def names(self) -> Iterator[str]:
        return (f"function {self.chunk.first + i}" for i in range(len(self)))

    def expect(self, ranks: Integers) -> None:
        """Sort the ratios once, from the lowest of these ranks upwards."""
        lowest = int(ranks.min()) - 1
        r = self.all_ratios()
        r.partition(lowest)
        self._ordered = lowest, np.sort(r[:, lowest:])

    def scores(self, ranks: int | Integers) -> Reals:
        k = np.asarray(ranks)
        checks.point_rank(k, self.points, next(self.names()))
        if k.ndim and (self._ordered is None or k.min() <= self._ordered[0]):
            self.expect(k)
        if self._ordered is not None and k.min() > self._ordered[0]:
            lowest, ordered = self._ordered
            return ordered[:, k - 1 - lowest]
        if len(self) == 1 and self.points >= LARGE:
            error, uncertainty = self.chunk.error[0], self.chunk.uncertainty[0]
            score = large_ratio(error, uncertainty, int(k), self.scratch)
            if score is not None:
                return np.array([score])
        r = self.all_ratios()
        if k == self.points:
            return np.asarray(r.max(axis=1))
        r.partition(int(k) - 1)
        return r[:, int(k) - 1].copy()

    def weighted_scores(self, shares: Sequence[Fraction]) -> Reals:
        rows = zip(self.all_ratios(), self.chunk.weights or (), strict=True)
        return np.array([[weighted_quantile(r, w, share) for share in shares] for r, w in rows])

    def all_ratios(self) -> Reals:
        """All ratios, (functions, points), in float64 and in new memory.

        A ratio is 0 where error and uncertainty are 0, ∞ where the uncertainty alone is.

        Raises:
            ValueError: an error is not finite, or an uncertainty not finite and ≥ 0.
        """
        error, uncertainty = self._checked()
        try:
            with np.errstate(divide="raise", invalid="raise", over="ignore"):
                return np.divide(error, uncertainty, dtype=np.float64)
        except FloatingPointError:  # some uncertainty is zero
            out = np.full(uncertainty.shape, np.inf)
            with np.errstate(over="ignore"):
                np.divide(error, uncertainty, out=out, where=uncertainty > 0, dtype=np.float64)
            out[(uncertainty == 0) & (error == 0)] = 0
            return out

    def subsample(self, points: int, seed: int) -> Block:
        """Each function at `points` of its points, drawn without replacement by (seed, index)."""
        first, n = self.chunk.first, len(self)
        draws = (
            np.random.default_rng([seed, first + i]).permutation(self.points) for i in range(n)
        )
        index = np.array([draw[:points] for draw in draws])
        both = (self.chunk.error, self.chunk.uncertainty)
        error, uncertainty = (np.take_along_axis(x, index, axis=1) for x in both)
        return Block(Chunk(first, error, uncertainty, None), self.scratch)

    def shares(self) -> Reals | None:
        weights = self.chunk.weights
        if weights is None or all(w.min() == w.max() for w in weights):
            return None
        return np.array([w / w.sum() for w in weights])

    def largest(self, ranks: Integers, sizes: Reals) -> Reals:
        if len(self) == 1 and self.points >= LARGE and self._ordered is None:
            both = self.chunk.error[0], self.chunk.uncertainty[0]
            score = large_largest(*both, ranks, sizes, self.scratch)
            if score is not None:
                return np.array([score])
        return np.asarray((self.scores(ranks) / sizes).max(axis=1))

    def every(self, step: int) -> Block:
        first, both = self.chunk.first, (self.chunk.error, self.chunk.uncertainty)
        error, uncertainty = (np.ascontiguousarray(x[:, ::step]) for x in both)
        return Block(Chunk(first, error, uncertainty, None), self.scratch)

    def window(self, low: float, high: float) -> tuple[int, Reals]:
        if len(self) == 1 and self.points >= LARGE:
            both = self.chunk.error[0], self.chunk.uncertainty[0]
            found = large_window(*both, low, high, self.scratch)
            if found is not None:
                return found
        r, least, most = self.all_ratios(), behind(low), behind(high)
        above = r > most
        return int(np.count_nonzero(above)), r[(r > least) & ~above]

    def widened(self, error: float, uncertainty: float) -> Block:
        """Errors so much larger and uncertainties so much smaller, at least 0, in float64."""
        e, E = (np.asarray(x, dtype=np.float64) for x in self._checked())
        chunk = Chunk(
            self.chunk.first, e + error, np.maximum(E - uncertainty, 0.0), self.chunk.weights
        )
        return Block(chunk, self.scratch)

    def _checked(self) -> tuple[Floats, Floats]:
        """|error| and uncertainty once they are known to be finite and not negative."""
        error, uncertainty = self.chunk.error, self.chunk.uncertainty
        if not finite_nonnegative(uncertainty):
            self._check_each(checks.finite_uncertainty, uncertainty)
        if not finite_nonnegative(error):
            error = np.abs(error)
            if not finite_nonnegative(error):
                self._check_each(checks.finite_error, error)
        return error, uncertainty

    def _check_each(self, check: Callable[[str, Floats], None], rows: Floats) -> None:
        for where, one in zip(self.names(), rows, strict=True):
            check(where, one)


def blocks(stream: Stream | FunctionStream) -> Iterator[Block]:
    """The functions of a stream with their ratios, a few at a time."""
    scratch = Scratch()
    return (Block(chunk, scratch) for chunk in stream.chunks())


# --- for arrays --------------------------------------------------------------------------------


def ratios(error: Any, uncertainty: Any) -> Reals:
    """‖error‖ / uncertainty for one function; 0 where both are 0, ∞ where only the uncertainty is.

    Args:
        error: (*points) or (*points, d); uncertainty: (*points).

    Returns:
        (points,), float64.

    >>> ratios([0.0, 1.0, -3.0], [0.0, 0.0, 2.0])
    array([0. , inf, 1.5])
    """
    (block,) = blocks(Stream([error], [uncertainty]))
    row: Reals = block.all_ratios()[0]
    return row


def function_scores(
    error: Any, uncertainty: Any, point_rank: int | Callable[[int], int | Integers]
) -> Reals:
    """The `point_rank`-th smallest ratio of each function, (n,): exact, in one pass.

    Args:
        error: as in `uqno.calibrate`; uncertainty: as there. Only the scores are kept.
        point_rank: k, or a function of the number of points m that gives k, or an array of
            several k: then the scores are (n, k).

    >>> function_scores([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]], [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], 2)
    array([2. , 2.5])
    """
    rank_of = point_rank if callable(point_rank) else lambda m: point_rank
    parts = [block.scores(rank_of(block.points)) for block in blocks(Stream(error, uncertainty))]
    return np.concatenate(parts) if parts else np.empty(0)


def weighted_scores(error: Any, uncertainty: Any, weights: Any, alpha: Share) -> Reals:
    """The smallest λ whose weighted coverage μ{r ≤ λ} reaches 1 − α, for each function, (n,).

    Args:
        error, uncertainty: as in `uqno.calibrate`.
        weights: (*points) for all functions, or one set for each; any positive total.
        alpha: the share that may be missed.
    """
    shares = [1 - checks.share("alpha", alpha)]
    stream = Stream(error, uncertainty, weights)
    parts = [block.weighted_scores(shares)[:, 0] for block in blocks(stream)]
    return np.concatenate(parts) if parts else np.empty(0)


def coverage(error: Any, uncertainty: Any, scale: Any, weights: Any = None) -> Reals:
    """c(λ) = μ{x : r(x) ≤ λ}, the covered share of each function, (n,).

    Args:
        error, uncertainty: as in `uqno.calibrate`.
        scale: λ, one number for all functions or (n,).
        weights: μ, (*points) for all functions, or one set for each.

    >>> coverage([[1.0, 2.0, 3.0, 4.0]], [[1.0, 1.0, 1.0, 1.0]], scale=3.0)
    array([0.75])
    """
    lam = checks.scale(scale)
    parts = [np.empty(0)]
    number = 0
    for block in blocks(Stream(error, uncertainty, weights)):
        first = block.chunk.first
        own = lam[first : first + len(block)] if lam.ndim else lam
        number = first + len(block)
        checks.scale_for_each(lam, number, at_least=True)
        inside = block.all_ratios() <= own[..., np.newaxis]
        if block.chunk.weights is None:
            parts.append(np.asarray(np.count_nonzero(inside, axis=1) / block.points))
        else:
            rows = zip(inside, block.chunk.weights, strict=True)
            # Without rounding, as the scale was found: a share of 0.9 is not 0.9 less an ulp.
            parts.append(np.array([float(exact_sum(w[i]) / exact_sum(w)) for i, w in rows]))
    checks.scale_for_each(lam, number)
    return np.concatenate(parts)
