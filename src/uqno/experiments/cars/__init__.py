"""Cars: parametric bodies, the flow around them by OpenFOAM, the shipped set, the comparison.

    from uqno.experiments import cars

    data = cars.load().samples(latent=(40, 16, 14))

Names are loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqno.experiments.cars.case import Flow as Flow
    from uqno.experiments.cars.forces import drag as drag
    from uqno.experiments.cars.forces import lift as lift
    from uqno.experiments.cars.forces import solver_coefficients as solver_coefficients
    from uqno.experiments.cars.generation import generate_cars as generate_cars
    from uqno.experiments.cars.shapes import Shape as Shape
    from uqno.experiments.cars.shapes import draw as draw
    from uqno.experiments.cars.shapes import surface as surface
    from uqno.experiments.cars.shipped import CarSet as CarSet
    from uqno.experiments.cars.shipped import load as load
    from uqno.experiments.cars.shipped import pack as pack

_HOME = {
    "CarSet": "shipped",
    "Flow": "case",
    "Shape": "shapes",
    "drag": "forces",
    "draw": "shapes",
    "generate_cars": "generation",
    "lift": "forces",
    "load": "shipped",
    "pack": "shipped",
    "solver_coefficients": "forces",
    "surface": "shapes",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
