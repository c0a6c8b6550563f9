"""Making a set of cars in a folder: in parallel, resumable, each car written once.

    FOLDER/set.json            seed, settings, versions: what all cars share
    FOLDER/cars/000123.npz     parameters, pressure in Pa, the solver's report
    FOLDER/refused/000124.json why this index has no car

Indices are decided from 0 upwards until enough are accepted, so that the set does not depend
on how many workers there are nor on when they were stopped: it is the first `count` accepted.
A car or a refusal is one file, put in place by a rename; whoever is killed leaves no half of it.
"""

import json
import logging
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno import __version__
from uqno.data.arrays import read_arrays
from uqno.experiments.cars import bodies, shapes, solver
from uqno.experiments.cars.case import Flow
from uqno.experiments.jobs import Job, Workers
from uqno.storage import alone, read_json, write_json, write_npz

log = logging.getLogger(__name__)

# Raise it whenever the same seed and settings would give other cars than before.
RECIPE_VERSION = 1
# After so many refusals in a row without one car, something is wrong with all of them.
HOPELESS = 8
# With less than this free, a failure is the disk's and not the car's.
SPARE_BYTES = 50_000_000

Advance = Callable[[int, int], None]
"""(how many are made, of how many)."""


@dataclass(frozen=True, eq=False)
class Car:
    """parameters (p,), pressure (3586,) in Pa, and how it was found."""

    parameters: NDArray[np.float32]
    pressure: NDArray[np.float32]
    report: dict[str, Any]


@dataclass(frozen=True)
class Folder:
    """A folder of cars of one seed and one set of settings."""

    path: Path
    seed: int
    settings: Flow

    @staticmethod
    def open(path: Path) -> "Folder":
        """The folder that a generation has begun."""
        file = path / "set.json"
        if not file.is_file():
            raise ValueError(
                f"{path} is no folder of cars: it has no set.json; make one with uqno data cars"
            )
        content = read_json(file, "choose another folder")
        if content.get("version") != RECIPE_VERSION:
            raise ValueError(
                f"{path} was made by recipe version {content.get('version')}, this library makes "
                f"version {RECIPE_VERSION}: choose another folder"
            )
        try:
            return Folder(path, int(content["seed"]), Flow(**content["settings"]))
        except (KeyError, TypeError, ValueError) as why:
            raise ValueError(f"{file} is damaged ({why}): choose another folder") from None

    @staticmethod
    def begin(path: Path, seed: int, settings: Flow) -> "Folder":
        """The folder of a set, created if it is not there.

        Args:
            path: of the folder.
            seed: of the set.
            settings: of the flow.

        Raises:
            ValueError: it holds other cars, or is damaged.
        """
        wanted = Folder(path, seed, settings)
        if not (path / "set.json").exists():
            content = {"version": RECIPE_VERSION, "seed": seed, "settings": settings.record()}
            write_json(path / "set.json", content, indent=1)
        there = Folder.open(path)
        if there != wanted:
            raise ValueError(
                f"{path} holds cars of seed {there.seed} and {there.settings}, not of seed {seed} "
                f"and {settings}; choose another folder"
            )
        return there

    def decided(self) -> dict[int, bool]:
        """Which indices are known, and whether they have a car."""
        cars = {int(file.stem): True for file in self.path.glob("cars/*.npz") if _is_index(file)}
        refused = {int(f.stem): False for f in self.path.glob("refused/*.json") if _is_index(f)}
        return {**refused, **cars}

    def accepted(self, count: int) -> list[int]:
        """The indices of the first `count` cars.

        Raises:
            ValueError: they are not all made.
        """
        chosen, missing = plan(self.decided(), count)
        if missing:
            raise ValueError(
                f"{self.path} is unfinished: {len(missing)} of {count} cars are missing, the first "
                f"is {missing[0]}; run uqno data cars again, it goes on"
            )
        return chosen

    def refused(self, last: int) -> dict[int, str]:
        """Why indices up to `last` have no car."""
        again = "remove it, and the car is tried again"
        files = sorted(f for f in self.path.glob("refused/*.json") if _is_index(f))
        return {
            int(file.stem): str(read_json(file, again).get("reason", "unknown"))
            for file in files
            if int(file.stem) <= last
        }

    def read(self, index: int) -> Car:
        """Car `index`; a ValueError names a damaged file."""
        file = self._car(index)
        try:
            arrays = read_arrays(file)
            missing = {"parameters", "pressure", "report"} - set(arrays)
            if missing:
                raise ValueError(f"it lacks {', '.join(sorted(missing))}")
            report = json.loads(arrays["report"].tobytes().decode("utf8"))
            return Car(arrays["parameters"], arrays["pressure"], report)
        except ValueError as why:
            raise ValueError(
                f"{file} is no whole car ({why}): remove it, and it is made anew"
            ) from None

    def write(self, index: int, car: Car) -> None:
        """Put a car in place, whole."""
        report = np.frombuffer(json.dumps(car.report).encode("utf8"), dtype=np.uint8)
        arrays = {"parameters": car.parameters, "pressure": car.pressure, "report": report}
        write_npz(self._car(index), arrays, compressed=True)

    def refuse(self, index: int, reason: str) -> None:
        """Record why an index has no car."""
        write_json(self.path / "refused" / f"{index:06d}.json", {"reason": reason}, indent=1)

    def software(self) -> dict[str, str]:
        """Versions that made the set: this library's, and OpenFOAM's as the cars tell."""
        cars = sorted(i for i, is_car in self.decided().items() if is_car)
        versions = {str(self.read(i).report["openfoam"]) for i in cars}
        return {
            "uqno": __version__,
            "numpy": np.__version__,
            "openfoam": ", ".join(sorted(versions)),
            "machine": platform.machine(),
        }

    def _car(self, index: int) -> Path:
        return self.path / "cars" / f"{index:06d}.npz"


