"""Forces against bodies whose force is known, and against the solver of the cars."""

import numpy as np
import pytest

from uqno.experiments import cars
from uqno.experiments.cars import shipped
from uqno.experiments.darcy.quantities import mean_flux, peak
from uqno.geometry import pressure_force, projected_area


def test_a_constant_pressure_has_no_force_and_a_slope_has_the_volume():
    body = cars.load().surface(3)
    constant = pressure_force(np.ones(len(body.points)), body.normals, body.areas)
    assert np.abs(constant).max() < 0.01 * body.areas.sum()
    weight = pressure_force(-body.points[:, 2], body.normals, body.areas)
    assert weight[2] == pytest.approx(body.volume, rel=0.05)  # Archimedes
    assert projected_area(body.normals, body.areas) > 1


def test_drag_and_lift_are_near_the_solvers():
    data = cars.load()
    solver = cars.solver_coefficients(data)
    found = {"drag": [], "lift": []}
    for i in range(12):
        body = data.surface(i)
        sample = {"normals": body.normals, "surface_weights": body.areas}
        for name, f in (("drag", cars.drag), ("lift", cars.lift)):
            found[name].append(f(data.pressure[i][None], sample))
    for name, values in found.items():
        assert np.corrcoef(values, solver[name][:12])[0, 1] > 0.97
    friction = solver["drag"][:12] - np.array(found["drag"])
    assert 0.005 < np.median(friction) < 0.04  # what pressure alone leaves out


def test_cars_without_reports():
    data = cars.load()
    bare = shipped.CarSet(data.parameters[:2], data.pressure[:2], data.indices[:2], 0, 245.0, {})
    with pytest.raises(ValueError, match="report of a car lacks"):
        cars.solver_coefficients(bare)


def test_quantities_of_darcy_flow():
    x, y = np.meshgrid(np.linspace(0, 1, 33), np.linspace(0, 1, 33), indexing="ij")
    u = (3 * x + 4 * y)[None]
    sample = {"a": np.full((1, 33, 33), 2.0)}
    assert peak(u, sample) == 7
    assert mean_flux(u, sample) == pytest.approx(10)
