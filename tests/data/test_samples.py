"""Samples have the fields that their types name."""

import numpy as np
import pytest
import torch
import zarr

from tests.experiments.cars import fake
from uqno.data import GeometrySample, GridSample, GridSamples, SurfaceSamples
from uqno.experiments.cars import shapes
from uqno.geometry import Stream


def grid(count=3):
    values = np.random.default_rng(0).random((2, count, 5, 4))
    return GridSamples(values[0], values[1], tuple(range(count)))


def assert_fields(sample, kind):
    assert kind.__required_keys__ <= set(sample) <= set(kind.__annotations__)
    assert all(value.dtype == torch.float32 for value in sample.values())


def test_fields_of_samples():
    for sample in grid():
        assert_fields(sample, GridSample)
    pressure = fake.pressure_of(0, 0)[None]
    surfaces = SurfaceSamples(
        lambda i: shapes.surface(shapes.draw(0, i)),
        pressure,
        (0,),
        latent=(6, 5, 5),
        domain=shapes.DOMAIN,
        stream=Stream(),
    )
    assert_fields(surfaces[0], GeometrySample)
    assert {"sdf", "features"} <= set(surfaces[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(bad, tmp_path):
    data = grid()
    data.solutions[1, 2, :2] = bad
    assert data[0]["u"].isfinite().all()
    with pytest.raises(ValueError, match="u of function 1 of an array in memory has 2 of 20"):
        data[1]
    with pytest.raises(ValueError, match="u of functions 0 to 2 of an array in memory has 2 of 60"):
        data.arrays()
    stored = zarr.create_array(tmp_path / "u.zarr", data=data.solutions)
    with pytest.raises(ValueError, match=r"u of function 1 of <.*u\.zarr.* has 2 of 20"):
        GridSamples(data.inputs, stored, (1,))[0]
