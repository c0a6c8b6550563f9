"""How far the cars' pressures depend on the mesh: moved by 0.23 m, and finer.

Six cars, one of each body type, of a seed that served nothing else. Needs OpenFOAM and some
minutes of two cores. The change is ‖p − q‖ / ‖q‖ over the vertices; beside it stands what is
left if a car is predicted by the mean of the shipped others, the scale on which labels matter.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import record, row
from uqno.experiments.cars import bodies, load, shapes, solver
from uqno.experiments.cars.case import Flow

SEED = 5
MESHES = {
    "as shipped": Flow(),
    "moved by 0.23 m": Flow(shift=0.23),
    "cells of 0.6 m": Flow(cell=0.6),
    "cells of 0.5 m": Flow(cell=0.5),
}


def change(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(p - q) / np.linalg.norm(q))


def solve(index: int, settings: Flow) -> solver.Solution | None:
    """The flow; None, said aloud, where it is not acceptable."""
    # Finer meshes converge slowly; their forces must be steady all the same.
    longer = replace(settings, iterations=300) if settings.cell < 0.75 else settings
    with tempfile.TemporaryDirectory() as folder:
        try:
            return solver.solve(shapes.draw(SEED, index), longer, Path(folder) / "case")
        except solver.CarFailed as why:
            print(f"car {index}, {settings}: {why}")
            return None


def of_the_mean() -> float:
    """Median error of the mean of the other shipped cars."""
    pressure = load().pressure.astype(np.float64)
    others = (pressure.sum(axis=0) - pressure) / (len(pressure) - 1)
    return median(change(p, q) for p, q in zip(others, pressure, strict=True))


def main() -> None:
    chosen: dict[str, int] = {}
    for index in range(100):
        chosen.setdefault(bodies.body(SEED, index), index)
    asked = [(body, name) for body in chosen for name in MESHES]
    with ThreadPoolExecutor(2) as pool:  # the work is done by OpenFOAM's processes
        flows = dict(
            zip(asked, pool.map(lambda k: solve(chosen[k[0]], MESHES[k[1]]), asked), strict=True)
        )
    first, *others = MESHES
    scale, rows = of_the_mean(), []
    for name in others:
        pairs = {body: (flows[body, first], flows[body, name]) for body in chosen}
        found = {b: change(p.pressure, q.pressure) for b, (p, q) in pairs.items() if p and q}
        told = {body: flows[body, name].report for body in found}  # type: ignore[union-attr]
        middle = median(found.values())
        rows.append(
            row(f"labels of cars, change of pressure: {name}, beside the mean car's error", middle,
                scale, "relative L2", "a quarter of it", middle <= scale / 4, cars=found,
                **{key: {body: told[body][key] for body in told}
                   for key in ("cells", "drag", "base_cp")})
        )  # fmt: skip
    record("car_labels", rows)


if __name__ == "__main__":
    main()
