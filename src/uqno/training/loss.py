"""Losses: what the base operator and the uncertainty are trained on.

Every loss is a mean over the batch of one number a function, and every number is an
integral against the measure μ (`batch["weights"]`, uniform when absent) divided by the
measure of the domain. So neither the batch size, nor the resolution, nor padding
(weight 0) changes what is minimised.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from uqno.types import Batch


def pointwise_error(residual: Tensor) -> Tensor:
    """e(x) = ‖r(x)‖₂, the 2-norm over the channels.

    Args:
        residual: r, (batch, channel, *points).

    Returns:
        (batch, *points).
    """
    if residual.shape[1] == 1:
        return residual[:, 0].abs()
    error: Tensor = torch.linalg.vector_norm(residual, dim=1)
    return error


def quantile_loss(
    error: Tensor, uncertainty: Tensor, alpha: float, weights: Tensor | None = None
) -> Tensor:
    """mean over functions of ∫ (1 − α)(e − E)₊ + α(E − e)₊ dμ / μ(D).

    The minimiser over E(x) is the (1 − α)-quantile of the error at x, whatever the batch
    size: nothing in the loss depends on the other functions of the batch.

    Args:
        error: e, (batch, *points).
        uncertainty: E, (batch, *points).
        alpha: α, in (0, 1).
        weights: the measure μ, (batch, *points) or (*points); None for the uniform one.

    Returns:
        A scalar.

    Raises:
        ValueError: α is out of its bounds, or the shapes of error and uncertainty differ.
    """
    check_level(alpha)
    if error.shape != uncertainty.shape:
        raise ValueError(
            f"error has shape {tuple(error.shape)} and uncertainty {tuple(uncertainty.shape)}: "
            "they must be equal, one uncertainty a point"
        )
    excess = error - uncertainty
    loss = torch.maximum((1 - alpha) * excess, -alpha * excess)
    return _integrate(loss, weights).mean()


def error_and_uncertainty(output: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """‖u − Ĝ(a)‖ and E of a batch in which "u" is the residual, (batch, *points) each.

    Raises:
        ValueError: the uncertainty has not one channel on the points of the residual.
    """
    residual = batch["u"]
    expected = (residual.shape[0], 1, *residual.shape[2:])
    if output.shape != expected:
        raise ValueError(
            f"the uncertainty has shape {tuple(output.shape)}, expected {expected}: "
            "one channel, on the points of the residual"
        )
    return pointwise_error(residual), output[:, 0]


@dataclass(frozen=True)
class QuantileLoss:
    """`quantile_loss` of a predicted uncertainty, with the residual to cover in `batch["u"]`.

    It is called with the uncertainty, (batch, 1, *points), and a batch in which "u" is the residual
    u − Ĝ(a), (batch, channel, *points).

    Args:
        alpha: α, in (0, 1).

    Raises:
        ValueError: α is out of its bounds, or, when called, the shapes do not fit.
    """

    alpha: float

    def __post_init__(self) -> None:
        check_level(self.alpha)

    def __call__(self, output: Tensor, batch: Batch) -> Tensor:
        error, uncertainty = error_and_uncertainty(output, batch)
        return quantile_loss(error, uncertainty, self.alpha, batch.get("weights"))


@dataclass(frozen=True)
class BandLoss:
    """log of the bandwidth that a batch would have: what E should make small for one α.

    log mean E + log M_p(s), where s is each function's score, a smooth (1 − α)-quantile of the
    ratios e / E over its domain, and M_p the power mean over the functions of the batch, near
    their maximum, as λ̂ is near the largest score where δ is small. E times a constant has the
    same loss: only its shape matters.

    s is the mean of the ratios between the quantiles 1 − α − w and 1 − α + w.

    It is called with the uncertainty, (batch, 1, *points), and a batch in which "u" is the residual
    u − Ĝ(a), (batch, channel, *points).

    Args:
        alpha: α, in (0, 1).
        power: p, at least 1.
        window: w as a share of α, in (0, 1].

    Raises:
        ValueError: an argument is out of its bounds, or, when called, the shapes do not fit.

    Reference:
        Stutz et al., Learning optimal conformal classifiers, ICLR 2022, for training through a
        smooth calibration; this loss is this library's own.
    """

    alpha: float
    power: float = 12.0
    window: float = 0.3

    def __post_init__(self) -> None:
        check_level(self.alpha)
        if not 1 <= self.power < float("inf"):
            raise ValueError(f"power = {self.power} must be at least 1 and finite, such as 12")
        if not 0 < self.window <= 1:
            raise ValueError(f"window = {self.window} must lie in (0, 1], such as 0.3")

    def __call__(self, output: Tensor, batch: Batch) -> Tensor:
        error, uncertainty = error_and_uncertainty(output, batch)
        weights = batch.get("weights")
        size = _integrate(uncertainty, weights).mean()
        scores = self.scores((error / uncertainty).flatten(1), weights)
        top = scores.detach().amax()
        largest = ((scores / top) ** self.power).mean() ** (1 / self.power) * top
        return size.log() + largest.log()

    def scores(self, ratios: Tensor, weights: Tensor | None) -> Tensor:
        """s of each function, (batch,), from ratios (batch, points)."""
        order = ratios.argsort(dim=1)
        ratios = ratios.gather(1, order)
        if weights is None:
            mass = ratios.new_full(ratios.shape, 1 / ratios.shape[1])
        else:
            mass = weights.reshape(-1, ratios.shape[1]).expand_as(ratios).gather(1, order)
            mass = mass / mass.sum(1, keepdim=True)
        after = mass.cumsum(1)
        wide = self.window * min(self.alpha, 1 - self.alpha)
        low, high = 1 - self.alpha - wide, 1 - self.alpha + wide
        share = (after.clamp(max=high) - (after - mass).clamp(min=low)).clamp(min=0)
        return (ratios * share).sum(1) / share.sum(1)


@dataclass(frozen=True)
class RelativeL2:
    """mean over functions of ‖v − u‖ / ‖u‖, with ‖v‖² = ∫ |v(x)|² dμ / μ(D).

    A truth of norm zero has no relative error: it counts with its absolute one, ‖v‖.

    It is called with v and a batch in which "u" has the same shape, (batch, channel, *points).
    """

    def __call__(self, output: Tensor, batch: Batch) -> Tensor:
        truth, weights = batch["u"], batch.get("weights")
        check_shapes(output, truth)
        return _relative(_norm([output - truth], weights), _norm([truth], weights))


@dataclass(frozen=True)
class RelativeH1:
    """mean over functions of ‖v − u‖₁ / ‖u‖₁, with ‖v‖₁² = ‖v‖² + Σᵢ ‖∂v/∂xᵢ‖².

    Derivatives are second-order finite differences on a regular grid of any spacing (first
    order at its edges). A truth of norm zero counts with its absolute error.

    It is called with v and a batch in which "u" has the same shape, (batch, channel, *grid).

    Args:
        coordinates: one increasing sequence an axis, of as many numbers as the axis has points;
            None is the unit box with both ends on the grid, at any resolution.

    Raises:
        ValueError: coordinates do not increase, or, when called, do not fit the grid.
    """

    coordinates: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        for axis, x in enumerate(self.coordinates or ()):
            if len(x) < 2 or any(b <= a for a, b in pairwise(x)):
                raise ValueError(
                    f"the coordinates of axis {axis} must be at least 2 increasing numbers, "
                    f"got {list(x)[:5]}: sort them, or drop the axis"
                )

    def __call__(self, output: Tensor, batch: Batch) -> Tensor:
        truth, weights = batch["u"], batch.get("weights")
        check_shapes(output, truth)
        difference = output - truth
        error = _norm([difference, *self.derivatives(difference)], weights)
        return _relative(error, _norm([truth, *self.derivatives(truth)], weights))

    def derivatives(self, field: Tensor) -> tuple[Tensor, ...]:
        """∂v/∂xᵢ for every axis i of the grid.

        Args:
            field: v, (batch, channel, *grid).

        Returns:
            One tensor of the shape of v for each axis.
        """
        axes = range(2, field.ndim)
        spacing = [self._axis(i - 2, field) for i in axes]
        return torch.gradient(field, spacing=spacing, dim=list(axes))

    def _axis(self, axis: int, field: Tensor) -> Tensor:
        points = field.shape[axis + 2]
        if points < 2:
            raise ValueError(
                f"axis {axis} of the grid has {points} point, a derivative needs 2: use RelativeL2"
            )
        if self.coordinates is None:
            return torch.linspace(0, 1, points, dtype=field.dtype, device=field.device)
        given = [len(x) for x in self.coordinates]
        if given != list(field.shape[2:]):
            raise ValueError(
                f"the grid is {tuple(field.shape[2:])} but the coordinates have {given} points: "
                "give one sequence an axis, each as long as that axis"
            )
        return torch.tensor(self.coordinates[axis], dtype=field.dtype, device=field.device)


def check_level(alpha: float) -> None:
    """Refuse an α outside (0, 1)."""
    if not 0 < alpha < 1:
        raise ValueError(
            f"alpha = {alpha} must lie strictly between 0 and 1: it is the share of the domain "
            "that may lie outside the band, such as 0.1"
        )


def check_shapes(output: Tensor, truth: Tensor) -> None:
    """Broadcasting would train on something else in silence, so shapes must be equal."""
    if output.shape != truth.shape:
        raise ValueError(
            f"the operator's output has shape {tuple(output.shape)} but the truth 'u' has "
            f"{tuple(truth.shape)}: check its out_channels and the points it is evaluated at"
        )


def _integrate(values: Tensor, weights: Tensor | None) -> Tensor:
    """∫ f dμ / μ(D) of each function; values: (batch, *points) -> (batch,)."""
    if weights is None:
        return values.flatten(1).mean(1)
    weights = weights.expand_as(values).flatten(1)
    return (values.flatten(1) * weights).sum(1) / weights.sum(1)


def _norm(fields: list[Tensor], weights: Tensor | None) -> Tensor:
    """(Σ_f ∫ |f|² dμ / μ(D))^½ of each function; fields: (batch, channel, *points) each.

    `vector_norm` rather than the root of a sum: its gradient at zero is zero, not NaN.
    """
    points = fields[0][:, 0]
    if weights is None:
        scale = (points.numel() / len(points)) ** -0.5
        flat = [f.flatten(1) for f in fields]
    else:
        mass = weights.expand_as(points).flatten(1)
        root = (mass / mass.sum(1, keepdim=True)).sqrt().unsqueeze(1)
        scale = 1.0
        flat = [(f.flatten(2) * root).flatten(1) for f in fields]
    whole = flat[0] if len(flat) == 1 else torch.cat(flat, dim=1)
    norm: Tensor = torch.linalg.vector_norm(whole, dim=1) * scale
    return norm


def _relative(error: Tensor, norm: Tensor) -> Tensor:
    return (error / torch.where(norm > 0, norm, torch.ones_like(norm))).mean()
