"""`uqno.calibrate` on 500 functions of 421² points, float32, streamed, with its look for copies.

Against one `sum` over the same two arrays (the least that anything could cost), and against
`torch.topk` over the stacked ratios (how neuraloperator's script does it).
"""

import tracemalloc

import numpy as np
import torch

import uqno
from benchmarks.common import interleaved, record, row
from uqno.conformal import FunctionStream

FUNCTIONS, POINTS, ALPHA, DELTA = 500, 421 * 421, 0.1, 0.02


def calibrate(error: np.ndarray, uncertainty: np.ndarray) -> uqno.Calibration:
    """Arrays, function by function."""
    return uqno.calibrate(error, uncertainty, alpha=ALPHA, delta=DELTA)


def calibrate_stream(error: np.ndarray, uncertainty: np.ndarray) -> uqno.Calibration:
    """One iterator of (error, uncertainty, weights), which tells its length last."""
    functions = ((e, r, None) for e, r in zip(error, uncertainty, strict=True))
    return uqno.calibrate(FunctionStream(functions), alpha=ALPHA, delta=DELTA)


def by_topk(error: torch.Tensor, uncertainty: torch.Tensor, k: int, j: int) -> float:
    ratios = error / uncertainty
    scores = torch.topk(ratios, POINTS - k + 1, dim=1).values[:, -1]
    return float(torch.topk(scores, FUNCTIONS - j + 1).values[-1])


def extra_memory(error: np.ndarray, uncertainty: np.ndarray) -> float:
    """Peak MB that a calibration allocates (NumPy reports its buffers to tracemalloc)."""
    tracemalloc.start()
    calibrate(error, uncertainty)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    rng = np.random.default_rng(0)
    error = np.abs(rng.standard_normal((FUNCTIONS, POINTS), dtype=np.float32))
    error *= np.exp(0.7 * rng.standard_normal((FUNCTIONS, 1))).astype(np.float32)
    uncertainty = rng.random((FUNCTIONS, POINTS), dtype=np.float32) + np.float32(0.5)
    ours = calibrate(error, uncertainty)
    e, r = torch.from_numpy(error), torch.from_numpy(uncertainty)
    theirs = by_topk(e, r, ours.ranks.point or 0, ours.ranks.function)
    if abs(ours.scale / theirs - 1) > 1e-6:
        raise RuntimeError(f"λ̂ differs: ours {ours.scale}, topk {theirs}")
    fast = interleaved(
        {
            "calibrate": lambda: calibrate(error, uncertainty),
            "stream": lambda: calibrate_stream(error, uncertainty),
            "sum": lambda: (error.sum(), uncertainty.sum()),
        },
        repeats=15,
    )
    slow = interleaved(
        {
            "calibrate": lambda: calibrate(error, uncertainty),
            "topk": lambda: by_topk(e, r, ours.ranks.point or 0, ours.ranks.function),
        },
        repeats=3,
    )
    memory = extra_memory(error, uncertainty)
    ratio, of_stream = (fast[name] / fast["sum"] for name in ("calibrate", "stream"))
    record(
        "calibrate",
        [
            row("calibrate / sum", fast["calibrate"], fast["sum"], "s",
                "at most 2.5 times the sum, looking for copies", ratio <= 2.5),
            row("calibrate a stream / sum", fast["stream"], fast["sum"], "s",
                "at most 3 times the sum", of_stream <= 3),
            row("calibrate / torch.topk", slow["calibrate"], slow["topk"], "s",
                "at least 8 times faster", slow["topk"] / slow["calibrate"] >= 8),
            row("calibrate, extra memory", memory, 16.0, "MB", "under 16 MB", memory < 16),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
