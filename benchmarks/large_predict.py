"""`predict` on a function with 7.2 million points: time by the number of points, and memory.

On the fine grid itself (a is given there), and at 7.2 million scattered points. Each in a process
of its own, so that the peak is its own.
"""

import json
import sys
import time

import torch

from benchmarks.common import in_a_process, peak_memory, record, row
from uqno import UQNO
from uqno.operators import FNO

SIDES = (1342, 2684)  # 1.8 and 7.2 million points


def model() -> UQNO:
    """Any calibrated model: what it was trained on does not change the work."""
    torch.manual_seed(0)
    samples = [{"a": a, "u": a**2 + 0.1 * torch.randn_like(a)} for a in torch.rand(100, 1, 25, 25)]
    found = UQNO(FNO(1, 1)).fit(samples[:40], epochs=1, progress=False)
    found.calibrate(samples[40:], alpha=0.1, delta=0.1)
    return found


def measure(kind: str, side: int) -> dict[str, float]:
    """Seconds, and the peak of this process in GB."""
    calibrated = model()
    if kind == "grid":
        arguments = {"a": torch.rand(1, side, side)}
    else:
        arguments = {"a": torch.rand(1, 43, 43), "at": torch.rand(side * side, 2)}
    start = time.perf_counter()
    calibrated.predict(**arguments)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak": peak_memory()}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
        return
    rows = []
    for kind in ("grid", "points"):
        small, large = (in_a_process("benchmarks.large_predict", kind, side) for side in SIDES)
        a_point = [1e6 * s["seconds"] / n**2 for s, n in zip((small, large), SIDES, strict=True)]
        name = f"predict, 7.2 million points ({kind})"
        rows += [
            row(f"{name}: µs a point, beside 1.8 million", a_point[1], a_point[0], "µs",
                "linear: at most 1.3 times", a_point[1] <= 1.3 * a_point[0]),
            row(f"{name}: peak memory", large["peak"], 2.0, "GB", "within 2 GB",
                large["peak"] <= 2),
        ]  # fmt: skip
    record("large_predict", rows)


if __name__ == "__main__":
    main()
