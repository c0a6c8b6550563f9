"""What it costs to check, before each band, that the model is the one that was calibrated.

Against one band of one function, by an FNO as it comes, at the smallest and the largest grid of
the paper's Darcy problem. The check does not depend on the grid.
"""

import torch

import uqno
from benchmarks.common import interleaved, record, row
from uqno.model import tie
from uqno.operators import FNO

GRIDS = (43, 421)


def functions(count: int, nodes: int) -> list[dict[str, torch.Tensor]]:
    a = torch.randn(count, 1, nodes, nodes)
    return [{"a": x, "u": x + 0.1 * torch.randn_like(x)} for x in a]


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = uqno.UQNO(FNO(1, 1, modes=(12, 12), width=32))
    model.fit(functions(8, GRIDS[0]), epochs=1, batch_size=2)
    model.calibrate(functions(20, GRIDS[0]), alpha=0.2, delta=0.2)
    (calibration,) = model.calibrations
    glance = tie.Glance.of(model.base, model.uncertainty)
    inputs = {nodes: torch.randn(1, nodes, nodes) for nodes in GRIDS}
    contestants = {
        "check": lambda: tie.check(
            glance, model.base, model.uncertainty, calibration.model, model.probe
        ),
        **{f"{n}²": lambda n=n: model.predict(inputs[n]) for n in GRIDS},
    }
    seconds = interleaved(contestants, repeats=25)
    record(
        "tie",
        [
            row(f"check of the tie / one band at {n}²", seconds["check"], seconds[f"{n}²"], "s",
                "at most a tenth of a band", seconds["check"] <= seconds[f"{n}²"] / 10)
            for n in GRIDS
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
