"""What the guarantees about the whole domain cost beside the default one, on the same arrays.

`ours` is the time of the guarantee named, `theirs` that of `uqno.calibrate(..., sampling="grid")`;
the last row is the time of `UQNO.calibrate` with the novelty of inputs and without it. The widths
are recorded too: λ̂ of each, and of "iid" for as many points.
"""

import numpy as np
import torch

from benchmarks.common import interleaved, record, row
from uqno import UQNO, calibrate
from uqno.conformal.guarantees import Continuum, Strata, WithoutReplacement
from uqno.model.memory import Memory
from uqno.operators import FNO
from uqno.uncertainty import Constant

FUNCTIONS, POINTS, BAR = 500, 1849, 1.5


def of_arrays(rows):
    rng = np.random.default_rng(0)
    scale = np.exp(0.7 * rng.standard_normal((FUNCTIONS, 1)))
    error = np.abs(scale * rng.standard_normal((FUNCTIONS, POINTS)))
    uncertainty = 1 + rng.random((FUNCTIONS, POINTS))
    rules = {
        "continuum": Continuum(0.1, 0.02, 0.05, 0.05),
        "strata": Strata(0.1, 0.02),
        "without replacement, of 3000": WithoutReplacement(0.1, 0.02, 3000),
    }
    runs = {n: lambda r=r: calibrate(error, uncertainty, guarantee=r) for n, r in rules.items()}
    runs["grid"] = lambda: calibrate(error, uncertainty, 0.1, 0.02)
    runs["iid"] = lambda: calibrate(error, uncertainty, 0.1, 0.02, "iid")
    seconds = interleaved(runs)
    for name in (*rules, "iid"):
        rows.append(
            row(f"calibrate, {name}", seconds[name], seconds["grid"], "s",
                f"at most {BAR} times the default", seconds[name] <= BAR * seconds["grid"],
                scale=runs[name]().scale, scale_of_the_default=runs["grid"]().scale)
        )  # fmt: skip


def of_a_model(rows):
    torch.manual_seed(0)
    x = torch.linspace(0, 1, 43)
    functions = []
    for _ in range(180):
        a = torch.randn(3)
        field = a[0] * torch.sin(3 * x)[:, None] + a[1] * torch.cos(2 * x) + a[2]
        functions.append({"a": field[None], "u": field[None] ** 2})
    model = UQNO(FNO(1, 1, modes=(8, 8), width=16, layers=4), Constant())
    model.fit(functions[:40], epochs=1, progress=False)
    held_out, memory = functions[40:], model.memory

    def run(kept):
        model.memory = kept
        model.calibrate(held_out, 0.1, 0.1)

    seconds = interleaved(
        {"with": lambda: run(memory), "without": lambda: run(Memory())}, repeats=5
    )
    rows.append(
        row("UQNO.calibrate, novelty of inputs", seconds["with"], seconds["without"], "s",
            f"at most {BAR} times that without", seconds["with"] <= BAR * seconds["without"])
    )  # fmt: skip


def main() -> None:
    rows = []
    of_arrays(rows)
    of_a_model(rows)
    record("whole_domain", rows)


if __name__ == "__main__":
    main()
