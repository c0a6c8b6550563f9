"""Bands as NumPy archives, read back without pickle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqno.band.formats.content import axes, others, variables
from uqno.band.formats.contract import BandFormat
from uqno.storage import write_npz

if TYPE_CHECKING:
    from uqno.band.band import Band


class Npz(BandFormat):
    """Variables and axes as arrays; name, units, guarantee and the calibration's JSON as text."""

    suffixes = (".npz",)

    def write(self, band: Band, path: Path) -> None:
        write_npz(path, arrays(band))


def arrays(band: Band) -> dict[str, Any]:
    """The arrays of a file by name."""
    content: dict[str, Any] = {
        name: field.values
        for name, field in {**others(band), **variables(band), **axes(band)}.items()
    }
    if band.triangles is not None:
        content["triangles"] = band.triangles
    if band.component_names is not None:
        content["component"] = np.array(band.component_names)
    for name in ("name", "units", "guarantee"):
        content[name] = np.array(getattr(band, name))
    content["scale"] = np.array(band.applied_scale)
    content["calibration"] = np.array(band.calibration.to_json(scores=False))
    return content
