"""What several commands read from their arguments."""

from __future__ import annotations

from typing import Annotated

import typer


def use_files(sources: list[str] | None) -> list[str]:
    """Load files and modules of the user's own, for what they define: tasks, operators, …"""
    if sources:
        from uqno.experiments.extensions import use

        for source in sources:
            use(source)
    return sources or []


Use = Annotated[
    list[str] | None,
    typer.Option(
        "--use",
        metavar="FILE.py|MODULE",
        help="Load a file or module of your own first, for what it defines.",
        is_eager=True,
        callback=use_files,
    ),
]


def resolution(at: str) -> tuple[int, ...] | int | None:
    """Nodes of a grid, one number or several joined by commas; None for other text."""
    parts = at.split(",")
    if not all(p.strip().isdigit() for p in parts):
        return None
    sizes = tuple(int(p) for p in parts)
    if 0 in sizes:
        raise ValueError(f"--at {at}: a resolution is at least 1 along every axis")
    return sizes[0] if len(sizes) == 1 else sizes
