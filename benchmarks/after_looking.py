"""How often a promise of 2 % fails that was chosen after looking at the calibration scores.

Nine methods of equal quality, or several α, are calibrated on the same 500 functions and one is
chosen by its result; the new functions that fail are counted exactly, by the law of the scores.
`python -m benchmarks.after_looking` prints the figures of the theory note's "Assumptions". There is
no peer: `ours` is the failure rate, `theirs` what was promised.
"""

import numpy as np
from scipy import special, stats

from benchmarks.common import record, row

FUNCTIONS, DELTA, DRAWS = 500, 0.02, 4000
RANK = FUNCTIONS + 1 - int((FUNCTIONS + 1) * DELTA)  # j
METHODS, ALPHAS = 9, np.linspace(0.02, 0.2, 20)


def scales(scores: np.ndarray) -> np.ndarray:
    """λ̂ of each calibration set, of scores (sets, functions, …)."""
    return np.asarray(np.partition(scores, RANK - 1, axis=1)[:, RANK - 1])


def narrowest_method(rng: np.random.Generator, common: float) -> float:
    """Scores of equal methods correlate by `common`; the one with the smallest λ̂ is taken."""
    failures = []
    for _ in range(DRAWS // 100):
        shared = rng.standard_normal((100, FUNCTIONS, 1))
        own = rng.standard_normal((100, FUNCTIONS, METHODS))
        lam = scales(np.sqrt(common) * shared + np.sqrt(1 - common) * own)
        failures.append(special.ndtr(-lam.min(axis=1)))  # each score is standard normal
    return float(np.mean(np.concatenate(failures)))


def several_alphas(rng: np.random.Generator, points: int = 200) -> tuple[float, float]:
    """(the luckiest of 20 α, any of five α): functions of independent points and random scales."""
    k = np.ceil(points * (1 - ALPHAS) - 1e-9).astype(int) - 1
    new = _scores(rng, 20_000, points, k)
    lucky, any_of_five = [], []
    usual = np.median(_scales_of(rng, 200, points, k), axis=0)
    for lam in _scales_of(rng, 400, points, k):
        chosen = int(np.argmin(lam / usual))  # λ̂ that is smallest for what is usual at its α
        lucky.append((new[:, chosen] > lam[chosen]).mean())
        five = slice(0, None, 4)
        any_of_five.append((new[:, five] > lam[five]).any(axis=1).mean())
    return float(np.mean(lucky)), float(np.mean(any_of_five))


def _scores(rng: np.random.Generator, n: int, points: int, k: np.ndarray) -> np.ndarray:
    """(n, α): order statistics of half-normal points by their spacings, times random scales."""
    gaps = rng.exponential(size=(n, points + 1)).cumsum(axis=1)
    share = gaps[:, k] / gaps[:, -1:]
    tail = np.exp(0.3 * rng.standard_normal((n, 1)))  # how heavy a function's tail is
    return np.asarray(-special.ndtri((1 - share) / 2)) ** tail


def _scales_of(rng: np.random.Generator, sets: int, points: int, k: np.ndarray) -> np.ndarray:
    return np.array([scales(_scores(rng, FUNCTIONS, points, k)[None])[0] for _ in range(sets)])


def main() -> None:
    rng = np.random.default_rng(0)
    lucky, five = several_alphas(rng)
    below = float(stats.beta.cdf(1 - DELTA, RANK, FUNCTIONS + 1 - RANK))
    measured = {
        "narrowest of nine independent methods": narrowest_method(rng, 0.0),
        "narrowest of nine methods, correlation 0.5": narrowest_method(rng, 0.5),
        "luckiest of 20 alpha": lucky,
        "any of five alpha at once": five,
    }
    rows = [
        row(f"failures, {name}", rate, DELTA, "", "a promise chosen afterwards fails more",
            rate > DELTA)
        for name, rate in measured.items()
    ]  # fmt: skip
    rows.append(
        row(f"sets of {FUNCTIONS} that cover less than {1 - DELTA:.0%}", below, 0.5, "",
            "nearly half of them", 0.4 < below < 0.5)
    )  # fmt: skip
    record("after_looking", rows)


if __name__ == "__main__":
    main()
