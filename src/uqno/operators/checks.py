"""What operators on grids refuse: functions and points that do not fit them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def check_functions(
    a: Tensor,
    channels: int,
    dimensions: int,
    queries: Tensor | None,
    a_queries: Tensor | None,
) -> None:
    """Refuse a batch of functions, or points, of other shapes than an operator takes.

    Args:
        a: is to be (batch, channels, *grid).
        channels: that the operator takes.
        dimensions: d, of its grids.
        queries: is to be (q, d) or (batch, q, d), or None.
        a_queries: is to be (batch, channels, q), or None.
    """
    d = dimensions
    if a.ndim != d + 2 or a.shape[1] != channels:
        raise ValueError(
            f"expected a (batch, {channels}, *grid) with {d} grid dimensions, got "
            f"{tuple(a.shape)}; give channels second, or make the operator with "
            "in_channels and modes that fit"
        )
    if queries is None:
        return
    if queries.shape[-1] != d or queries.ndim not in (2, 3):
        raise ValueError(
            f"expected queries (q, {d}) or (batch, q, {d}), got {tuple(queries.shape)}"
        )
    if queries.ndim == 3 and queries.shape[0] != a.shape[0]:
        raise ValueError(
            f"queries of {queries.shape[0]} functions for a batch of {a.shape[0]}; "
            f"give (q, {d}) to share them"
        )
    expected = (a.shape[0], channels, queries.shape[-2])
    if a_queries is not None and a_queries.shape != expected:
        raise ValueError(f"expected a_queries {expected}, got {tuple(a_queries.shape)}")


def check_inside(queries: Tensor, lower: Sequence[float], upper: Sequence[float]) -> None:
    """Refuse points (…, d) outside the box from `lower` to `upper`."""
    for j, (x, low, high) in enumerate(zip(queries.unbind(-1), lower, upper, strict=True)):
        slack = 1e-5 * (high - low)
        if x.numel() and not low - slack <= x.min() <= x.max() <= high + slack:
            raise ValueError(
                f"queries reach from {float(x.min()):g} to {float(x.max()):g} in dimension "
                f"{j}, outside the domain [{low:g}, {high:g}]; set domain= to contain them"
            )
