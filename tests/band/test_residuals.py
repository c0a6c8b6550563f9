"""Functions drawn inside a band: always inside, correlated and sized like training residuals."""

from dataclasses import replace

import numpy as np
import pytest

from uqno import Band, Calibration, guarantees
from uqno.band.residuals import Learner, ResidualLaw, points_of

CAL = Calibration(2.0, guarantees.Fraction(0.1, 0.1), functions=99, points=64, points_max=64)
X = np.linspace(0, 1, 64)


def gaussian(rng, x, length, number):
    """Residuals of variance 1 with correlation exp(−h²/2ℓ²), (number, m)."""
    covariance = np.exp(-((x[:, None] - x) ** 2) / (2 * length**2)) + 1e-8 * np.eye(len(x))
    return rng.standard_normal((number, len(x))) @ np.linalg.cholesky(covariance).T


def learned(length, number=60, seed=0):
    learner = Learner()
    for one in gaussian(np.random.default_rng(seed), X, length, number):
        learner.add(one[None], X[:, None])
    return learner.law()


def a_band(law, scale=None, channels=1, batch=()):
    center = np.ones((*batch, channels, 64))
    return Band(center, np.full((*batch, 64), 0.5), CAL, (X,), scale=scale, residuals=law)


def correlation(values, lag):
    return float(np.mean(values[:, lag:] * values[:, : len(X) - lag]) / np.mean(values**2))


@pytest.mark.parametrize("length", [0.03, 0.2])
def test_drawn_functions_lie_inside_and_vary_like_the_residuals(length):
    band = a_band(learned(length))
    draws = band.sample(200, seed=1)
    values = np.asarray(draws)
    assert values.shape == (200, 1, 64)
    assert len(draws) == 200
    assert all(band.contains(one).all() for one in values)
    residual = (values[:, 0] - 1) / 0.5
    for lag in (1, 4, 12):
        true = np.exp(-((lag / 63) ** 2) / (2 * length**2))
        assert abs(correlation(residual, lag) - true) < 0.2
    assert abs(residual.mean()) < 0.25
    # |N(0, 1)| cut off at λ̂ = 2 has the mean 0.723
    assert abs(np.abs(residual).mean() - 0.723) < 0.06


def test_rough_residuals_have_rough_draws():
    rng, learner = np.random.default_rng(0), Learner()
    for _ in range(30):
        learner.add(rng.standard_normal((1, 64)), X[:, None])
    law = learner.law()
    assert law.weights.sum() < 0.15
    values = np.asarray(a_band(law).sample(100))[:, 0] - 1
    assert abs(correlation(values, 1)) < 0.15


def test_what_they_are_is_said():
    meaning = a_band(learned(0.1)).sample(1).meaning
    assert "nothing is promised" in meaning
    assert "training functions" in meaning


def test_seeds_batches_vectors_and_narrow_bands():
    law = learned(0.1)
    one, again, other = (a_band(law).sample(3, seed=s).values for s in (4, 4, 5))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.01
    several = a_band(law, batch=(2,), scale=np.array([0.5, 2.0]))
    drawn = several.sample(4).values
    assert drawn.shape == (4, 2, 1, 64)
    assert all(several.contains(one).all() for one in drawn)
    vector = a_band(law, channels=3)
    values = vector.sample(20).values
    assert values.shape == (20, 3, 64)
    assert all(vector.contains(one).all() for one in values)
    narrow = a_band(replace(law, sizes=law.sizes + 5))
    assert narrow.contains(narrow.sample(1).values[0]).all()
    zero = a_band(law, scale=0.0)
    np.testing.assert_array_equal(zero.sample(1).values, np.ones((1, 1, 64)))


def test_distances_are_counted_in_units_of_the_axes():
    """The same law on coordinates in metres draws the same functions."""
    law = learned(0.1)
    metres = Band(np.ones((1, 64)), np.full(64, 0.5), CAL, (1000 * X,),
                  residuals=replace(law, unit=np.array([1000.0])))  # fmt: skip
    np.testing.assert_allclose(metres.sample(2).values, a_band(law).sample(2).values)


def test_scattered_points_and_planes():
    rng = np.random.default_rng(0)
    points = rng.random((50, 3))
    cloud = Band(np.zeros((1, 50)), np.ones(50), CAL, points, residuals=learned(0.3))
    assert cloud.contains(cloud.sample(1).values[0]).all()
    np.testing.assert_array_equal(points_of((X[:2], X[:1])), [[0, 0], [X[1], 0]])


def test_what_teaches_nothing():
    learner = Learner()
    assert learner.law() is None
    learner.add(np.zeros((1, 64)), X[:, None])
    learner.add(np.full((1, 64), np.inf), X[:, None])
    assert learner.law() is None
    learner.add(np.ones((1, 1)), np.zeros((1, 1)))  # a single point: sizes, no distance
    assert learner.law().weights.sum() == 0


def test_of_a_large_function_some_points_are_looked_at():
    rng, learner = np.random.default_rng(0), Learner()
    x = np.linspace(0, 1, 30_000)
    learner.add(np.sin(40 * x)[None] * rng.standard_normal(), x[:, None])
    assert learner.law().sizes[-1] > 0


def test_bad_input():
    with pytest.raises(ValueError, match=r"knows no residuals to draw by: take one of model"):
        a_band(None).sample(1)
    with pytest.raises(ValueError, match="n = 0 must be a whole number, at least 1"):
        a_band(learned(0.1, 3)).sample(0)
    with pytest.raises(ValueError, match="seed = -1 must be"):
        a_band(ResidualLaw(np.ones(1), np.ones(1), np.arange(3.0))).sample(1, seed=-1)
