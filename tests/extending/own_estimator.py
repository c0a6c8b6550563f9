"""An estimator of one's own, and its row in a comparison: errors that are a share of the answer."""

import torch

from uqno.experiments.methods import Method
from uqno.experiments.methods.operators import plain
from uqno.model import UQNO
from uqno.uncertainty import Prediction, Uncertainty


class Proportional(Uncertainty):
    """E(a)(x) = c (|Ĝ(a)(x)| + its mean), with c from the training residuals."""

    name = "proportional"

    def __init__(self):
        super().__init__()
        self.register_buffer("share", torch.ones(()))

    def fit(self, base, residuals, options):
        pairs = [(residuals.data[i]["u"], residuals.centers[i]) for i in range(len(residuals))]
        errors = torch.stack([(u - center).abs().mean() for u, center in pairs])
        sizes = torch.stack([center.abs().mean() for _, center in pairs])
        self.share = errors.mean() / (2 * sizes.mean())

    @torch.no_grad()
    def predict(self, base, batch):
        center = base.center(batch)
        size = center.norm(dim=1)
        mean = size.flatten(1).mean(dim=1).reshape(-1, *[1] * (size.ndim - 1))
        return Prediction(center, self.share * (size + mean))


Method(
    name="proportional",
    label="Share of the answer",
    reference="a rule of thumb",
    colour="#7b3294",
    marker="<",
    operators=lambda settings: (plain(settings),),
    uncertainty=lambda settings: Proportional(),
    make=lambda workshop, uncertainty: UQNO(
        workshop.crossfit(plain(workshop.settings)), uncertainty
    ),
    raw=True,
)
