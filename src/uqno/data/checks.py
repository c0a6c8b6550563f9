"""The one check for values that are NaN or infinite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

    from uqno.types import Array

REMEDY = "repair the values or leave the sample out"


def check_finite(name: str, where: str, value: Array | Tensor, remedy: str = REMEDY) -> None:
    """Refuse an array or a tensor with values that are NaN or infinite.

    The sum of finite values is finite unless it overflows, and is much cheaper than a test of every
    value, so it decides in most cases.

    Args:
        name: the field, such as "u".
        where: what the field belongs to, such as "sample 3".
        value: of any shape; whole numbers and truth values are always finite.
        remedy: what to do about it; the end of the message.

    Raises:
        ValueError: some entries are NaN or infinite; the message says how many of how many.
    """
    bad, total = _not_finite(value)
    if bad:
        raise ValueError(
            f"{name} of {where} has {bad} of {total} entries that are NaN or infinite: {remedy}"
        )


def _not_finite(value: Any) -> tuple[int, int]:
    """How many values are NaN or infinite, and how many there are."""
    if hasattr(value, "isfinite"):  # a tensor
        if not (value.is_floating_point() or value.is_complex()) or value.sum().isfinite():
            return 0, value.numel()
        return int((~value.isfinite()).sum()), value.numel()
    values = np.asarray(value)
    with np.errstate(all="ignore"):
        if values.dtype.kind not in "fc" or np.isfinite(values.sum()):
            return 0, values.size
    return int(np.count_nonzero(~np.isfinite(values))), values.size
