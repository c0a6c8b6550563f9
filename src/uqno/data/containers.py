"""zarr, HDF5 and NetCDF files, opened only once all that they declare is on a list of our own.

Such a file names the code that decodes it: a codec of zarr may unpickle, one that is found by an
entry point may be anybody's, a filter of HDF5 is loaded as a plugin. It may also name other files.
So the metadata is read here first, as plain JSON or by HDF5's own calls that decode no data, and
what is not on the lists below is refused: no codec is made and no chunk is decoded before. This
does not rely on what a version of zarr, numcodecs or xarray refuses by itself.

Every reader opens such files by `open_zarr_dataset`, `open_zarr_group`, `open_hdf5` and
`open_netcdf`; a test looks for others.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.memory import budget, check_memory

if TYPE_CHECKING:
    import xarray
    import zarr

# --- the lists -----------------------------------------------------------------------------------

# zarr version 2: compressors and filters. All turn bytes into bytes or numbers into numbers; those
# for Python objects (pickle, json2, msgpack2, vlen-…, categorize) are left out on purpose, and so
# is lzma, which may ask for 4 GB to decompress a byte.
ZARR_2 = frozenset(
    {
        "adler32", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta", "fixedscaleoffset",
        "fletcher32", "gzip", "lz4", "quantize", "shuffle", "zlib", "zstd",
    }
)  # fmt: skip
# zarr version 3, where numcodecs' own have a prefix.
ZARR_3 = frozenset({"blosc", "bytes", "crc32c", "gzip", "transpose", "zstd"}) | {
    f"numcodecs.{name}" for name in ZARR_2
}
SHARDING = "sharding_indexed"
# Numbers, truth values, times and texts of fixed length: no Python objects, no records.
ZARR_2_TYPE = re.compile(r"[<>|=]?([biufc]\d{1,2}|[SU]\d{1,9}|[mM]8(\[\d{0,9}[a-zA-Zμ]{1,7}\])?)")
ZARR_3_SIZES = {
    "bool": 1, "complex64": 8, "complex128": 16,
    **{f"{kind}{bits}": bits // 8 for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": bits // 8 for bits in (16, 32, 64)},
}  # fmt: skip
ZARR_3_TIMES = ("numpy.datetime64", "numpy.timedelta64")
ZARR_3_TEXTS = ("fixed_length_utf32", "null_terminated_bytes")
# HDF5: deflate, shuffle, fletcher32, and h5py's lzf. The others are plugins, or have known holes.
HDF5_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}

METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
LARGEST_METADATA = 2**26
SAFE = "where you trust it, write it again with zstd or gzip, and texts of fixed length"

# --- opening -------------------------------------------------------------------------------------


def open_zarr_group(path: Path, mode: Any = "r") -> zarr.Group:
    """A group of zarr, once its metadata is checked.

    Raises:
        ValueError: something that it declares is not on the lists, or larger than the budget.
    """
    import zarr

    check_zarr(path)
    try:
        # What consolidated metadata says may differ from the arrays' own: it is not used.
        return zarr.open_group(Path(path), mode=mode, use_consolidated=False)
    except Exception as why:  # each library fails in its own way on a foreign file
        raise ValueError(f"{path} is not a zarr group: {why}") from why


def open_zarr_dataset(path: Path) -> xarray.Dataset:
    """A group of zarr as xarray sees it, nothing read yet; raises as `open_zarr_group`."""
    import xarray

    check_zarr(path)
    return _dataset(xarray.open_zarr, path, consolidated=False)


def open_hdf5(path: Path) -> Any:
    """A file of HDF5, to read, once all its data sets are checked.

    Raises:
        ValueError: it is no HDF5 file, or cut short, or something that it declares is not on the
            lists, or larger than the budget.
    """
    check_hdf5(path)
    return _hdf5(path)


def open_netcdf(path: Path) -> xarray.Dataset:
    """NetCDF, version 3 or 4, as xarray sees it, nothing read yet; raises as `open_hdf5`."""
    import xarray

    with Path(path).open("rb") as file:
        classic = file.read(3) == b"CDF"
    if classic:
        return _dataset(xarray.open_dataset, path, engine="scipy")
    if not import_module("h5py").is_hdf5(path):
        raise ValueError(f"{path} cannot be opened: it is neither NetCDF 3 nor NetCDF 4")
    check_hdf5(path)
    return _dataset(xarray.open_dataset, path, engine="h5netcdf")  # else xarray may take a plugin


def _dataset(
    opened_by: Callable[..., xarray.Dataset], path: Path, **options: Any
) -> xarray.Dataset:
    """What a function of xarray opens; its coordinates, which are read whole, fit into memory."""
    try:
        dataset = opened_by(Path(path), chunks=None, **options)
    except Exception as why:  # each backend fails in its own way on a foreign file
        reason = " ".join(str(why).split())
        raise ValueError(f"{path} cannot be opened: {type(why).__name__}: {reason:.300}") from why
    total = sum(one.nbytes for one in dataset.coords.values())
    check_memory(f"{path}: its coordinates", total, "leave large variables out of the coordinates")
    return dataset


# --- zarr ----------------------------------------------------------------------------------------


def check_zarr(path: str | Path) -> None:
    """Read all metadata below a folder, and refuse what is not on the lists.

    Raises:
        ValueError: it is no folder, has links that lead out of it, or an array is refused.
    """
    root = Path(path)
    if not root.is_dir():
        raise ValueError(f"{path} is no folder of zarr")
    for file in _metadata(root):
        content = _json(file)
        if file.name == ".zmetadata":
            for name, node in _mapping(content.get("metadata"), file).items():
                if name.endswith(".zarray"):
                    _check_array_2(_mapping(node, file), f"{file}: {name}")
        elif file.name == ".zarray":
            _check_array_2(content, str(file.parent))
        elif file.name == "zarr.json":
            _check_node_3(content, file)


def _metadata(root: Path) -> Iterator[Path]:
    """All files of metadata below a folder; no link is followed."""
    home = Path(os.path.realpath(root))
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_symlink() and not Path(os.path.realpath(entry)).is_relative_to(home):
                    raise ValueError(
                        f"{entry.path} is a link that leads out of {root}: put a copy of the file "
                        "in its place if you trust it"
                    )
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif not entry.is_file():
                    raise ValueError(f"{entry.path} is no regular file: remove it")
                if entry.name in METADATA and entry.is_file():
                    yield Path(entry.path)


def _json(file: Path) -> dict[str, Any]:
    size = file.stat().st_size
    if size > LARGEST_METADATA:
        raise ValueError(
            f"{file} has {size} bytes of metadata, expected at most {LARGEST_METADATA}"
        )
    try:
        return dict(_mapping(json.loads(file.read_bytes()), file))
    except RecursionError:
        raise ValueError(f"{file} is nested too deeply: it is damaged") from None
    except UnicodeDecodeError as why:
        raise ValueError(f"{file} is no text: {why}") from None
    except json.JSONDecodeError as why:
        raise ValueError(f"{file} is not JSON: {why}") from None


def _mapping(content: Any, file: Path) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{file} is damaged: expected an object of JSON, got {content!r:.40}")
    return content


def _check_array_2(array: Mapping[str, Any], where: str) -> None:
    filters = array.get("filters")
    for codec in (array.get("compressor"), *(filters if isinstance(filters, list) else [filters])):
        if codec is None:
            continue
        name = codec.get("id") if isinstance(codec, dict) else codec
        if not isinstance(name, str) or name not in ZARR_2:
            raise _refused(where, "codec", name, ZARR_2)
        for key in ("dtype", "astype"):
            if key in codec:
                _size_2(codec[key], where)
    _check_chunk(array.get("shape"), array.get("chunks"), _size_2(array.get("dtype"), where), where)


def _size_2(dtype: Any, where: str) -> int:
    """The bytes of a value."""
    if not isinstance(dtype, str) or ZARR_2_TYPE.fullmatch(dtype) is None:
        raise _refused(where, "data type", dtype, ("numbers", "times", "texts of fixed length"))
    return np.dtype(dtype).itemsize


def _check_node_3(node: Mapping[str, Any], file: Path) -> None:
    consolidated = node.get("consolidated_metadata")
    if isinstance(consolidated, dict):
        for child in _mapping(consolidated.get("metadata"), file).values():
            _check_node_3(_mapping(child, file), file)
    if node.get("node_type") == "group":
        return
    where = str(file.parent)
    if node.get("storage_transformers"):
        raise _refused(where, "storage transformer", node["storage_transformers"], ("none",))
    grid, chunks = _named(node.get("chunk_grid"))
    if grid != "regular":
        raise _refused(where, "chunk grid", grid, ("regular",))
    size = _size_3(node.get("data_type"), where)
    _check_codecs_3(node.get("codecs"), node.get("shape"), chunks.get("chunk_shape"), size, where)


def _check_codecs_3(codecs: Any, shape: Any, chunks: Any, size: int, where: str) -> None:
    """The codecs of an array of values of `size` bytes, and those inside its shards."""
    if not isinstance(codecs, list):
        raise _refused(where, "list of codecs", codecs, ZARR_3)
    whole = True
    for codec in codecs:
        name, configuration = _named(codec)
        if name == SHARDING and isinstance(chunks, list | tuple):
            # Shards are read in parts: their own chunks and their index as a whole.
            inner: Any = configuration.get("chunk_shape")
            _check_chunk(shape, chunks, 0, where)
            _check_chunk(chunks, inner, 0, where)
            _check_codecs_3(configuration.get("codecs"), chunks, inner, size, where)
            index = (*(-(-n // max(1, m)) for n, m in zip(chunks, inner, strict=True)), 2)
            _check_codecs_3(configuration.get("index_codecs"), index, index, 8, where)
            whole = False
        elif name not in ZARR_3:
            raise _refused(where, "codec", name, {*ZARR_3, SHARDING})
        for key in ("dtype", "astype"):
            if key in configuration:
                _size_2(configuration[key], where)
    if whole:
        _check_chunk(shape, chunks, size, where)


def _size_3(dtype: Any, where: str) -> int:
    """The bytes of a value."""
    name, configuration = _named(dtype)
    if name in ZARR_3_SIZES:
        return ZARR_3_SIZES[name]
    if name in ZARR_3_TIMES:
        return 8
    length = configuration.get("length_bytes")
    if name in ZARR_3_TEXTS and isinstance(length, int):
        return length
    known = (*ZARR_3_SIZES, *ZARR_3_TIMES, *ZARR_3_TEXTS)
    raise _refused(where, "data type", dtype if name is None else name, known)


def _named(extension: Any) -> tuple[str | None, Mapping[str, Any]]:
    """Name and configuration of a codec, a data type or a grid: a text, or an object."""
    if isinstance(extension, str):
        return extension, {}
    if isinstance(extension, dict) and isinstance(extension.get("name"), str):
        configuration = extension.get("configuration", {})
        return extension["name"], configuration if isinstance(configuration, dict) else {}
    return None, {}


def _check_chunk(shape: Any, chunks: Any, size: int, where: str) -> None:
    """A chunk is decoded as a whole, so it must fit into the budget."""
    for sizes in (shape, chunks):
        if not isinstance(sizes, list | tuple) or not all(type(n) is int and n >= 0 for n in sizes):
            raise ValueError(f"{where} is damaged: expected sizes, got {sizes!r:.60}")
    if len(shape) != len(chunks):
        raise ValueError(f"{where} is damaged: it has shape {shape} and chunks {chunks}")
    check_memory(f"{where}: a chunk of shape {chunks}", size * prod(chunks), "store smaller chunks")


def _refused(where: str, kind: str, name: Any, known: Any) -> ValueError:
    return ValueError(
        f"{where} has the {kind} {name!r:.60}, which is not read from files of others; known are "
        f"{', '.join(sorted(known))}: {SAFE}"
    )


# --- HDF5 ----------------------------------------------------------------------------------------


def check_hdf5(path: str | Path) -> None:
    """Look at every link and data set of a file, and refuse what is not on the lists.

    Raises:
        ValueError: it is no whole HDF5 file, names other files, or a data set is refused.
    """
    state = Path(path).stat()  # a layout is looked for by several readers: walk the file once
    _check_hdf5(str(path), state.st_ino, state.st_mtime_ns, state.st_size, budget())


@lru_cache(maxsize=16)
def _check_hdf5(path: str, inode: int, changed: int, size: int, most: int) -> None:
    with _hdf5(Path(path)) as file:
        try:
            _check_group(file, path)
        except (RuntimeError, OSError, KeyError) as why:
            raise ValueError(f"{path} is damaged: {why}") from None


def _hdf5(path: Path) -> Any:
    try:
        return import_module("h5py").File(path, "r")
    except OSError as why:
        raise ValueError(f"{path} is no HDF5 file, or cut short: {why}") from None


def _check_group(root: Any, path: str) -> None:
    h5py = import_module("h5py")
    seen, groups = set(), [root]
    while groups:
        group = groups.pop()
        for name in group:
            link = group.get(name, getlink=True)
            where = f"{path}: {group.name.rstrip('/')}/{name}"
            if isinstance(link, h5py.SoftLink):
                continue  # leads to what is checked where it is
            if not isinstance(link, h5py.HardLink):
                raise ValueError(
                    f"{where} is a link into another file: copy what it leads to into this file"
                )
            one = group[name]
            info = h5py.h5o.get_info(one.id)
            if (info.fileno, info.addr) in seen:
                continue
            seen.add((info.fileno, info.addr))
            if isinstance(one, h5py.Group):
                groups.append(one)
            elif isinstance(one, h5py.Dataset):
                _check_data_set(one, where)


def _check_data_set(one: Any, where: str) -> None:
    if one.is_virtual or one.external:
        raise ValueError(f"{where} lies in other files: copy its values into this file")
    recipe = one.id.get_create_plist()
    for k in range(recipe.get_nfilters()):
        code, _, _, name = recipe.get_filter(k)
        if code not in HDF5_FILTERS:
            called = f"{code} ({name.decode('utf8', 'replace')})"
            known = {f"{number} ({word})" for number, word in HDF5_FILTERS.items()}
            raise _refused(where, "filter", called, known)
    if one.chunks is not None:
        remedy = "store smaller chunks"
        size = one.id.get_type().get_size() * prod(one.chunks)
        check_memory(f"{where}: a chunk of shape {one.chunks}", size, remedy)
