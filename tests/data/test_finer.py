import itertools

import pytest
import torch

from uqno.data import moments


def slow(a, shape):
    """Sums over the window of each node, mirrored at the ends."""
    d = len(shape)
    steps = [(n - 1) // (m - 1) for n, m in zip(a.shape, shape, strict=True)]
    mean, variance, dipole = (torch.zeros(*shape).double() for _ in range(3))
    dipole = torch.zeros(d, *shape).double()
    for node in itertools.product(*(range(m) for m in shape)):
        total = square = size = 0.0
        first = [0.0] * d
        for offset in itertools.product(*(range(-(s // 2), s // 2 + 1) for s in steps)):
            weight, place = 1.0, []
            for k, o, s, n in zip(node, offset, steps, a.shape, strict=True):
                weight *= 0.5 if 2 * abs(o) == s else 1.0
                x = abs(k * s + o)
                place.append(x if x < n else 2 * (n - 1) - x)
            value = float(a[tuple(place)])
            size += weight
            total += weight * value
            square += weight * value**2
            for j in range(d):
                first[j] += weight * value * offset[j] / steps[j]
        mean[node], variance[node] = total / size, square / size - (total / size) ** 2
        for j in range(d):
            dipole[(j, *node)] = first[j] / size
    return torch.stack((mean, variance)), dipole


GRIDS = [((21,), (5,)), ((16, 13), (6, 4)), ((13, 11), (5, 11)), ((9, 7, 7), (5, 3, 4))]


@pytest.mark.parametrize(("fine", "coarse"), GRIDS)
def test_moments_are_sums_over_windows(fine, coarse):
    torch.manual_seed(0)
    a = torch.randn(2, 3, *fine).double()
    near = moments(a, coarse)
    for i, c in itertools.product(range(2), range(3)):
        scalars, vectors = slow(a[i, c], coarse)
        d = len(fine)
        torch.testing.assert_close(near.scalars[i, c::3], scalars, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(near.vectors[i, c * d : c * d + d], vectors)


def test_a_flip_flips_scalars_and_turns_the_vector():
    a = torch.rand(1, 1, 16, 16).double()
    near, flipped = moments(a, (6, 6)), moments(a.flip(-2), (6, 6))
    torch.testing.assert_close(flipped.scalars, near.scalars.flip(-2))
    sign = torch.tensor([-1.0, 1.0]).double()[:, None, None]
    torch.testing.assert_close(flipped.vectors, sign * near.vectors.flip(-2))


def test_a_constant_has_its_mean_alone_and_a_grid_of_its_own_is_itself():
    near = moments(torch.full((1, 11, 11), 3.0), (3, 3))
    torch.testing.assert_close(near.scalars[0], torch.full((3, 3), 3.0))
    assert near.scalars[1].abs().max() < 1e-5
    assert near.vectors.abs().max() < 1e-6
    a = torch.rand(1, 5, 5)
    torch.testing.assert_close(moments(a, (5, 5)).scalars[:1], a)


@pytest.mark.parametrize(
    ("shape", "words"),
    [((4, 4), "4 nodes is not among the 11"), ((1, 1), "at least 2"), ((21, 21), "among the 11")],
)
def test_grids_that_do_not_fit_are_refused(shape, words):
    with pytest.raises(ValueError, match=words):
        moments(torch.zeros(1, 11, 11), shape)
    with pytest.raises(ValueError, match="expected"):
        moments(torch.zeros(11), (3, 3))
