"""Darcy sets as neuraloperator publishes them: tensors `x` and `y` in a .pt file."""

from __future__ import annotations

import os

import numpy as np

from uqno.data.readers.tensors import check_tensor, load_tensors
from uqno.data.samples import GridSamples


def read_neuraloperator(path: str | os.PathLike[str], measure: str = "points") -> GridSamples:
    """Samples of a `darcy_*.pt` file, or of a .safetensors file with the same tensors.

    "x" is taken as the file has it (0 and 1 stand for the two values of a in most of them).

    Args:
        path: a file with the tensors "x" and "y", each (n, H, W) or (n, 1, H, W). A .pt file is
            loaded with weights only: it cannot run code.
        measure: how the nodes are weighed, see `GridSamples`.

    Raises:
        ValueError: torch is too old to load a .pt file safely, or the file holds something else.
    """
    import torch

    content = load_tensors(path)
    if not isinstance(content, dict) or not {"x", "y"} <= set(content):
        held = sorted(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{path} must hold a dict with tensors 'x' and 'y', found {held}")
    for key in ("x", "y"):
        check_tensor(content[key], f"{path}: {key}")
    inputs, solutions = (np.asarray(content[key].to(torch.float32)) for key in ("x", "y"))
    return GridSamples.from_file(path, inputs, solutions, measure)