def plan(decided: dict[int, bool], count: int) -> tuple[list[int], list[int]]:
    """The first indices that give `count` cars if all unknown ones succeed.

    Args:
        decided: whether an index has a car, for those that are known.
        count: how many cars are wanted.

    Returns:
        The known indices that have a car, and the unknown ones.
    """
    known: list[int] = []
    unknown: list[int] = []
    index = 0
    while len(known) + len(unknown) < count:
        if index not in decided:
            unknown.append(index)
        elif decided[index]:
            known.append(index)
        index += 1
    return known, unknown


def generate_cars(
    folder: str | os.PathLike[str],
    count: int,
    seed: int = 0,
    workers: int = 1,
    progress: Advance | None = None,
    settings: Flow | None = None,
) -> Folder:
    """Make the first cars of a set; goes on where it stopped.

    A car whose tools fail or whose flow is not credible is recorded with its reason, and the
    next index takes its place.

    Args:
        folder: is created if it is not there.
        count: how many cars, at least 1.
        seed: of the set.
        workers: cars that are solved at a time, one core each.
        progress: is called with the number of cars that are made, and `count`.
        settings: of the flow.

    Raises:
        ValueError: a number is below 1, OpenFOAM is missing, or the folder holds other cars.
    """
    if count < 1 or workers < 1:
        raise ValueError(f"count and workers must be at least 1, got {count} and {workers}")
    cars = Folder(Path(folder), seed, settings or Flow())
    if plan(cars.decided(), count)[1]:  # before anything is written
        solver.find_openfoam()
    cars = Folder.begin(cars.path, cars.seed, cars.settings)
    with alone(cars.path, "the making of cars"):
        cases = cars.path / "cases"
        shutil.rmtree(cases, ignore_errors=True)  # of a run that was killed
        cases.mkdir()
        try:
            _decide(cars, count, workers, progress or (lambda done, total: None))
        finally:
            shutil.rmtree(cases, ignore_errors=True)
    return cars


def _decide(folder: Folder, count: int, workers: int, progress: Advance) -> None:
    """Decide indices in parallel until the plan has no unknown one."""
    decided, stop = folder.decided(), Event()

    def wanted() -> list[Job]:
        known, unknown = plan(decided, count)
        progress(len(known), count)
        if unknown:
            _refuse_hopeless(folder, decided)
        return [Job(str(index), _make, (folder, index, stop)) for index in unknown]

    with Workers(workers, "threads") as pool:  # the work is done by OpenFOAM's processes
        try:
            for job, is_car in pool.completed(wanted):
                decided[int(job.name)] = is_car
        finally:
            stop.set()


def _refuse_hopeless(folder: Folder, decided: dict[int, bool]) -> None:
    if len(decided) >= HOPELESS and not any(decided.values()):
        first = min(decided)
        raise ValueError(
            f"none of the first {len(decided)} cars was accepted; the reason for car {first}: "
            f"{folder.refused(first)[first]}"
        )


def _make(folder: Folder, index: int, stop: Event) -> bool:
    """Solve car `index` and write it, or why it cannot be: whether there is a car."""
    shape = shapes.draw(folder.seed, index)
    # A name of its own: a tool that outlived a killed run must not write into a new case.
    case = Path(tempfile.mkdtemp(prefix=f"{index:06d}-", dir=folder.path / "cases"))
    try:
        flow = solver.solve(shape, folder.settings, case, stop)
    except solver.CarFailed as why:
        if shutil.disk_usage(folder.path).free < SPARE_BYTES:
            raise OSError(
                f"the disk of {folder.path} is full, so car {index} failed: {why}; free some "
                "space and run again, it goes on"
            ) from None
        log.warning("car %d refused: %s", index, why)
        folder.refuse(index, str(why))
        return False
    finally:
        shutil.rmtree(case, ignore_errors=True)
    report = {"body": bodies.body(folder.seed, index), **flow.report}
    parameters, pressure = (v.astype(np.float32) for v in (shape.vector(), flow.pressure))
    folder.write(index, Car(parameters, pressure, report))
    log.info("car %d: %d iterations", index, flow.report["iterations"])
    return True


def _is_index(file: Path) -> bool:
    return file.stem.isdigit()
