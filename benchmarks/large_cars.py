"""The band of a car with a million surface points: time by the number of points, and memory.

A refined mesh of one shape, predicted by a model of the size of `uqno run cars --preset standard`,
with its operators, the places at which it sees a car and the ideal flow, which is found on the
car's 3586 vertices and carried over. Each size in a process of its own, so that the peak is its
own.
"""

import json
import sys
import time

import torch

from benchmarks.common import in_a_process, peak_memory, record, row
from uqno import UQNO
from uqno.experiments.cars import shapes
from uqno.experiments.cars.settings import PRESETS
from uqno.experiments.cars.shapes import DOMAIN
from uqno.geometry.ideal_flow import carry, ideal_pressure
from uqno.operators import GINO
from uqno.operators.symmetry import translations

REFINED = (8, 17)  # 0.23 and 1.04 million points


def sample(index: int, refine: int = 1) -> dict[str, torch.Tensor]:
    body = shapes.surface(shapes.draw(0, index), refine)
    fields = {"points": body.points, "normals": body.normals, "surface_weights": body.areas}
    return {name: torch.from_numpy(value).float() for name, value in fields.items()}


def with_flow(index: int, car: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    body = shapes.surface(shapes.draw(0, index))
    flow = carry(ideal_pressure(body), body, car["points"].double().numpy())
    return {**car, "features": torch.from_numpy(flow)[:, None]}


def model() -> UQNO:
    """Trained for one epoch: what it has learnt does not change the work."""
    s = PRESETS["standard"]
    torch.manual_seed(0)
    near_node, near_point = s.neighbours
    gino = GINO(
        1, DOMAIN, s.latent, s.modes, s.width, s.layers, features=1,
        neighbours=(near_node, near_point),
    )  # fmt: skip
    made = [with_flow(index, sample(index)) for index in range(30)]
    cars = [gino.prepare({**car, "u": car["normals"].T[:1]}) for car in made]
    found = UQNO(gino, symmetries=translations(gino.latent, 0, s.shifts), members=s.committee)
    found.fit(cars[:8], epochs=1, batch_size=2, validation=0.0, progress=False)
    found.calibrate(cars[8:], alpha=0.1, delta=0.1)
    return found


def measure(refine: int) -> dict[str, float]:
    """Points, seconds (flow, neighbours and distances included), and this process's peak in GB."""
    calibrated, car = model(), sample(0, refine)
    start = time.perf_counter()
    band = calibrated.predict(with_flow(0, car))
    seconds = time.perf_counter() - start
    return {"points": band.radius.size, "seconds": seconds, "peak": peak_memory()}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
        return
    few, many = (in_a_process("benchmarks.large_cars", refine) for refine in REFINED)
    small, large = (1e6 * m["seconds"] / m["points"] for m in (few, many))
    name = f"band of a car with {many['points'] / 1e6:.2f} million points"
    record(
        "large_cars",
        [
            row(f"{name}: µs a point, beside {few['points'] / 1e6:.2f} million", large, small, "µs",
                "linear: at most 1.3 times", large <= 1.3 * small, seconds=many["seconds"]),
            row(f"{name}: peak memory", many["peak"], 4.0, "GB", "within 4 GB", many["peak"] <= 4),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
