"""The fraction guarantee with `confidence` against risk-controlling prediction sets.

The risk is P[a new function has less than 1 − α inside], its loss the indicator that a function
fails, the same scores for all. A published rule takes the least λ̂ at which, and beyond, an upper
confidence bound of the risk lies below δ:

    HB    Hoeffding–Bentkus: Bates et al. (2021), and as a p-value in Learn then Test (2021)
    WSR   Waudby-Smith–Ramdas: the same; a capital process on the losses in the order of the
          functions, here the median over random orders

`ours` and `theirs` are ranks from above, n + 1 − j: more functions may exceed the scale where it is
narrower, so a ratio of theirs / ours ≤ 1 says that ours is not wider.
"""

import numpy as np
from scipy import stats

from benchmarks.common import record, row
from uqno.conformal.ranks import Request, function_rank

FUNCTIONS = (50, 100, 200, 500, 1000, 2000, 5000)
DELTAS = (0.01, 0.02, 0.05, 0.1, 0.2)
MISSES = (0.01, 0.05, 0.1, 0.2)  # γ = 1 − confidence
ORDERS = 101  # of the functions, for WSR


def ours(n: int, delta: float, miss: float) -> int:
    """n + 1 − j, 0 where infeasible."""
    request = Request.of(0.1, delta, "grid", round(1 - miss, 9))
    j = function_rank(n, request.delta, request.confidence)
    return 0 if j is None else n + 1 - j


def hoeffding_bentkus(n: int, delta: float, miss: float) -> int:
    """With i − 1 failures of n: min(exp(−n h(i/n, δ)), e·P[Bin(n, δ) ≤ i]) ≤ γ for all up to i."""
    failures = np.arange(n)
    share = np.minimum(failures / n, delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(share > 0, share * np.log(share / delta), 0)
    entropy = entropy + (1 - share) * np.log((1 - share) / (1 - delta))
    p_value = np.minimum(np.exp(-n * entropy), np.e * stats.binom.cdf(failures, n, delta))
    return int(np.argmin(np.append(p_value <= miss, False)))


def waudby_smith_ramdas(n: int, delta: float, miss: float, rng: np.random.Generator) -> int:
    """The same by capital max_t Π_{i ≤ t} (1 − ν_i (L_i − δ)) > 1/γ, functions in any order."""
    place = rng.permutation(n)  # of the largest score, the next, …
    losses = np.zeros(n)
    accepted = 0
    t = np.arange(1, n + 1)
    while accepted < n and _capital(losses, t, delta, miss) > -np.log(miss):
        losses[place[accepted]] = 1.0
        accepted += 1
    return accepted


def _capital(losses: np.ndarray, t: np.ndarray, delta: float, miss: float) -> float:
    mean = (0.5 + np.cumsum(losses)) / (1 + t)
    variance = (0.25 + np.cumsum((losses - mean) ** 2)) / (1 + t)
    before = np.append(0.25, variance[:-1])
    bet = np.minimum(1, np.sqrt(2 * np.log(1 / miss) / (losses.size * before)))
    return float(np.max(np.cumsum(np.log1p(-bet * (losses - delta)))))


def main() -> None:
    rng = np.random.default_rng(0)
    wider, least = 0, np.inf
    medians, settings = [], 0
    for n in FUNCTIONS:
        for delta in DELTAS:
            for miss in MISSES:
                own = ours(n, delta, miss)
                other = hoeffding_bentkus(n, delta, miss)
                settings += 1
                wider += other > own
                least = min(least, own - other)
                if own and n <= 1000:
                    orders = [waudby_smith_ramdas(n, delta, miss, rng) for _ in range(ORDERS)]
                    medians.append((own, float(np.median(orders)), n, delta, miss))
    own, other = (np.array([one[i] for one in medians]) for i in (0, 1))
    worst = min(medians, key=lambda one: one[0] - one[1])
    exact = row(
        "settings in which ours is at least as narrow as Hoeffding–Bentkus",
        float(settings - wider), float(settings), "", "all", wider == 0,
        least_difference=float(least),
    )  # fmt: skip
    mean = row(
        "functions above the scale, mean over settings, WSR", float(own.mean()),
        float(other.mean()), "", "in the median not wider", bool(np.median(own - other) >= 0),
        settings=len(medians), worst=list(worst),
    )  # fmt: skip
    least_half = row(
        "settings in which ours is at least as narrow as the median of WSR",
        float((own >= other).sum()), float(len(medians)), "", "at least half",
        bool((own >= other).mean() >= 0.5),
    )  # fmt: skip
    record("rcps", [exact, mean, least_half])


if __name__ == "__main__":
    main()
