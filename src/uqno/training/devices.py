"""Devices, precision and processes, all of it by lightning-fabric."""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.single_device import SingleDeviceStrategy
from torch import Tensor, distributed, nn


def launch(devices: Any, accelerator: Any, precision: Any, strategy: Any) -> Fabric:
    """Start lightning-fabric, or join the processes of it that have been started.

    Args:
        devices: as in lightning-fabric; "auto" is the processes that torchrun or another launcher
            started, otherwise one.
        accelerator: as in lightning-fabric, such as "cpu", "gpu" or "auto".
        precision: as in lightning-fabric, such as "32-true" or "bf16-mixed".
        strategy: as in lightning-fabric: "auto", or "ddp" for several processes.

    Returns:
        The running Fabric.

    Raises:
        ValueError: the strategy divides the weights between its processes.
    """
    nodes = 1
    if devices == "auto":
        devices = 1
        if distributed.is_available() and distributed.is_torchelastic_launched():
            devices = int(os.environ["LOCAL_WORLD_SIZE"])
            nodes = int(os.environ.get("GROUP_WORLD_SIZE", "1"))
        elif _is_in_group():
            devices = distributed.get_world_size()
    fabric = Fabric(
        accelerator=accelerator,
        devices=devices,
        num_nodes=nodes,
        precision=precision,
        strategy=strategy,
    )
    if not isinstance(fabric.strategy, SingleDeviceStrategy | DDPStrategy):
        raise ValueError(
            f"strategy {type(fabric.strategy).__name__} is not supported, because its processes "
            "hold parts of the weights or none: use strategy='ddp', or 'auto'"
        )
    mine = not _is_in_group()
    fabric.launch()
    if mine and _is_in_group():
        # Left as it is, gloo's threads sometimes abort a process that ends before the others.
        atexit.register(_leave_group)
    return fabric


def _is_in_group() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _leave_group() -> None:
    if _is_in_group():
        distributed.destroy_process_group()


@contextmanager
def preserved_random_state(device: torch.device) -> Iterator[None]:
    """Whatever is drawn inside, the global random state outside is left as it was.

    Args:
        device: whose random state is preserved beside that of the CPU.
    """
    cpu = torch.get_rng_state()
    other = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    try:
        yield
    finally:
        torch.set_rng_state(cpu)
        if other is not None:
            torch.cuda.set_rng_state(other, device)


def seed_global(seed: int, device: torch.device) -> None:
    """Seed what dropout draws from. `torch.manual_seed` would take 100 times as long.

    Args:
        seed: for the generators of the CPU and of the device.
        device: where the operator is.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


class UnroundedBatch:
    """A batch that Fabric passes on as it is, because it does not look into this object.

    Args:
        batch: the fields by name, each with a leading batch axis.
    """

    def __init__(self, batch: dict[str, Tensor]) -> None:
        self.batch = batch


class CalledUnrounded(nn.Module):
    """An operator that is called with the fields of an `UnroundedBatch`.

    In mixed precision Fabric rounds all inputs to 8 or 11 bits, which merges neighbouring
    coordinates. In this way they stay as they are, and autocast rounds only the factors of
    products.

    Args:
        operator: is called with a batch, a dictionary of fields.
    """

    def __init__(self, operator: nn.Module) -> None:
        super().__init__()
        self.operator = operator

    def forward(self, unrounded: UnroundedBatch) -> Tensor:
        output: Tensor = self.operator(unrounded.batch)
        return output
