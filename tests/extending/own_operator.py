"""An operator of one's own: means over neighbourhoods of growing size, mixed point by point.

Importing this file is enough: a saved model finds the class by its name, and the uncertainty of a
model with such a base is a network of the same kind.
"""

import torch
import torch.nn.functional as F
from torch import nn

from uqno.operators import NeuralOperator


class Neighbourhoods(NeuralOperator):
    """u(x) = MLP(a(x), mean of a over windows of 3, 5, … nodes around x), on grids in 2-D.

    Args:
        in_channels: of a (batch, channel, x, y); out_channels: of the answer.
        windows: how many sizes of windows; width: of the hidden layer.
    """

    def __init__(self, in_channels, out_channels, windows=3, width=16):
        super().__init__()
        self.windows = windows
        self.mix = nn.Sequential(
            nn.Conv2d(in_channels * (1 + windows), width, 1),
            nn.GELU(),
            nn.Conv2d(width, out_channels, 1),
        )

    def forward(self, a):
        means = [
            F.avg_pool2d(a, 2 * k + 1, stride=1, padding=k, count_include_pad=False)
            for k in range(1, self.windows + 1)
        ]
        return self.mix(torch.cat([a, *means], dim=1))
