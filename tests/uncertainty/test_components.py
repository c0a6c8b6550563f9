"""Principal components of the error: Gram–Schmidt, the loss, and a subspace that is known."""

import math

import pytest
import torch

from tests.uncertainty import problems
from uqno.operators import FNO
from uqno.uncertainty import Components
from uqno.uncertainty.components import ComponentsLoss, gram_schmidt, in_l2, shares
from uqno.uncertainty.contract import Options


def waves(points=16):
    """Two fields on [0, 1], (2, points), orthonormal for the mean over the points."""
    x = (torch.arange(points) + 0.5) / points
    return math.sqrt(2) * torch.stack((torch.cos(math.pi * x), torch.cos(2 * math.pi * x)))


DEVIATION = (3.0, 1.0)


def errors_in_a_plane(count, seed):
    """u = 3 z_1 wave_1 + z_2 wave_2, z normal, and a that tells nothing."""
    z = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    u = torch.einsum("nk,k,kx->nx", z, torch.tensor(DEVIATION), waves())
    return [{"a": torch.ones(1, 16), "u": v[None]} for v in u]


def network(inputs, outputs):
    return FNO(inputs, outputs, modes=(6,), width=16, layers=2)


@pytest.fixture(scope="module")
def plane():
    data = errors_in_a_plane(256, seed=0)
    base, residuals = problems.exact(lambda a: 0 * a, data)
    uncertainty = Components(components=2, network=network)
    training = {"epochs": 40, "batch_size": 32, "learning_rate": 5e-3, "progress": False}
    uncertainty.fit(base, residuals, Options({**training, "validation": 0.0}))
    return base, uncertainty.eval()


@torch.no_grad()
def test_training_finds_the_subspace_and_its_variances(plane):
    base, uncertainty = plane
    test = errors_in_a_plane(64, seed=1)
    batch, truth = problems.batch_of(base, test), torch.stack([s["u"] for s in test])
    share = uncertainty.explained(base, batch, truth)
    assert share.shape == (64,)
    assert share.min() > 0.98
    assert share.max() < 1 + 1e-9
    _, e, sigma = uncertainty.subspace(base, batch)
    # The largest first, and its variance: that of 256 draws is known to 1.4/16.
    along = (e[0, :, 0] @ waves().double().T) / 16
    assert along[0, 0].abs() > 0.97
    assert along[1, 1].abs() > 0.97
    torch.testing.assert_close(sigma[0].float(), torch.tensor(DEVIATION), rtol=0.15, atol=0)
    found = uncertainty.predict(base, batch).uncertainty[0]
    expected = 2 * torch.einsum("k,kx->x", sigma[0] ** 2, e[0, :, 0] ** 2).sqrt()
    torch.testing.assert_close(found, expected.float().clamp_min(float(uncertainty.operator.floor)))


@torch.no_grad()
def test_an_error_outside_the_subspace_is_not_explained(plane):
    base, uncertainty = plane
    x = (torch.arange(16) + 0.5) / 16
    truth = torch.cos(5 * math.pi * x).expand(2, 1, 16)
    batch = {"a": torch.ones(2, 1, 16)}
    assert uncertainty.explained(base, batch, truth).max() < 0.05
    assert torch.equal(uncertainty.explained(base, batch, 0 * truth), torch.zeros(2).double())
    with pytest.raises(ValueError, match=r"truth has shape \(2, 1, 8\)"):
        uncertainty.explained(base, batch, truth[..., :8])
    with pytest.raises(ValueError, match="no integral over the function"):
        uncertainty.explained(base, {**batch, "queries": torch.rand(3, 1)}, truth)


def trained_on_the_square(**options):
    data = [{**s, "weights": 0.5 + torch.rand(9, 9)} for s in problems.functions(6, channels=2)]
    base = problems.trained(problems.fno(channels=2), data)
    uncertainty = Components(**options)
    uncertainty.fit(base, problems.residuals(base, data), problems.OPTIONS)
    return base, data, uncertainty.eval()


def test_directions_are_orthonormal_in_the_measure_of_the_function():
    base, data, uncertainty = trained_on_the_square(components=3)
    batch = problems.batch_of(base, data)
    with torch.no_grad():
        _, e, sigma = uncertainty.subspace(base, batch)
    assert e.shape == (6, 3, 2, 9, 9)
    mass = batch["weights"].double() / batch["weights"].double().sum((1, 2), keepdim=True)
    gram = torch.einsum("bkcxy,bmcxy,bxy->bkm", e, e, mass)
    torch.testing.assert_close(gram, torch.eye(3).double().expand(6, 3, 3), atol=1e-8, rtol=0)
    assert (sigma > 0).all()


def test_the_order_of_points_is_irrelevant_to_the_integrals():
    base, data, uncertainty = trained_on_the_square(components=2)
    batch = problems.batch_of(base, data[:1])
    points = torch.rand(20, 2)
    order = torch.randperm(20)
    with torch.no_grad():
        one, other = (
            uncertainty.predict(base, {**batch, "queries": p}).uncertainty
            for p in (points, points[order])
        )
    torch.testing.assert_close(one[:, order], other)


