"""How many functions n and points m a guarantee (α, δ) needs: the numbers of the planner's chart.

What `uqno.plan` would answer to each question, without the parts of its answer that are not drawn.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final, TypedDict

from uqno.conformal.planning import smallest_count_that
from uqno.conformal.ranks import Request, feasible
from uqno.types import Share

ALPHAS: Final = (0.01, 0.02, 0.05, 0.1, 0.2)
DELTAS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
# From just enough functions to so many that more save no points, as multiples of the fewest.
MULTIPLES: Final = (1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 5.0, 10.0, 30.0)
MOST_POINTS: Final = 10**6  # an m beyond is no plan


class Needed(TypedDict):
    """One (α, δ). Each curve is [n, smallest m] with n rising, where any m goes with n."""

    alpha: float
    delta: float
    grid: int
    """The fewest functions on a grid, with any number of points."""
    iid: list[list[int]]
    hoeffding: list[list[int]]


def needed(alpha: Share, delta: Share) -> Needed:
    """The fewest functions, and for so many and more the fewest points.

    Args:
        alpha: α, in (0, 1).
        delta: δ, in (0, 1).

    Raises:
        ValueError: δ needs more functions than can be counted.

    >>> needed(0.1, 0.02)["grid"], needed(0.1, 0.02)["iid"][:3]
    (49, [[50, 38], [51, 31], [54, 23]])
    """
    on_grid = Request.of(alpha, delta, "grid")
    fewest = smallest_count_that(lambda n: feasible(n, 1, on_grid))
    if fewest is None:
        raise ValueError(f"delta = {delta} needs more functions than can be counted: raise it")
    functions = sorted({round(fewest * x) for x in MULTIPLES})
    return Needed(
        alpha=float(alpha),
        delta=float(delta),
        grid=fewest,
        iid=_curve(functions, Request.of(alpha, delta, "iid")),
        hoeffding=_curve(functions, Request.of(alpha, delta, "hoeffding")),
    )


def _curve(functions: list[int], request: Request) -> list[list[int]]:
    curve = []
    for n in functions:
        m = smallest_count_that(partial(feasible, n, request=request))
        if m is not None and m <= MOST_POINTS:
            curve.append([n, m])
    return curve


@lru_cache(maxsize=8)
def chart(alphas: tuple[float, ...] = (), deltas: tuple[float, ...] = ()) -> tuple[Needed, ...]:
    """All (α, δ) of the chart, those of a run among them.

    Args:
        alphas: levels α of a run.
        deltas: levels δ of a run.
    """
    return tuple(
        needed(alpha, delta)
        for alpha in sorted({*ALPHAS, *alphas})
        for delta in sorted({*DELTAS, *deltas})
    )
