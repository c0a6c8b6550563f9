"""Every estimator meets the contract: fit, predict, calibrate, save; on grids and on geometries."""

import copy
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch

from tests.uncertainty import problems
from uqno import UQNO
from uqno.operators import Operator
from uqno.operators.symmetry import reflection, square
from uqno.uncertainty import (
    ESTIMATORS,
    Components,
    Conformal,
    Constant,
    Dropout,
    Ensemble,
    Laplace,
    MeanField,
    Offset,
    PerturbedPair,
    Quantile,
    contract,
)

MAKE = {
    "conformal": lambda: Conformal((0.2, 0.1)),
    "constant": Constant,
    "laplace": Laplace,
    "ensemble": lambda: Ensemble(members=2),
    "mc-dropout": lambda: Dropout(passes=3),
    "mean-field": MeanField,
    "nppc": lambda: Components(components=2),
    "offset": lambda: Offset(Ensemble(members=2), (0.2,), 0.2),
    "perturbed-pair": PerturbedPair,
    "quantile": Quantile,
}
ONE_TOPOLOGY = {"mean-field"}
# Its masks are drawn for each point, so points off the grid have others.
BY_POINT = {"mc-dropout"}


def test_every_saved_name_is_tested():
    own = {name for name, kind in ESTIMATORS.items() if kind.__module__.startswith("uqno.")}
    assert set(MAKE) == own
    for name, make in MAKE.items():
        assert make().name == name
        assert make().bounded == (name != "nppc")


def test_an_estimator_is_registered_by_being_defined(monkeypatch):
    monkeypatch.setattr(contract, "ESTIMATORS", {**ESTIMATORS})

    def define():
        class Twice(Constant):
            name = "twice"

        return Twice

    assert define() is not define()  # defined anew, as a notebook does: the last one counts
    last = define()
    assert contract.ESTIMATORS["twice"] is last
    with pytest.raises(ValueError, match=r"'constant' is the name of uqno.*Constant, so .*Other"):

        class Other(Constant):
            name = "constant"

    assert contract.ESTIMATORS["constant"] is Constant

    class Nameless(last):
        pass

    assert Nameless not in contract.ESTIMATORS.values()


@pytest.fixture(scope="module")
def base():
    return problems.trained(problems.fno(channels=2), problems.functions(8, channels=2), square())


@pytest.fixture(scope="module")
def residuals(base):
    return problems.residuals(base, problems.functions(8, channels=2, seed=1))


@pytest.fixture(scope="module", params=MAKE)
def uncertainty(request, base, residuals):
    found = MAKE[request.param]()
    with pytest.raises(ValueError, match="not fitted"):
        found.predict(base, problems.batch_of(base, problems.functions(1, channels=2)))
    state = torch.get_rng_state()
    found.fit(base, residuals, problems.OPTIONS)
    assert torch.equal(torch.get_rng_state(), state)
    return found.eval()


