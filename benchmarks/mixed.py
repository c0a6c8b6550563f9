"""One coarse function among 200 of 2000 points: what it adds to λ̂, by the share of δ that is left.

Half-normal errors, lognormal scales (σ = 0.7), as in `benchmarks.iid_ranks`; `ours` is the mean λ̂
with the coarse function, `theirs` that of 201 functions of 2000 points and the pair they have.
"""

from fractions import Fraction

import numpy as np
from scipy.special import betaincinv, ndtri

from benchmarks.common import record, row
from uqno.conformal.ranks import Request, common_tail, default_misses, default_ranks

FUNCTIONS, POINTS, DRAWS = 201, 2000, 1000
SHARES = (Fraction(8, 10), Fraction(9, 10))


def main() -> None:
    rng = np.random.default_rng(0)
    scale = np.exp(0.7 * rng.standard_normal((DRAWS, FUNCTIONS)))
    uniform = rng.random((DRAWS, FUNCTIONS))

    def scores(k: int, m: int, here: slice) -> np.ndarray:
        share = betaincinv(k, m + 1 - k, uniform[:, here])
        return np.asarray(-ndtri((1 - share) / 2) * scale[:, here])

    def mean(values: np.ndarray, j: int) -> float:
        return float(np.partition(values, j - 1, axis=1)[:, j - 1].mean())

    rows = []
    for delta in (0.02, 0.05, 0.1, 0.2):
        request = Request.of(0.1, delta, "iid")
        pair = default_ranks(FUNCTIONS, POINTS, request)
        assert pair is not None
        assert pair.point is not None
        alone = mean(scores(pair.point, POINTS, slice(None)), pair.function)
        for share in SHARES:
            misses = max(1, int(share * (FUNCTIONS + 1) * request.delta))
            tail = common_tail(FUNCTIONS, request, misses)
            assert tail is not None
            fine = scores(tail.point_rank(POINTS) or POINTS, POINTS, slice(200))
            usual = " (the default)" if misses == default_misses(FUNCTIONS, request) else ""
            for m in (5, 20, 60):
                k = tail.point_rank(m)
                coarse = np.full((DRAWS, 1), np.inf) if k is None else scores(k, m, slice(200, 201))
                ours = mean(np.concatenate([fine, coarse], axis=1), tail.function)
                name = f"mean scale, one of {m} points, delta={delta} misses={misses}{usual}"
                rows.append(row(name, ours, alone, "", "at most 6 % more", ours <= 1.06 * alone))
    record("mixed", rows)


if __name__ == "__main__":
    main()
