"""The disagreement of operators: where two that were trained alike differ, both are unsure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from uqno.operators import Operator, as_operator
from uqno.operators.symmetry import augmentation, averaged
from uqno.training import RelativeL2, fit, pointwise_error
from uqno.training.samples import derived_seed, generator
from uqno.types import Batch, Samples
from uqno.uncertainty.contract import Base, Options, Prediction, Residuals
from uqno.uncertainty.deviation import DeviationUncertainty, FlooredUncertainty, checked_count


class Disagreement(nn.Module):
    """Deviation of Ĝ(a) and other operators' answers, point by point: a feature for E to see.

    Args:
        operators: trained on functions that neither the uncertainty nor the calibration sees, or on
            the base's own; any that take the same batch.
    """

    def __init__(self, *operators: Callable[..., Tensor]) -> None:
        super().__init__()
        if not operators:
            raise ValueError("0 operators to compare with the base: give at least 1")
        self.operators = nn.ModuleList(as_operator(o) for o in operators)
        self.eval()

    @torch.no_grad()
    def forward(self, batch: Batch, center: Tensor) -> Tensor:
        """(batch, channel, *points), ≥ 0."""
        answers = [center, *(operator(batch) for operator in self.operators)]
        return torch.stack(answers).std(dim=0, correction=0)


class OtherOperators(nn.ModuleList):
    """Operators beside the base: given trained, or trained like it; saved with the uncertainty."""

    def __init__(self, given: Sequence[Callable[..., Tensor]] | None) -> None:
        super().__init__(as_operator(o) for o in given or ())
        self.given = given is not None
        self.eval()

    def train_like(self, base: Base, data: Sequence[Samples], options: Options) -> None:
        """Replace them by operators of the base's kind, trained from new weights.

        The loss is RelativeL2, augmented by the symmetries of the base; each has its own folder,
        member-k.

        Args:
            base: Ĝ.
            data: the training functions of each operator.
            options: how they are trained.
        """
        settings = {"augment": augmentation(base.symmetries), **options.training}
        folder = settings.pop("folder", None)
        trained = []
        for k, samples in enumerate(data, 1):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(derived_seed(options.seed, "initial", k))
                operator = base.operator.another("train them and pass operators=[...]")
            fit(
                operator,
                samples,
                loss=RelativeL2(),
                seed=derived_seed(options.seed, "member", k),
                folder=None if folder is None else Path(folder) / f"member-{k}",
                **settings,
            )
            trained.append(operator.to(base.operator.device))
        del self[:]
        self.extend(trained)
        self.eval()

    def answers(self, base: Base, batch: Batch) -> Iterator[Tensor]:
        """The answer of each (batch, channel, *points), averaged over the symmetries."""
        for operator in self:
            yield averaged(operator, batch, base.symmetries)[0]

    def saved(self) -> list[dict[str, Any]]:
        return [operator.describe() for operator in self if isinstance(operator, Operator)]

    def restore(self, saved: Sequence[Mapping[str, Any]]) -> None:
        """As many untrained operators as were saved, unless they are given."""
        if self.given:
            return
        foreign = [described["class"] for described in saved if described["config"] is None]
        if foreign:
            raise ValueError(
                f"the saved uncertainty has operators of your own ({', '.join(foreign)}): pass "
                "uncertainty=...(operators=[...]) to load"
            )
        del self[:]
        self.extend(Operator.rebuilt(described) for described in saved)
        self.eval()


class WithOthers(FlooredUncertainty):
    """An estimator made of the base and other operators."""

    operators: OtherOperators

    def restore(
        self, base: Operator, saved: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> None:
        self.operators.restore(saved["operators"])
        self.load_state_dict(state)


class Ensemble(WithOthers, DeviationUncertainty):
    """E = max(floor, multiplier · deviation over members); centre their mean. One is the base.

    Args:
        members: with the base, at least 2. `fit` trains the others like it, from other initial
            weights and in another order, on the functions that the uncertainty is given.
        multiplier: deviations that make the uncertainty.
        operators: the others, trained already; then `fit` trains nothing.
        floor: the smallest uncertainty, as a share of the mean training error.

    Reference:
        Lakshminarayanan et al., Simple and scalable predictive uncertainty estimation using deep
        ensembles, NeurIPS 2017.
    """

    name = "ensemble"

    def __init__(
        self,
        members: int = 5,
        multiplier: float = 2.0,
        operators: Sequence[Callable[..., Tensor]] | None = None,
        floor: float = 0.001,
    ) -> None:
        super().__init__(multiplier, floor)
        self.members = checked_count("members", members, 2)
        if operators is not None:
            self.members = checked_count("members", 1 + len(operators), 2)
        self.operators = OtherOperators(operators)

    def saved(self) -> dict[str, Any]:
        config = {"members": self.members, "multiplier": self.multiplier}
        config["floor"] = self.floor_share
        return {"config": config, "operators": self.operators.saved()}

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        self.measure(residuals)
        if not self.operators.given:
            self.operators.train_like(base, [residuals.data] * (self.members - 1), options)

    def answers(self, base: Base, batch: Batch) -> Iterator[Tensor]:
        self.need_fit()
        yield base.center(batch)
        yield from self.operators.answers(base, batch)


class PerturbedPair(WithOthers):
    """E = max(floor, ‖Ĝ(a)(x) − G̃(a)(x)‖), G̃ trained like the base on labels with noise.

    Args:
        noise: its deviation, as a share of that of the label itself over its points.
        operators: [G̃], trained already; then `fit` trains nothing.
        floor: the smallest uncertainty, as a share of the mean training error.

    Reference:
        None is known to us for just this. It is related to Lu and Van Roy, Ensemble sampling,
        NeurIPS 2017, pages 3258 to 3266, where an ensemble of models stands for a posterior.
    """

    name = "perturbed-pair"

    def __init__(
        self,
        noise: float = 0.1,
        operators: Sequence[Callable[..., Tensor]] | None = None,
        floor: float = 0.001,
    ) -> None:
        super().__init__(floor)
        if not 0 < noise < float("inf"):
            raise ValueError(
                f"noise = {noise} must lie in (0, ∞): a share of the labels' deviation"
            )
        if operators is not None and len(operators) != 1:
            raise ValueError(f"{len(operators)} operators beside the base, a pair has 1")
        self.noise = noise
        self.operators = OtherOperators(operators)

    def saved(self) -> dict[str, Any]:
        config = {"noise": self.noise, "floor": self.floor_share}
        return {"config": config, "operators": self.operators.saved()}

    def fit(self, base: Base, residuals: Residuals, options: Options) -> None:
        self.measure(residuals)
        if not self.operators.given:
            noisy = NoisyLabels(residuals.data, self.noise, options.seed)
            self.operators.train_like(base, [noisy], options)

    @torch.no_grad()
    def predict(self, base: Base, batch: Batch) -> Prediction:
        self.need_fit()
        center = base.center(batch)
        (other,) = self.operators.answers(base, batch)
        return Prediction(center, self.floored(pointwise_error(other - center)))


class NoisyLabels:
    """Samples with u + noise · std(u) · z, z normal from (seed, index): the same at every epoch."""

    def __init__(self, data: Samples, noise: float, seed: int) -> None:
        self.data, self.noise, self.seed = data, noise, seed

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        sample = dict(self.data[i])
        u = sample["u"]
        z = torch.randn(u.shape, generator=generator(self.seed, "noise", i), dtype=u.dtype)
        deviation = u.flatten(1).std(dim=1, correction=0).view(-1, *(1 for _ in u.shape[1:]))
        return {**sample, "u": u + self.noise * deviation * z}
