"""The fields are the law they claim, and one function at every resolution."""

import numpy as np
import pytest
from scipy.stats import chi2

from uqno.experiments.darcy.fields import (
    MODES,
    cosine_series,
    gaussian_fields,
    nodes,
    standard_deviations,
    standard_normals,
)


def naive_cosine_series(c, resolution):
    k = np.arange(c.shape[-1])
    cosines = np.cos(np.pi * np.outer(nodes(resolution), k))
    return cosines @ c @ cosines.T


@pytest.mark.parametrize("modes", [1, 2, 5, 12, 13, 14, 25, 26, 60])
@pytest.mark.parametrize("resolution", [2, 3, 13, 14])
def test_the_fast_series_equals_the_sum_of_cosines(modes, resolution):
    c = np.random.default_rng(0).standard_normal((3, modes, modes))
    expected = naive_cosine_series(c, resolution)
    np.testing.assert_allclose(cosine_series(c, resolution), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("coarse", [3, 43, 85, 141, 211])
def test_a_coarse_grid_sees_the_same_function(coarse):
    fine = gaussian_fields(seed=3, indices=[7], resolution=421)
    stride = 420 // (coarse - 1)
    seen = gaussian_fields(seed=3, indices=[7], resolution=coarse)
    np.testing.assert_allclose(seen, fine[:, ::stride, ::stride], rtol=0, atol=1e-12)


def test_a_function_depends_on_its_seed_and_index_alone():
    together = gaussian_fields(seed=1, indices=range(6), resolution=9)
    for i in (5, 0, 3):
        assert np.array_equal(gaussian_fields(1, [i], 9)[0], together[i])
    assert not np.allclose(gaussian_fields(2, [0], 9)[0], together[0])
    assert gaussian_fields(1, [], 9).shape == (0, 9, 9)


def test_the_random_numbers_never_change():
    """Sets made elsewhere and before must be this one: pinned values, not just repeatability."""
    xi = standard_normals(seed=0, index=1)
    assert xi.shape == (MODES, MODES)
    np.testing.assert_allclose(xi[0, :3], PINNED, rtol=1e-12)


PINNED = [0.8050894723742356, -1.9120592174903859, -3.496649248417975]


def whitened_square(tau, mean_free):
    """(sum of squares of the whitened values at 6 nodes of 300 fields, its degrees of freedom)."""
    modes, resolution, fields = 24, 9, 300
    where = ([0, 0, 2, 4, 5, 8], [0, 8, 3, 4, 1, 6])
    basis = np.cos(np.pi * np.outer(nodes(resolution), np.arange(modes)))
    products = (basis[where[0]][:, :, None] * basis[where[1]][:, None, :]).reshape(6, -1)
    lam = np.pi**2 * np.add.outer(np.arange(modes) ** 2, np.arange(modes) ** 2) + 9.0
    variance = lam**-2.0 * np.where(np.arange(modes) == 0, 1, 2)[:, None]
    variance = variance * np.where(np.arange(modes) == 0, 1, 2)
    if mean_free:
        variance[0, 0] = 0
    covariance = (products * variance.ravel()) @ products.T
    drawn = gaussian_fields(5, range(fields), resolution, tau=tau, modes=modes, mean_free=mean_free)
    white = np.linalg.solve(np.linalg.cholesky(covariance), drawn[:, where[0], where[1]].T)
    return float((white**2).sum()), 6 * fields


@pytest.mark.parametrize("mean_free", [False, True])
def test_the_values_have_the_covariance_of_the_spectrum(mean_free):
    """Whitened by the exact covariance, 6 values of 300 fields are χ² with 1800 degrees."""
    square, degrees = whitened_square(tau=3.0, mean_free=mean_free)
    assert chi2.ppf(1e-3, degrees) < square < chi2.ppf(1 - 1e-3, degrees)
    wrong, _ = whitened_square(tau=2.0, mean_free=mean_free)
    assert wrong > chi2.ppf(1 - 1e-6, degrees), "the test must be able to see a wrong law"


def test_a_mean_free_field_has_no_constant_mode():
    assert standard_deviations(mean_free=True)[0, 0] == 0
    assert standard_deviations()[0, 0] == pytest.approx(1 / 9)


def test_bad_requests_are_named():
    with pytest.raises(ValueError, match=r"s must exceed 1, got 1\.0"):
        gaussian_fields(0, [0], 9, s=1.0)
    with pytest.raises(ValueError, match="tau must be positive, got 0"):
        gaussian_fields(0, [0], 9, tau=0)
    with pytest.raises(ValueError, match="resolution must be at least 2"):
        gaussian_fields(0, [0], 1)
    with pytest.raises(ValueError, match="index=-1"):
        gaussian_fields(0, [-1], 9)
