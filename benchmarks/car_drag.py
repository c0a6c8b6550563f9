"""Drag and lift of cars at δ = 0.1, and the band when half of the deployment are vans.

A surrogate is trained on some of the shipped cars; the others are split 300 times into calibration
and test. `python -m benchmarks.car_drag` takes a ridge regression of pressures on the parameters of
the shape (a minute), and with `gino` it trains a GINO with two folds (10 minutes
of one idle core). Of the intervals of the solver's own coefficients: the share of test cars that
they contain, and their width against the naive ones, which are the band that holds at every vertex
taken through the sum of pressures, and the interval of one width for all cars. Of the shift: how
many cars fail, half of them vans, with the weights and without.

`theirs` is the naive side.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import uqno
from benchmarks.common import record, row
from uqno.conformal import Calibration, function_scores, guarantees
from uqno.conformal.agreement import agreement
from uqno.conformal.functionals import linear_bounds
from uqno.conformal.guarantees import Evidence, Shifted
from uqno.experiments import cars
from uqno.experiments.cars.settings import PRESETS
from uqno.experiments.cars.task import CarTask
from uqno.geometry import projected_area
from uqno.model.quantities import score_of
from uqno.model.scoring import scored

ALPHA, DELTA, SPLITS, CALIBRATION = 0.1, 0.1, 300, 120
CHANGES = ["train=160", "epochs=8", "ideal_flow=false", "shifts=0", "calibration=120", "test=160"]
VAN = "van"
FITTED, RESIDUALS = 220, 140  # cars that the regression learns from, and that R learns from
RIDGE = 3.0
WANTED = {
    "drag": uqno.Functional(cars.drag, truth="drag"),
    "lift": uqno.Functional(cars.lift, truth="lift"),
}


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


class Regression:
    """Pressure by a ridge regression on the parameters of a shape and their products.

    The parameters are the first entries of the field `a`, which has one number for each vertex.
    """

    def __init__(self, parameters: np.ndarray, pressure: np.ndarray) -> None:
        self.number = parameters.shape[1]
        self.mean, self.deviation = parameters.mean(axis=0), parameters.std(axis=0)
        x = self.features(parameters)
        self.middle = pressure.mean(axis=0)
        inverse = np.linalg.inv(x.T @ x + RIDGE * np.eye(x.shape[1]))
        self.weights = inverse @ x.T @ (pressure - self.middle)

    def features(self, parameters: np.ndarray) -> np.ndarray:
        z = (parameters - self.mean) / self.deviation
        i, j = np.triu_indices(self.number)
        return np.concatenate([z, 0.2 * z[:, i] * z[:, j]], axis=1)

    def __call__(self, a: torch.Tensor) -> torch.Tensor:
        parameters = a[:, 0, : self.number].double().numpy()
        answer = self.middle + self.features(parameters) @ self.weights
        return torch.from_numpy(answer[:, None]).to(a)


class Shapes:
    """Cars as functions on their vertices, the input being their parameters."""

    def __init__(self, data: Any, indices: list[int]) -> None:
        self.data, self.indices = data, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, i: int) -> dict[str, Any]:
        index = self.indices[i]
        body = self.data.surface(index)
        a = np.zeros((1, len(body.points)), np.float32)
        a[0, : self.data.parameters.shape[1]] = self.data.parameters[index]
        fields = {"a": a, "u": self.data.pressure[index][None], "normals": body.normals,
                  "surface_weights": body.areas}  # fmt: skip
        return {name: torch.from_numpy(np.asarray(x, np.float32)) for name, x in fields.items()}


def by_regression() -> tuple[uqno.UQNO, WithCoefficients, list[int]]:
    """The model, the cars that it has not seen, and their numbers."""
    data = cars.load()
    order = np.random.default_rng(1).permutation(len(data)).tolist()
    first, then = order[:FITTED], order[FITTED : FITTED + RESIDUALS]
    held = order[FITTED + RESIDUALS :]
    solver = cars.solver_coefficients(data)

    def some(indices: list[int]) -> WithCoefficients:
        return WithCoefficients(Shapes(data, indices), {n: x[indices] for n, x in solver.items()})

    base = Regression(data.parameters[first].astype(float), data.pressure[first])
    model = uqno.UQNO(base, uqno.uncertainty.MeanField(), trained=True)
    return model.fit(some(then), functionals=WANTED), some(held), held


def by_gino() -> tuple[uqno.UQNO, WithCoefficients, list[int]]:
    """The same of a GINO, which sees the surface."""
    task = CarTask(PRESETS["quick"].changed(CHANGES), Path("runs/benchmark-drag"), None)
    task.make_data(1, lambda *_: None)
    order, first = list(task.order()), task.settings.train
    coefficients = {n: x[order] for n, x in cars.solver_coefficients(cars.load()).items()}
    held = WithCoefficients(task.held(), {n: x[first:] for n, x in coefficients.items()})
    return trained(task, coefficients), held, order[first:]


def trained(task: CarTask, coefficients: dict[str, np.ndarray]) -> uqno.UQNO:
    s = task.settings
    torch.manual_seed(0)
    model = uqno.UQNO(task.network())
    first = {name: x[: s.train] for name, x in coefficients.items()}
    return model.fit(
        WithCoefficients(task.train(), first), epochs=s.epochs, batch_size=s.batch_size,
        learning_rate=s.learning_rate, progress=False, functionals=WANTED,
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
        area = projected_area(seen["normals"], seen["surface_weights"])
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
    j = rule.ranks_for(CALIBRATION, 1)
    by_identity = 0.0 if j is None else j.function / (CALIBRATION + 1)
    tests = len(found["band"]) - CALIBRATION
    one = agreement(round((1 - covered[0]) * tests), tests, CALIBRATION, j.function if j else 1)
    return [
        row(f"{name}: cars in their interval, promised {1 - DELTA:.0%}", share, by_identity, "",
            "j/(n+1), which the mean over splits is by identity, within 0.01",
            abs(share - by_identity) <= 0.01, first_split_failures=one.failures,
            first_split_cars=tests, first_split_p_value=one.p_value),
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
    name = "gino" if "gino" in sys.argv[1:] else "regression"
    model, held, indices = by_gino() if name == "gino" else by_regression()
    data = cars.load()
    bodies = [data.provenance["reports"][str(data.indices[i])]["body"] for i in indices]
    found = measured(model, held)
    vans = np.array([body == VAN for body in bodies])
    rows = [*quantities(found, "drag"), *quantities(found, "lift"), *shifted(found, vans)]
    for one in rows:
        one["surrogate"] = name
    record("car_drag" if name == "regression" else "car_drag_gino", rows)


if __name__ == "__main__":
    main()
