"""What the equivariant operator costs beside the FNO of the presets, on one core.

A pass without gradients, and a training step in batches of 16 at 43 × 43, by turns in one run.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.common import interleaved, record, row
from uqno.operators import FNO, EquivariantFNO

GRIDS = ((43, 1), (43, 16), (85, 1), (421, 1))  # nodes a side, functions of a batch


def step(network: nn.Module, a: Tensor) -> Callable[[], object]:
    def run() -> None:
        network.zero_grad()
        network(a).square().mean().backward()

    return run


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ours, theirs = EquivariantFNO(1, 1).eval(), FNO(1, 1).eval()
    rows = []
    for nodes, batch in GRIDS:
        a = torch.randn(batch, 1, nodes, nodes)
        with torch.no_grad():
            seconds = interleaved({"ours": lambda a=a: ours(a), "theirs": lambda a=a: theirs(a)})
        name = f"equivariant, a pass of {batch} × {nodes}² beside an FNO's"
        cost = seconds["ours"] / seconds["theirs"]
        rows.append(row(name, **seconds, unit="s", bar="at most 3 FNOs", holds=cost <= 3))
    a = torch.randn(16, 1, 43, 43)
    seconds = interleaved({"ours": step(ours, a), "theirs": step(theirs, a)})
    name = "equivariant, a training step of 16 × 43² beside an FNO's"
    cost = seconds["ours"] / seconds["theirs"]
    rows.append(row(name, **seconds, unit="s", bar="at most 3 FNOs", holds=cost <= 3))
    record("equivariant", rows)


if __name__ == "__main__":
    main()
