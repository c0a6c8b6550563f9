"""`calibrate` with groups, a shift, a quantity or several variables, against the default.

On the same arrays, by turns, in seconds of the processor; `theirs` is the default, so
that the ratio is its time over that of the other. The bar: at most 1.5 times the default.
"""

import time
from collections.abc import Callable

import numpy as np

import uqno
from benchmarks.common import record, row
from uqno.conformal import calibrate_jointly, guarantees

BAR = 1.5
ALPHA, DELTA = 0.1, 0.02


def contestants(n: int, m: int) -> dict:
    rng = np.random.default_rng(0)
    error, uncertainty = rng.standard_normal((n, m)), rng.uniform(0.5, 2, (n, m))
    labels, ratios = rng.integers(0, 4, n), rng.uniform(0.5, 2, n)
    rule = guarantees.Fraction(ALPHA, DELTA)
    halves = {
        "a": (error[:, : m // 2], uncertainty[:, : m // 2]),
        "b": (error[:, m // 2 :], uncertainty[:, m // 2 :]),
    }
    return {
        "the default": lambda: uqno.calibrate(error, uncertainty, ALPHA, DELTA),
        "four groups": lambda: uqno.calibrate(error, uncertainty, ALPHA, DELTA, groups=labels),
        "a shift": lambda: uqno.calibrate(error, uncertainty, ALPHA, DELTA, shift=ratios),
        "a quantity": lambda: uqno.calibrate(
            error, uncertainty, guarantee=guarantees.Quantity(DELTA)
        ),
        "two variables": lambda: calibrate_jointly(halves, {"a": 1.0, "b": 1.0}, rule),
    }


def processor_seconds(all_of_them: dict[str, Callable[[], object]], repeats: int = 9) -> dict:
    """The least seconds of each; they take turns."""
    least = dict.fromkeys(all_of_them, np.inf)
    for _ in range(repeats):
        for name, run in all_of_them.items():
            start = time.process_time()
            run()
            least[name] = min(least[name], time.process_time() - start)
    return least


def main() -> None:
    rows = []
    for n, m in ((2000, 50), (2000, 200), (500, 1849), (500, 10_000)):
        seconds = processor_seconds(contestants(n, m))
        default = seconds.pop("the default")
        for name, taken in seconds.items():
            rows.append(
                row(f"{name}, {n} functions of {m} points", 1e3 * taken, 1e3 * default, "ms",
                    f"at most {BAR} times the default", taken <= BAR * default)
            )  # fmt: skip
    record("groups", rows)


if __name__ == "__main__":
    main()
