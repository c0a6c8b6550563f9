"""Drag and lift of cars at δ = 0.1, and the band when half of the deployment are vans.

One GINO is trained with two folds on some of the shipped cars; the others are split 300 times into
calibration and test. Of the intervals of the solver's own coefficients: the share of test cars that
they contain, and their width against the naive ones, which are the band that holds at every vertex
taken through the sum of pressures, and the interval of one width for all cars. Of the shift: how
many cars fail, half of them vans, with the weights and without.

`python -m benchmarks.car_drag` takes about 10 minutes of one core; `theirs` is the naive side.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

import uqno
from benchmarks.common import record, row
from uqno.conformal import Calibration, function_scores, guarantees
from uqno.conformal.functionals import linear_bounds
from uqno.conformal.guarantees import Evidence, Shifted
from uqno.experiments import cars
from uqno.experiments.cars.settings import PRESETS
from uqno.experiments.cars.task import CarTask
from uqno.model.quantities import score_of
from uqno.model.scoring import scored

ALPHA, DELTA, SPLITS, CALIBRATION = 0.1, 0.1, 300, 120
CHANGES = ["train=160", "epochs=8", "ideal_flow=false", "shifts=0", "calibration=120", "test=160"]
VAN = "van"


class WithCoefficients:
    """Cars with the solver's drag and lift as fields of their samples."""

    def __init__(self, samples: Any, coefficients: dict[str, np.ndarray]) -> None:
        self.samples, self.coefficients = samples, coefficients

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> dict[str, Any]:
        if not 0 <= i < len(self):
            raise IndexError(i)
        more = {n: torch.tensor(float(x[i])) for n, x in self.coefficients.items()}
        return {**self.samples[i], **more}


def trained(task: CarTask, coefficients: dict[str, np.ndarray]) -> uqno.UQNO:
    s = task.settings
    torch.manual_seed(0)
    model = uqno.UQNO(task.network())
    wanted = {
        "drag": uqno.Functional(cars.drag, truth="drag"),
        "lift": uqno.Functional(cars.lift, truth="lift"),
    }
    first = {name: x[: s.train] for name, x in coefficients.items()}
    return model.fit(
        WithCoefficients(task.train(), first), epochs=s.epochs, batch_size=s.batch_size,
        learning_rate=s.learning_rate, progress=False, functionals=wanted,
        folder=task.folder / "model", resume=True,
    )  # fmt: skip


def scale_of(scores: np.ndarray, rule: Any) -> float:
    return float(rule.solve(Evidence(np.ones(len(scores), int), scores)).scale)


def measured(model: uqno.UQNO, held: WithCoefficients) -> dict[str, np.ndarray]:
    """Of each held-out car: scores of band and quantities, R, and how the band moves the drag."""
    out: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        out.setdefault(name, []).append(value)

    for one in scored(model.base, model.uncertainty, held, 4, False):
        seen = model.quantities.shown(one.sample)
        k = int(np.ceil(one.error.size * (1 - ALPHA)))
        ones = one.error[None], one.uncertainty[None]
        note("band", float(function_scores(*ones, k)[0]))
        note("everywhere", float(function_scores(*ones, one.error.size)[0]))
        area = cars.forces.projected_area(seen["normals"], seen["surface_weights"])
        for axis, name in ((0, "drag"), (2, "lift")):
            score, _ = score_of(name, model.quantities, one)
            middle = model.quantities.functionals[name].function(one.center, seen)
            distance = abs(float(one.sample[name]) - middle)
            offset = float(model.quantities.learned[name].offset[0])
            note(f"{name} score", score)
            note(f"{name} R", abs(float(one.sample[name]) - middle - offset) / score)
            note(f"{name} error", abs(float(one.sample[name]) - middle - offset))
            w = seen["normals"][:, axis] * seen["surface_weights"] / (245.0 * area)
            _, low, high = linear_bounds(one.center, one.uncertainty.astype(float), w[None])
            note(f"{name} by the band", float(high - low) / 2)
            note(f"{name} plain", distance)
    return {name: np.array(x) for name, x in out.items()}


