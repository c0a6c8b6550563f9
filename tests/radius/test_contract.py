"""Every radius keeps the contract: fit, estimate, calibrate, save; on grids and on geometries."""

import numpy as np
import pytest
import torch

from tests.radius import problems
from uqno import UQNO
from uqno.operators import Operator
from uqno.operators.symmetry import reflection, square
from uqno.radius import (
    RADII,
    ComponentsRadius,
    ConstantRadius,
    DropoutRadius,
    EnsembleRadius,
    LaplaceRadius,
    MeanFieldRadius,
    PerturbedPairRadius,
    QuantileRadius,
)

RADIUS = {
    "constant": ConstantRadius,
    "laplace": LaplaceRadius,
    "ensemble": lambda: EnsembleRadius(members=2),
    "mc-dropout": lambda: DropoutRadius(passes=3),
    "mean-field": MeanFieldRadius,
    "nppc": lambda: ComponentsRadius(components=2),
    "perturbed-pair": PerturbedPairRadius,
    "quantile": QuantileRadius,
}
ONE_TOPOLOGY = {"mean-field"}
# Its masks are drawn for each point, so points off the grid have others.
BY_POINT = {"mc-dropout"}


def test_every_saved_name_is_tested():
    assert set(RADIUS) == set(RADII)
    for name, make in RADIUS.items():
        assert make().name == name
        assert make().bounded == (name != "nppc")


@pytest.fixture(scope="module")
def base():
    return problems.trained(problems.fno(channels=2), problems.functions(8, channels=2), square())


@pytest.fixture(scope="module")
def residuals(base):
    return problems.residuals(base, problems.functions(8, channels=2, seed=1))


@pytest.fixture(scope="module", params=RADIUS)
def radius(request, base, residuals):
    found = RADIUS[request.param]()
    with pytest.raises(ValueError, match="not fitted"):
        found.estimate(base, problems.batch_of(base, problems.functions(1, channels=2)))
    state = torch.get_rng_state()
    found.fit(base, residuals, problems.OPTIONS)
    assert torch.equal(torch.get_rng_state(), state)
    return found.eval()


