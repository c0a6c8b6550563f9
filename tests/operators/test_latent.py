"""A surface is seen alike wherever it comes from: from a data set, or from a file to predict."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.experiments.cars import fake
from uqno import UQNO
from uqno.data.surfaces import SurfaceSamples
from uqno.experiments.cars import shapes
from uqno.geometry import Stream
from uqno.operators import GINO, LatentGrid, translations
from uqno.uncertainty import Constant, Quantile

LATENT = (12, 6, 6)
GRID = LatentGrid(shapes.DOMAIN, LATENT, (4, 4))
STREAM = Stream()


def car(i):
    return shapes.surface(shapes.draw(0, i))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    pressure = np.stack([fake.pressure_of(0, i) for i in range(12)])
    options = {"latent": LATENT, "domain": shapes.DOMAIN, "cache": tmp_path_factory.mktemp("sdf")}
    return SurfaceSamples(car, pressure, tuple(range(12)), **options)


@pytest.mark.parametrize("stream", [None, STREAM])
def test_a_file_gives_the_fields_of_calibration_bit_for_bit(data, stream):
    calibrated = GRID.prepare(replace(data, stream=stream)[3])
    body = car(3)
    fields = {"points": torch.from_numpy(body.points), "triangles": body.triangles}
    if stream is not None:
        fields["features"] = calibrated["features"].double()
    predicted = GRID.prepare(fields)
    assert predicted.keys() == calibrated.keys() - {"u"}
    for name, field in predicted.items():
        assert field.dtype == calibrated[name].dtype
        assert torch.equal(field, calibrated[name]), name


def test_weights_that_are_given_stay(data):
    body = car(0)
    weights = torch.rand(len(body.points))
    fields = {"points": body.points, "triangles": body.triangles, "weights": weights}
    assert torch.equal(GRID.prepare(fields)["weights"], weights)
    with pytest.raises(ValueError, match=r"triangles and lacks points \(n, 3\); it has nothing"):
        GRID.prepare({"triangles": body.triangles})


def test_a_grid_is_what_it_says():
    assert LatentGrid([[-1, 1]] * 2, [3, 2]) == LatentGrid(((-1.0, 1.0),) * 2, (3, 2), (8, 8))
    small = LatentGrid(((0, 2), (0, 1)), (3, 2))
    assert small.nodes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
    assert small.spacing.tolist() == [1, 1]
    assert small.size.tolist() == [2, 1]
    assert len({small, LatentGrid(((0, 2), (0, 1)), (3, 2))}) == 1


@pytest.fixture(scope="module")
def model(data):
    torch.manual_seed(0)
    sizes = {"modes": (3, 2, 2), "width": 4, "layers": 1, "neighbours": (4, 4)}
    gino = GINO(1, shapes.DOMAIN, LATENT, **sizes)
    assert gino.latent == GRID
    prepared = [gino.prepare(data[i]) for i in range(12)]
    fitted = UQNO(gino, Quantile(), symmetries=translations(gino.latent, 0, (0, 0.5)))
    fitted.fit(prepared[:4], epochs=1, progress=False, batch_size=2, validation=0.0)
    fitted.calibrate(prepared[4:], 0.3, 0.3)
    return fitted


def test_predictions_from_files_are_those_of_calibration_in_any_batch(model, data, tmp_path):
    some = [model.base.operator.prepare(data[i]) for i in range(4, 9)]
    model.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model")
    scored = [list(again.scored(some, batch_size=size)) for size in (1, 2, 5)]
    for i, sample in enumerate(some):
        body = car(4 + i)
        band = again.predict({"points": body.points, "triangles": body.triangles})
        np.testing.assert_array_equal(band.triangles, body.triangles)
        u = sample["u"].double().numpy()
        for one in scored:
            error, uncertainty, _ = one[i]
            np.testing.assert_allclose(np.abs(u - band.center)[0], error, atol=1e-5 * u.std())
            np.testing.assert_allclose(band.uncertainty, uncertainty, rtol=1e-5)


def test_a_surface_without_its_triangles_is_refused(model):
    body = car(5)
    assert model.surfaces
    with pytest.raises(ValueError, match=r"exact signed distance.*add the triangles \(t, 3\)"):
        model.predict({"points": body.points, "normals": body.normals})


def test_triangles_are_for_the_band_alone_where_the_training_had_none(data):
    """Then another signed distance than that of the calibration would be seen."""
    gino = GINO(1, shapes.DOMAIN, LATENT, modes=(3, 2, 2), width=4, layers=1, neighbours=(4, 4))
    names = ("points", "normals", "surface_weights", "u")
    bare = [gino.prepare({name: data[i][name] for name in names}) for i in range(12)]
    fitted = UQNO(gino, Constant())
    fitted.fit(bare[:4], epochs=1, progress=False, batch_size=2, validation=0.0)
    fitted.calibrate(bare[4:], 0.3, 0.3)
    assert not fitted.surfaces
    body = car(5)
    fields = {"points": body.points, "normals": body.normals, "surface_weights": body.areas}
    band = fitted.predict({**fields, "triangles": body.triangles})
    np.testing.assert_array_equal(band.triangles, body.triangles)
    np.testing.assert_array_equal(band.center, fitted.predict(bare[5]).center)
