"""Standardise channels with statistics of the training data, saved in the state dict."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class Normaliser(nn.Module):
    """z = (x − mean) / std for every channel; the identity until `fit`.

    >>> normaliser = Normaliser()
    >>> normaliser.fit([(torch.tensor([[1.0, 3.0]]), None)])
    >>> normaliser(torch.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[-1.,  0.,  1.]]])
    """

    mean: Tensor
    std: Tensor
    fitted: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1))
        self.register_buffer("std", torch.ones(1))
        self.register_buffer("fitted", torch.tensor(False))

    def fit(self, values: Iterable[tuple[Tensor, Tensor | None]], *, centred: bool = True) -> None:
        """Take the weighted mean and deviation over all functions, one in memory at a time.

        Args:
            values: pairs of a function (channel, *points) and its weights (*points), or None for 1
                a point; a function counts by the sum of its weights.
            centred: False leaves zero where it is: the mean is 0, and the deviation is from 0.
        """
        total, mean, squares = 0.0, torch.zeros(()), torch.zeros(())
        for function, weights in values:
            x = function.detach().double().flatten(1).cpu()
            w = torch.ones(x.shape[1]) if weights is None else weights.detach().flatten().cpu()
            w = w.double()
            size = float(w.sum())
            here = (x * w).sum(1) / size
            delta = here - mean
            scatter = ((x - here.unsqueeze(1)).square() * w).sum(1)
            squares = squares + scatter + delta.square() * (total * size / (total + size))
            total += size
            mean = mean + delta * (size / total)
        if not total:
            raise ValueError("no functions to fit the normaliser on; give training data")
        if not centred:
            squares, mean = squares + total * mean.square(), torch.zeros_like(mean)
        std = (squares / total).sqrt()
        # A channel that never changes carries nothing: leave its scale alone.
        std = torch.where(std > 1e-12 * mean.abs(), std, torch.ones_like(std))
        self.mean, self.std = mean.to(self.mean), std.to(self.std)
        self.fitted = torch.ones_like(self.fitted)

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, channel, *points)."""
        return (x - self._along(self.mean, x)) / self._along(self.std, x)

    def inverse(self, z: Tensor) -> Tensor:
        """mean + std · z, z (batch, channel, *points)."""
        return self._along(self.mean, z) + self._along(self.std, z) * z

    def _along(self, statistic: Tensor, x: Tensor) -> Tensor:
        if statistic.numel() not in (1, x.shape[1]):
            raise ValueError(
                f"normaliser fitted on {statistic.numel()} channels, got {x.shape[1]} in "
                f"{tuple(x.shape)}; give the channels the model was trained on"
            )
        return statistic.view(-1, *(1 for _ in x.shape[2:]))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # The number of channels is known only from data: take it from what is loaded.
        for name in ("mean", "std"):
            if prefix + name in state_dict:
                buffer = getattr(self, name)
                setattr(self, name, buffer.new_empty(state_dict[prefix + name].shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)