@torch.no_grad()
def test_an_estimate_is_a_function_of_the_function(radius, base):
    data = problems.functions(3, channels=2, seed=2)
    state = torch.get_rng_state()
    together = radius.estimate(base, problems.batch_of(base, data))
    assert torch.equal(torch.get_rng_state(), state)
    assert not base.operator.training
    assert not any(m.training for m in base.operator.modules())
    assert together.center.shape == (3, 2, 9, 9)
    assert together.radius.shape == (3, 9, 9)
    assert (together.radius > 0).all()
    alone = radius.estimate(base, problems.batch_of(base, data[1:2]))
    torch.testing.assert_close(alone.center[0], together.center[1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(alone.radius[0], together.radius[1], atol=1e-5, rtol=1e-4)


def test_fitting_again_gives_the_same(radius, base, residuals):
    again = RADIUS[radius.name]()
    torch.rand(7)  # the global random state has no part in it
    again.fit(base, residuals, problems.OPTIONS)
    batch = problems.batch_of(base, problems.functions(1, channels=2, seed=3))
    with torch.no_grad():
        one, other = (r.eval().estimate(base, batch).radius for r in (again, radius))
    assert torch.equal(one, other)


@torch.no_grad()
def test_points_of_the_grid_have_the_radius_of_the_grid(radius, base):
    batch = problems.batch_of(base, problems.functions(2, channels=2, seed=4))
    x = torch.linspace(0, 1, 9)
    points = torch.cartesian_prod(x, x)
    grid = radius.estimate(base, batch)
    at_points = radius.estimate(base, {**batch, "points": points})
    assert at_points.radius.shape == (2, 81)
    assert (at_points.radius > 0).all()
    if radius.name not in BY_POINT:
        torch.testing.assert_close(at_points.center, grid.center.flatten(2), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(at_points.radius, grid.radius.flatten(1), atol=1e-4, rtol=1e-3)
    own = radius.estimate(base, {**batch, "points": points.expand(2, -1, -1)})
    torch.testing.assert_close(own.radius, at_points.radius)
    finer = radius.estimate(base, problems.batch_of(base, problems.functions(1, 13, channels=2)))
    assert finer.radius.shape == (1, 13, 13)


@pytest.mark.parametrize("name", RADIUS)
def test_through_calibration_and_files(name, base, tmp_path):
    model = UQNO(base.operator, RADIUS[name]())
    model.fit(problems.functions(8, channels=2, seed=1), **problems.QUICK)
    model.calibrate(problems.functions(20, channels=2, seed=5), 0.2, 0.2)
    a = problems.functions(1, channels=2, seed=6)[0]["a"]
    band = model.predict(a)
    model.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model")
    assert type(again.radius) is type(model.radius)
    np.testing.assert_array_equal(again.predict(a).center, band.center)
    np.testing.assert_array_equal(again.predict(a).spread, band.spread)
    again.save(tmp_path / "again")
    assert UQNO.load(tmp_path / "again").radius.saved() == model.radius.saved()


def test_a_quantile_radius_saved_without_its_outputs_still_loads(base, residuals):
    radius = QuantileRadius()
    radius.fit(base, residuals, problems.OPTIONS)
    saved = {name: value for name, value in radius.saved().items() if name != "outputs"}
    again = QuantileRadius(**saved["config"])
    again.restore(base.operator, saved, radius.state_dict())
    assert again.saved() == radius.saved()


@pytest.fixture(scope="module")
def on_bodies():
    gino = problems.gino()
    return problems.trained(gino, problems.bodies(gino, 6))


@pytest.mark.parametrize("name", RADIUS)
def test_on_geometries(name, on_bodies, tmp_path):
    gino = on_bodies.operator.module
    points = 30 if name in ONE_TOPOLOGY else None
    model = UQNO(on_bodies.operator, RADIUS[name](), symmetries=reflection(gino))
    model.fit(problems.bodies(gino, 6, seed=1, points=points), **problems.QUICK)
    model.calibrate(problems.bodies(gino, 10, seed=2, points=points), 0.3, 0.3, weights=True)
    body = problems.bodies(gino, 1, seed=3, points=points)[0]
    band = model.predict(body)
    assert band.center.shape == (1, 30)
    assert (band.spread > 0).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(UQNO.load(tmp_path / "model").predict(body).spread, band.spread)


@pytest.mark.parametrize("name", sorted(set(RADIUS) - ONE_TOPOLOGY))
def test_padding_changes_nothing(name, on_bodies):
    base, gino = on_bodies, on_bodies.operator.module
    radius = RADIUS[name]()
    radius.fit(base, problems.residuals(base, problems.bodies(gino, 6, seed=1)), problems.OPTIONS)
    radius.eval()
    short, long = problems.bodies(gino, 2, seed=2)
    with torch.no_grad():
        padded = radius.estimate(base, problems.batch_of(base, [short, long]))
        alone = radius.estimate(base, problems.batch_of(base, [short]))
    torch.testing.assert_close(padded.center[:1, :, :30], alone.center, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(padded.radius[:1, :30], alone.radius, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(set(RADIUS) - {"mc-dropout"}))
def test_an_exact_base_has_no_error_to_learn_from(name):
    base, residuals = problems.exact(
        lambda a: 2 * a, [{"a": torch.ones(1, 9, 9), "u": torch.full((1, 9, 9), 2.0)}] * 4
    )
    if name == "laplace":
        base = problems.trained(problems.fno(), problems.functions(4))
    with pytest.raises(ValueError, match=r"mean training error is 0.0, expected above 0"):
        RADIUS[name]().fit(base, residuals, problems.OPTIONS)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: DropoutRadius(passes=1), r"passes = 1 must be .* at least 2"),
        (lambda: DropoutRadius(multiplier=0), r"multiplier = 0 must lie in \(0, ∞\)"),
        (lambda: DropoutRadius(seed=-1), "seed = -1"),
        (lambda: EnsembleRadius(members=1), "members = 1"),
        (lambda: EnsembleRadius(operators=[]), "members = 1"),
        (lambda: EnsembleRadius(members=2.5), r"members = 2.5 must be a whole number"),
        (lambda: PerturbedPairRadius(noise=-0.1), "noise = -0.1"),
        (lambda: PerturbedPairRadius(operators=[abs, abs]), "2 operators beside the base"),
        (lambda: ComponentsRadius(components=0), "components = 0"),
        (lambda: LaplaceRadius(multiplier=float("nan")), "multiplier = nan"),
        (lambda: LaplaceRadius(floor=1.5), r"floor = 1.5 must lie in \(0, 1\)"),
        (lambda: MeanFieldRadius(floor=0), "floor = 0"),
    ],
)
def test_bad_arguments_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("radius", "said"),
    [
        (DropoutRadius(), "has 0 layers with dropout > 0"),
        (LaplaceRadius(), "no linear `last` layer"),
        (EnsembleRadius(), r"not one of uqno's own operators.*operators=\[...\]"),
        (PerturbedPairRadius(), "not one of uqno's own operators"),
    ],
)
def test_a_base_that_cannot_serve_is_refused(radius, said):
    base, residuals = problems.exact(lambda a: a**2, problems.functions(4))
    assert isinstance(base.operator, Operator)
    with pytest.raises(ValueError, match=said):
        radius.fit(base, residuals, problems.OPTIONS)
