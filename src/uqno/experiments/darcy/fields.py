"""Gaussian random fields on the unit square, the same function at every resolution.

A field of the law N(0, (−Δ + τ²)^−s) with Neumann boundary is

    g(x, y) = Σ_{k,l < K} ξ_kl · λ_kl^{−s/2} · w_k cos(kπx) · w_l cos(lπy),
    λ_kl = π²(k² + l²) + τ²,   w_0 = 1, w_k = √2,   ξ_kl iid N(0, 1).

The K × K normal numbers ξ come from (seed, index) alone, always in row-major order, whatever
the grid, so a coarse grid sees exactly the function that a fine grid sees.

*Truncation.* K = 421 modes in each direction is what the 421 × 421 grid of the Darcy data set can
tell apart. For s = 2 and τ = 3 the modes left out carry 4e-6 of the variance (0.2 % of the standard
deviation), without the constant mode. On a coarser grid the modes beyond the grid's are kept: they
are folded onto the grid's own (cos(kπx) and cos((2n − k)πx) agree on the nodes j/n), so that the
values are exact, not filtered.
"""

from collections.abc import Iterable

import numpy as np
import scipy.fft

from uqno.types import Reals

MODES = 421


def nodes(resolution: int) -> Reals:
    """x_j = j / (N − 1), j < N: the coordinates of a side, both ends included.

    Args:
        resolution: N, the number of nodes.

    Returns:
        (resolution,).
    """
    return np.linspace(0.0, 1.0, resolution)


def standard_normals(seed: int, index: int, modes: int = MODES) -> Reals:
    """ξ: the normal numbers that define one function.

    Args:
        seed: the one of the set.
        index: of the function in the set.
        modes: K, the number of modes in each direction.

    Returns:
        (modes, modes).

    Raises:
        ValueError: seed or index is negative.
    """
    if seed < 0 or index < 0:
        raise ValueError(
            f"seed and index must be at least 0, got seed={seed} and index={index}: "
            "a function's randomness is named by two natural numbers"
        )
    source = np.random.SeedSequence(entropy=seed, spawn_key=(index,))
    return np.random.Generator(np.random.PCG64(source)).standard_normal((modes, modes))


def standard_deviations(
    tau: float = 3.0, s: float = 2.0, modes: int = MODES, mean_free: bool = False
) -> Reals:
    """λ_kl^{−s/2} w_k w_l: the amplitudes of cos(kπx) cos(lπy).

    Args:
        tau: τ, positive unless `mean_free`.
        s: the power, above 1.
        modes: K, the number of modes in each direction.
        mean_free: leaves out the constant mode, as the generator of the published Darcy data does.

    Returns:
        (modes, modes).

    Raises:
        ValueError: τ or s is out of its bounds.
    """
    if s <= 1:
        raise ValueError(
            f"s must exceed 1, got {s}: (−Δ + τ²)^−s has infinite trace in two dimensions; "
            "the Darcy data set uses s = 2"
        )
    if tau <= 0 and not mean_free:
        raise ValueError(f"tau must be positive, got {tau}: or leave out the mean (mean_free=True)")
    k = np.arange(modes)
    eigenvalue = np.asarray(np.pi**2 * (k[:, None] ** 2 + k**2) + tau**2, dtype=np.float64)
    if mean_free:
        eigenvalue[0, 0] = np.inf
    norm = np.where(k == 0, 1.0, np.sqrt(2.0))
    return np.asarray(eigenvalue ** (-s / 2) * norm[:, None] * norm, dtype=np.float64)


def cosine_series(coefficients: Reals, resolution: int) -> Reals:
    """Σ_kl c_kl cos(kπx_i) cos(lπx_j) on the node grid.

    Args:
        coefficients: c, (..., K, K), with any K.
        resolution: nodes a side, at least 2.

    Returns:
        (..., resolution, resolution).

    Raises:
        ValueError: the resolution is below 2.
    """
    if resolution < 2:
        raise ValueError(
            f"resolution must be at least 2 (the two ends of a side), got {resolution}"
        )
    intervals = resolution - 1
    folded = _fold(_fold(coefficients, intervals, axis=-1), intervals, axis=-2)
    # SciPy's type-I cosine transform counts the inner modes twice.
    folded[..., 1:-1, :] *= 0.5
    folded[..., :, 1:-1] *= 0.5
    values: Reals = scipy.fft.dctn(folded, type=1, axes=(-2, -1), overwrite_x=True, workers=1)
    return values


def _fold(coefficients: Reals, intervals: int, axis: int) -> Reals:
    """Add the modes that look alike on j/n: k, 2n − k, 2n + k, ... all become mode k ≤ n."""
    c = np.moveaxis(coefficients, axis, -1)
    period = 2 * intervals
    missing = -c.shape[-1] % period
    padded = np.concatenate([c, np.zeros((*c.shape[:-1], missing))], axis=-1)
    wrapped = padded.reshape(*c.shape[:-1], -1, period).sum(axis=-2)
    folded = wrapped[..., : intervals + 1].copy()
    folded[..., 1:-1] += wrapped[..., :intervals:-1]
    return np.moveaxis(folded, -1, axis)


def gaussian_fields(
    seed: int,
    indices: Iterable[int],
    resolution: int,
    tau: float = 3.0,
    s: float = 2.0,
    modes: int = MODES,
    mean_free: bool = False,
) -> Reals:
    """g_i ~ N(0, (−Δ + τ²)^−s) on the unit square with Neumann boundary.

    Function i depends on (seed, i) alone, and the same function at another resolution has the same
    values at the shared nodes.

    Args:
        seed: the one of the set.
        indices: i of each function.
        resolution: nodes a side, at least 2.
        tau: τ, positive unless `mean_free`.
        s: the power, above 1.
        modes: K, the number of modes in each direction.
        mean_free: leaves out the constant mode.

    Returns:
        (len(indices), resolution, resolution).

    >>> fine = gaussian_fields(seed=0, indices=[5], resolution=85)
    >>> coarse = gaussian_fields(seed=0, indices=[4, 5], resolution=43)[1:]
    >>> bool(np.allclose(fine[:, ::2, ::2], coarse, rtol=0, atol=1e-12))
    True
    """
    amplitude = standard_deviations(tau, s, modes, mean_free)
    fields = [
        cosine_series(standard_normals(seed, index, modes) * amplitude, resolution)
        for index in indices
    ]
    return np.stack(fields) if fields else np.empty((0, resolution, resolution))