def splits(number: int) -> Any:
    rng = np.random.default_rng(0)
    for _ in range(SPLITS):
        order = rng.permutation(number)
        yield order[:CALIBRATION], order[CALIBRATION:]


def quantities(found: dict[str, np.ndarray], name: str) -> list[dict[str, Any]]:
    """Coverage and width over splits, against the naive intervals."""
    rule, width = guarantees.Quantity(DELTA, name), {"ours": [], "constant": [], "band": []}
    covered = []
    for calibration, test in splits(len(found["band"])):
        lam = scale_of(found[f"{name} score"][calibration], rule)
        covered.append((found[f"{name} score"][test] <= lam).mean())
        width["ours"].append(2 * lam * found[f"{name} R"][test].mean())
        width["constant"].append(2 * scale_of(found[f"{name} error"][calibration], rule))
        every = scale_of(found["everywhere"][calibration], rule)
        width["band"].append(2 * every * found[f"{name} by the band"][test].mean())
    ours, constant, band = (float(np.mean(width[n])) for n in ("ours", "constant", "band"))
    share = float(np.mean(covered))
    return [
        row(f"{name}: cars in their interval, promised {1 - DELTA:.0%}", share, 1 - DELTA, "",
            "at least what is promised", share >= 1 - DELTA - 0.01),
        row(f"{name}: width, through the band at every vertex / ours", ours, band, "",
            "narrower", ours < band),
        row(f"{name}: width, one for all cars / ours", ours, constant, "",
            "at most 1.05 of it", ours <= 1.05 * constant),
    ]  # fmt: skip


def shifted(found: dict[str, np.ndarray], vans: np.ndarray) -> list[dict[str, Any]]:
    """Failures when half of the new cars are vans, with known ratios and without."""
    ratios = np.where(vans, 0.5 / vans.mean(), 0.5 / (1 - vans.mean()))
    plain, weighted, infinite = [], [], 0
    fraction = guarantees.Fraction(ALPHA, DELTA)
    scores = found["band"]
    for calibration, test in splits(len(scores)):
        rule = Shifted(fraction, ratios[calibration])
        both = Evidence(np.ones(CALIBRATION, int), scores[calibration])
        solved = rule.solve(rule.with_ratios(both))
        cal = Calibration(
            solved.scale, rule, CALIBRATION, 1, 1, scores=np.sort(solved.scores),
            details=solved.details,
        )  # fmt: skip
        one = scale_of(scores[calibration], guarantees.Quantity(DELTA))
        kinds = [test[vans[test] == kind] for kind in (True, False)]
        of_kind = [cal.scale_for({"likelihood_ratio": ratios[kind[0]]}) for kind in kinds]
        infinite += sum(np.isinf(of_kind))
        plain.append(np.mean([(scores[kind] > one).mean() for kind in kinds]))
        weighted.append(
            np.mean([(scores[k] > s).mean() for k, s in zip(kinds, of_kind, strict=True)])
        )
    return [
        row("half vans: failures without weights / with, promised 10%", float(np.mean(weighted)),
            float(np.mean(plain)), "", "with weights at most what is promised",
            float(np.mean(weighted)) <= DELTA + 0.01, infinite_scales=int(infinite),
            share_of_vans=float(vans.mean())),
    ]  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    task = CarTask(PRESETS["quick"].changed(CHANGES), Path("runs/benchmark-drag"), None)
    task.make_data(1, lambda *_: None)
    data, order = cars.load(), list(task.order())
    coefficients = {n: x[order] for n, x in cars.solver_coefficients(data).items()}
    bodies = [data.provenance["reports"][str(data.indices[i])]["body"] for i in order]
    first = task.settings.train
    model = trained(task, coefficients)
    held = WithCoefficients(task.held(), {n: x[first:] for n, x in coefficients.items()})
    found = measured(model, held)
    vans = np.array([body == VAN for body in bodies[first:]])
    record("car_drag", [*quantities(found, "drag"), *quantities(found, "lift"),
                        *shifted(found, vans)])  # fmt: skip


if __name__ == "__main__":
    main()
