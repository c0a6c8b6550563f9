"""r_(k) = the k-th smallest of a function's ratios error / uncertainty, at some ranks k.

A function on a 421 × 421 grid has 177 241 points, and a comparison has thousands of functions for
each of a dozen methods. All that is measured later is a matter of a few hundred order statistics
and sums of each function, so those are kept and the fields are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from uqno.conformal import checks
from uqno.conformal.scores import ratios
from uqno.conformal.selection import weighted_quantile
from uqno.types import Integers, Reals, Share

# Up to this many points every rank is kept, and nothing is approximate.
ALL_RANKS: Final = 300
# Beyond: so many ranks at a constant ratio of the points above them, and so many evenly spaced.
TOP_RANKS, EVEN_RANKS = 150, 101
# Points that the rank correlation looks at; its error, below 0.01 a function, averages out.
CORRELATED_POINTS: Final = 2**14


class Kept(ABC):
    """What profiles answer as functions of a calibration: they keep scores, but no points."""

    @abstractmethod
    def __len__(self) -> int: ...

    def names(self) -> Iterator[str]:
        return (f"function {i}" for i in range(len(self)))

    def expect(self, ranks: Integers) -> None:  # noqa: B027 - nothing to do is the answer
        """Nothing to prepare: the ratios are sorted."""

    def all_ratios(self) -> Reals:
        raise ValueError("a profile keeps some ratios alone: pass errors and uncertainties")

    def subsample(self, points: int, seed: int) -> Self:
        raise ValueError("a profile keeps no points to draw from: pass errors and uncertainties")

    def every(self, step: int) -> Self:
        raise ValueError("a profile keeps no points to thin out: pass errors and uncertainties")

    def window(self, low: float, high: float) -> tuple[int, Reals]:
        raise ValueError("a profile keeps some ratios alone: pass errors and uncertainties")

    def shares(self) -> Reals | None:
        return None

    def largest(self, ranks: Integers, sizes: Reals) -> Reals:
        return np.asarray((self.scores(ranks) / sizes).max(axis=1))

    def widened(self, error: float, uncertainty: float) -> Self:
        raise ValueError("a profile keeps ratios alone: pass errors and uncertainties")

    @abstractmethod
    def scores(self, ranks: int | Integers) -> Reals: ...


@dataclass(frozen=True)
class ByArea(Kept):
    """The same functions on surfaces, whose points count by their area instead."""

    points: int
    """m."""
    alphas: Reals
    """(A,)."""
    needed: Reals
    """(n, A): the smallest λ that covers 1 − α of each function's area."""
    covered: Reals
    """(n, R): the share of the area that the points up to each kept rank have."""

    weighted: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.needed)

    def scores(self, ranks: int | Integers) -> Reals:
        raise ValueError("points that count by area have no ranks: use weighted_scores")

    def weighted_scores(self, shares: Sequence[Fraction]) -> Reals:
        """The scores at each 1 − α, (n, shares): exact, or refused."""
        return np.stack([self.scores_at(1 - share) for share in shares], axis=1)

    def scores_at(self, alpha: Share) -> Reals:
        """(n,): exact, or refused."""
        places = np.flatnonzero(np.isclose(self.alphas, float(alpha), rtol=0, atol=1e-12))
        if not places.size:
            raise ValueError(
                f"alpha = {float(alpha):g} is not among {self.alphas.tolist()}, for which areas "
                "were scored: profile the functions with it in `alphas`"
            )
        return self.needed[:, places[0]]

    def coverage(self, ratios: Reals, scale: Reals) -> Reals:
        """The share of the area with ratio ≤ λ, (n, scales); interpolated between ranks."""
        rows = zip(ratios, self.covered, strict=True)
        known = ((r[np.isfinite(r)], c[np.isfinite(r)]) for r, c in rows)
        return np.array([np.interp(scale, np.append(0, r), np.append(0, c)) for r, c in known])


