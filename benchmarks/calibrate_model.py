"""Resident memory that `UQNO.calibrate` adds with 60 and with 900 functions of 141 × 141.

Each in a process of its own, functions made as they are asked for; against keeping what was scored.
"""

import resource
import subprocess
import sys

import torch

import uqno
from benchmarks.common import record, row

FEW, MANY, NODES = 60, 900, 141


class Functions:
    """Random functions (1, 141, 141), made when they are asked for."""

    def __init__(self, first: int, count: int) -> None:
        self.first, self.count = first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        if not 0 <= i < self.count:
            raise IndexError(i)
        generator = torch.Generator().manual_seed(self.first + i)
        a = torch.randn(1, NODES, NODES, generator=generator)
        return {"a": a, "u": a + 0.1 * torch.randn(1, NODES, NODES, generator=generator)}


def peak() -> float:
    """The largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def added(functions: int) -> float:
    """MB that calibrating with so many functions adds to the peak."""
    torch.set_num_threads(1)
    model = uqno.UQNO(lambda a: a, uqno.uncertainty.Constant())
    model.fit(Functions(0, 4))
    model.calibrate(Functions(10, FEW), alpha=0.1, delta=0.1)  # what any calibration needs
    before = peak()
    model.calibrate(Functions(1000, functions), alpha=0.1, delta=0.1)
    return peak() - before


def main() -> None:
    def measured(functions: int) -> float:
        command = [sys.executable, "-m", "benchmarks.calibrate_model", str(functions)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    few, many = measured(FEW), measured(MANY)
    record(
        "calibrate_model",
        [row("memory that 900 functions add / that 60 add", many, few, "MB",
             "at most 20 MB more", many - few <= 20)],
    )  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(added(int(sys.argv[1])))
    else:
        main()
