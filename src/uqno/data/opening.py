"""`open`: a file of fields, or two, as samples."""

from __future__ import annotations

from os import PathLike

from uqno.data.fields import FieldSamples, Names, select

# Defined, so they are known; a layout after the format that it is written in.
from uqno.data.readers import (  # noqa: F401
    hdf5,
    matlab,
    netcdf,
    npz,
    pdebench,
    stored,
    tensors,
    the_well,
)
from uqno.data.readers.contract import open_content
from uqno.data.variables import Content, read_whole
from uqno.storage import as_path
from uqno.types import Array

Paths = str | PathLike[str] | tuple[str | PathLike[str], str | PathLike[str]]


def open(
    path: Paths,
    inputs: Names = None,
    outputs: Names = None,
    *,
    functions: str | None = None,
    dimensions: int | None = None,
    truth: bool = True,
) -> FieldSamples:
    """Functions of a file as a sequence of samples; each is read when it is asked for.

    Args:
        path: NetCDF, zarr, HDF5, .npz, .npy, .pt, .safetensors or .mat, also as PDEBench and The
            Well lay them out; or a pair, a file with the inputs and one with the outputs.
        inputs, outputs: names of variables, one or several, which become channels. "u[0]" is the
            first step in time, "u[:10]" the first ten. What is left out follows from the layout,
            or from names such as a and u.
        functions: the dimension that counts the functions; by default one that is called function,
            sample, trajectory, …, else the first.
        dimensions: of the grid, where they are known.
        truth: whether outputs are needed.

    Returns:
        Samples with `a` and `u`, (channel, *grid) where the dimensions have names, else without
        their first dimension as the file has them.

    Raises:
        ValueError: a file is absent, damaged or unknown, or lacks a variable; it says which there
            are.
    """
    content, other = contents_of(path)
    return select(
        content,
        inputs,
        outputs,
        other=other,
        functions=functions,
        dimensions=dimensions,
        truth=truth,
    )


def contents_of(path: Paths) -> tuple[Content, Content | None]:
    """What a file holds, or the file with the inputs and the one with the outputs."""
    if not isinstance(path, tuple | list):
        return open_content(as_path(path)), None
    if len(path) != 2:
        raise ValueError(f"{len(path)} files: expected one, or two (inputs, outputs)")
    first, second = (open_content(as_path(one)) for one in path)
    return first, second


def fields_of(path: str | PathLike[str], name: str) -> dict[str, Array] | None:
    """All variables of a file in memory by name, if one of them is called so; else None."""
    content = open_content(as_path(path))
    if name not in content.variables:
        return None
    return {one: read_whole(v.values, f"{path}: {one}") for one, v in content.variables.items()}
