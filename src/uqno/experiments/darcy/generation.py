"""Making a set of Darcy functions: from a recipe and a seed to a store, resumable, in parallel.

    recipe = Recipe(seed=0, resolution=421, keep=(43, 85, 421))
    store = generate("darcy.zarr", recipe, count=1600, workers=2)
    data = store.samples(43)

Each function is solved once, at `resolution`, and kept at each resolution of `keep` by taking
every k-th node: all of them see one truth. To solve on a coarse grid instead, ask for it:
`Recipe(resolution=43, keep=(43,))` has the same coefficients at the shared nodes.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.data.store import FunctionStore
from uqno.experiments.darcy.fields import MODES, gaussian_fields
from uqno.experiments.darcy.settings import COEFFICIENTS
from uqno.experiments.darcy.solver import lognormal, solve, two_valued
from uqno.experiments.jobs import Job, Workers

log = logging.getLogger(__name__)

# Raise it whenever the same recipe would give other functions than before.
RECIPE_VERSION = 1

Advance = Callable[[int, int], None]
"""(how many are made, of how many)."""


@dataclass(frozen=True)
class Recipe:
    """All that decides function i: a from N(0, (−Δ + τ²)^−s) and −∇·(a∇u) = f, u = 0 outside.

    The defaults of `mean_free`, `high`, `low` and `scale` are those of the published data set.

    Args:
        seed: the one of the set.
        resolution: nodes a side of the grid on which the equation is solved.
        keep: nodes a side of the grids that are stored, each among those of `resolution`.
        coefficient: "two-valued" or "lognormal".
        high: the larger value of the two-valued coefficient.
        low: the smaller one.
        scale: of the lognormal coefficient, a = exp(scale · field).
        tau: τ.
        s: the power in the law of the field.
        mean_free: whether the field has no constant mode.
        modes: of the field in each direction.
        source: f.
        tolerance: of the solver.

    Raises:
        ValueError: the coefficient is not known, or a grid is not part of the one solved on.
    """

    seed: int = 0
    resolution: int = 421
    keep: tuple[int, ...] = (43, 85, 421)
    coefficient: str = "two-valued"
    high: float = 12.0
    low: float = 3.0
    scale: float = 3.0
    tau: float = 3.0
    s: float = 2.0
    mean_free: bool = True
    modes: int = MODES
    source: float = 1.0
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", tuple(self.keep))
        if self.coefficient not in COEFFICIENTS:
            raise ValueError(
                f"coefficient must be one of {', '.join(COEFFICIENTS)}, got {self.coefficient!r}"
            )
        if not self.keep or len(set(self.keep)) != len(self.keep):
            raise ValueError(f"keep must name one or more different resolutions, got {self.keep}")
        for nodes in self.keep:
            if nodes < 3 or (self.resolution - 1) % (nodes - 1):
                intervals = self.resolution - 1
                possible = [n + 1 for n in range(2, intervals + 1) if intervals % n == 0]
                raise ValueError(
                    f"the nodes of resolution {nodes} are not among those of {self.resolution}: "
                    f"keep some of {possible}"
                )

    def record(self) -> dict[str, Any]:
        """The recipe and its version as JSON-able values."""
        return {**asdict(self), "keep": list(self.keep), "version": RECIPE_VERSION}

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "Recipe":
        """The recipe of `record`, refused if this library would make other functions of it."""
        fields = dict(record)
        version = fields.pop("version", None)
        if version != RECIPE_VERSION:
            raise ValueError(
                f"the functions were made by recipe version {version}, this library makes version "
                f"{RECIPE_VERSION}: read them, but do not add to them"
            )
        return Recipe(**fields)

    def coefficients(self, indices: Iterable[int]) -> NDArray[np.float64]:
        """a of these functions at the recipe's resolution: (len(indices), N, N)."""
        fields = gaussian_fields(
            self.seed, indices, self.resolution, self.tau, self.s, self.modes, self.mean_free
        )
        if self.coefficient == "lognormal":
            return lognormal(fields, self.scale)
        return two_valued(fields, self.high, self.low)

    def functions(
        self, indices: Iterable[int]
    ) -> dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """{kept resolution: (a, u)} of these functions, each (len(indices), N, N)."""
        a = self.coefficients(indices)
        u = solve(a, self.source, self.tolerance)
        strides = {nodes: (self.resolution - 1) // (nodes - 1) for nodes in self.keep}
        return {nodes: (a[:, ::k, ::k], u[:, ::k, ::k]) for nodes, k in strides.items()}


def generate(
    path: str | os.PathLike[str],
    recipe: Recipe,
    count: int,
    part: range | None = None,
    workers: int = 1,
    chunk: int = 16,
    progress: Advance | None = None,
) -> FunctionStore:
    """Make functions 0 … count − 1 of `recipe` in the store at `path`; goes on where it stopped.

    Args:
        path: the store, a .zarr folder; it is created if it is not there.
        recipe: decides the functions.
        count: how many functions the store has.
        part: the functions to make now, all by default; its ends must be ends of chunks. Two
            machines make range(0, 800) and range(800, 1600) of the same store and copy one over
            the other.
        workers: processes; 1 works in this one. A script that asks for more must guard its entry
            with `if __name__ == "__main__":`, as with all of Python's process pools.
        chunk: functions a file, chosen when the store is begun.
        progress: is called with the functions of the part that are made, and their number.

    Raises:
        ValueError: a number is below 1, `part` does not fit the chunks, or the store holds
            functions of another recipe.
    """
    if count < 1 or chunk < 1 or workers < 1:
        raise ValueError(
            f"count, chunk and workers must be at least 1, got {count}, {chunk} and {workers}"
        )
    store = _open_or_create(Path(path), recipe, count, chunk)
    chunks = _chunks_of_part(part if part is not None else range(count), count, store.chunk)
    done = store.done()
    missing = [c for c in chunks if not done[c]]
    total = sum(len(store.positions(c)) for c in chunks)
    finished = total - sum(len(store.positions(c)) for c in missing)
    log.info("%s: %d of %d functions to make", store.path, total - finished, total)
    if progress is not None:
        progress(finished, total)
    for c in _make(store.path, recipe, missing, workers):
        finished += len(store.positions(c))
        if progress is not None:
            progress(finished, total)
    return FunctionStore.open(path)


def _open_or_create(path: Path, recipe: Recipe, count: int, chunk: int) -> FunctionStore:
    if not path.exists():
        seeds = np.stack([np.full(count, recipe.seed), np.arange(count)], axis=1)
        with suppress(FileExistsError):  # another machine was faster: join it
            FunctionStore.create(path, recipe.record(), seeds, recipe.keep, min(chunk, count))
    store = FunctionStore.repaired(path)
    wanted, there = {**recipe.record(), "count": count}, {**store.recipe, "count": store.count}
    if wanted != there:
        different = {
            key: (there.get(key), wanted.get(key))
            for key in sorted({*wanted, *there})
            if wanted.get(key) != there.get(key)
        }
        raise ValueError(
            f"{path} holds functions of another recipe (there, wanted): {different}; "
            "choose another name or remove it"
        )
    return store


def _chunks_of_part(part: range, count: int, chunk: int) -> range:
    ends_on_chunk = part.stop % chunk == 0 or part.stop == count
    inside = 0 <= part.start < part.stop <= count
    if part.step != 1 or part.start % chunk or not ends_on_chunk or not inside:
        raise ValueError(
            f"part must begin and end at multiples of the chunk of {chunk} functions within 0 to "
            f"{count}, got {part}: chunks are written whole"
        )
    return range(part.start // chunk, -(-part.stop // chunk))


def _make(path: Path, recipe: Recipe, chunks: list[int], workers: int) -> Iterator[int]:
    """Make the chunks, yielding each when it is on disk."""
    count = max(1, min(workers, len(chunks)))
    jobs = [Job(f"chunk {chunk}", _make_chunk, (path, recipe, chunk)) for chunk in chunks]
    with Workers(count, "here" if count == 1 else "processes") as pool:
        yield from (chunk for _, chunk in pool.completed(jobs))


def _make_chunk(path: Path, recipe: Recipe, chunk: int) -> int:
    store = FunctionStore.open(path)
    store.write(chunk, recipe.functions(store.positions(chunk)))
    return chunk
