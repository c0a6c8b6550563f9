"""The disagreement of operators: where two that were trained alike differ, both are unsure."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from uqno.operators import as_operator


class Disagreement(nn.Module):
    """Deviation of Ĝ(a) and other operators' answers, point by point: a feature for E to see.

    operators: trained on functions that neither the radius nor the calibration sees, or on the
    base's own; any that take the same batch.
    """

    def __init__(self, *operators: Callable[..., Tensor]) -> None:
        super().__init__()
        if not operators:
            raise ValueError("0 operators to compare with the base: give at least 1")
        self.operators = nn.ModuleList(as_operator(o) for o in operators)

    @torch.no_grad()
    def forward(self, batch: Mapping[str, Tensor], center: Tensor) -> Tensor:
        """(batch, channel, *points), ≥ 0."""
        answers = [center, *(operator.eval()(batch) for operator in self.operators)]
        return torch.stack(answers).std(dim=0, correction=0)
