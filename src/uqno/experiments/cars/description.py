"""What the command line says of the comparison on cars."""

from __future__ import annotations

from uqno.experiments.cars.settings import PRESETS, CarSettings
from uqno.experiments.description import TaskDescription


class CarDescription(TaskDescription):
    """Pressure on the surface of cars."""

    name = "cars"
    title = "Cars: from the shape of a car to the pressure on its surface."
    settings_type = CarSettings
    presets = PRESETS
    data_help = (
        "A file of cars (uqno data cars --pack), or a folder of ShapeNet-Car.",
        "the set that comes with uqno",
    )
