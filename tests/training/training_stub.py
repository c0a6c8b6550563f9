"""Small operators that follow the contract of `uqno.operators`, and data for them."""

import torch
from torch import Tensor, nn


class Stub(nn.Module):
    """A pointwise network on field `a`, with dropout and an input normaliser as a buffer."""

    mean: Tensor

    def __init__(self, channels: int = 1, width: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1))
        self.network = nn.Sequential(
            nn.Conv1d(channels, width, 1),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Conv1d(width, channels, 1),
        )

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        return self.network(batch["a"] - self.mean)

    def collate(self, samples: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {name: torch.stack([s[name] for s in samples]) for name in samples[0]}

    def batch(self, samples: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return self.collate(samples)

    def fit_normalisers(self, data: object) -> None:
        """Channels are known only from data, so the buffer changes its shape."""
        self.mean = torch.stack([data[i]["a"].mean(1, True) for i in range(len(data))]).mean(0)


def make_data(samples: int = 24, points: int = 9, seed: int = 0) -> list[dict[str, Tensor]]:
    """u(x) = sin(2 a(x)) for random a."""
    draw = torch.Generator().manual_seed(seed)
    a = torch.randn(samples, 1, points, generator=draw)
    return [{"a": a[i], "u": torch.sin(2 * a[i])} for i in range(samples)]


def make_stub(seed: int = 0, **options: float) -> Stub:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Stub(**options)


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    mine, theirs = one.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k]) for k in mine)
