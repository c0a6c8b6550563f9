"""Tensors by name in .pt and .safetensors files, loaded so that they cannot run code."""

from __future__ import annotations

import os
import pickletools
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uqno.data.readers.contract import Reader
from uqno.data.variables import Content, Variable
from uqno.memory import check_memory

# Before this version, loading "weights only" could be made to run code.
SAFE_TORCH = (2, 10)
SMALLER = "split the file"
# What a file of tensors names: how they are made again, of which storage, in which kind of dict.
TENSORS = re.compile(
    r"torch\._utils\._rebuild_(tensor|tensor_v2|parameter)|torch\.[A-Z][A-Za-z0-9]*Storage"
    r"|torch\.storage\.UntypedStorage|collections\.OrderedDict|torch\.(Size|device|(b?float|u?int)\d+"
    r"|bool|complex\d+)"
)


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


def check_tensor(value: Any, what: str) -> None:
    """Refuse a tensor that is larger than the budget: one of few numbers may declare any shape.

    Raises:
        ValueError: it is, or is no tensor.
    """
    if not hasattr(value, "element_size"):
        raise ValueError(f"{what} is a {type(value).__name__}, expected a tensor")
    check_memory(what, value.numel() * max(4, value.element_size()), SMALLER)


def _check_archive(path: str | os.PathLike[str]) -> None:
    """Look into a .pt file before torch does: what it names, and how large it is.

    "Weights only" lets a file call more than it needs to hold tensors, such as `bytearray` with any
    length. So its names are compared with a list of our own.

    Raises:
        ValueError: it is no archive as torch writes, is compressed, larger than the budget, or
            names something else than tensors.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            packed = [e.filename for e in entries if e.compress_type != zipfile.ZIP_STORED]
            if packed:
                raise ValueError(f"{packed[0]} is compressed, which torch does not do")
            check_memory(str(path), sum(e.file_size for e in entries), SMALLER)
            pickles = [e for e in entries if e.filename.endswith("data.pkl")]
            if len(pickles) != 1:
                raise ValueError(f"it has {len(pickles)} files data.pkl, expected one")
            named = _names(archive.read(pickles[0]))
    except zipfile.BadZipFile as why:
        raise ValueError(
            f"no archive as torch has written since 1.6 ({why}): load it where you trust it and "
            "save it again"
        ) from None
    foreign = sorted(name for name in named if TENSORS.fullmatch(name) is None)
    if foreign:
        raise ValueError(f"it names {', '.join(foreign[:3])}, of which tensors have no need")


def _names(content: bytes) -> set[str]:
    """What a pickle would import; nothing of it is run."""
    names = set()
    for code, argument, _ in pickletools.genops(content):
        if code.name == "GLOBAL":
            names.add(str(argument).replace(" ", "."))
        elif code.name in ("STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"):
            names.add(f"what {code.name} finds")
    return names


def _numbers(value: Any) -> Any:
    import torch

    check_tensor(value, f"a tensor of shape {tuple(value.shape)}")
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
        _check_archive(path)
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

    # Its tensors are not compressed: what a file declares is not more than it has.
    check_memory(str(path), os.path.getsize(path), SMALLER)
    try:
        return load_file(path)
    except SafetensorError as why:
        raise ValueError(f"{path} is not a .safetensors file: {why}") from why
