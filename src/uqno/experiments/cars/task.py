"""Pressure on cars: the shipped set, a packed file or ShapeNet-Car; GINO, left and right."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor
from torch.utils.data import Subset

from uqno.data.readers.shapenet import ShapeNetCars, read_shapenet
from uqno.data.surfaces import SurfaceSamples, domain_of
from uqno.experiments.cars import CarSet, load
from uqno.experiments.cars.description import CarDescription
from uqno.experiments.cars.paper import PAPER
from uqno.experiments.cars.settings import CarSettings
from uqno.experiments.cars.shapes import DOMAIN
from uqno.experiments.cars.shipped import SHIPPED
from uqno.experiments.jobs import Job, Kind, Workers, seconds, share_cores
from uqno.experiments.results import Quoted, Unit
from uqno.experiments.scene import Domain, Scene
from uqno.experiments.task import Identity, Task
from uqno.geometry.ideal_flow import NoIdealFlow, Stream
from uqno.geometry.surface import Surface
from uqno.operators import GINO, LatentGrid
from uqno.operators.padding import pad
from uqno.operators.symmetry import Symmetry, reflection, translations
from uqno.storage import make_folders
from uqno.types import Box, Progress, Samples

CHUNK = 8  # cars a process works on at a time
LOOKED_AT = 5  # cars that tell which axis is left and right
# A cut along the roof: vertices so near the middle plane (of the width) that look up so much.
MIDDLE, UPWARD = 0.01, 0.1


# --- sets of cars -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cars:
    """A set of cars, whoever made it.

    Args:
        source: has their surfaces and the pressure on them.
        first: so many of them are to be trained on before others, as ShapeNet-Car's train.txt says.
        axes: along the car, to its side, up.
        box: contains all cars and their mirror images.
    """

    source: CarSet | ShapeNetCars
    first: int
    axes: tuple[int, int, int]
    box: Box

    def __len__(self) -> int:
        return len(self.source)

    @property
    def stream(self) -> Stream:
        """The ideal flow: the shipped cars drive above a ground at 0, others stand on it."""
        along, _, up = self.axes
        return Stream(along, up, 0.0 if isinstance(self.source, CarSet) else None)

    @property
    def pressure(self) -> NDArray[np.float32]:
        """(cars, vertices) in Pa."""
        return self.source.pressure

    @cached_property
    def fingerprint(self) -> str:
        source = self.source
        shapes = (
            [source.parameters]
            if isinstance(source, CarSet)
            else [part for body in source.surfaces for part in (body.points, body.triangles)]
        )
        content = hashlib.sha256(np.ascontiguousarray(self.pressure).tobytes())
        for part in shapes:
            content.update(np.ascontiguousarray(part).tobytes())
        return content.hexdigest()[:24]

    @cached_property
    def vertices_correspond(self) -> bool:
        """Whether vertex i is the same place of every car: all have the same triangles."""
        if isinstance(self.source, CarSet):
            return True
        first, *others = (body.triangles for body in self.source.surfaces)
        return all(np.array_equal(first, other) for other in others)


@lru_cache(maxsize=2)
def cars_of(data: Path | None) -> Cars:
    """The shipped cars, those of a packed file, or those of a folder of ShapeNet-Car."""
    if data is None and not SHIPPED.is_file():
        raise ValueError(
            f"{SHIPPED} is missing, the set of cars that comes with uqno: make one with `uqno data "
            "cars --cars 611 --workers 2 --pack cars.npz` and give it with --data cars.npz, or "
            "give the folder of a ShapeNet-Car set"
        )
    if data is None or not data.is_dir():
        packed = load(data)
        return Cars(packed, len(packed), (0, 1, 2), DOMAIN)
    read = read_shapenet(data)
    axes = axes_of(read.surfaces[:LOOKED_AT])
    return Cars(read, read.train, axes, domain_of(read.surfaces, mirror=axes[1]))


def axes_of(bodies: Sequence[Surface]) -> tuple[int, int, int]:
    """(along, to the side, up): cars are their own mirror images, and longer than high."""
    asymmetry = np.zeros(3)
    for body in bodies:
        tree = cKDTree(body.points)
        for axis in range(3):
            mirrored = body.points * np.where(np.arange(3) == axis, -1, 1)
            asymmetry[axis] += tree.query(mirrored)[0].mean()
    side = int(asymmetry.argmin())
    size = np.ptp(np.concatenate([body.points for body in bodies]), axis=0)
    up, along = sorted({0, 1, 2} - {side}, key=lambda axis: float(size[axis]))
    return along, side, up


# --- samples ----------------------------------------------------------------------------------


class Prepared:
    """Samples with their neighbours, computed when first asked for and stored in memory.

    Args:
        samples: the cars.
        grid: the latent grid whose neighbours are computed.
    """

    def __init__(self, samples: SurfaceSamples, grid: LatentGrid) -> None:
        self.samples, self.grid = samples, grid
        self.prepared: dict[int, dict[str, Tensor]] = {}

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        if i not in self.prepared:
            self.prepared[i] = self.grid.prepare(self.samples[i])
        return self.prepared[i]


class WithoutFeatures:
    """The same samples, as methods see them that have no ideal flow."""

    def __init__(self, samples: Prepared) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {name: field for name, field in self.samples[i].items() if name != "features"}


# --- the task ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CarTask(CarDescription, Task):
    """Cars in an order drawn by the seed: the first to train on, the next to calibrate, to test."""

    settings: CarSettings
    folder: Path
    data: Path | None

    name: ClassVar[str] = CarDescription.name

    def __post_init__(self) -> None:
        s, there = self.settings, len(self.cars)
        if there < self.total:
            raise ValueError(
                f"{self._where} has {there} cars, but train + calibration + test = {s.train} + "
                f"{s.calibration} + {s.test} = {self.total}: lower them with --set, or make more "
                "cars with `uqno data cars`"
            )
        if s.train > self.cars.first:
            raise ValueError(
                f"train = {s.train}, but {self._where} has {self.cars.first} cars in train.txt: "
                "those of test.txt are not to be trained on; lower train with --set"
            )
        if "mean-field" in s.methods and not self.cars.vertices_correspond:
            others = ",".join(name for name in s.methods if name != "mean-field")
            raise ValueError(
                f"the cars of {self._where} differ in their triangles, so a vertex is not the same "
                "place of every car and has no mean error: leave the method out with "
                f"--set methods={others}"
            )

    @property
    def quoted(self) -> tuple[Quoted, ...]:
        return PAPER

    @property
    def cars(self) -> Cars:
        return cars_of(self.data)

    @property
    def _where(self) -> str:
        return str(SHIPPED if self.data is None else self.data)

    @property
    def points(self) -> int:
        return int(self.cars.pressure.shape[1])

    @cached_property
    def unit(self) -> Unit:
        """The paper's bandwidth is of pressures divided by their deviation in training."""
        chosen = list(self.order()[: self.settings.train])
        return Unit(symbol="Pa", size=float(self.cars.pressure[chosen].std(dtype=np.float64)))

    def identity(self) -> Identity:
        source = None if self.data is None else str(self.data.resolve())
        return Identity(source=source, sha256=self.cars.fingerprint)

    @property
    def functions(self) -> int:
        return len(self.cars)

    def order(self) -> Sequence[int]:
        draw = np.random.default_rng(self.settings.seed)
        first = draw.permutation(self.cars.first)
        others = self.cars.first + draw.permutation(len(self.cars) - self.cars.first)
        every: list[int] = np.concatenate([first, others]).tolist()
        return every[: self.total]

    # --- functions ----------------------------------------------------------------------------

    @property
    def cache(self) -> Path:
        """Signed distances and ideal flows, a file each."""
        return self.folder / "geometry"

    def make_data(self, workers: int, progress: Progress) -> None:
        if self._unmeasured():
            make_folders(self.cache)
            words = "signed distances" + (" and ideal flows" if self.settings.ideal_flow else "")
            done = 0
            progress(words, done, self.total)
            for count in self._measured(workers):
                done += count
                progress(words, done, self.total)

    def _measured(self, workers: int) -> Iterator[int]:
        """How many cars have been measured now, part by part."""
        ranges = [range(i, min(i + CHUNK, self.total)) for i in range(0, self.total, CHUNK)]
        where = (self.settings, self.folder, self.data)
        jobs = [
            Job(f"geometry of cars {r.start} to {r.stop - 1}", _measure, (*where, r))
            for r in ranges
        ]
        kind: Kind = "here" if workers == 1 else "processes"
        with Workers(workers, kind, share_cores, (workers,)) as pool:
            yield from (count for _, count in pool.completed(jobs))

    def _unmeasured(self) -> int:
        """Cars whose distances, or the flow around them, are still to be found."""
        files = 2 if self.settings.ideal_flow else 1
        return max(0, self.total - len(list(self.cache.glob("*.npy"))) // files)

    def seconds_to_make(self) -> float:
        missing = self._unmeasured()
        return missing * seconds(lambda: self._surfaces(None)[0]) if missing else 0.0

    def is_made(self) -> bool:
        return True  # without the cars there is no task

    def _surfaces(self, cache: Path | None) -> SurfaceSamples:
        """The cars of the run, in its order."""
        s, cars = self.settings, self.cars
        stream = cars.stream if s.ideal_flow else None
        every = cars.source.samples(latent=s.latent, domain=cars.box, cache=cache, stream=stream)
        return every.subset(self.order())

    @cached_property
    def samples(self) -> Prepared:
        """With all inputs that the recipe `uqno` sees."""
        return Prepared(self._surfaces(self.cache), self.grid)

    def train(self, extra_inputs: bool = False) -> Samples:
        return self._seen(range(self.settings.train), extra_inputs)

    def held(self, extra_inputs: bool = False) -> Samples:
        return self._seen(range(self.settings.train, self.total), extra_inputs)

    def _seen(self, chosen: range, extra_inputs: bool) -> Samples:
        every = self.samples if extra_inputs else WithoutFeatures(self.samples)
        return Subset(every, chosen)  # type: ignore[arg-type]

    # --- networks -----------------------------------------------------------------------------

    def network(self, dropout: float = 0.0, extra_inputs: bool = False) -> GINO:
        s = self.settings
        return GINO(
            1,
            self.cars.box,
            s.latent,
            s.modes,
            s.width,
            s.layers,
            features=1 if extra_inputs and s.ideal_flow else 0,
            neighbours=self.grid.neighbours,
            dropout=dropout,
        )

    @cached_property
    def grid(self) -> LatentGrid:
        """The latent grid of every network."""
        near_node, near_point = self.settings.neighbours
        box, shape = tuple(self.cars.box), tuple(self.settings.latent)
        return LatentGrid(box, shape, (near_node, near_point))

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        along, side, _ = self.cars.axes
        moved = translations(self.grid, along, self.settings.shifts)
        return (*moved, reflection(self.grid, side)[1]) if self.settings.symmetric else moved

    @property
    def scored_at_once(self) -> int:
        return self.settings.batch_size

    def trial(self, role: str) -> dict[str, Tensor]:
        count = self.settings.batch_size if role == "train" else 1
        return pad([self.train()[0]] * count)

    # --- pictures -----------------------------------------------------------------------------

    @property
    def domain(self) -> Domain:
        return Domain(kind="surface", nodes=[self.points], unit="Pa")

    def scene(self, held: int, most: int) -> Scene:
        axes = self.cars.axes
        body = self.cars.source.surface(self.order()[self.settings.train + held])
        points, normals = body.points[:, axes], body.normals[:, axes]
        # An exchange of two axes would turn the surface inside out.
        is_mirrored = axes in ((1, 0, 2), (0, 2, 1), (2, 1, 0))
        middle = np.abs(points[:, 1]) < MIDDLE * np.ptp(points[:, 1])
        roof = np.flatnonzero(middle & (normals[:, 2] > UPWARD))
        roof = roof[np.argsort(points[roof, 0])]
        return Scene(
            coordinates=points,
            thin=lambda field: field,
            cut_at=points[roof, 0],
            cut=lambda field: field[roof],
            triangles=body.triangles[:, ::-1] if is_mirrored else body.triangles,
        )


def _measure(settings: CarSettings, folder: Path, data: Path | None, part: range) -> int:
    """Signed distances and ideal flows of some cars into their files; how many cars."""
    task = CarTask(settings, folder, data)
    samples = task._surfaces(task.cache)
    for i in part:
        try:
            samples[i]
        except NoIdealFlow as why:
            raise ValueError(
                f"car {samples.positions[i]} of {task._where}: {why} `--set ideal_flow=false` "
                "does without"
            ) from None
    return len(part)
