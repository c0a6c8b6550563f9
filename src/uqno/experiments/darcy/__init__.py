"""Darcy flow: random coefficients, the solver, sets of functions, and the comparison on them.

Names are loaded when first used, so that the solver does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqno.experiments.darcy.fields import gaussian_fields as gaussian_fields
    from uqno.experiments.darcy.generation import Recipe as Recipe
    from uqno.experiments.darcy.generation import generate as generate
    from uqno.experiments.darcy.solver import solve as solve

_HOME = {
    "Recipe": "generation",
    "gaussian_fields": "fields",
    "generate": "generation",
    "solve": "solver",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
