"""Neural posterior principal components: a subspace in which the error lies."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from uqno.operators import Operator
from uqno.types import Batch
from uqno.uncertainty.contract import Base, Options, Prediction, Residuals
from uqno.uncertainty.deviation import checked_count, checked_multiplier
from uqno.uncertainty.inputs import mean_error, network_inputs, without_queries
from uqno.uncertainty.network import MakeNetwork, NetworkUncertainty


class Components(NetworkUncertainty):
    """E(a)(x) = max(floor, multiplier · (Σ_k σ_k² ‖e_k(x)‖²)^½), e_k the K likeliest errors.

    A network gives K fields w_k; Gram–Schmidt, in the inner product ∫ f·g dμ / μ(D) of the
    function, makes them orthonormal e_k with σ_k what is left of ‖w_k‖. They are trained so that
    the e_k hold as much of the error's energy as they can, and σ_k² is its mean along e_k.
    The method promises a subspace, no band: `explained` is how much of an error lies in it, and
    E the deviation that its K variances make, to be calibrated. Directions have no sign, so they
    are not averaged over symmetries.

    Args:
        components: K.
        multiplier: deviations that make the uncertainty.
        network: (input channels, K · channels) → a module, like the base by default.
        floor: the smallest uncertainty, as a share of the mean training error; a subspace leaves
            out most errors, so it is that of the quantile estimator.

    Reference:
        Nehme et al., Uncertainty quantification via neural posterior principal components,
        NeurIPS 2023.
    """

    name = "nppc"
    bounded = False

    def __init__(
        self,
        components: int = 3,
        multiplier: float = 2.0,
        network: MakeNetwork | None = None,
        floor: float = 0.05,
    ) -> None:
        super().__init__(network, floor)
        self.components = checked_count("components", components, 1)
        self.multiplier = checked_multiplier(multiplier)

    def saved(self) -> dict[str, Any]:
        config = {"components": self.components, "multiplier": self.multiplier}
        return {"config": {**config, "floor": self.floor_share}, **self.saved_network()}

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        scale = mean_error(residuals, power=2)
        self.train_network(
            base,
            residuals,
            options,
            outputs=self.components * len(residuals.data[0]["u"]),
            loss=ComponentsLoss(self.components, scale),
            scale=scale,
            floor=self.floor_share * mean_error(residuals),
        )

    def predict(self, base: Base, batch: Batch) -> Prediction:
        center, fields, sigma = self.subspace(base, batch)
        deviation = (fields * sigma[(...,) + (None,) * (fields.ndim - 2)]).flatten(1, 2).norm(dim=1)
        raw = self.multiplier * deviation.to(center)
        return Prediction(center, raw.clamp_min(self.fitted().floor.to(raw)))

    def explained(self, base: Base, batch: Batch, truth: Tensor) -> Tensor:
        """Σ_k <e_k, r>² / ‖r‖² (batch,): the share of r = truth − Ĝ(a) that lies in the subspace.

        Args:
            base: Ĝ.
            batch: the functions, without queries.
            truth: (batch, channel, *points), on the points of the function; a residual of 0
                counts 0.
        """
        if "queries" in batch:
            raise ValueError(
                "the share of an error at queries is no integral over the function: leave out "
                "the queries"
            )
        center, fields, _ = self.subspace(base, batch)
        if truth.shape != center.shape:
            raise ValueError(
                f"truth has shape {tuple(truth.shape)}, expected that of the centre, "
                f"{tuple(center.shape)}"
            )
        weights = batch.get("weights")
        residual = in_l2((truth - center).double()[:, None], weights)[:, 0]
        return shares(in_l2(fields, weights), residual).sum(1)

    def subspace(self, base: Base, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Ĝ(a) (batch, channel, *points), e (batch, K, channel, *points) and σ (batch, K)."""
        operator = self.fitted()
        center, inputs = network_inputs(base, batch)
        # The integrals are over the grid, wherever the answer is wanted.
        here = without_queries(inputs) if "a" in inputs else inputs
        w = self.fields(operator, here)
        flat = in_l2(w, here.get("weights"))
        e, sigma = gram_schmidt(flat)
        if here.keys() != inputs.keys():
            w = self.fields(operator, inputs)
        # w = L e on the grid, so at any points e = L⁻¹ w with the same L.
        mixing = (flat @ e.mT).tril()
        lost = torch.diag_embed((mixing.diagonal(dim1=1, dim2=2) <= 0).to(mixing))
        solved = torch.linalg.solve_triangular(mixing + lost, w.flatten(2), upper=False)
        return center, solved.view(w.shape), sigma

    def fields(self, operator: Operator, inputs: Batch) -> Tensor:
        """w (batch, K, channel, *points), in double: Gram–Schmidt takes differences."""
        return split(operator(inputs).double(), self.components)


