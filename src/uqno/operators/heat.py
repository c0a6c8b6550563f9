"""Functions on a box smoothed by the heat equation, which no symmetry of the box disturbs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from uqno.operators.spectral import CACHED_GRIDS, trapezoid


@lru_cache(maxsize=CACHED_GRIDS)
def _kernel(key: bytes, width: float) -> Tensor:
    with torch.inference_mode(False):  # cached: the next caller may want gradients
        return kernel(torch.tensor(np.frombuffer(key)), width)


def kernel(t: Tensor, width: float) -> Tensor:
    """(N, N): row i has the weights of the nodes in the smoothed value at node i.

    A Gaussian with its mirror images beyond both ends, so that nothing flows out, summed by the
    trapezoid rule; rows add up to 1.

    Args:
        t: the nodes of one dimension, as fractions of the box, increasing, (N,).
        width: the standard deviation of the Gaussian, a fraction of the box.
    """
    distance = torch.stack([t[:, None] - image for image in (t, -t, 2 - t)])
    exponent = -0.5 * (distance / width).square()
    weights = exponent.exp().sum(0) * trapezoid(t)
    return weights / weights.sum(1, keepdim=True)


def smoothed(a: Tensor, axes: Sequence[Tensor], width: float) -> Tensor:
    """a (batch, channel, *grid) smoothed along every dimension.

    Args:
        a: the functions.
        axes: the nodes of each dimension, as fractions of the box.
        width: as in `kernel`.
    """
    for j, t in enumerate(axes):
        matrix = _kernel(t.cpu().numpy().tobytes(), width).to(a)
        a = (a.movedim(2 + j, -1) @ matrix.T).movedim(-1, 2 + j)
    return a