@dataclass(frozen=True)
class Profile(Kept):
    """What is kept of n functions of the same number of points, at R ranks each.

    The calibrator takes it in place of errors and uncertainties.
    """

    points: int
    """m."""
    ranks: Integers
    """(R,): the ranks k that are kept, rising from 1 to m."""
    ratios: Reals
    """(n, R): the k-th smallest ratio error / uncertainty of each function."""
    error_above: Reals
    """(n, R): mean over all points of the error, counting the points ranked above k alone."""
    uncertainty_above: Reals
    """(n, R): the same mean of the uncertainty."""
    mean_error: Reals
    """(n,)."""
    mean_uncertainty: Reals
    """(n,)."""
    correlation: Reals
    """(n,): rank correlation of uncertainty and error over the points; NaN if one is constant."""
    area: ByArea | None = None

    weighted: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.ratios)

    def __getitem__(self, index: slice | Integers) -> Profile:
        """The profile of some of the functions."""
        parts = {name: getattr(self, name)[index] for name in ARRAYS[2:]}
        area = self.area
        if area is not None:
            area = replace(area, needed=area.needed[index], covered=area.covered[index])
        return Profile(self.points, self.ranks, **parts, area=area)

    def scores(self, ranks: int | Integers) -> Reals:
        """The k-th smallest ratio of each function, (n,) or (n, ranks): exact, or refused."""
        wanted = np.asarray(ranks)
        place = np.minimum(np.searchsorted(self.ranks, wanted), len(self.ranks) - 1)
        missing = np.unique(wanted[self.ranks[place] != wanted])
        if missing.size:
            raise ValueError(
                f"rank {missing[0]} of {self.points} points is not among the {len(self.ranks)} "
                "that this profile keeps: profile the functions with it in `ranks`"
            )
        return self.ratios[:, place]

    def weighted_scores(self, shares: Sequence[Fraction]) -> Reals:
        raise ValueError("the points of a profile count alike: use its `area`, if it has one")

    def all_ratios(self) -> Reals:
        """All ratios, (n, m), sorted, where every rank is kept."""
        return self.ratios if len(self.ranks) == self.points else super().all_ratios()

    def coverage(self, scale: ArrayLike) -> Reals:
        """c(λ) = the share of points with ratio ≤ λ, (n, scales), for finite λ, (scales,).

        Exact up to 300 points and at every kept rank. Between two of them the count is
        interpolated: off by less than their distance, at most a hundredth of the points.
        """
        lam = np.atleast_1d(scale)
        step = np.array([np.searchsorted(row, lam, side="right") for row in self.ratios])
        # Rank 0 at ratio 0 below, rank m + 1 at ∞ above.
        rank = np.concatenate([[0], self.ranks, [self.points + 1]])
        edge = np.pad(self.ratios, ((0, 0), (1, 1)), constant_values=(0, np.inf))
        low, high = (np.take_along_axis(edge, step + i, axis=1) for i in (0, 1))
        with np.errstate(invalid="ignore"):  # ∞ − ∞: the branch that is not taken
            part = np.where(np.isfinite(high), (lam - low) / (high - low), 0)
        count = np.floor(rank[step] + part * (rank[step + 1] - rank[step]))
        return np.asarray(np.minimum(count, rank[step + 1] - 1) / self.points)

    def excess(self, scale: ArrayLike) -> Reals:
        """mean_x max(0, e(x) − λ E(x)), (n, scales), for finite λ, (scales,).

        Exact at kept ranks (the points of a tie add nothing there). It is convex in λ, so the
        straight line between two of them is an upper bound.
        """
        lam = np.atleast_1d(scale)
        rows = zip(
            self.ratios, self.error_above, self.uncertainty_above, self.mean_error, strict=True
        )
        return np.array([_interpolated_excess(lam, *row) for row in rows])

    def divided(self, size: float) -> Profile:
        """The same with errors and uncertainties in units of `size`."""
        sized = ("error_above", "uncertainty_above", "mean_error", "mean_uncertainty")
        return replace(self, **{name: getattr(self, name) / size for name in sized})

    def arrays(self) -> dict[str, Any]:
        """All that it is made of, as named arrays; `of_arrays` makes the profile of them again."""
        arrays = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        if self.area is not None:
            arrays |= {f"area_{name}": getattr(self.area, name) for name in AREA_ARRAYS}
        return arrays

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any]) -> Profile:
        """The profile whose `arrays` these are; a ValueError names what is missing."""
        missing = [name for name in ARRAYS if name not in arrays]
        if missing:
            raise ValueError(f"the arrays of a profile lack {', '.join(missing)}")
        points, area = int(arrays["points"]), None
        if "area_needed" in arrays:
            area = ByArea(points, **{name: arrays[f"area_{name}"] for name in AREA_ARRAYS})
        return cls(points, **{name: arrays[name] for name in ARRAYS[1:]}, area=area)


ARRAYS = tuple(field.name for field in fields(Profile) if field.name != "area")
AREA_ARRAYS = tuple(field.name for field in fields(ByArea) if field.name != "points")


def _interpolated_excess(
    lam: Reals, ratio: Reals, error_above: Reals, uncertainty_above: Reals, mean_error: float
) -> Reals:
    """One function's excess at each λ, by the chords between 0 and its finite ratios."""
    finite = np.isfinite(ratio)
    x = ratio[finite]
    at_ratios = np.maximum(error_above[finite] - x * uncertainty_above[finite], 0)
    return np.asarray(np.interp(lam, np.append(0, x), np.append(mean_error, at_ratios)))


def profile_ranks(points: int, ranks: Iterable[int] = ()) -> Integers:
    """Ranks to keep of functions of m = `points`: `ranks` and 1 … m, all or dense toward the top.

    >>> profile_ranks(5)
    array([1, 2, 3, 4, 5])
    >>> len(profile_ranks(421**2)), profile_ranks(421**2)[-3:]
    (229, array([177239, 177240, 177241]))
    """
    m = checks.count("points", points)
    asked = np.array(sorted(set(ranks)))
    if asked.size:
        checks.point_rank(asked, m, "every function")
    if m <= ALL_RANKS:
        return np.arange(1, m + 1)
    above = np.geomspace(1, m, TOP_RANKS)
    even = np.linspace(1, m, EVEN_RANKS)
    return np.unique(np.concatenate([asked, m + 1 - above.round(), even.round()]).astype(np.int64))


