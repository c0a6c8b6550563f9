"""Several operators whose mean is Ĝ: honest residuals, saved whole, refused where they misfit."""

import pytest
import torch

from tests.model.test_uqno import QUICK, grid_functions, small
from uqno import UQNO
from uqno.model import folds, uqno
from uqno.model.memory import Memory
from uqno.operators import Operator
from uqno.operators.symmetry import averaged, square
from uqno.training import CrossFit, crossfit
from uqno.uncertainty import Constant, Dropout, Laplace


def constant(value):
    return Operator(lambda a: torch.full_like(a, value), normalise=(), output=None)


@pytest.fixture
def remembers_nothing(monkeypatch):
    """For an uncertainty that only looks at what it is given, and cannot be asked."""
    monkeypatch.setattr(uqno.Memory, "of", lambda *given: Memory())


def found(values, final, assignment):
    """As if crossfit had trained operators that answer with these constants."""
    return CrossFit(constant(final), tuple(map(constant, values)), assignment, None, ())


def test_the_mean_and_the_deviation_are_over_members_and_symmetries():
    batch = {"a": torch.rand(2, 1, 5, 5)}
    operators = [lambda b: b["a"] * 0 + 1, lambda b: b["a"] * 0 + 4]
    for symmetries in ((), square()):
        center, deviation = averaged(operators[0], batch, symmetries, operators[1:])
        assert torch.allclose(center, torch.full_like(center, 2.5))
        assert torch.allclose(deviation, torch.full_like(center, 1.5))


def test_residuals_are_of_operators_that_have_not_seen_the_function(remembers_nothing):
    train = grid_functions(4, points=5)
    folds = [found((1.0, 2.0), 9.0, (0, 1, 0, 1)), found((10.0, 20.0), 19.0, (0, 0, 1, 1))]
    model = UQNO(folds, Constant())
    seen = []
    model.uncertainty.fit = lambda base, residuals, options: seen.append(residuals)
    model.fit(train)
    (residuals,) = seen
    assert [float(c.mean()) for c in residuals.centers] == [5.5, 6.0, 10.5, 11.0]
    assert [float(f.mean()) for f in residuals.features] == [4.5, 4.0, 9.5, 9.0]
    center, uncertainty = model.base.view({"a": train[0]["a"][None]})
    assert float(center.mean()) == 14  # of the final ones
    assert float(uncertainty.mean()) == 5


@pytest.fixture(scope="module")
def committee(tmp_path_factory):
    model = UQNO(small(), symmetries=square()[:2], members=3)
    folder = tmp_path_factory.mktemp("fits")
    model.fit(grid_functions(40), folder=folder, **QUICK)
    model.calibrate(grid_functions(60, seed=1), 0.1, 0.1)
    return model, folder


def test_fit_trains_members_that_differ_and_resumes_them(committee):
    model, folder = committee
    first, *others = (model.base.operator, *model.base.others)
    assert len(others) == 2
    weights = [next(o.parameters()).flatten()[:3].tolist() for o in (first, *others)]
    assert len({tuple(w) for w in weights}) == 3
    a = grid_functions(1, seed=2)[0]["a"]
    with torch.no_grad():
        each = [averaged(o, {"a": a[None]}, square()[:2])[0][0] for o in (first, *others)]
    mean = torch.stack(each).mean(dim=0)
    assert torch.allclose(torch.from_numpy(model.predict(a).center), mean, atol=1e-6)
    again = UQNO(small(), symmetries=square()[:2], members=3)
    again.fit(grid_functions(40), folder=folder, resume=True, **QUICK)
    for ours, theirs in zip(model.base.others, again.base.others, strict=True):
        assert torch.equal(next(ours.parameters()), next(theirs.parameters()))


def test_a_committee_is_saved_and_loaded_whole(committee, tmp_path):
    model, _ = committee
    model.save(tmp_path / "model")
    loaded = UQNO.load(tmp_path / "model")
    assert len(loaded.base.others) == 2
    a = grid_functions(1, seed=3)[0]["a"]
    band, same = model.predict(a), loaded.predict(a)
    assert (band.center == same.center).all()
    assert (band.uncertainty == same.uncertainty).all()
    (tmp_path / "model" / "base-3.safetensors").unlink()
    with pytest.raises(ValueError, match=r"base-3.safetensors is missing"):
        UQNO.load(tmp_path / "model")


def test_fitting_again_takes_the_residuals_of_all_members(remembers_nothing):
    again = UQNO([found((1.0, 2.0), 9.0, (0, 1)), found((3.0, 4.0), 19.0, (0, 1))])
    again.folds = ()  # as a loaded model, which has its operators and no folds
    seen = []
    again.uncertainty.fit = lambda base, residuals, options: seen.append(residuals)
    again.fit(grid_functions(2, points=5))
    assert [float(c.mean()) for c in seen[0].centers] == [14, 14]


def test_members_that_cannot_be_made_are_refused_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr(folds, "crossfit", lambda *a, **b: pytest.fail("trained"))
    with pytest.raises(
        ValueError, match=r"Linear is not a uqno.operators.NeuralOperator.* pass UQNO"
    ):
        UQNO(torch.nn.Linear(5, 5), trained=False, members=2).fit(grid_functions(4, points=5))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="members = 2 must be at least 1, and 1 for a base that"):
        UQNO(lambda a: a, members=2)
    with pytest.raises(ValueError, match="members = 0 must be at least 1"):
        UQNO(small(), members=0)
    with pytest.raises(ValueError, match="needs crossfit=2 or more folds"):
        UQNO(small(), members=2).fit(grid_functions(8), crossfit=None)
    with pytest.raises(ValueError, match=r"what crossfit returned, each, got \['FNO'\]"):
        UQNO([small()])
    with pytest.raises(ValueError, match=r"each, got \[\]"):
        UQNO([])
    folds = [found((1.0, 2.0), 9.0, (0, 1, 0, 1))] * 2
    for uncertainty, name in ((Laplace(), "Laplace"), (Dropout(), "MC dropout")):
        with pytest.raises(ValueError, match=f"{name} is made of the inside of one operator"):
            UQNO(folds, uncertainty).fit(grid_functions(4))
    with pytest.raises(ValueError, match="8 training functions, but the folds were made of 4"):
        UQNO(folds, Constant()).fit(grid_functions(8))


def test_several_crossfits_of_different_seeds_make_a_base():
    train = grid_functions(24)
    options = {**QUICK, "folds": 2, "loss": torch_loss}
    folds = [crossfit(lambda: Operator(small()), train, seed=s, **options) for s in (0, 1)]
    model = UQNO(folds).fit(train, **QUICK)
    assert model.base.others == (folds[1].operator,)
    assert folds[0].assignment != folds[1].assignment


def torch_loss(output, batch):
    return (output - batch["u"]).square().mean()
