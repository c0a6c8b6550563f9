"""What several commands read from their arguments."""

from __future__ import annotations


def resolution(at: str) -> tuple[int, ...] | int | None:
    """Nodes of a grid, one number or several joined by commas; None for other text."""
    parts = at.split(",")
    if not all(p.strip().isdigit() for p in parts):
        return None
    sizes = tuple(int(p) for p in parts)
    if 0 in sizes:
        raise ValueError(f"--at {at}: a resolution is at least 1 along every axis")
    return sizes[0] if len(sizes) == 1 else sizes
