"""Names for the types that several packages share, each defined once.

Nothing heavy is imported: names that mention torch are looked up by type checkers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

# --- arrays ---------------------------------------------------------------------------------

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.floating[Any]]
"""float32 or float64."""
Reals: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

# --- guarantees -----------------------------------------------------------------------------

Share: TypeAlias = float | Fraction | Decimal
"""A number in (0, 1), taken as the decimal that was written."""
Sampling: TypeAlias = Literal["grid", "iid", "hoeffding"]
Mixed: TypeAlias = Literal["own", "subsample"]

# --- functions as tensors ---------------------------------------------------------------------

Sample: TypeAlias = Mapping[str, Any]
"""The tensors of one function by name: a `uqno.data.GridSample`, a `uqno.data.GeometrySample` or a
plain dict. (Type checkers accept neither of the first two as a mapping to tensors.)"""
Batch: TypeAlias = "Mapping[str, Tensor]"
"""The fields of several functions, each with a leading batch axis."""
Fields: TypeAlias = "Mapping[str, Tensor]"
"""A sample or a batch."""
Box: TypeAlias = Sequence[tuple[float, float]]
"""(lower, upper) along each dimension."""


class Samples(Protocol):
    """A sized sequence of samples; reading one may be slow."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...


# --- other -------------------------------------------------------------------------------------

Progress: TypeAlias = Callable[[str, float, float], None]
"""(what is done, how much of it, of how much)."""
