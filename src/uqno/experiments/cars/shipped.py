"""The set of cars that comes with the library: one file of parameters, pressure and provenance.

    cars = load()                      # or load("my-cars.npz")
    data = cars.samples(latent=(40, 16, 14))

A shape is its parameters, so that a car takes 7 KB: 3586 numbers in half precision, in units of
the dynamic pressure ½ρU². Nothing is unpickled.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.data.arrays import read_arrays
from uqno.data.surfaces import SurfaceSamples
from uqno.experiments.cars.generation import Folder
from uqno.experiments.cars.shapes import DOMAIN, VERTICES, Shape, names, surface
from uqno.geometry.ideal_flow import Stream
from uqno.geometry.surface import Surface
from uqno.storage import write_npz
from uqno.types import Box

FORMAT = "uqno cars"
FORMAT_VERSION = 1
POSITIVE = ("length", "width", "height", "windscreen", "rear_angle")  # without these, no body
SHIPPED = Path(__file__).with_name("cars.npz")
HOW = "make it with: uqno data cars --cars 611 --workers 2 --out data/cars --pack FILE"


@dataclass(frozen=True, eq=False)
class CarSet:
    """Cars with the pressure on them.

    Args:
        parameters: of the shapes, (cars, len(names())).
        pressure: at the vertices, (cars, 3586) in Pa.
        indices: of the cars in the set of their seed, (cars,).
        seed: of the set.
        dynamic_pressure: ½ ρ U² in Pa.
        provenance: settings of the flow, versions, and the solver's report on each car, by index.
    """

    parameters: NDArray[np.float32]
    pressure: NDArray[np.float32]
    indices: NDArray[np.int64]
    seed: int
    dynamic_pressure: float
    provenance: dict[str, Any]

    def __len__(self) -> int:
        return len(self.indices)

    def shape(self, i: int) -> Shape:
        """The shape of car i."""
        return Shape.from_vector(self.parameters[i])

    def surface(self, i: int, refine: int = 1) -> Surface:
        """The surface of car i, with refine² as many triangles."""
        return surface(self.shape(i), refine)

    def samples(
        self,
        measure: str = "points",
        latent: tuple[int, ...] | None = None,
        domain: Box = DOMAIN,
        cache: Path | None = None,
        stream: Stream | None = None,
    ) -> SurfaceSamples:
        """All cars as samples for GINO, in order.

        Args:
            measure: "points" counts vertices alike, as the paper does; "area" by their area.
            latent: the shape of the operator's latent grid; None leaves out the signed distance.
            domain: the box that the latent grid fills.
            cache: a folder that stores signed distances and ideal flows.
            stream: where the ideal flow goes; None leaves it out.
        """
        return SurfaceSamples(
            self.surface,
            self.pressure,
            tuple(range(len(self))),
            measure,
            latent,
            domain,
            cache,
            stream,
        )


def pack(folder: str | os.PathLike[str], file: str | os.PathLike[str], count: int) -> CarSet:
    """Put the first accepted cars of a generated folder into one file.

    Args:
        folder: of `generate_cars`.
        file: the .npz file to write.
        count: how many cars.

    Returns:
        The cars, read back from the file.

    Raises:
        ValueError: not all of these cars are made.
    """
    source = Folder.open(Path(folder))
    chosen = source.accepted(count)
    cars = [source.read(index) for index in chosen]
    scale = source.settings.dynamic_pressure
    half = (np.stack([car.pressure for car in cars]) / scale).astype(np.float16)
    provenance = {
        "settings": source.settings.record(),
        "software": source.software(),
        "reports": {str(i): car.report for i, car in zip(chosen, cars, strict=True)},
        "refused": {str(i): reason for i, reason in source.refused(chosen[-1]).items()},
    }
    arrays: dict[str, NDArray[Any]] = {
        "format": _text(json.dumps({"format": FORMAT, "version": FORMAT_VERSION})),
        "names": _text(json.dumps(names())),
        "parameters": np.stack([car.parameters for car in cars]).astype(np.float32),
        "pressure": half,
        "dynamic_pressure": np.array([scale]),
        "indices": np.array(chosen, dtype=np.int64),
        "seed": np.array([source.seed]),
        "provenance": _text(json.dumps(provenance)),
    }
    write_npz(Path(file), arrays, compressed=True)
    return load(file)


def load(file: str | os.PathLike[str] | None = None) -> CarSet:
    """The shipped cars, or those that `pack` put into `file`."""
    path = SHIPPED if file is None else Path(file)
    if not path.is_file():
        raise ValueError(f"{path} does not exist; {HOW}")
    arrays = read_arrays(path)
    wanted = ("format", "names", "parameters", "pressure", "dynamic_pressure", "indices", "seed")
    missing = [name for name in (*wanted, "provenance") if name not in arrays]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}: not a file of cars; {HOW}")
    stamp, provenance = (_read_json(path, name, arrays[name]) for name in ("format", "provenance"))
    if stamp != {"format": FORMAT, "version": FORMAT_VERSION}:
        raise ValueError(f"{path} is {stamp}, this library reads version {FORMAT_VERSION}; {HOW}")
    if _read_json(path, "names", arrays["names"]) != list(names()):
        raise ValueError(f"{path} has cars of other parameters than this library's; {HOW}")
    for name in ("dynamic_pressure", "seed"):
        if arrays[name].shape != (1,) or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{path}: {name} must be one number, got {arrays[name]}; {HOW}")
    scale = float(arrays["dynamic_pressure"][0])
    pressure = arrays["pressure"].astype(np.float32) * np.float32(scale)
    count = len(arrays["indices"])
    for name, values, width in (
        ("parameters", arrays["parameters"], len(names())),
        ("pressure", pressure, VERTICES),
    ):
        if values.shape != (count, width) or not np.isfinite(values).all():
            raise ValueError(
                f"{path}: {name} must be finite of shape ({count}, {width}), got {values.shape}; "
                f"{HOW}"
            )
    positive = [names().index(name) for name in POSITIVE]
    if not (arrays["parameters"][:, positive] > 0).all():
        raise ValueError(f"{path}: {', '.join(POSITIVE)} of every car must be positive; {HOW}")
    return CarSet(
        parameters=arrays["parameters"],
        pressure=pressure,
        indices=arrays["indices"],
        seed=int(arrays["seed"][0]),
        dynamic_pressure=scale,
        provenance=provenance,
    )


def _text(words: str) -> NDArray[np.uint8]:
    return np.frombuffer(words.encode("utf8"), dtype=np.uint8)


def _read_json(path: Path, name: str, values: NDArray[np.uint8]) -> Any:
    try:
        return json.loads(values.tobytes().decode("utf8"))
    except ValueError as why:
        raise ValueError(f"{path}: {name} cannot be read ({why}); {HOW}") from None
