"""Small problems for estimators: functions on grids and on bodies, bases and their residuals."""

import torch

from uqno.operators import FNO, GINO, Operator
from uqno.training import RelativeL2, fit
from uqno.uncertainty.contract import Base, Options, Residuals

QUICK = {"epochs": 2, "progress": False, "batch_size": 4, "validation": 0.0}
OPTIONS = Options(QUICK, seed=0)


def functions(count, points=9, channels=1, seed=0):
    """u = (a², a + noise, …) for smooth a: the noise is what no operator can know."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.linspace(0, 1, points)
    samples = []
    for _ in range(count):
        c = torch.randn(3, generator=generator)
        a = c[0] * torch.sin(3 * x)[:, None] + c[1] * torch.cos(2 * x)[None] + c[2]
        noise = 0.1 * torch.randn(channels, points, points, generator=generator)
        samples.append({"a": a[None], "u": torch.stack([a ** (2 - k) for k in range(channels)])})
        samples[-1]["u"] = samples[-1]["u"] + noise
    return samples


def bodies(gino, count, seed=0, points=None):
    """Ellipsoids of different sizes, by default with different numbers of points."""
    generator = torch.Generator().manual_seed(seed)
    samples = []
    for i in range(count):
        n = 30 + i % 3 if points is None else points
        x = torch.nn.functional.normalize(torch.randn(n, 3, generator=generator))
        axes = 0.5 + 0.3 * torch.rand(3, generator=generator)
        u = (x[:, :1] * axes[0]).T + 0.05 * torch.randn(1, n, generator=generator)
        weights = 0.5 + torch.rand(n, generator=generator)
        body = {"points": x * axes, "normals": x, "weights": weights, "u": u}
        samples.append(gino.prepare(body))
    return samples


def fno(channels=1, dropout=0.2, **more):
    torch.manual_seed(0)
    return FNO(1, channels, modes=(4, 4), width=8, layers=2, dropout=dropout, **more)


def gino(dropout=0.2):
    torch.manual_seed(0)
    sizes = {"latent": (6, 6, 6), "modes": (4, 4, 4), "width": 4, "layers": 2}
    return GINO(1, neighbours=(4, 4), dropout=dropout, **sizes)


def trained(module, data, symmetries=()):
    operator = Operator(module)
    fit(operator, data, loss=RelativeL2(), **QUICK)
    return Base(operator, tuple(symmetries))


@torch.no_grad()
def residuals(base, data):
    views = [base.view(base.operator.collate([sample])) for sample in data]
    return Residuals(data, [c[0] for c, _ in views], [f[0] for _, f in views])


def batch_of(base, data):
    return {n: f for n, f in base.operator.collate(data).items() if n != "u"}


def exact(answer, data):
    """A base that answers by a formula, and its residuals."""
    base = Base(Operator(answer, normalise=(), output=None))
    return base, residuals(base, data)
