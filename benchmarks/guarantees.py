"""What another guarantee costs beside the paper's, on the same arrays.

`ours` is `uqno.calibrate` with the guarantee, `theirs` without: functions of 421² points in
float32, and of 43² in float64. The bar is 1.5 times; of `Chosen` with a list of levels, which asks
for a score at each of them, the figure is shown without a bar. CPU seconds of one thread, the least
of several rounds in turn, so that other work on the machine counts little.
"""

import time
from collections.abc import Callable

import numpy as np

import uqno
from benchmarks.common import record, row
from uqno import guarantees

DELTA = 0.02
ROUNDS = 5
GUARANTEES = {
    "expected": guarantees.Expected(alpha=0.1),
    "everywhere": guarantees.Everywhere(delta=DELTA),
    "curve": guarantees.Curve(delta=DELTA),
    "chosen, one alpha": guarantees.Chosen(),
    "chosen, any alpha": guarantees.Chosen(shape="half-normal"),
}
LISTED = "chosen, five alphas"
SIZES = {"421 x 421, float32": (500, 421**2, np.float32), "43 x 43, float64": (500, 43**2, float)}


def arrays(functions: int, points: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    error = np.empty((functions, points), dtype)
    uncertainty = np.empty_like(error)
    for e, r in zip(error, uncertainty, strict=True):
        e[:] = np.abs(rng.standard_normal(points)) * np.exp(0.7 * rng.standard_normal())
        r[:] = rng.random(points) + 0.5
    return error, uncertainty


def timed(
    error: np.ndarray, uncertainty: np.ndarray, rules: dict[str, guarantees.Guarantee]
) -> dict[str, float]:
    """CPU seconds of the default and of each guarantee."""

    def with_rule(rule: guarantees.Guarantee) -> Callable[[], object]:
        return lambda: uqno.calibrate(error, uncertainty, guarantee=rule)

    default = {"default": lambda: uqno.calibrate(error, uncertainty, alpha=0.1, delta=DELTA)}
    # The rank of `Chosen` takes a tenth of a second, once for each (n, δ, γ): in the first round.
    contestants = default | {n: with_rule(rule) for n, rule in rules.items()}
    seconds = dict.fromkeys(contestants, np.inf)
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            start = time.process_time()
            run()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def main() -> None:
    rows = []
    listed = {LISTED: guarantees.Chosen(alphas=(0.01, 0.02, 0.05, 0.1, 0.2))}
    for size, shape in SIZES.items():
        times = timed(*arrays(*shape), GUARANTEES | listed)
        for name in GUARANTEES | listed:
            cost = times[name] / times["default"]
            bar = "at most 1.5 times" if name != LISTED else "a score at each level: no bar"
            rows.append(
                row(f"calibrate for {name} / default, {size}", times[name], times["default"], "s",
                    bar, cost <= 1.5 or name == LISTED, cost=cost)
            )  # fmt: skip
    record("guarantees", rows)


if __name__ == "__main__":
    main()
