"""FNO against neuraloperator's on Darcy flow: error after equal training, and at finer grids.

1000 functions at 43², 25 epochs, one loop, optimiser and schedule for both, equal parameter
counts; 200 test functions, the same ones at 43², 85², 141² and 421². Takes a quarter of an hour
on two free cores, most of it theirs. The data stay in data/, the trained operators in runs/.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from benchmarks.common import record, row
from uqno.data import FunctionStore, GridSamples
from uqno.experiments.darcy import Recipe, generate
from uqno.operators import FNO, Operator
from uqno.operators.symmetry import Symmetry, averaged
from uqno.training import RelativeL2, fit
from uqno.types import Samples

TRAIN, TEST, EPOCHS, BATCH, RATE = 1000, 200, 25, 16, 5e-3
FINER = (85, 141, 421)
MODES, WIDTH = 12, 32


def functions(name: str, count: int, keep: tuple[int, ...], seed: int) -> FunctionStore:
    path = Path("data") / f"benchmark-{name}.zarr"
    return generate(path, Recipe(seed=seed, resolution=421, keep=keep), count, workers=2)


def theirs() -> Operator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from neuralop.models import FNO as Peer

        odd = 2 * (MODES // 2) + 1  # the frequencies |k| ≤ MODES / 2 that ours keeps
        peer = Peer(
            n_modes=(odd, odd),
            in_channels=1,
            out_channels=1,
            hidden_channels=WIDTH,
            n_layers=4,
            use_channel_mlp=False,
        )
    return Operator(peer, fields={"x": "a"})


def parameters(module: nn.Module) -> int:
    return sum(p.numel() * (2 if p.is_complex() else 1) for p in module.parameters())


@torch.no_grad()
def error(operator: Operator, data: Samples, symmetries: Sequence[Symmetry] = ()) -> float:
    """Mean relative L2 error, as the loss measures it, averaged over symmetries if any."""
    loss, total = RelativeL2(), 0.0
    for i in range(len(data)):
        batch = operator.collate([data[i]])
        total += float(loss(averaged(operator, batch, symmetries)[0], batch))
    return total / len(data)


def train(name: str, operator: Operator, data: GridSamples) -> float:
    """Seconds of training; a finished run is read, not repeated."""
    folder = Path("runs") / f"benchmark-fno-{name}"
    done = fit(
        operator,
        data,
        loss=RelativeL2(),
        epochs=EPOCHS,
        batch_size=BATCH,
        learning_rate=RATE,
        validation=0.0,
        folder=folder,
        resume=True,
        progress=False,
    )
    return done.seconds


def main() -> None:
    training = functions("train", TRAIN, (43,), seed=1).samples(43).in_memory()
    test = functions("test", TEST, (43, *FINER), seed=2)
    torch.manual_seed(0)
    operators = {"ours": Operator(FNO(1, 1, modes=(MODES, MODES), width=WIDTH)), "theirs": theirs()}
    seconds = {name: train(name, operator, training) for name, operator in operators.items()}
    size = {name: parameters(operator.module) for name, operator in operators.items()}
    errors: dict[int, dict[str, float]] = {}
    for resolution in (43, *FINER):
        data = test.samples(resolution)
        errors[resolution] = {name: error(operator, data) for name, operator in operators.items()}
    at = errors[43]
    rows = [
        row("Darcy 43², test error", at["ours"], at["theirs"], "relative L2",
            "at most theirs", at["ours"] <= at["theirs"], parameters=size),
        row("Darcy 43², training time", seconds["ours"], seconds["theirs"], "s",
            "a third of theirs", seconds["ours"] <= seconds["theirs"] / 3),
    ]  # fmt: skip
    for resolution in FINER:
        ours, peer = (errors[resolution][name] / at[name] for name in ("ours", "theirs"))
        rows.append(
            row(f"trained at 43², error at {resolution}² / error at 43²", ours, peer, "",
                "at most 1.05", ours <= 1.05, error=errors[resolution])
        )  # fmt: skip
    record("fno_accuracy", rows)


if __name__ == "__main__":
    main()
