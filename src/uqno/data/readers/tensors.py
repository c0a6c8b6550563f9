"""Tensors by name in .pt and .safetensors files, loaded so that they cannot run code."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uqno.data.readers.contract import Reader
from uqno.data.variables import Content, Variable

# Before this version, loading "weights only" could be made to run code.
SAFE_TORCH = (2, 10)


class Tensors(Reader):
    """A dict of tensors, or a pair (inputs, outputs); mapped into memory where torch can."""

    suffixes = (".pt", ".pth", ".safetensors")

    def open(self, path: Path) -> Content:
        import torch

        held = load_tensors(path)
        if isinstance(held, torch.Tensor):
            held = {path.stem: held}
        elif isinstance(held, tuple | list):
            roles = ("a", "u") if len(held) == 2 else tuple(f"tensor{i}" for i in range(len(held)))
            held = dict(zip(roles, held, strict=True))
        if not isinstance(held, Mapping):
            raise ValueError(f"{path} holds a {type(held).__name__}, expected tensors by name")
        variables = {
            str(name): Variable(str(name), _numbers(value))
            for name, value in held.items()
            if isinstance(value, torch.Tensor) and value.ndim and not value.is_sparse
        }
        return Content(str(path), variables, layout="tensors")


def load_tensors(path: str | os.PathLike[str]) -> Any:
    """What a .pt or .safetensors file holds.

    Raises:
        ValueError: torch is too old to load a .pt file safely, or it holds more than tensors.
    """
    return _safetensors(path) if Path(path).suffix == ".safetensors" else _pt(path)


def _numbers(value: Any) -> Any:
    import torch

    plain = value.detach().cpu()
    return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()


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
