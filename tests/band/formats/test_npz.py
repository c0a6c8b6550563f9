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
    with np.load(tmp_path / "band.npz", allow_pickle=False) as written:
        columns = [written[n] for n in "xyz" if n in written]
        again = Band(
            written["center"].reshape(band.center.shape),
            written["uncertainty"],
            Calibration.from_json(str(written["calibration"])),
            tuple(columns) if band.is_grid else np.stack(columns, axis=-1),
            triangles=written.get("triangles"),
            weights=written["weights"],
            name=str(written["name"]),
            units=str(written["units"]),
            scale=written["scale"],
        )
        np.testing.assert_array_equal(written["radius"], band.radius)
    assert repr(again) == repr(band)
    u = truth_of(band)
    np.testing.assert_array_equal(again.contains(u), band.contains(u))
