"""Is a guarantee feasible with n functions of m points, and if not, what would be?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqno.conformal import checks
from uqno.conformal.checks import InfeasibleError
from uqno.conformal.ranks import Ranks

if TYPE_CHECKING:
    from uqno.conformal.guarantees.contract import Guarantee


@dataclass(frozen=True)
class Plan:
    """What n calibration functions of m points each can promise. `str(plan)` says it in words."""

    rule: Guarantee
    """The guarantee that is planned for."""
    feasible: bool
    ranks: Ranks | None
    """The pair (k, j), where the guarantee has one and it is feasible."""
    functions: int
    points: int
    smallest: Mapping[str, float | None]
    """The smallest value of `functions`, of `points` and of each share of the guarantee (`alpha`,
    `delta`) that works with the others as they are; None where no value does, and 0.0 for a share
    of which every value in (0, 1) works."""

    def __str__(self) -> str:
        return self.rule.plan_sentence(self)

    def require(self) -> None:
        """Nothing, if it is feasible.

        Raises:
            InfeasibleError: it is not; the message says what would be.
        """
        if not self.feasible:
            raise InfeasibleError(str(self))


def plan_for(guarantee: Guarantee, functions: int, points: int) -> Plan:
    """The plan of a guarantee for n = `functions` of m = `points`."""
    n, m = checks.count("functions", functions), checks.count("points", points)
    possible = guarantee.feasible(n, m)
    smallest: dict[str, float | None] = {
        "functions": smallest_count_that(lambda x: guarantee.feasible(x, m)),
        "points": smallest_count_that(lambda x: guarantee.feasible(n, x)),
    }
    for name in guarantee.shares:

        def works(value: float, name: str = name) -> bool:
            return guarantee.with_share(name, value).feasible(n, m)

        smallest[name] = smallest_share_that(works)
    ranks = guarantee.ranks_for(n, m) if possible else None
    return Plan(guarantee, possible, ranks, n, m, smallest)


def require(guarantee: Guarantee, functions: int, points: int) -> None:
    """Nothing, if n = `functions` of m = `points` can carry the guarantee; quicker than a plan.

    Raises:
        InfeasibleError: they cannot; the message says what could.
    """
    if not guarantee.feasible(functions, points):
        plan_for(guarantee, functions, points).require()


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
        # By the exponent first: a share may be tiny, and a product of two be zero.
        middle = low**0.5 * high**0.5 if low < high / 2 else (low + high) / 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high