def profile(
    error: Any,
    uncertainty: Any,
    ranks: Iterable[int],
    areas: ArrayLike | None = None,
    alphas: Iterable[float] = (),
) -> Profile:
    """r_(k) and the sums above it for one function, by one sort.

    error: (*points), signed or not, or (*points, d); uncertainty: (*points), ≥ 0; where both are
    0 the ratio is 0, where only the uncertainty is, ∞.
    ranks: from `profile_ranks`, rising from 1 to m.
    areas: of the points, (*points), to score the function by area too, at `alphas`.
    """
    r = ratios(error, uncertainty)
    E = np.asarray(uncertainty, dtype=np.float64).ravel()
    e = np.abs(np.asarray(error, dtype=np.float64))
    e = np.linalg.norm(e.reshape(E.size, -1), axis=1) if e.size > E.size else e.ravel()
    given = checks.elements("ranks", ranks, "whole numbers")
    k = checks.whole("ranks", "the function", given).astype(np.int64)
    if k.size == 0 or k[0] != 1 or k[-1] != r.size or (np.diff(k) <= 0).any():
        raise ValueError(
            f"ranks must rise from 1 to {r.size}, the points: take profile_ranks({r.size})"
        )
    order = np.argsort(r)
    return Profile(
        points=r.size,
        ranks=k,
        ratios=r[order[k - 1]][np.newaxis],
        error_above=_sums_above(e[order], k)[np.newaxis] / r.size,
        uncertainty_above=_sums_above(E[order], k)[np.newaxis] / r.size,
        mean_error=np.array([e.mean()]),
        mean_uncertainty=np.array([E.mean()]),
        correlation=np.array([_thinned_correlation(E, e)]),
        area=None if areas is None else _by_area(r, order, k, areas, alphas),
    )


def _by_area(
    r: Reals, order: Integers, ranks: Integers, areas: ArrayLike, alphas: Iterable[float]
) -> ByArea:
    mass = np.asarray(areas, dtype=np.float64).ravel()
    levels = tuple(alphas)
    shares = [1 - checks.share("alpha", alpha) for alpha in levels]
    return ByArea(
        points=r.size,
        alphas=np.array(levels),
        needed=np.array([[weighted_quantile(r, mass, share) for share in shares]]),
        covered=np.cumsum(mass[order])[ranks - 1][np.newaxis] / mass.sum(),
    )


def _sums_above(values: Reals, ranks: Integers) -> Reals:
    """Σ of the values behind each rank, (R,); added up from the top, so that small sums stay."""
    from_the_top = np.append(np.cumsum(values[::-1])[::-1], 0)
    return np.asarray(from_the_top[ranks])


def concatenate(profiles: Sequence[Profile]) -> Profile:
    """All functions of several profiles with the same ranks, in this order."""
    if not profiles:
        raise ValueError("no profiles to concatenate: give at least one")
    first = profiles[0]
    for i, other in enumerate(profiles):
        if other.points != first.points or not np.array_equal(other.ranks, first.ranks):
            raise ValueError(
                f"profile {i} has {len(other.ranks)} ranks of {other.points} points, the first "
                f"{len(first.ranks)} of {first.points}: profile all functions at the same ranks"
            )
    parts = {name: np.concatenate([getattr(p, name) for p in profiles]) for name in ARRAYS[2:]}
    return Profile(first.points, first.ranks, **parts, area=_concatenated_areas(profiles))


def _concatenated_areas(profiles: Sequence[Profile]) -> ByArea | None:
    areas = [p.area for p in profiles if p.area is not None]
    if not areas:
        return None
    if len(areas) < len(profiles) or any(
        not np.array_equal(area.alphas, areas[0].alphas) for area in areas
    ):
        raise ValueError("profiles differ in whether or where areas were scored: profile all alike")
    return ByArea(
        areas[0].points,
        areas[0].alphas,
        np.concatenate([area.needed for area in areas]),
        np.concatenate([area.covered for area in areas]),
    )


def rank_correlation(x: Reals, y: Reals) -> float:
    """Spearman's ρ: the correlation of the ranks, ties sharing theirs; NaN where one is constant.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 8.0, 27.0]))
    1.0
    """
    a, b = (rankdata(v) - (v.size + 1) / 2 for v in (x, y))
    norm = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / norm) if norm > 0 else np.nan


def _thinned_correlation(uncertainty: Reals, error: Reals) -> float:
    """Over every s-th point where there are many: ranking all would cost more than the rest."""
    step = -(-uncertainty.size // CORRELATED_POINTS)
    return rank_correlation(uncertainty[::step], error[::step])
