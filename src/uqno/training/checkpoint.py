"""Checkpoints: one safetensors file, whole or absent.

Tensors are safetensors entries; everything else is JSON in the file's header, with a
checksum of it all. A file is written aside, forced to the disk and renamed, so a process
killed at any instant leaves the old file or the new one, never a mixture.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from uqno.memory import check_memory
from uqno.storage import DamagedError, write_bytes

FORMAT = "uqno training checkpoint"
VERSION = 1


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and why."""


class DamagedCheckpointError(CheckpointError, DamagedError):
    """A checkpoint that was whole when it was written and is not any more."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds.

    Args:
        tensors: by name, of any shapes and dtypes.
        state: by name, anything that JSON can hold exactly.
    """

    tensors: Mapping[str, Tensor]
    state: Mapping[str, Any]


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Replace a file by a checkpoint, whole or not at all.

    Args:
        path: the file to write.
        checkpoint: what it shall hold.

    Raises:
        OSError: the file could not be written; the old one is untouched.
    """
    tensors = {name: _storable(tensor) for name, tensor in checkpoint.tensors.items()}
    twofold = [name for name, t in checkpoint.tensors.items() if t.is_complex()]
    state = json.dumps({"state": checkpoint.state, "complex": twofold}, sort_keys=True)
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "state": state,
        "checksum": _checksum(tensors, state),
    }
    try:
        content = save(tensors, header)
        write_bytes(path, content)
    except OSError as error:
        before = (
            "the checkpoint before it is intact" if path.exists() else "there is none before it"
        )
        raise OSError(
            error.errno,
            f"could not write the checkpoint ({error.strerror}); {before}. Free some space or give "
            "another folder, then go on with resume=True",
            str(path),
        ) from error


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Args:
        path: a file that `write_checkpoint` wrote.

    Raises:
        CheckpointError: the file is damaged, or is none of this format; it says which.
    """
    if path.is_file():  # tensors are not compressed: what a file declares is not more than it has
        check_memory(str(path), 2 * path.stat().st_size, "load it on a machine with more memory")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            header = file.metadata() or {}
            _check_format(path, header)
            # Cloned, because entries lie in the file at places where complex numbers may not.
            tensors = {n: file.get_tensor(n).clone() for n in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        if isinstance(error, CheckpointError | FileNotFoundError):
            raise
        raise DamagedCheckpointError(
            f"{path} is truncated or not a checkpoint ({error}): remove it and start again"
        ) from error
    state = header.get("state", "")
    if _checksum(tensors, state) != header.get("checksum"):
        raise DamagedCheckpointError(
            f"{path} is damaged (its checksum is wrong): remove it and start again"
        )
    try:
        content = json.loads(state)
        for name in content["complex"]:
            tensors[name] = torch.view_as_complex(tensors[name])
        held = dict(content["state"])
    except (ValueError, TypeError, LookupError, RuntimeError, RecursionError) as why:
        raise DamagedCheckpointError(
            f"{path} does not hold the state of a checkpoint ({why}): remove it and start again"
        ) from None
    return Checkpoint(tensors, held)


def differences(saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What differs between two configurations, in words.

    Args:
        saved: the one in a file, by name.
        wanted: the one that is asked for, by name.
    """
    names = sorted(set(saved) | set(wanted))
    return [
        f"{name} was {saved.get(name)!r}, now {wanted.get(name)!r}"
        for name in names
        if saved.get(name) != wanted.get(name)
    ]


def _check_format(path: Path, header: Mapping[str, str]) -> None:
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is a safetensors file but no {FORMAT}: give another folder, or remove it"
        )
    version = header.get("version", "")
    if version != str(VERSION):
        raise CheckpointError(
            f"{path} has format version {version}, this library reads {VERSION}: "
            "use the version of uqno that wrote it, or start again"
        )


def _storable(tensor: Tensor) -> Tensor:
    """A contiguous copy on the CPU: safetensors refuses views, shared storage and complex128."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    # A contiguous tensor of one number may have any strides; a clone has the usual ones.
    return tensor.to("cpu").clone(memory_format=torch.contiguous_format)


def _checksum(tensors: Mapping[str, Tensor], state: str) -> str:
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
