"""Darcy sets as neuraloperator publishes them: tensors `x` and `y` in a .pt file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from uqno.data.samples import GridSamples

# Before this version, loading "weights only" could be made to run code.
SAFE_TORCH = (2, 10)


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

    content = _safetensors(path) if Path(path).suffix == ".safetensors" else _pt(path)
    if not isinstance(content, dict) or not {"x", "y"} <= set(content):
        held = sorted(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{path} must hold a dict with tensors 'x' and 'y', found {held}")
    inputs, solutions = (np.asarray(content[key].to(torch.float32)) for key in ("x", "y"))
    return GridSamples.from_file(path, inputs, solutions, measure)


def _pt(path: str | os.PathLike[str]) -> Any:
    import torch

    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is None or tuple(map(int, version.groups())) < SAFE_TORCH:
        raise ValueError(
            f"{path}: .pt files are read with torch ≥ {'.'.join(map(str, SAFE_TORCH))}, this is "
            f"{torch.__version__}, whose weights-only loading has known holes: convert the file "
            "to .safetensors (safetensors.torch.save_file) where you trust it, or install a newer "
            "torch"
        )
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as why:  # a foreign file fails in many ways
        raise ValueError(
            f"{path} is not a file of tensors alone and was not loaded: {why}"
        ) from why


def _safetensors(path: str | os.PathLike[str]) -> Any:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as why:
        raise ValueError(f"{path} is not a .safetensors file: {why}") from why
