"""What the training loop costs beside a bare PyTorch loop on a small FNO at 43².

Both sides take the same steps: the same optimiser, batches, clipping and loss. Ours includes
everything a call of `fit` does: checking the data, the schedule, the log, and checkpoints to a
folder.
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.common import interleaved, record, row
from uqno.training import RelativeL2, fit

WIDTH, MODES, SIZE, SAMPLES, BATCH, EPOCHS = 32, 12, 43, 256, 16, 3


class Layer(nn.Module):
    """A pointwise skip, and a product with learned matrices on the lowest cosine modes."""

    modes: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.skip = nn.Conv2d(WIDTH, WIDTH, 1)
        self.kernel = nn.Parameter(torch.randn(MODES * MODES, WIDTH, WIDTH) / WIDTH)
        x = torch.linspace(0, torch.pi, SIZE)
        self.register_buffer("modes", torch.cos(torch.arange(MODES)[:, None] * x) / SIZE**0.5)

    def forward(self, x: Tensor) -> Tensor:
        low = (self.modes @ x @ self.modes.T).flatten(2)  # (batch, channel, mode)
        low = (low.permute(2, 0, 1) @ self.kernel).permute(1, 2, 0)
        return self.skip(x) + self.modes.T @ low.unflatten(2, (MODES, MODES)) @ self.modes


class Network(nn.Module):
    """An operator by its contract, on field `a`."""

    def __init__(self) -> None:
        super().__init__()
        layers = [step for _ in range(4) for step in (Layer(), nn.GELU())]
        self.network = nn.Sequential(nn.Conv2d(1, WIDTH, 1), *layers, nn.Conv2d(WIDTH, 1, 1))

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        output: Tensor = self.network(batch["a"])
        return output

    def collate(self, samples: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {name: torch.stack([s[name] for s in samples]) for name in samples[0]}

    def fit_normalisers(self, data: object) -> None:
        pass


def bare(a: Tensor, u: Tensor) -> None:
    network = Network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(SAMPLES).split(BATCH):
            truth = u[chosen]
            output = network({"a": a[chosen]})
            error = (output - truth).flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)
            optimizer.zero_grad()
            error.mean().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()


def ours(a: Tensor, u: Tensor) -> None:
    data = [{"a": a[i], "u": u[i]} for i in range(SAMPLES)]
    with tempfile.TemporaryDirectory() as name:
        fit(
            Network(),
            data,
            loss=RelativeL2(),
            epochs=EPOCHS,
            batch_size=BATCH,
            validation=0.0,
            folder=Path(name) / "run",
            accelerator="cpu",
        )


def main() -> None:
    torch.set_num_threads(1)
    a, u = torch.randn(2, SAMPLES, 1, SIZE, SIZE)
    times = interleaved({"fit": lambda: ours(a, u), "bare": lambda: bare(a, u)})
    steps = EPOCHS * SAMPLES / BATCH
    mine, theirs = (1000 * times[name] / steps for name in ("fit", "bare"))
    holds = mine <= 1.05 * theirs
    name = "training step of fit against a bare loop, FNO 43²"
    record("training_loop", [row(name, mine, theirs, "ms", "ratio ≥ 1/1.05", holds)])


if __name__ == "__main__":
    main()