@dataclass(frozen=True)
class ComponentsLoss:
    """mean over functions of −Σ_k <e_k, r>² / ‖r‖² + Σ_k (σ_k² − <e_k, r>²)² / scale⁴.

    The second term moves σ_k alone: <e_k, r> counts as given there. It has one scale for all
    functions, or σ_k² would not tend to the mean of <e_k, r>²; so both have no units.

    Called with the fields w (batch, components · channel, *points) and a batch whose `u` is the
    residual r (batch, channel, *points).

    Attributes:
        components: K.
        scale: the root mean square of training errors.
    """

    components: int
    scale: float

    def __call__(self, output: Tensor, batch: Batch) -> Tensor:
        residual, weights = batch["u"], batch.get("weights")
        expected = (len(residual), self.components * residual.shape[1], *residual.shape[2:])
        if output.shape != expected:
            raise ValueError(
                f"the fields have shape {tuple(output.shape)}, expected {expected}: "
                f"{self.components} fields with the channels of the residual, on its points"
            )
        fields = in_l2(split(output, self.components), weights)
        e, sigma = gram_schmidt(fields)
        r = in_l2(residual[:, None], weights)[:, 0]
        energy = (e.detach() @ r[..., None])[..., 0].square()
        excess = (sigma.square() - energy) / self.scale**2
        return (excess.square() - shares(e, r)).sum(1).mean()


def split(output: Tensor, components: int) -> Tensor:
    """(batch, components · channel, *points) to (batch, components, channel, *points)."""
    return output.reshape(len(output), components, -1, *output.shape[2:])


def in_l2(fields: Tensor, weights: Tensor | None) -> Tensor:
    """f √(dμ/μ(D)) (batch, m, channel · points), whose dot products are inner products.

    Args:
        fields: f, (batch, m, channel, *points).
        weights: the measure μ, (batch, *points), 0 on padding; None for the uniform one.
    """
    flat = fields.flatten(3)
    if weights is None:
        return (flat / math.sqrt(flat.shape[-1])).flatten(2)
    mass = weights.flatten(1).to(flat)
    root = (mass / mass.sum(1, keepdim=True)).sqrt()
    return (flat * root[:, None, None]).flatten(2)


def gram_schmidt(w: Tensor) -> tuple[Tensor, Tensor]:
    """e_k = w̃_k / ‖w̃_k‖ with w̃_k = w_k − Σ_{j<k} <w_k, e_j> e_j, and σ_k = ‖w̃_k‖.

    Later directions do not move earlier ones: those count as given. A field that the earlier ones
    span has e_k = 0, σ_k = 0.

    Args:
        w: (batch, K, n).

    Returns:
        e, (batch, K, n), and σ, (batch, K).
    """
    directions: list[Tensor] = []
    norms: list[Tensor] = []
    for field in w.unbind(1):
        left = field
        for e in directions:
            given = e.detach()
            left = left - (left * given).sum(1, keepdim=True) * given
        norm = torch.linalg.vector_norm(left, dim=1)
        directions.append(left / torch.where(norm > 0, norm, torch.ones_like(norm))[:, None])
        norms.append(norm)
    return torch.stack(directions, dim=1), torch.stack(norms, dim=1)


def shares(e: Tensor, residual: Tensor) -> Tensor:
    """<e_k, r>² / ‖r‖² (batch, K) of e (batch, K, n) and r (batch, n); 0 for r = 0."""
    energy = residual.square().sum(1, keepdim=True)
    along = (e @ residual[..., None])[..., 0].square()
    return along / torch.where(energy > 0, energy, torch.ones_like(energy))
