"""Is (α, δ) feasible with n functions of m points, and if not, what would be?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from uqno.conformal import checks, words
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.ranks import Ranks, Request, default_ranks, feasible
from uqno.types import Sampling, Share


@dataclass(frozen=True)
class Plan:
    """What n calibration functions of m points each can promise. `str(plan)` says it in words.

    Each `smallest_*` is the smallest value of that quantity that works with the others as they
    are; None where no value does. `smallest_alpha` is 0.0 where every α in (0, 1) works.
    """

    feasible: bool
    ranks: Ranks | None
    functions: int
    points: int
    alpha: float
    delta: float
    sampling: Sampling
    confidence: float | None
    smallest_functions: int | None
    smallest_points: int | None
    smallest_alpha: float | None
    smallest_delta: float | None

    def __str__(self) -> str:
        return words.plan(self)

    def require(self) -> Ranks:
        """The ranks, or an InfeasibleError that says what would be feasible."""
        if self.ranks is None:
            raise InfeasibleError(str(self))
        return self.ranks


def plan(
    alpha: Share,
    delta: Share,
    functions: int,
    points: int,
    sampling: str = "grid",
    confidence: Share | None = None,
) -> Plan:
    """Ranks (k, j) for n = `functions` of m = `points`, or the smallest n, m, α, δ that work.

    >>> plan(alpha=0.1, delta=0.02, functions=500, points=1849, sampling="iid").ranks
    Ranks(point=1681, function=492)
    >>> plan(alpha=0.1, delta=0.02, functions=40, points=1849).smallest_functions
    49
    """
    request = Request.of(alpha, delta, sampling, confidence)
    n, m = checks.count("functions", functions), checks.count("points", points)
    ranks = default_ranks(n, m, request) if n >= 2 else None

    def works_with_alpha(value: float) -> bool:
        return feasible(n, m, replace(request, alpha=Fraction(str(value))))

    def works_with_delta(value: float) -> bool:
        return feasible(n, m, replace(request, delta=Fraction(str(value))))

    return Plan(
        feasible=ranks is not None,
        ranks=ranks,
        functions=n,
        points=m,
        alpha=float(request.alpha),
        delta=float(request.delta),
        sampling=request.sampling,
        confidence=None if request.confidence is None else float(request.confidence),
        smallest_functions=smallest_count_that(lambda x: feasible(x, m, request)),
        smallest_points=smallest_count_that(lambda x: feasible(n, x, request)),
        smallest_alpha=smallest_share_that(works_with_alpha),
        smallest_delta=smallest_share_that(works_with_delta),
    )


def smallest_count_that(works: Callable[[int], bool]) -> int | None:
    """The smallest whole number from 1 on that works, if every larger one does too."""
    high = 1
    while not works(high):
        high *= 2
        if high > checks.LARGEST_COUNT:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def smallest_share_that(works: Callable[[float], bool]) -> float | None:
    """The smallest double in (0, 1) that works (to 1e-12 relative), 0.0 if all do, else None."""
    low, high = 1e-300, 1 - 2**-53
    if works(low):
        return 0.0
    if not works(high):
        return None
    while high - low > 1e-12 * high:
        # By the exponent first: a share may be tiny.
        middle = (low * high) ** 0.5 if low < high / 2 else (low + high) / 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high