def test_gram_schmidt_spans_the_same_and_keeps_the_order():
    w = torch.randn(4, 3, 50, dtype=torch.float64)
    e, sigma = gram_schmidt(w)
    torch.testing.assert_close(e @ e.mT, torch.eye(3).double().expand(4, 3, 3))
    q, r = torch.linalg.qr(w.mT)  # the same up to signs
    torch.testing.assert_close(sigma, r.diagonal(dim1=1, dim2=2).abs())
    torch.testing.assert_close((e @ q).abs(), torch.eye(3).double().expand(4, 3, 3), atol=1e-10,
                               rtol=0)  # fmt: skip
    spanned = torch.stack((w[:, 0], torch.zeros_like(w[:, 0])), dim=1)
    e, sigma = gram_schmidt(spanned)
    assert (e[:, 1] == 0).all()
    assert (sigma[:, 1] == 0).all()


def test_a_later_direction_does_not_move_an_earlier_one():
    w = torch.randn(1, 2, 30, requires_grad=True)
    r = torch.randn(1, 30)
    shares(gram_schmidt(w)[0], r)[0, 1].backward()
    assert (w.grad[0, 0] == 0).all()
    assert (w.grad[0, 1] != 0).any()


def test_the_loss_by_hand_without_units_and_at_its_minimum():
    """One function, K = 1: −share + (σ² − energy)² / scale⁴, with plain sums."""
    generator = torch.Generator().manual_seed(0)
    r, w = (torch.randn(1, 2, 7, generator=generator) for _ in range(2))
    mass = torch.rand(1, 7, generator=generator) + 0.1
    mu = mass / mass.sum()

    def inner(f, g):
        return float((f * g * mu).sum())

    energy = inner(w, r) ** 2 / inner(w, w)
    expected = -energy / inner(r, r) + (inner(w, w) - energy) ** 2 / 16
    found = ComponentsLoss(1, scale=2.0)(w, {"u": r, "weights": mass})
    assert math.isclose(float(found), expected, rel_tol=1e-4)
    scaled = ComponentsLoss(1, scale=20.0)(10 * w, {"u": 10 * r, "weights": mass})
    torch.testing.assert_close(scaled, found)
    best = ComponentsLoss(1, scale=2.0)(r, {"u": r, "weights": mass})
    assert math.isclose(float(best), -1, abs_tol=1e-5)


def test_the_second_term_moves_the_size_alone():
    """Its gradient is along w: the projection counts as given."""
    r, w = torch.randn(2, 1, 9), torch.randn(2, 1, 9, requires_grad=True)
    # With a small scale the second term is all that counts.
    ComponentsLoss(1, scale=0.01)(w, {"u": r}).backward()
    cosine = torch.nn.functional.cosine_similarity(w.grad.flatten(1), w.detach().flatten(1))
    torch.testing.assert_close(cosine.abs(), torch.ones(2))


def test_padding_has_no_part_in_the_loss():
    r, w, mass = torch.randn(1, 1, 6), torch.randn(1, 2, 6), torch.rand(1, 6) + 0.1
    loss = ComponentsLoss(2, 1.0)
    padded = {"u": torch.cat((r, torch.zeros(1, 1, 3)), 2), "weights": torch.cat(
        (mass, torch.zeros(1, 3)), 1)}  # fmt: skip
    junk = torch.cat((w, 1e3 * torch.randn(1, 2, 3)), 2)
    torch.testing.assert_close(loss(junk, padded), loss(w, {"u": r, "weights": mass}))
    with pytest.raises(ValueError, match=r"expected \(1, 2, 6\): 2 fields"):
        loss(w[:, :1], {"u": r})


def test_inner_products_do_not_depend_on_the_resolution():
    coarse, fine = (in_l2(waves(n).double()[None, :, None], None) for n in (8, 64))
    torch.testing.assert_close(coarse @ coarse.mT, fine @ fine.mT)


def test_a_network_of_ones_own_must_come_to_load():
    base, residuals = problems.exact(lambda a: 0 * a, errors_in_a_plane(8, 0))
    uncertainty = Components(components=2, network=network)
    uncertainty.fit(base, residuals, problems.OPTIONS)
    saved, state = uncertainty.saved(), uncertainty.state_dict()
    with pytest.raises(ValueError, match=r"uncertainty=Components\(network=...\)"):
        Components(**saved["config"]).restore(base.operator, saved, state)
    again = Components(**saved["config"], network=network)
    again.restore(base.operator, saved, state)
    batch = {"a": torch.ones(1, 1, 16)}
    with torch.no_grad():
        one, other = (r.eval().predict(base, batch).uncertainty for r in (uncertainty, again))
    assert torch.equal(one, other)
