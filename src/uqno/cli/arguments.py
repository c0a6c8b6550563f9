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


def names(given: str | None) -> list[str] | None:
    """Names of variables, joined by commas; None for none."""
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


Inputs = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Variables that are the input, such as k or k,f; u[0] is a step in time.",
        show_default="a, or what the layout says",
    ),
]
Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Variables that are the output.",
        show_default="u, or what the layout says",
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
