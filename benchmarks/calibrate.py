"""`uqno.calibrate` on 500 functions of 421² points, float32, streamed one by one.

Against one `sum` over the same two arrays (the least that anything could cost), and against
`torch.topk` over the stacked ratios (how neuraloperator's script does it).
"""

import tracemalloc

import numpy as np
import torch

import uqno
from benchmarks.common import interleaved, record, row

FUNCTIONS, POINTS, ALPHA, DELTA = 500, 421 * 421, 0.1, 0.02


def calibrate(error: np.ndarray, radius: np.ndarray) -> uqno.Calibration:
    """Arrays: row by row, their number known, so that most functions are only counted."""
    return uqno.calibrate(error, radius, alpha=ALPHA, delta=DELTA)


def calibrate_generator(
    error: np.ndarray, radius: np.ndarray, functions: int | None
) -> uqno.Calibration:
    """A generator tells its length last: every function is scored, unless their number is told."""
    each = (e for e in error), (r for r in radius)
    return uqno.calibrate(*each, alpha=ALPHA, delta=DELTA, functions=functions)


def by_topk(error: torch.Tensor, radius: torch.Tensor, k: int, j: int) -> float:
    ratios = error / radius
    scores = torch.topk(ratios, POINTS - k + 1, dim=1).values[:, -1]
    return float(torch.topk(scores, FUNCTIONS - j + 1).values[-1])


def extra_memory(error: np.ndarray, radius: np.ndarray) -> float:
    """Peak MB that a calibration allocates (NumPy reports its buffers to tracemalloc)."""
    tracemalloc.start()
    calibrate(error, radius)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    rng = np.random.default_rng(0)
    error = np.abs(rng.standard_normal((FUNCTIONS, POINTS), dtype=np.float32))
    error *= np.exp(0.7 * rng.standard_normal((FUNCTIONS, 1))).astype(np.float32)
    radius = rng.random((FUNCTIONS, POINTS), dtype=np.float32) + np.float32(0.5)
    ours = calibrate(error, radius)
    e, r = torch.from_numpy(error), torch.from_numpy(radius)
    theirs = by_topk(e, r, ours.ranks.point or 0, ours.ranks.function)
    if abs(ours.scale / theirs - 1) > 1e-6:
        raise RuntimeError(f"λ̂ differs: ours {ours.scale}, topk {theirs}")
    fast = interleaved(
        {
            "calibrate": lambda: calibrate(error, radius),
            "generator": lambda: calibrate_generator(error, radius, FUNCTIONS),
            "silent generator": lambda: calibrate_generator(error, radius, None),
            "sum": lambda: (error.sum(), radius.sum()),
        },
        repeats=15,
    )
    slow = interleaved(
        {
            "calibrate": lambda: calibrate(error, radius),
            "topk": lambda: by_topk(e, r, ours.ranks.point or 0, ours.ranks.function),
        },
        repeats=3,
    )
    memory = extra_memory(error, radius)
    ratio, of_generator = (fast[name] / fast["sum"] for name in ("calibrate", "generator"))
    silent = fast["silent generator"]
    record(
        "calibrate",
        [
            row("calibrate / sum", fast["calibrate"], fast["sum"], "s",
                "at most 3 times the sum", ratio <= 3),
            row("calibrate a generator, functions=500 / sum", fast["generator"], fast["sum"], "s",
                "at most 3 times the sum", of_generator <= 3),
            row("calibrate a generator of unknown length / sum", silent, fast["sum"], "s",
                "at most 3 times the sum", silent <= 3 * fast["sum"]),
            row("calibrate / torch.topk", slow["calibrate"], slow["topk"], "s",
                "at least 8 times faster", slow["topk"] / slow["calibrate"] >= 8),
            row("calibrate, extra memory", memory, 16.0, "MB", "under 16 MB", memory < 16),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
