"""The processed ShapeNet-Car set of the GINO paper, for those who have it.

FOLDER/train.txt, test.txt         one line of ids, joined by commas (500 and 111 cars)
FOLDER/data/<id>/tri_mesh.ply      3586 vertices, 7168 triangles
FOLDER/data/<id>/press.npy         3682 pressures, of which 16 to 111 have no vertex
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uqno.data.checks import check_finite
from uqno.data.readers.ply import read_ply
from uqno.data.surfaces import SurfaceSamples, domain_of
from uqno.geometry.ideal_flow import Stream
from uqno.geometry.surface import Surface
from uqno.numpy_files import read_npy
from uqno.types import Box

# Entries of press.npy that belong to no vertex of the mesh.
DROPPED = slice(16, 112)
PARTS = ("train", "test")
LEAVE_OUT = "leave this car out of train.txt or test.txt"


@dataclass(frozen=True, eq=False)
class ShapeNetCars:
    """The cars of both parts of the set.

    Args:
        ids: their names.
        train: how many of the first cars are for training, those of train.txt in its order; the
            others are those of test.txt.
        surfaces: one a car.
        pressure: at the vertices, (cars, vertices).
    """

    ids: tuple[str, ...]
    train: int
    surfaces: tuple[Surface, ...]
    pressure: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)

    def surface(self, i: int) -> Surface:
        """The surface of car i."""
        return self.surfaces[i]

    @property
    def domain(self) -> Box:
        """A box around all of them."""
        return domain_of(self.surfaces)

    def samples(
        self,
        measure: str = "points",
        latent: tuple[int, ...] | None = None,
        domain: Box | None = None,
        cache: Path | None = None,
        stream: Stream | None = None,
    ) -> SurfaceSamples:
        """All cars as samples, the training ones first.

        Args:
            measure: "points" counts vertices alike, "area" by their area.
            latent: the shape of the operator's latent grid; None leaves out the signed distance.
            domain: the box that the latent grid fills; by default one around all cars.
            cache: a folder that stores signed distances and ideal flows.
            stream: where the ideal flow goes; None leaves it out.
        """
        box = domain or (self.domain if latent is not None else None)
        everything = tuple(range(len(self)))
        return SurfaceSamples(
            self.surface, self.pressure, everything, measure, latent, box, cache, stream
        )


def read_shapenet(folder: str | os.PathLike[str]) -> ShapeNetCars:
    """All cars of the set.

    Args:
        folder: holds train.txt, test.txt and data/.

    Raises:
        ValueError: names the file that is not as it should be.
    """
    root = Path(folder)
    parts = {part: _ids(root / f"{part}.txt") for part in PARTS}
    both = sorted(set(parts["train"]) & set(parts["test"]))
    if both:
        raise ValueError(f"{root}: {both[:5]} are in train.txt and in test.txt")
    ids = (*parts["train"], *parts["test"])
    cars = [_read_car(root / "data" / name) for name in ids]
    sizes = {len(pressure) for _, pressure in cars}
    if len(sizes) > 1:
        raise ValueError(f"{root}: cars have {sorted(sizes)} vertices, expected one number")
    return ShapeNetCars(
        ids,
        len(parts["train"]),
        tuple(body for body, _ in cars),
        np.stack([pressure for _, pressure in cars]),
    )


def _ids(file: Path) -> tuple[str, ...]:
    if not file.is_file():
        generated = (file.parent / "set.json").is_file()
        raise ValueError(
            f"{file.parent} holds generated cars: put them into one file with uqno data cars "
            "--pack, and give that"
            if generated
            else f"{file} does not exist: expected train.txt, test.txt and data/ there"
        )
    try:
        words = file.read_text("utf8").replace("\n", ",").split(",")
    except ValueError as why:
        raise ValueError(f"{file} is no text: {why}") from None
    ids = tuple(word.strip() for word in words)
    ids = tuple(word for word in ids if word)
    if not ids or len(set(ids)) != len(ids):
        raise ValueError(f"{file}: expected different ids joined by commas, got {len(ids)}")
    if any(Path(word).name != word for word in ids):
        raise ValueError(f"{file}: an id must be the name of a folder in data/")
    return ids


def _read_car(folder: Path) -> tuple[Surface, NDArray[np.float32]]:
    body = _read_body(folder / "tri_mesh.ply")
    file = folder / "press.npy"
    try:
        raw = read_npy(file)
    except Exception as why:  # NumPy fails in many ways on a damaged head
        raise ValueError(f"{file} cannot be read: {why}") from None
    if raw.dtype.kind not in "fiu":
        raise ValueError(f"{file}: expected real numbers, got {raw.dtype}")
    with np.errstate(over="ignore"):  # what is infinite is refused below
        pressure = np.delete(raw.reshape(-1), DROPPED).astype(np.float32)
    if len(pressure) != len(body.points):
        raise ValueError(
            f"{file} has {raw.size} values, of which {len(pressure)} remain without entries "
            f"{DROPPED.start} to {DROPPED.stop - 1}; the mesh has {len(body.points)} vertices"
        )
    check_finite("pressure", str(file), pressure, LEAVE_OUT)
    return body, pressure


def _read_body(file: Path) -> Surface:
    """A closed surface, turned so that its normals point outward."""
    body = read_ply(file)
    check_finite("vertices", str(file), body.points, LEAVE_OUT)
    if body.volume < 0:
        body = Surface(body.points, body.triangles[:, ::-1])
    try:
        body.check_closed()
        _ = body.normals
    except ValueError as why:
        raise ValueError(f"{file}: {why}; {LEAVE_OUT}") from None
    return body
