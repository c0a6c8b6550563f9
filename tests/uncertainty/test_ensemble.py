"""Ensembles and perturbed pairs: against operators known by formula, and trained ones."""

import copy

import pytest
import torch

from tests.uncertainty import problems
from uqno import UQNO
from uqno.operators import Operator
from uqno.operators.symmetry import square
from uqno.uncertainty import Ensemble, PerturbedPair
from uqno.uncertainty.contract import Base, Options
from uqno.uncertainty.ensemble import NoisyLabels


def times(k, other=1):
    return Operator(lambda a: torch.cat((k * a, other * a), dim=1), normalise=(), output=None)


@pytest.fixture(scope="module")
def given():
    data = problems.functions(4, channels=2)
    base = Base(times(1))
    return base, problems.residuals(base, data)


def test_given_members(given):
    base, residuals = given
    uncertainty = Ensemble(operators=[times(2), times(6)], multiplier=1.5)
    uncertainty.fit(base, residuals, Options())  # nothing is trained: there are no epochs
    assert uncertainty.members == 3
    a = 1 + torch.rand(2, 1, 9, 9)
    found = uncertainty.predict(base, {"a": a})
    torch.testing.assert_close(found.center, torch.cat((3 * a, a), dim=1))
    torch.testing.assert_close(found.uncertainty, 1.5 * 7**0.5 * a[:, 0])  # of 1, 2, 6 about 3


def test_given_pair(given):
    base, residuals = given
    uncertainty = PerturbedPair(operators=[times(4, 5)])
    uncertainty.fit(base, residuals, Options())
    a = 1 + torch.rand(2, 1, 9, 9)
    found = uncertainty.predict(base, {"a": a})
    torch.testing.assert_close(found.center, torch.cat((a, a), dim=1))
    torch.testing.assert_close(found.uncertainty, 5 * a[:, 0])  # of (3a, 4a)
    agreeing = uncertainty.predict(base, {"a": torch.zeros(1, 1, 9, 9)})
    torch.testing.assert_close(agreeing.uncertainty, uncertainty.floor.expand(1, 9, 9))


def test_members_are_trained_like_the_base_from_other_weights(tmp_path):
    data = problems.functions(8)
    base = problems.trained(problems.fno(), data, square())
    weights = copy.deepcopy(base.operator.state_dict())
    uncertainty = Ensemble(members=3)
    options = Options({**problems.QUICK, "folder": tmp_path}, seed=1)
    uncertainty.fit(base, problems.residuals(base, data), options)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["member-1", "member-2"]
    assert all(torch.equal(weights[n], t) for n, t in base.operator.state_dict().items())
    one, two = uncertainty.operators
    assert one.module.config == two.module.config == base.operator.module.config
    assert one.is_normalised
    first = [o.module.lifting[0].weight for o in (base.operator, one, two)]
    # Four steps of 1e-3 move no weight by 0.05; initial ones are of the size 0.5.
    assert not torch.allclose(first[0], first[1], atol=0.05, rtol=0)
    assert not torch.allclose(first[1], first[2], atol=0.05, rtol=0)
    a = torch.rand(1, 1, 9, 9)
    here, turned = (uncertainty.predict(base, {"a": x}).center for x in (a, a.rot90(1, (2, 3))))
    torch.testing.assert_close(turned, here.rot90(1, (2, 3)), atol=1e-5, rtol=1e-4)
    again = Ensemble(members=3)
    resumed = Options({**options.training, "resume": True}, seed=1)
    again.fit(base, problems.residuals(base, data), resumed)
    pairs = zip(uncertainty.operators, again.operators, strict=True)
    assert all(torch.equal(a.module.last.weight, b.module.last.weight) for a, b in pairs)


def test_noise_on_labels_is_a_function_of_seed_and_index():
    data = [{"a": torch.zeros(1, 60, 60), "u": torch.stack(
        (torch.randn(60, 60), 100 * torch.randn(60, 60)))} for _ in range(3)]  # fmt: skip
    noisy = NoisyLabels(data, 0.1, seed=3)
    assert len(noisy) == 3
    assert torch.equal(noisy[1]["u"], NoisyLabels(data, 0.1, seed=3)[1]["u"])
    noise = [(noisy[i]["u"] - data[i]["u"]) for i in range(3)]
    for i in range(3):
        share = noise[i].flatten(1).std(dim=1) / data[i]["u"].flatten(1).std(dim=1)
        torch.testing.assert_close(share, torch.full((2,), 0.1), rtol=0.05, atol=0)  # 4σ of 3600
    assert not torch.allclose(noise[0][0], noise[1][0], rtol=0.1)
    assert not torch.equal(noisy[0]["u"], NoisyLabels(data, 0.1, seed=4)[0]["u"])
    assert torch.equal(noisy[0]["a"], data[0]["a"])


def test_more_noise_more_disagreement():
    data = problems.functions(12)
    base = problems.trained(problems.fno(dropout=0.0), data)
    residuals, batch = problems.residuals(base, data), problems.batch_of(base, data)
    means = []
    for noise in (0.01, 5.0):
        uncertainty = PerturbedPair(noise=noise)
        uncertainty.fit(base, residuals, Options({**problems.QUICK, "epochs": 15}))
        means.append(float(uncertainty.predict(base, batch).uncertainty.mean()))
    assert means[0] < means[1]


def test_operators_of_ones_own_come_with_the_model_or_are_asked_for(tmp_path):
    data = problems.functions(8)
    base, other = (problems.trained(problems.fno(), data[k:]).operator for k in (0, 2))
    model = UQNO(base, Ensemble(operators=[other])).fit(problems.functions(6, seed=1))
    model.calibrate(problems.functions(20, seed=2), 0.2, 0.2)
    model.save(tmp_path / "own")
    a = data[0]["a"]
    again = UQNO.load(tmp_path / "own").predict(a)
    assert (again.uncertainty == model.predict(a).uncertainty).all()

    class Twice(torch.nn.Module):
        def forward(self, a):
            return 2 * a

    model = UQNO(base, Ensemble(operators=[Twice()])).fit(problems.functions(6, seed=1))
    model.calibrate(problems.functions(20, seed=2), 0.2, 0.2)
    model.save(tmp_path / "foreign")
    with pytest.raises(ValueError, match=r"operators of your own \(Twice\)"):
        UQNO.load(tmp_path / "foreign")
    again = UQNO.load(tmp_path / "foreign", uncertainty=Ensemble(operators=[Twice()]))
    assert (again.predict(a).uncertainty == model.predict(a).uncertainty).all()
