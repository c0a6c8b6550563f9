"""Functions on disk: a zarr group written chunk by chunk, each chunk whole or absent.

    NAME.zarr/            attributes: format, format_version, recipe, count, chunk
      seeds               (count, 2) the pair (seed, index) that function i is made from
      done                (chunks,)  1 once all arrays of a chunk of functions are on disk
      43/inputs           (count, 43, 43) a at the nodes      (one group a resolution)
      43/solutions        (count, 43, 43) u at the nodes
      43/coordinates      (43,) of a side

*Why nothing half-written is read as whole.* The group is written aside and renamed into place. A
chunk of functions is one file in each array, encoded in memory, forced to the disk and put in place
by a rename; its mark in `done` is a file of its own, written after all of them. Whoever is killed
in between leaves an unmarked chunk, which is made again. Every function carries a checksum. As no
file is shared by two chunks, several processes or machines may write into one store, and two
partial copies of a store become one by copying either over the other. Of two writers of one chunk
either replaces whole files by the same whole files: no reader finds one missing.

*What a disk lost* is found by `FunctionStore.repaired`: files and marks that are empty or damaged
are set aside by name (`0.damaged`) and their chunks unmarked, so that they are made again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.storage import MemoryStore

from uqno.data.containers import open_zarr_group
from uqno.data.samples import GridSamples
from uqno.memory import check_memory
from uqno.storage import DamagedError, set_aside, write_bytes, write_folder
from uqno.types import Floats, Integers

FORMAT = "uqno functions"
FORMAT_VERSION = 1
ANEW = "copy it again, or remove it and run the generation again"


@dataclass(frozen=True)
class FunctionStore:
    """An open store. `FunctionStore.open(path)` reads, `FunctionStore.create(...)` begins one."""

    path: Path
    group: zarr.Group
    recipe: Mapping[str, Any]
    count: int
    chunk: int
    resolutions: tuple[int, ...]

    @staticmethod
    def create(
        path: str | os.PathLike[str],
        recipe: Mapping[str, Any],
        seeds: Integers,
        resolutions: Iterable[int],
        chunk: int,
    ) -> FunctionStore:
        """An empty store.

        Args:
            path: the folder to make, which must not exist.
            recipe: any JSON-able record of how the functions are made.
            seeds: the pair (seed, index) that each function is made from, (count, 2).
            resolutions: nodes along a side, one group of arrays each.
            chunk: how many functions are written together.

        Raises:
            FileExistsError: something is there already.
        """
        sizes = tuple(resolutions)
        write_folder(
            Path(path), lambda aside: _lay_out(aside, recipe, seeds, sizes, chunk), replace=False
        )
        return FunctionStore.open(path)

    @staticmethod
    def open(path: str | os.PathLike[str]) -> FunctionStore:
        """The store at `path`.

        Raises:
            ValueError: what is foreign, missing or cut short.
        """
        store = FunctionStore._opened(path)
        store._check_files()
        return store

    @staticmethod
    def repaired(path: str | os.PathLike[str]) -> FunctionStore:
        """The store at `path`, without the marks of chunks that are damaged or lost.

        Every marked function is read and compared with its checksum.

        Raises:
            ValueError: what is foreign or missing.
        """
        store = FunctionStore._opened(path)
        with store._lock(fcntl.LOCK_EX):
            for chunk in range(-(-store.count // store.chunk)):
                store._repair(chunk)
        return store

    @staticmethod
    def _opened(path: str | os.PathLike[str]) -> FunctionStore:
        path = Path(path)
        if not path.is_dir():
            raise ValueError(f"{path} is not a folder: generate the functions there first")
        try:
            group = open_zarr_group(path, "r+" if os.access(path, os.W_OK) else "r")
        except ValueError as why:
            raise ValueError(f"{why}; if it was a store of functions, {ANEW}") from why
        attributes: dict[str, Any] = dict(group.attrs)
        if attributes.get("format") != FORMAT:
            raise ValueError(
                f"{path} is a zarr group but not a store of functions: its attribute 'format' is "
                f"{attributes.get('format')!r}, not {FORMAT!r}"
            )
        if attributes.get("format_version") != FORMAT_VERSION:
            raise ValueError(
                f"{path} has format version {attributes.get('format_version')}, this library reads "
                f"{FORMAT_VERSION}: generate it again or use the library that wrote it"
            )
        missing = {"recipe", "count", "chunk", "resolutions"} - set(attributes)
        if missing:
            raise ValueError(f"{path} lacks the attributes {sorted(missing)}: {ANEW}")
        store = FunctionStore(
            path,
            group,
            recipe=attributes["recipe"],
            count=attributes["count"],
            chunk=attributes["chunk"],
            resolutions=attributes["resolutions"],
        )
        return replace(store, resolutions=store._checked())

    def _checked(self) -> tuple[int, ...]:
        """The resolutions, once the attributes fit to the arrays beside them, and to the memory."""
        sizes = self.resolutions
        whole = isinstance(sizes, list | tuple) and all(
            type(n) is int and n >= 1 for n in (self.count, self.chunk, *sizes)
        )
        if not whole:
            raise ValueError(
                f"{self.path} has count={self.count!r:.20}, chunk={self.chunk!r:.20} and "
                f"resolutions={sizes!r:.40}: expected whole numbers of at least 1; generate it anew"
            )
        most = max(self.count + self.chunk, *(n * n for n in sizes))
        check_memory(f"{self.path}", 8 * most, "store fewer functions in a file")
        shapes: dict[str, tuple[int, ...]] = {"done": (-(-self.count // self.chunk),)}
        for n in sizes:
            shapes |= {f"{n}/{name}": (self.count, n, n) for name in ("inputs", "solutions")}
        for name, shape in shapes.items():
            try:
                there = self._array(name).shape
            except KeyError as error:
                raise ValueError(f"{self.path} is cut short: it has no array {error}") from None
            if there != shape:
                raise ValueError(
                    f"{self.path}: {name} has shape {there}, its attributes say {shape}: copy the "
                    "store again or generate it anew"
                )
        return tuple(sizes)

    def _check_files(self) -> None:
        """A marked chunk whose file is gone would be read as fill values: refuse it here."""
        done = np.flatnonzero(self.done())
        for array in self._arrays():
            files = [self._file(array.path, int(chunk)) for chunk in done]
            lost = [file for file in files if not file.exists()]
            if lost:
                raise ValueError(
                    f"{self.path} is cut short: {lost[0]} is marked as written but missing "
                    f"({len(lost)} such files); copy the store again or run the generation again"
                )

    def _repair(self, chunk: int) -> None:
        """Unmark a chunk that is not whole, and set aside what is damaged of it."""
        mark = self.path / "done" / "c" / str(chunk)
        if not mark.exists():
            return
        marks = self._array("done")
        try:
            marked = bool(np.asarray(marks[chunk]) == 1)
        except Exception:  # whatever zarr says of a damaged file
            marked = False
        damaged = [] if marked else [mark]
        lost = False
        for array in self._arrays():
            file = self._file(array.path, chunk)
            lost = lost or not file.exists()
            if file.exists() and not self._is_whole(array, chunk):
                damaged.append(file)
        if damaged or lost:
            for file in damaged:
                with suppress(FileNotFoundError):
                    set_aside(file)
            mark.unlink(missing_ok=True)

    def _is_whole(self, array: zarr.Array[Any], chunk: int) -> bool:
        positions = self.positions(chunk)
        try:
            return bool(np.isfinite(array[positions.start : positions.stop]).all())
        except Exception:  # a damaged file, whatever zarr calls it
            return False

    @contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        """Writers share the store, a repair has it alone; where a disk has no locks, none is."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def _arrays(self) -> list[zarr.Array[Any]]:
        return [
            self._array(f"{resolution}/{name}")
            for resolution in self.resolutions
            for name in ("inputs", "solutions")
        ]

    def _array(self, name: str) -> zarr.Array[Any]:
        try:
            array = self.group[name]
        except KeyError:
            raise ValueError(f"{self.path} is cut short: it has no array {name}: {ANEW}") from None
        except Exception as why:  # whatever zarr says of a damaged description
            raise DamagedError(
                f"{self.path}: the description of {name} is damaged ({why}): {ANEW}"
            ) from why
        if not isinstance(array, zarr.Array):
            raise ValueError(f"{self.path}: {name} is a group where an array was expected")
        return array

    def _file(self, name: str, chunk: int) -> Path:
        return self.path / name / "c" / str(chunk) / "0" / "0"

    def done(self) -> NDArray[np.bool_]:
        """Which chunks of functions are whole: (chunks,)."""
        marks = self._array("done")
        try:
            return np.asarray(marks[:]).astype(bool)
        except Exception as why:  # whatever zarr says of a damaged file
            raise DamagedError(
                f"{self.path}: a mark in {self.path / 'done'} is damaged ({why}): copy the store "
                "again or run the generation again"
            ) from why

    def available(self) -> Integers:
        """The positions of the functions that are on disk, in order."""
        return np.flatnonzero(np.repeat(self.done(), self.chunk)[: self.count])

    def positions(self, chunk: int) -> range:
        """The positions of the functions of one chunk."""
        return range(chunk * self.chunk, min((chunk + 1) * self.chunk, self.count))

    def write(
        self,
        chunk: int,
        functions: Mapping[int, tuple[Floats, Floats]],
    ) -> None:
        """Put a chunk of functions on disk, then mark it done.

        Args:
            chunk: which chunk.
            functions: {resolution N: (a, u)}, each (functions of the chunk, N, N).
        """
        if self.done()[chunk]:
            return  # another process made it meanwhile: it is the same
        positions = self.positions(chunk)
        content = {}
        for resolution in self.resolutions:
            a, u = functions[resolution]
            expected = (len(positions), resolution, resolution)
            if a.shape != expected or u.shape != expected:
                raise ValueError(
                    f"chunk {chunk} at {resolution} needs a and u of shape {expected}, got "
                    f"{a.shape} and {u.shape}"
                )
            for name, values in ((f"{resolution}/inputs", a), (f"{resolution}/solutions", u)):
                where = slice(positions.start, positions.stop)
                content[self._file(name, chunk)] = self._encoded(name, where, values)
        mark = self._encoded("done", slice(chunk, chunk + 1), np.ones(1, dtype=np.uint8))
        with self._lock(fcntl.LOCK_SH):
            for file, encoded in content.items():
                write_bytes(file, encoded)
            write_bytes(self.path / "done" / "c" / str(chunk), mark)

    def _encoded(self, name: str, where: slice, values: NDArray[Any]) -> bytes:
        """The file that zarr would write for a chunk of an array."""
        files: dict[str, Any] = {}
        zarr.from_array(MemoryStore(files), data=self._array(name), write_data=False)[where] = (
            values
        )
        (encoded,) = (files[key] for key in files if key.startswith("c/"))
        return bytes(encoded.to_bytes())

    def samples(
        self, resolution: int, positions: Iterable[int] | None = None, measure: str = "points"
    ) -> GridSamples:
        """Functions as samples, read when they are asked for.

        Args:
            resolution: nodes along a side.
            positions: which functions, in which order; all of them by default.
            measure: how nodes are weighed, "points" or "area", see `node_weights`.
        """
        if resolution not in self.resolutions:
            raise ValueError(
                f"{self.path} holds the resolutions {self.resolutions}, not {resolution}: "
                "generate it with keep=(..., resolution)"
            )
        wanted = np.arange(self.count) if positions is None else np.array(list(positions), int)
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < self.count):
            raise ValueError(f"positions must lie in 0 to {self.count - 1}, got {wanted}")
        missing = np.setdiff1d(wanted, self.available())
        if missing.size:
            raise ValueError(
                f"{self.path} is unfinished: {missing.size} of the {wanted.size} functions asked "
                f"for are not made yet (the first is {missing[0]}); run the generation to its end"
            )
        return GridSamples(
            self._array(f"{resolution}/inputs"),
            self._array(f"{resolution}/solutions"),
            tuple(int(i) for i in wanted),
            measure,
        )


def _lay_out(
    path: Path,
    recipe: Mapping[str, Any],
    seeds: Integers,
    resolutions: tuple[int, ...],
    chunk: int,
) -> None:
    count = len(seeds)
    group = zarr.create_group(path)
    chunks = -(-count // chunk)
    # One file a mark, so that no two writers ever share one.
    group.create_array("done", shape=(chunks,), chunks=(1,), dtype="uint8", fill_value=0)
    group.create_array("seeds", data=seeds)
    for resolution in resolutions:
        group.create_array(f"{resolution}/coordinates", data=np.linspace(0.0, 1.0, resolution))
        for name in ("inputs", "solutions"):
            group.create_array(
                f"{resolution}/{name}",
                shape=(count, resolution, resolution),
                shards=(chunk, resolution, resolution),  # one file a chunk of functions
                chunks=(1, resolution, resolution),  # of which one function can be read alone
                dtype="float32",
                fill_value=float("nan"),
                compressors=[ZstdCodec(level=1), Crc32cCodec()],
                dimension_names=("function", "x", "y"),
            )
    group.attrs.update(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "recipe": dict(recipe),
            "count": count,
            "chunk": chunk,
            "resolutions": list(resolutions),
        }
    )
