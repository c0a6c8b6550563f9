"""Functions to learn from and to calibrate on: random fields, Darcy flow, stores, splits.

Names are loaded when first used, so that splitting indices does not import zarr, nor a
solver torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqno.data.darcy import solve as solve
    from uqno.data.fields import gaussian_fields as gaussian_fields
    from uqno.data.generation import Recipe as Recipe
    from uqno.data.generation import generate as generate
    from uqno.data.readers import read_fno_release as read_fno_release
    from uqno.data.readers import read_neuraloperator as read_neuraloperator
    from uqno.data.samples import GridSamples as GridSamples
    from uqno.data.split import Split as Split
    from uqno.data.split import split_functions as split_functions
    from uqno.data.store import FunctionStore as FunctionStore

_HOME = {
    "FunctionStore": "store",
    "GridSamples": "samples",
    "Recipe": "generation",
    "Split": "split",
    "gaussian_fields": "fields",
    "generate": "generation",
    "read_fno_release": "readers",
    "read_neuraloperator": "readers",
    "solve": "darcy",
    "split_functions": "split",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
