"""Bandwidth on Darcy at 43²: the library's default against the paper's recipe, in the same code.

The `standard` experiment with another seed than the committed results: 2000 training functions in
all; 1500 others, split at random into 500 for calibration and 1000 for testing; α = 0.1, δ = 0.02.
The paper's recipe: half of the training functions for Ĝ, half for E, the plain quantile operator,
the Hoeffding ranks. The default: out-of-fold residuals, the square's symmetries, grid ranks. Both:
the same FNO, epochs, optimiser. About 20 minutes on two cores; stopped, it goes on (data/, runs/).
"""

from pathlib import Path

import numpy as np

from benchmarks.common import record, row
from uqno.experiments import experiment, measuring
from uqno.experiments.darcy.settings import PRESETS
from uqno.experiments.runs import Run, begin

CHANGES = ("seed=1", "methods=uqno,uqno-paper", "ablation=false")
FOLDER = Path("runs/benchmark-bands")
# Over 100 000 splits the percentage is off by 0.00002; on the grid its exact mean is 491/501 =
# 0.98004, so near the bar that fewer splits would decide by chance.
SPLITS, REPEATS = 20_000, 5


def over_splits(run: Run, method: str, alpha: float, sampling: str) -> tuple[float, float] | None:
    """Mean bandwidth and calibration percentage; None where the guarantee is infeasible."""
    held, s = run.profile(method), run.settings
    found = [
        measuring.calibrated(
            held, alpha, s.delta, sampling, calibration=s.calibration, splits=SPLITS, seed=seed
        )
        for seed in range(REPEATS)
    ]
    if not found[0].feasible:
        return None
    means = np.mean([(f.bandwidth, f.calibration_percentage) for f in found], axis=0)
    return float(means[0]), float(means[1])


def main() -> None:
    settings = PRESETS["standard"].changed(CHANGES)
    run = begin(settings, FOLDER)
    experiment.compare(run)
    found = {
        (method, alpha, sampling): over_splits(run, method, alpha, sampling)
        for method in settings.methods
        for alpha in settings.alphas
        for sampling in ("grid", "iid", "hoeffding")
    }
    ours, paper = found["uqno", 0.1, "grid"], found["uqno-paper", 0.1, "hoeffding"]
    if ours is None or paper is None:
        raise RuntimeError("infeasible at alpha = 0.1: something is wrong")
    details = {f"{n} {a} {s}": v for (n, a, s), v in found.items()}
    record(
        "bands",
        [
            row("Darcy 43², bandwidth at alpha = 0.1", ours[0], paper[0], "",
                "at least 2.4 times smaller", paper[0] / ours[0] >= 2.4, all=details),
            row("Darcy 43², calibration percentage", ours[1], paper[1], "",
                "at least 0.98", ours[1] >= 0.98),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
