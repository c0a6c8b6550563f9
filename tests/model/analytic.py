"""Operators whose error law is known, so that a guarantee can be tested without training."""

import torch

from uqno.operators import Operator
from uqno.uncertainty.contract import Base, Options, Prediction, Residuals, Uncertainty


class ExactUncertainty(Uncertainty):
    """E(a)(x) = 1 + x: nothing to learn, so calibration alone decides."""

    name = "exact"

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        pass

    def predict(self, base: Base, batch):
        center, _ = base.view(batch)
        x = torch.linspace(0, 1, center.shape[-1], dtype=center.dtype)
        return Prediction(center, (1 + x).expand(center[:, 0].shape))


def double() -> Operator:
    """Ĝ(a) = 2a, exactly."""
    return Operator(lambda a: 2 * a, normalise=(), output=None)


def noisy_functions(generator, count, points, channels=1, rough=0.7):
    """u = 2a + S (1 + x) Z, Z normal at each point, S a lognormal scale of the function."""
    x = torch.linspace(0, 1, points)
    samples = []
    for _ in range(count):
        a = torch.randn(channels, points, generator=generator)
        scale = torch.exp(rough * torch.randn((), generator=generator))
        noise = torch.randn(channels, points, generator=generator)
        samples.append({"a": a, "u": 2 * a + scale * (1 + x) * noise})
    return samples
