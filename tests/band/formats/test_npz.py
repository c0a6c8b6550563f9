"""What is read back from an .npz file is the band."""

from dataclasses import replace

import numpy as np
import pytest

from tests.band.bands import EVERY, truth_of
from uqno import Calibration
from uqno.band import Band


@pytest.mark.parametrize("kind", EVERY)
def test_npz_holds_the_band_without_pickles(kind, tmp_path):
    band = EVERY[kind](units="Pa", name="p")
    band = replace(band, weights=np.ones(band.points))
    band.to_npz(tmp_path / "band.npz")
    with np.load(tmp_path / "band.npz", allow_pickle=False) as found:
        columns = [found[n] for n in "xyz" if n in found]
        again = Band(
            found["center"].reshape(band.center.shape),
            found["uncertainty"],
            Calibration.from_json(str(found["calibration"])),
            tuple(columns) if band.is_grid else np.stack(columns, axis=-1),
            triangles=found.get("triangles"),
            weights=found["weights"],
            name=str(found["name"]),
            units=str(found["units"]),
            scale=found["scale"],
        )
        np.testing.assert_array_equal(found["radius"], band.radius)
    assert repr(again) == repr(band)
    u = truth_of(band)
    np.testing.assert_array_equal(again.contains(u), band.contains(u))
