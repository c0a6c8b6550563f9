"""FNO against neuraloperator's: a training step, a large forward pass and its memory.

Both keep the frequencies |k_j| ≤ 6: `modes=12` here is `n_modes=13` there (theirs with
n_modes=12 drops one frequency a dimension; a test shows which waves pass).
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.common import interleaved, record, row
from uqno.operators import FNO

MODES, WIDTH, LAYERS, BATCH = 12, 32, 4, 16
LARGE = (2, 1, 421, 421)


def models() -> dict[str, nn.Module]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from neuralop.models import FNO as Theirs

        theirs = Theirs(
            n_modes=(MODES + 1, MODES + 1),
            in_channels=1,
            out_channels=1,
            hidden_channels=WIDTH,
            n_layers=LAYERS,
            use_channel_mlp=False,
        )
    return {"ours": FNO(1, 1, (MODES, MODES), WIDTH, LAYERS), "theirs": theirs}


def parameters(model: nn.Module) -> int:
    return sum(p.numel() * (2 if p.is_complex() else 1) for p in model.parameters())


def training_step(model: nn.Module, a: Tensor, u: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)

    def step() -> None:
        optimiser.zero_grad()
        (model(a) - u).square().mean().backward()
        optimiser.step()

    return step


def forward(model: nn.Module, a: Tensor) -> Callable[[], None]:
    def run() -> None:
        with torch.no_grad():
            model(a)

    return run


def speed() -> list[dict[str, object]]:
    rows = []
    counts = {side: parameters(model) for side, model in models().items()}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for n, repeats in ((43, 9), (85, 7), (141, 3)):
            a, u = torch.randn(BATCH, 1, n, n), torch.randn(BATCH, 1, n, n)
            steps = {side: training_step(model, a, u) for side, model in models().items()}
            seconds = interleaved(steps, repeats)
            name = f"FNO training step, {n}², batch {BATCH}, threads {threads}"
            rows.append(speed_row(name, seconds, counts))
        a = torch.randn(LARGE)
        runs = {side: forward(model, a) for side, model in models().items()}
        name = f"FNO forward, 421², batch {LARGE[0]}, threads {threads}"
        rows.append(speed_row(name, interleaved(runs, 5), counts))
    return rows


def speed_row(name: str, seconds: dict[str, float], counts: dict[str, int]) -> dict[str, object]:
    ours, theirs = seconds["ours"], seconds["theirs"]
    holds = theirs >= 3 * ours
    return row(name, ours, theirs, "s", "at least 3 times faster", holds, parameters=counts)


def memory() -> dict[str, object]:
    """Peak resident memory of a process that imports both packages and runs one side."""
    peak = {}
    for side in ("ours", "theirs"):
        command = [sys.executable, "-m", "benchmarks.fno", side]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        peak[side] = json.loads(answer.stdout.splitlines()[-1])
    ours, theirs = (peak[side]["after"] for side in ("ours", "theirs"))
    before = {side: peak[side]["before"] for side in peak}
    name = f"FNO forward, 421², batch {LARGE[0]}, peak memory"
    return row(name, ours, theirs, "MB", "not above theirs", ours <= theirs, before=before)


def one_side(side: str) -> None:
    torch.set_num_threads(1)
    model, a = models()[side], torch.randn(LARGE)
    before = peak_memory()
    forward(model, a)()
    print(json.dumps({"before": before, "after": peak_memory()}))


def peak_memory() -> float:
    """MB. Not getrusage: its peak goes on from the process that started this one."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def main() -> None:
    counts = {side: parameters(model) for side, model in models().items()}
    print(f"parameters (real numbers): {counts}; frequencies |k| ≤ {MODES // 2} on both sides")
    record("fno", [*speed(), memory()])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one_side(sys.argv[1])
    else:
        main()
