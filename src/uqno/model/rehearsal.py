"""A network of the sizes that a file says is made only if the tensors beside it have these sizes.

It is made on torch's meta device first, where tensors have shapes and no memory, and its parameters
are compared with the tensors. One that does not end, since the file says a billion layers, is
stopped after as many steps as the number of tensors explains.

A network of the user's own that cannot be made on the meta device is not compared: its class was
imported, so it is trusted like any program, but what it is given comes from the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from uqno.memory import check_memory

# Calls of torch that one tensor of a network takes to be made (ours take about 4), and others.
STEPS = 20
FIRST_STEPS = 1000

log = logging.getLogger(__name__)


class _TooManyStepsError(ValueError):
    """A network that takes more steps to be made than its tensors explain."""


class _Counted(TorchFunctionMode):
    """Counts what torch is asked for, in this thread alone."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _TooManyStepsError
        return func(*args, **(kwargs or {}))


def check_sizes(
    make: Callable[[Mapping[str, Tensor]], nn.Module],
    tensors: Mapping[str, Tensor],
    what: str,
    foreign: bool,
) -> None:
    """Refuse a network whose parameters are not the tensors that were saved with it.

    Args:
        make: makes it; is given the tensors without their memory.
        tensors: by the names of its parameters.
        what: it is, to name in messages.
        foreign: whether it is made by code of the user's own, which may not run without memory.

    Raises:
        ValueError: it has other parameters, or is far larger than the tensors.
    """
    most = FIRST_STEPS + STEPS * len(tensors)
    shapes = {name: tensor.to("meta") for name, tensor in tensors.items()}
    try:
        with torch.device("meta"), _Counted(most):
            module = make(shapes)
    except _TooManyStepsError:
        raise ValueError(
            f"{what} describes more layers than the {len(tensors)} tensors beside it: it is "
            "damaged or forged; take the whole folder as it was saved"
        ) from None
    except Exception as why:
        if not foreign or "state_dict" in str(why):  # torch compared the sizes already
            raise
        log.debug("%s cannot be made without memory, so its sizes are not compared: %s", what, why)
        return
    for name, parameter in module.named_parameters():
        there = tuple(tensors[name].shape) if name in tensors else None
        if tuple(parameter.shape) != there:
            raise ValueError(
                f"{what} describes {name} of shape {tuple(parameter.shape)}, the tensor beside it "
                f"has {there or 'none'}: it is damaged or forged; take the whole folder as it was "
                "saved"
            )
    size = sum(x.numel() * x.element_size() for x in module.buffers())
    check_memory(what, size, "use a smaller network")