@torch.no_grad()
def test_an_uncertainty_is_a_function_of_the_function(uncertainty, base):
    data = problems.functions(3, channels=2, seed=2)
    state = torch.get_rng_state()
    together = uncertainty.predict(base, problems.batch_of(base, data))
    assert torch.equal(torch.get_rng_state(), state)
    assert not base.operator.training
    assert not any(m.training for m in base.operator.modules())
    assert together.center.shape == (3, 2, 9, 9)
    assert together.uncertainty.shape == (3, 9, 9)
    assert (together.uncertainty > 0).all()
    alone = uncertainty.predict(base, problems.batch_of(base, data[1:2]))
    torch.testing.assert_close(alone.center[0], together.center[1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(alone.uncertainty[0], together.uncertainty[1], atol=1e-5, rtol=1e-4)


def test_fitting_again_gives_the_same(uncertainty, base, residuals):
    again = MAKE[uncertainty.name]()
    torch.rand(7)  # the global random state has no part in it
    again.fit(base, residuals, problems.OPTIONS)
    batch = problems.batch_of(base, problems.functions(1, channels=2, seed=3))
    with torch.no_grad():
        one, other = (r.eval().predict(base, batch).uncertainty for r in (again, uncertainty))
    assert torch.equal(one, other)


@torch.no_grad()
def test_queries_on_the_grid_have_the_uncertainty_of_the_grid(uncertainty, base):
    batch = problems.batch_of(base, problems.functions(2, channels=2, seed=4))
    x = torch.linspace(0, 1, 9)
    points = torch.cartesian_prod(x, x)
    grid = uncertainty.predict(base, batch)
    at_points = uncertainty.predict(base, {**batch, "queries": points})
    assert at_points.uncertainty.shape == (2, 81)
    assert (at_points.uncertainty > 0).all()
    if uncertainty.name not in BY_POINT:
        torch.testing.assert_close(at_points.center, grid.center.flatten(2), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(
            at_points.uncertainty, grid.uncertainty.flatten(1), atol=1e-4, rtol=1e-3
        )
    own = uncertainty.predict(base, {**batch, "queries": points.expand(2, -1, -1)})
    torch.testing.assert_close(own.uncertainty, at_points.uncertainty)
    finer = uncertainty.predict(
        base, problems.batch_of(base, problems.functions(1, 13, channels=2))
    )
    assert finer.uncertainty.shape == (1, 13, 13)


@pytest.mark.parametrize("name", MAKE)
def test_through_calibration_and_files(name, base, tmp_path):
    model = UQNO(base.operator, MAKE[name]())
    model.fit(problems.functions(8, channels=2, seed=1), **problems.QUICK)
    model.calibrate(problems.functions(20, channels=2, seed=5), 0.2, 0.2)
    a = problems.functions(1, channels=2, seed=6)[0]["a"]
    band = model.predict(a)
    model.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model")
    assert type(again.uncertainty) is type(model.uncertainty)
    np.testing.assert_array_equal(again.predict(a).center, band.center)
    np.testing.assert_array_equal(again.predict(a).uncertainty, band.uncertainty)
    again.save(tmp_path / "again")
    assert UQNO.load(tmp_path / "again").uncertainty.saved() == model.uncertainty.saved()


THREADS = 200


@pytest.mark.parametrize("name", MAKE)
def test_threads_see_what_one_after_the_other_sees(name, base):
    """200 threads at once, of five functions: bit-equal bands, and nothing is switched.

    They ask a copy that nobody has asked before, so what is made at the first question is made
    by all of them.
    """
    model = UQNO(base.operator, MAKE[name]())
    model.fit(problems.functions(8, channels=2, seed=1), **problems.QUICK)
    model.calibrate(problems.functions(20, channels=2, seed=5), 0.2, 0.2)
    asked = copy.deepcopy(model)
    inputs = [f["a"] for f in problems.functions(5, channels=2, seed=6)]
    expected = [model.predict(a) for a in inputs]
    state, together = torch.get_rng_state(), Barrier(THREADS, timeout=600)

    def predict(thread):
        together.wait()
        return asked.predict(inputs[thread % 5])

    with ThreadPoolExecutor(THREADS) as pool:
        for thread, band in enumerate(pool.map(predict, range(THREADS))):
            other = expected[thread % 5]
            np.testing.assert_array_equal(band.center, other.center)
            np.testing.assert_array_equal(band.radius, other.radius)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.fixture(scope="module")
def on_bodies():
    gino = problems.gino()
    return problems.trained(gino, problems.bodies(gino, 6))


@pytest.mark.parametrize("name", MAKE)
def test_on_geometries(name, on_bodies, tmp_path):
    gino = on_bodies.operator.module
    points = 30 if name in ONE_TOPOLOGY else None
    model = UQNO(on_bodies.operator, MAKE[name](), symmetries=reflection(gino.latent))
    model.fit(problems.bodies(gino, 6, seed=1, points=points), **problems.QUICK)
    model.calibrate(problems.bodies(gino, 10, seed=2, points=points), 0.3, 0.3, weights=True)
    body = problems.bodies(gino, 1, seed=3, points=points)[0]
    band = model.predict(body)
    assert band.center.shape == (1, 30)
    assert (band.uncertainty > 0).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        UQNO.load(tmp_path / "model").predict(body).uncertainty, band.uncertainty
    )


@pytest.mark.parametrize("name", sorted(set(MAKE) - ONE_TOPOLOGY))
def test_padding_changes_nothing(name, on_bodies):
    base, gino = on_bodies, on_bodies.operator.module
    uncertainty = MAKE[name]()
    uncertainty.fit(
        base, problems.residuals(base, problems.bodies(gino, 6, seed=1)), problems.OPTIONS
    )
    uncertainty.eval()
    short, long = problems.bodies(gino, 2, seed=2)
    with torch.no_grad():
        padded = uncertainty.predict(base, problems.batch_of(base, [short, long]))
        alone = uncertainty.predict(base, problems.batch_of(base, [short]))
    torch.testing.assert_close(padded.center[:1, :, :30], alone.center, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(padded.uncertainty[:1, :30], alone.uncertainty, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(set(MAKE) - {"mc-dropout"}))
def test_an_exact_base_has_no_error_to_learn_from(name):
    base, residuals = problems.exact(
        lambda a: 2 * a, [{"a": torch.ones(1, 9, 9), "u": torch.full((1, 9, 9), 2.0)}] * 4
    )
    if name == "laplace":
        base = problems.trained(problems.fno(), problems.functions(4))
    with pytest.raises(ValueError, match=r"mean training error is 0.0, expected above 0"):
        MAKE[name]().fit(base, residuals, problems.OPTIONS)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Dropout(passes=1), r"passes = 1 must be .* at least 2"),
        (lambda: Dropout(multiplier=0), r"multiplier = 0 must lie in \(0, ∞\)"),
        (lambda: Dropout(seed=-1), "seed = -1"),
        (lambda: Ensemble(members=1), "members = 1"),
        (lambda: Ensemble(operators=[]), "members = 1"),
        (lambda: Ensemble(members=2.5), r"members = 2.5 must be a whole number"),
        (lambda: PerturbedPair(noise=-0.1), "noise = -0.1"),
        (lambda: PerturbedPair(operators=[abs, abs]), "2 operators beside the base"),
        (lambda: Components(components=0), "components = 0"),
        (lambda: Laplace(multiplier=float("nan")), "multiplier = nan"),
        (lambda: Laplace(floor=1.5), r"floor = 1.5 must lie in \(0, 1\)"),
        (lambda: MeanField(floor=0), "floor = 0"),
    ],
)
def test_bad_arguments_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("uncertainty", "said"),
    [
        (Dropout(), "has 0 layers with dropout > 0"),
        (Laplace(), "no linear `last` layer"),
        (Ensemble(), r"not a uqno.operators.NeuralOperator.*operators=\[...\]"),
        (PerturbedPair(), "not a uqno.operators.NeuralOperator"),
    ],
)
def test_a_base_that_cannot_serve_is_refused(uncertainty, said):
    base, residuals = problems.exact(lambda a: a**2, problems.functions(4))
    assert isinstance(base.operator, Operator)
    with pytest.raises(ValueError, match=said):
        uncertainty.fit(base, residuals, problems.OPTIONS)
