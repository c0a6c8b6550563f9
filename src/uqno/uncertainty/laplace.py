"""Last-layer Laplace: the posterior of a linear layer is Gaussian, and known in closed form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from uqno.operators import Operator
from uqno.operators.symmetry import averaged
from uqno.types import Batch, Reals
from uqno.uncertainty.contract import Base, Options, Prediction, Residuals
from uqno.uncertainty.deviation import FlooredUncertainty, checked_multiplier
from uqno.uncertainty.inputs import one_by_one

# Points whose features are held in double at once.
PIECE = 1 << 16


class Laplace(FlooredUncertainty):
    """E(a)(x) = multiplier · (Σ_c std_c² (1/β_c + φ'(α_c + β_c Φ'Φ)⁻¹ φ))^½, φ = (features(x), 1).

    For a base whose answer is linear in `features`: u_c = mean_c + std_c w_c·φ, as FNO and GINO.
    In the base's normalised units, around the trained weights w_c: Gaussian noise of precision
    β_c at every point of a training function, a Gaussian prior of precision α_c on w_c; both
    maximise the evidence. So E is `multiplier` predictive standard deviations, noise included.
    Points count by their weights, where there are any, and each function as much as it has points.
    Features are averaged over the symmetries, as the answer that is linear in them.

    Args:
        multiplier: standard deviations that make the uncertainty.
        floor: the smallest uncertainty, as a share of the mean training error.

    References:
        MacKay, A practical Bayesian framework for backpropagation networks, Neural Computation
        1992; Daxberger et al., Laplace redux: effortless Bayesian deep learning, NeurIPS 2021.
    """

    name = "laplace"

    values: Tensor
    vectors: Tensor
    prior: Tensor
    noise: Tensor

    def __init__(self, multiplier: float = 2.0, floor: float = 0.001) -> None:
        super().__init__(floor)
        self.multiplier = checked_multiplier(multiplier)
        for name in ("values", "vectors", "prior", "noise"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))

    def saved(self) -> dict[str, Any]:
        return {"config": {"multiplier": self.multiplier, "floor": self.floor_share}}

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        for name, tensor in state.items():  # their shapes are known from data alone
            setattr(self, name, torch.zeros_like(tensor))
        self.load_state_dict(state)

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        weights = last_weights(base.only_operator("last-layer Laplace"))
        self.measure(residuals)
        of_data = moments(base, residuals)
        values, vectors = torch.linalg.eigh(of_data.features)
        values = values.clamp_min(0)
        best = [
            evidence_maximum(values.numpy(), of_data.count, float(r), float(w))
            for r, w in zip(of_data.squares, weights.square().sum(1), strict=True)
        ]
        prior, noise = (
            torch.tensor(column, dtype=torch.float64) for column in zip(*best, strict=True)
        )
        self.values, self.vectors, self.prior, self.noise = values, vectors, prior, noise
        self.to(base.operator.device)

    @torch.no_grad()
    def predict(self, base: Base, batch: Batch) -> Prediction:
        self.need_fit()
        center = base.center(batch)
        variance = torch.cat([self.variance(base, one) for one in one_by_one(batch)])
        return Prediction(center, self.floored(self.multiplier * variance.sqrt().to(center)))

    def variance(self, base: Base, batch: Batch) -> Tensor:
        """Σ_c of the predictive variance (batch, *points), in the units of u; in double."""
        phi = bias_and_features(base, batch)
        scales = base.operator.outputs.std.double().square().expand(len(self.noise))
        # Σ_c std_c² φ'(α_c + β_c Φ'Φ)⁻¹ φ has the eigenvectors of Φ'Φ and these eigenvalues.
        variances = 1 / (self.prior[:, None] + self.noise[:, None] * self.values)
        eigenvalues = (scales[:, None] * variances).sum(0)
        factor = (self.vectors * eigenvalues.sqrt()).T
        noise = (scales / self.noise).sum()
        parts = torch.split(phi.flatten(2), PIECE, dim=2)
        variance = torch.cat([(factor @ some.double()).square().sum(1) for some in parts], dim=1)
        return (variance + noise).view(-1, *phi.shape[2:])


@dataclass(frozen=True)
class Moments:
    """Φ'Φ (p, p) and r'r (channel,) in double over `count` points, r = (u − mean) / std − w·φ.

    Nothing else of the data is needed, as the mean of the posterior is the trained layer.
    """

    features: Tensor
    squares: Tensor
    count: int


@torch.no_grad()
def moments(base: Base, residuals: Residuals) -> Moments:
    """The moments of the base on the training functions, one in memory at a time."""
    weights = last_weights(base.operator)
    gram = squares = torch.zeros((), dtype=torch.float64)
    count = 0
    for i in range(len(residuals)):
        batch = base.batch([residuals.data[i]])  # a function of its own, so without padding
        phi = bias_and_features(base, batch).flatten(2)[0]
        truth = base.operator.outputs(batch["u"]).flatten(2)[0]
        mass = torch.ones_like(truth[0])
        if "weights" in batch:
            mass = batch["weights"].to(truth).flatten()
            mass = mass * (len(mass) / mass.sum())
        count += len(mass)
        whole = (phi, truth, mass)
        for parts in zip(*(torch.split(x, PIECE, dim=-1) for x in whole), strict=True):
            some, u, w = (part.double() for part in parts)
            gram = gram + ((some * w) @ some.T).cpu()
            squares = squares + ((u - weights @ some).square() * w).sum(1).cpu()
    return Moments(gram, squares, count)


def bias_and_features(base: Base, batch: Batch) -> Tensor:
    """φ (batch, hidden + 1, *points); the last one is 1, for the bias."""
    phi, _ = averaged(base.operator.features, batch, base.symmetries)
    return torch.cat((phi, torch.ones_like(phi[:, :1])), dim=1)


def evidence_maximum(
    values: Reals, count: int, squares: float, weights: float
) -> tuple[float, float]:
    """(α, β) of the largest evidence, from the eigenvalues s of Φ'Φ, N, r'r and ‖w‖².

    log p = ½ (N log β − β r'r + p log α − α ‖w‖² − Σ log(α + β s)) + constant. With ρ = α/β the
    best β is N / (r'r + ρ ‖w‖²), which leaves a function of log ρ alone.
    """

    def lack(log_ratio: float) -> float:
        ratio = np.exp(log_ratio)
        loss = max(squares + ratio * weights, np.finfo(float).tiny)
        return float(count * np.log(loss) + np.log1p(values / ratio).sum())

    # From a prior that no data could overcome to one that changes nothing.
    tried = np.log(max(values.max(), 1e-300)) + np.linspace(-40, 20, 241)
    best = int(np.argmin([lack(t) for t in tried]))
    around = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
    least = minimize_scalar(lack, bounds=around, method="bounded", options={"xatol": 1e-9})
    ratio = float(np.exp(least.x))
    beta = count / max(squares + ratio * weights, np.finfo(float).tiny)
    return ratio * beta, beta


def last_weights(operator: Operator) -> Tensor:
    """w (channel, hidden + 1) of the last layer in double; the last column is the bias."""
    last = getattr(operator.module, "last", None)
    features = hasattr(operator.module, "features")
    if not features or not isinstance(last, nn.Linear) or last.bias is None:
        raise ValueError(
            f"{type(operator.module).__name__} has no linear `last` layer (with bias) of its "
            "`features`: use FNO or GINO, or add both to the module"
        )
    return torch.cat((last.weight, last.bias[:, None]), dim=1).detach().double()
