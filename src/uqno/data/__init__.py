"""Functions to learn from and to calibrate on: samples, stores, splits, readers of files.

Names are loaded when first used, so that splitting indices does not import zarr or torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqno.data.finer import moments as moments
    from uqno.data.inspection import inspect as inspect
    from uqno.data.opening import open as open
    from uqno.data.readers.fno_release import read_fno_release as read_fno_release
    from uqno.data.readers.neuraloperator import read_neuraloperator as read_neuraloperator
    from uqno.data.readers.shapenet import read_shapenet as read_shapenet
    from uqno.data.samples import GeometrySample as GeometrySample
    from uqno.data.samples import GridSample as GridSample
    from uqno.data.samples import GridSamples as GridSamples
    from uqno.data.sources import as_samples as as_samples
    from uqno.data.split import Split as Split
    from uqno.data.split import split_functions as split_functions
    from uqno.data.store import FunctionStore as FunctionStore
    from uqno.data.surfaces import SurfaceSamples as SurfaceSamples

_HOME = {
    "FunctionStore": "store",
    "GeometrySample": "samples",
    "GridSample": "samples",
    "GridSamples": "samples",
    "Split": "split",
    "SurfaceSamples": "surfaces",
    "as_samples": "sources",
    "inspect": "inspection",
    "moments": "finer",
    "open": "opening",
    "read_fno_release": "readers.fno_release",
    "read_neuraloperator": "readers.neuraloperator",
    "read_shapenet": "readers.shapenet",
    "split_functions": "split",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
