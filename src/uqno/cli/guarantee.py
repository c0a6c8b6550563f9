"""`--guarantee NAME`: any guarantee that is registered, with the levels that belong to it."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from uqno.cli.terminal import out

if TYPE_CHECKING:
    from uqno.conformal.guarantees import Guarantee

# What the levels are where the command line says nothing and the guarantee asks for them.
USUAL: Final = {"alpha": 0.1, "delta": 0.02}


def listed(name: str) -> str:
    """The name itself; `list` prints what each guarantee promises, and ends."""
    if name == "list":
        from uqno.conformal.guarantees import GUARANTEES

        for known, rule in sorted(GUARANTEES.items()):
            out.print(f"[bold]{known}[/]  {escape((rule.__doc__ or '').splitlines()[0])}")
        raise typer.Exit
    return name


Rule = Annotated[
    str,
    typer.Option(
        "--guarantee",
        metavar="NAME",
        callback=listed,
        help="What is promised: fraction (1 − alpha of a function, with probability 1 − delta), "
        "expected (alpha is missed in the mean), everywhere (all points), curve (all alpha at "
        "once), chosen (alpha and delta may be chosen after looking), or another: list names all.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another setting of the guarantee, its value as JSON: alphas=[0.05,0.1].",
    ),
]


def guarantee(name: str, settings: list[str] | None, **levels: Any) -> Guarantee:
    """The guarantee of this name, with the levels that were given.

    Args:
        name: in the registry; settings: NAME=VALUE, its value JSON or a plain word.
        levels: alpha, delta, sampling, confidence; None for those that were not given.

    Raises:
        ValueError: the name is not known, or a level does not belong to the guarantee.
    """
    from uqno.conformal.guarantees import GUARANTEES, guarantee_of

    given = {key: value for key, value in levels.items() if value is not None}
    given |= dict(map(_setting, settings or []))
    rule: Any = GUARANTEES.get(name)
    if is_dataclass(rule):
        known = {one.name: one.default for one in fields(rule)}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ValueError(
                f"guarantee {name!r} has no {', '.join(unknown)}: it has "
                f"{', '.join(known) or 'no settings'}"
            )
        asked = {key for key, default in known.items() if default is MISSING}
        given = {key: value for key, value in USUAL.items() if key in asked} | given
    return guarantee_of({"name": name, **given})


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"--set {text}: expected NAME=VALUE, such as --set alphas=[0.05,0.1]")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
