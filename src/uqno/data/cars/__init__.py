"""Cars: parametric bodies, the flow around them by OpenFOAM, the shipped set, ShapeNet-Car.

    from uqno.data import cars

    data = cars.load().samples(latent=(40, 16, 14))

Names are loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqno.data.cars.case import Settings as Settings
    from uqno.data.cars.distance import signed_distance as signed_distance
    from uqno.data.cars.generation import generate_cars as generate_cars
    from uqno.data.cars.ideal import Stream as Stream
    from uqno.data.cars.ideal import ideal_pressure as ideal_pressure
    from uqno.data.cars.mesh import Surface as Surface
    from uqno.data.cars.samples import SurfaceSamples as SurfaceSamples
    from uqno.data.cars.shapenet import read_shapenet as read_shapenet
    from uqno.data.cars.shapes import Shape as Shape
    from uqno.data.cars.shapes import draw as draw
    from uqno.data.cars.shapes import surface as surface
    from uqno.data.cars.shipped import CarSet as CarSet
    from uqno.data.cars.shipped import load as load
    from uqno.data.cars.shipped import pack as pack

_HOME = {
    "CarSet": "shipped",
    "Settings": "case",
    "Shape": "shapes",
    "Stream": "ideal",
    "Surface": "mesh",
    "SurfaceSamples": "samples",
    "draw": "shapes",
    "generate_cars": "generation",
    "ideal_pressure": "ideal",
    "load": "shipped",
    "pack": "shipped",
    "read_shapenet": "shapenet",
    "signed_distance": "distance",
    "surface": "shapes",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
