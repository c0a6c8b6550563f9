"""The monitor on Darcy when the law of the coefficient changes, and on cars when only vans come.

*Darcy*: an FNO of a few epochs on the published law (two values, 12 and 3), 31 nodes a side. 200
functions calibrate; then come functions of the same law, or of another one.
*Cars*: the shipped set, an operator that is linear in points and normals for each vertex. 200 cars
of all bodies calibrate; then come other cars of all bodies, or the vans among them alone.

`ours` is the number of functions until the alarm, by errors or by inputs, whichever is first, and
by inputs alone where no truth is known; 10^9 stands for no alarm; `theirs` is the stated bound. No
alarm is allowed where nothing changed. Some minutes on one core.
"""

import numpy as np
import torch

from benchmarks.common import record, row
from uqno import UQNO, Monitor
from uqno.data import GridSamples
from uqno.experiments.cars.bodies import body
from uqno.experiments.cars.shipped import load
from uqno.experiments.darcy.generation import Recipe
from uqno.operators import FNO, Operator
from uqno.uncertainty import MeanField

ETA, ALPHA, DELTA = 0.01, 0.1, 0.1
NEVER, NONE = float("inf"), 10**9  # no alarm, and as JSON has it


def compare(name, model, streams, rows):
    """Two rows for each stream: (what comes, samples, bound or None where nothing changed)."""
    for what, samples, bound in streams:
        monitors = {"truths known": Monitor(model, ETA), "inputs alone": Monitor(model, ETA)}
        since = dict.fromkeys(monitors, NEVER)
        for i, sample in enumerate(samples):
            inputs = {key: x for key, x in sample.items() if key not in ("u", "weights")}
            band = model.predict(inputs)
            for known, monitor in monitors.items():
                truth = sample["u"] if known == "truths known" else None
                if monitor.observe(band, truth, id=i).alarm:
                    since[known] = min(since[known], i + 1)
        for known, monitor in monitors.items():
            tests = monitor.verdict().tests.values()
            holds = since[known] == NEVER if bound is None else since[known] <= bound
            said = "no alarm" if bound is None else f"alarm within {bound} functions"
            rows.append(
                row(f"{name}, {what}, {known}", min(since[known], NONE), bound or NONE, "functions",
                    said, holds, came=len(samples),
                    largest_wealth={test.name: test.largest for test in tests})
            )  # fmt: skip


# --- Darcy ---------------------------------------------------------------------------------------


def darcy(count, first=0, **law):
    recipe = Recipe(resolution=61, keep=(31,), modes=64, **law)
    a, u = recipe.functions(range(first, first + count))[31]
    return GridSamples.from_file("darcy", np.ascontiguousarray(a), 100 * np.ascontiguousarray(u))


def darcy_rows(rows):
    torch.manual_seed(0)
    model = UQNO(FNO(1, 1, modes=(8, 8), width=12, layers=3), MeanField())
    model.fit(darcy(160), epochs=10, crossfit=None, progress=False, batch_size=16)
    model.calibrate(darcy(200, first=1000), ALPHA, DELTA)
    streams = [
        ("the same law", darcy(120, first=2000), None),
        ("values 14 and 3", darcy(60, first=3000, high=14.0), 60),
        ("a rougher coefficient (s = 1.6)", darcy(60, first=4000, s=1.6), 60),
        ("a lognormal coefficient", darcy(60, first=5000, coefficient="lognormal"), 20),
    ]
    compare("Darcy", model, streams, rows)


# --- cars ----------------------------------------------------------------------------------------


class LinearOnCars(torch.nn.Module):
    """The pressure at each vertex, linear in its own point and normal."""

    def __init__(self, samples):
        super().__init__()
        x = torch.stack([self.features(s["points"][None], s["normals"][None])[0] for s in samples])
        u = torch.stack([s["u"][0] for s in samples])
        x, u = x.double().transpose(0, 1), u.double().T[..., None]  # (vertex, cars, …)
        ridge = 0.1 * torch.eye(x.shape[-1], dtype=x.dtype)
        weights = torch.linalg.solve(x.mT @ x + ridge, x.mT @ u)[..., 0]
        self.register_buffer("weights", weights.float())

    @staticmethod
    def features(points, normals):
        return torch.cat([torch.ones_like(points[..., :1]), points, normals], dim=-1)

    def forward(self, points, normals):
        return (self.features(points, normals) * self.weights).sum(-1)[:, None]


def plain(sample):
    return {name: sample[name] for name in ("points", "normals", "u")}


def car_rows(rows):
    cars = load()
    samples = cars.samples()
    order = np.random.default_rng(0).permutation(len(cars))
    vans = np.array([body(cars.seed, int(i)) == "van" for i in cars.indices])
    train, held_out, rest = order[:160], order[160:360], order[360:]
    seen = [plain(samples[int(i)]) for i in train]
    base = LinearOnCars(seen[:80])
    model = UQNO(Operator(base, normalise=(), output=None), MeanField(), trained=True)
    model.fit(seen[80:])
    model.calibrate([plain(samples[int(i)]) for i in held_out], ALPHA, DELTA)
    mixed = [plain(samples[int(i)]) for i in rest[:100]]
    only_vans = [plain(samples[int(i)]) for i in rest[vans[rest]]]
    compare("cars", model, [("all bodies", mixed, None), ("only vans", only_vans, 40)], rows)


def main() -> None:
    rows = []
    car_rows(rows)
    darcy_rows(rows)
    record("monitoring", rows)


if __name__ == "__main__":
    main()
