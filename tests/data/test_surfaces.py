"""Samples are what GINO takes, and mirror onto themselves."""

import numpy as np
import pytest
import torch

from tests.experiments.cars import fake
from uqno.data.surfaces import SurfaceSamples, domain_of
from uqno.experiments.cars import lattice, shapes
from uqno.operators import GINO, Operator

LATENT = (12, 6, 6)


def samples(**options):
    pressure = np.stack([fake.pressure_of(0, i) for i in range(3)])
    return SurfaceSamples(
        lambda i: shapes.surface(shapes.draw(0, i)), pressure, (0, 1, 2), **options
    )


def test_fields_and_measures(tmp_path):
    data = samples(latent=LATENT, domain=shapes.DOMAIN, cache=tmp_path)
    sample = data[1]
    n = shapes.VERTICES
    assert {k: tuple(v.shape) for k, v in sample.items()} == {
        "points": (n, 3),
        "normals": (n, 3),
        "surface_weights": (n,),
        "weights": (n,),
        "u": (1, n),
        "sdf": LATENT,
    }
    assert all(v.dtype == torch.float32 for v in sample.values())
    assert torch.allclose(sample["weights"], torch.full((n,), 1 / n))
    area = samples(measure="area")[1]
    assert float(area["weights"].sum()) == pytest.approx(1, rel=1e-5)
    ratio = area["weights"] / area["surface_weights"]
    assert torch.allclose(ratio, ratio[0].expand(n), rtol=1e-5)
    assert "sdf" not in area
    assert len(list(tmp_path.iterdir())) == 1
    assert len(list(data)) == 3
    assert torch.equal(data.subset([2, 0])[1]["u"], data[0]["u"])
    np.testing.assert_array_equal(data.subset([2]).surface(0).points, data.surface(2).points)


def test_gino_takes_them_and_its_mirror_image_is_the_permuted_car():
    gino = GINO(1, shapes.DOMAIN, LATENT, (3, 2, 2), width=4, layers=1)
    sample = samples(latent=LATENT, domain=shapes.DOMAIN)[0]
    prepared = gino.prepare(sample)
    assert prepared["sdf"] is sample["sdf"]
    # By vertices alone, without the triangles between them, it is nearly the same.
    del sample["sdf"]
    rough = gino.prepare(sample)["sdf"]
    assert (rough - prepared["sdf"]).abs().max() < 0.06
    turned = gino.latent.reflect(prepared)
    mirror = torch.from_numpy(lattice.mirror().copy())
    assert torch.allclose(turned["points"][mirror], prepared["points"], atol=1e-6)
    assert torch.allclose(turned["sdf"], prepared["sdf"], atol=1e-5)
    batch = gino.collate([prepared, turned])
    assert Operator(gino, normalise=(), output=None)(batch).shape == (2, 1, shapes.VERTICES)


def test_domain_of():
    body = shapes.surface(shapes.draw(0, 0))
    box = domain_of([body], margin=0.1)
    low, high = body.points.min(axis=0), body.points.max(axis=0)
    np.testing.assert_allclose(
        box, np.stack([low - 0.1 * (high - low), high + 0.1 * (high - low)]).T
    )
    (_, (a, b), (c, d)) = domain_of([body], mirror=2)
    assert (a, -c) == pytest.approx((-b, d))


def test_bad_requests_are_named():
    with pytest.raises(ValueError, match="'volume'"):
        samples(measure="volume")
    with pytest.raises(ValueError, match="without the domain"):
        samples(latent=LATENT)
    with pytest.raises(ValueError, match=r"0 to 0, got \[1, 2\]"):
        SurfaceSamples(lambda i: None, np.zeros((1, 4), np.float32), (0, 1, 2))


def test_public_names_are_what_they_say():
    from uqno.experiments import cars

    for name in cars.__all__:
        assert callable(getattr(cars, name)), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cars.nothing  # noqa: B018
