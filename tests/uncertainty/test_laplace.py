"""Last-layer Laplace against a design matrix, slogdet, inverses and an optimiser."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from tests.uncertainty import problems
from uqno.operators import FNO
from uqno.operators.symmetry import square
from uqno.uncertainty import Laplace, laplace
from uqno.uncertainty.laplace import bias_and_features, evidence_maximum, moments


def weighted(data):
    generator = torch.Generator().manual_seed(9)
    return [{**s, "weights": 0.2 + torch.rand(9, 9, generator=generator)} for s in data]


@pytest.fixture(scope="module")
def fitted():
    data = weighted(problems.functions(6, channels=2))
    base = problems.trained(problems.fno(channels=2), data, square())
    uncertainty = Laplace(multiplier=1.5)
    uncertainty.fit(base, problems.residuals(base, data), problems.OPTIONS)
    return base, data, uncertainty


@torch.no_grad()
def dense(base, data):
    """Φ (N, p), residuals in normalised units (N, channels) and weights (N,), all explicit."""
    rows, targets, mass = [], [], []
    for sample in data:
        turned = [
            g.undo(base.operator.features(g.apply({"a": sample["a"][None]})), False)
            for g in base.symmetries
        ]
        phi = torch.stack(turned).mean(0).flatten(2)[0].T.double().numpy()
        rows.append(np.concatenate([phi, np.ones((81, 1))], axis=1))
        center = base.view({"a": sample["a"][None]})[0][0]
        std = base.operator.outputs.std[:, None, None]
        targets.append(((sample["u"] - center) / std).double().flatten(1).T.numpy())
        w = sample["weights"].double().flatten().numpy()
        mass.append(w / w.mean())
    return np.concatenate(rows), np.concatenate(targets), np.concatenate(mass)


def lack_of_evidence(logs, phi, r, mass, w):
    """−log p(data | α, β) around the weights w, with nothing simplified."""
    alpha, beta = np.exp(logs)
    precision = alpha * np.eye(phi.shape[1]) + beta * phi.T @ (mass[:, None] * phi)
    fit = len(r) * np.log(beta) - beta * np.sum(mass * r**2)
    prior = len(w) * np.log(alpha) - alpha * w @ w
    return -0.5 * (fit + prior - np.linalg.slogdet(precision)[1])


def test_evidence_and_variance_equal_a_dense_reference(fitted):
    base, data, uncertainty = fitted
    phi, r, mass = dense(base, data)
    last = base.operator.module.last
    weights = torch.cat((last.weight, last.bias[:, None]), 1).detach().double().numpy()
    x, _, _ = dense(base, data[:1])
    noise, variance = 0.0, np.zeros(81)
    for c in range(2):
        arguments = (phi, r[:, c], mass, weights[c])
        best = minimize(lack_of_evidence, np.zeros(2), arguments, "Nelder-Mead",
                        options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 2000})  # fmt: skip
        alpha, beta = np.exp(best.x)
        np.testing.assert_allclose(float(uncertainty.prior[c]), alpha, rtol=1e-3)
        np.testing.assert_allclose(float(uncertainty.noise[c]), beta, rtol=1e-3)
        ours = np.log([float(uncertainty.prior[c]), float(uncertainty.noise[c])])
        assert lack_of_evidence(ours, *arguments) <= best.fun + 1e-6
        posterior = np.linalg.inv(
            alpha * np.eye(phi.shape[1]) + beta * phi.T @ (mass[:, None] * phi)
        )
        std = float(base.operator.outputs.std[c])
        noise += std**2 / beta
        variance += std**2 * np.einsum("np,pq,nq->n", x, posterior, x)
    found = uncertainty.predict(base, {"a": data[0]["a"][None]})
    np.testing.assert_allclose(
        found.uncertainty.flatten(), 1.5 * np.sqrt(variance + noise), rtol=1e-3
    )
    own = float((base.operator.outputs.std**2 / uncertainty.noise).sum())
    with torch.no_grad():  # noise hides the part of the weights
        known = uncertainty.variance(base, {"a": data[0]["a"][None]}).flatten() - own
    np.testing.assert_allclose(known, variance, rtol=1e-2)
    torch.testing.assert_close(found.center, base.view({"a": data[0]["a"][None]})[0])


def test_a_large_function_passes_in_pieces(fitted, monkeypatch):
    base, data, uncertainty = fitted
    batch = problems.batch_of(base, data[:2])
    whole = uncertainty.predict(base, batch).uncertainty
    monkeypatch.setattr(laplace, "PIECE", 30)
    torch.testing.assert_close(uncertainty.predict(base, batch).uncertainty, whole)


def test_the_answer_is_linear_in_the_features(fitted):
    base, data, _ = fitted
    last, batch = base.operator.module.last, {"a": data[1]["a"][None]}
    with torch.no_grad():
        phi = bias_and_features(base, batch).double()
        weights = torch.cat((last.weight, last.bias[:, None]), 1).double()
        answer = torch.einsum("cp,bpxy->bcxy", weights, phi)
        center = base.view(batch)[0].double()
    torch.testing.assert_close(base.operator.outputs.inverse(answer), center, atol=1e-5, rtol=1e-4)


def test_moments_equal_the_design_matrix(fitted, monkeypatch):
    base, data, _ = fitted
    monkeypatch.setattr(laplace, "PIECE", 30)  # of the 81 points: in pieces, the last one smaller
    phi, r, mass = dense(base, data)
    found = moments(base, problems.residuals(base, data))
    assert found.count == len(phi)
    assert found.features.dtype == torch.float64
    np.testing.assert_allclose(found.features, phi.T @ (mass[:, None] * phi), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.squares, (mass[:, None] * r**2).sum(0), rtol=1e-5)


def test_the_noise_of_a_linear_problem_is_found():
    """Data from the model itself: β is 1/σ², up to the error 1.4/√N of a variance."""
    rng = np.random.default_rng(0)
    phi, w = rng.normal(size=(4000, 6)), rng.normal(size=6) * 2
    noise = 0.3 * rng.normal(size=4000)
    values = np.linalg.eigvalsh(phi.T @ phi)
    alpha, beta = evidence_maximum(values, 4000, float(noise @ noise), float(w @ w))
    assert abs(beta * 0.09 - 1) < 4 * np.sqrt(2 / 4000)
    np.testing.assert_allclose(alpha, 6 / (w @ w), rtol=0.01)  # γ/‖w‖², all 6 well determined


@pytest.mark.parametrize("squares", [0.0, 1e-30, 1e30])
def test_evidence_of_extreme_data_is_finite(squares):
    alpha, beta = evidence_maximum(np.array([0.0, 1e-12, 1e6]), 100, squares, 1.0)
    assert 0 < alpha < np.inf
    assert 0 < beta < np.inf


def test_far_from_the_data_the_radius_grows():
    """The part of the features: noise alone would be the same everywhere."""
    torch.manual_seed(0)
    base = problems.trained(FNO(1, 1, modes=(4, 4), width=8, layers=2), problems.functions(6))
    uncertainty = Laplace()
    uncertainty.fit(base, problems.residuals(base, problems.functions(6)), problems.OPTIONS)
    near, far = (
        uncertainty.predict(base, {"a": k * problems.functions(1)[0]["a"][None]}).uncertainty
        for k in (1, 100)
    )
    assert far.mean() > 2 * near.mean()
