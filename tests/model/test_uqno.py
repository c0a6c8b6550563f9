"""UQNO end to end: the guarantee on operators with a known error law, then a small trained one."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray
from scipy import stats

from tests.model.analytic import ExactUncertainty, double, noisy_functions
from uqno import UQNO, Band, storage
from uqno.conformal import guarantees
from uqno.model.folds import residuals_of
from uqno.operators import FNO, GINO, Operator
from uqno.operators.symmetry import reflection, square, translations
from uqno.storage import DamagedError
from uqno.uncertainty import Constant, Disagreement, Quantile

QUICK = {"epochs": 2, "progress": False, "batch_size": 8}


def analytic_model():
    model = UQNO(double(), ExactUncertainty(), trained=True)
    return model.fit(noisy_functions(torch.Generator().manual_seed(99), 2, 20))


@pytest.mark.parametrize(
    ("points", "channels", "sampling", "alpha", "delta"),
    [(20, 1, "grid", 0.1, 0.1), (64, 1, "grid", 0.05, 0.2), (40, 1, "iid", 0.2, 0.2),
     (30, 3, "grid", 0.1, 0.1)],
)  # fmt: skip
def test_the_guarantee_end_to_end(points, channels, sampling, alpha, delta):
    """Many seeds: calibrate on 40 functions, predict one new one, count the failures exactly."""
    model, failures, draws = analytic_model(), 0, 150
    generator = torch.Generator().manual_seed(points + channels)
    for _ in range(draws):
        functions = noisy_functions(generator, 41, points, channels)
        model.calibrate(functions[:40], alpha, delta, sampling)
        band = model.predict(functions[40]["a"])
        failures += band.coverage(functions[40]["u"].numpy()) < 1 - alpha - 1e-12
    assert stats.binomtest(failures, draws, delta, alternative="greater").pvalue > 1e-4


def test_calibration_of_mixed_resolutions():
    generator = torch.Generator().manual_seed(0)
    functions = [noisy_functions(generator, 1, points)[0] for points in (20, 35, 50) * 30]
    cal = analytic_model().calibrate(functions, 0.1, 0.1)
    assert (cal.functions, cal.points, cal.points_max) == (90, 20, 50)


def test_several_levels_in_one_pass():
    functions = noisy_functions(torch.Generator().manual_seed(1), 80, 30)
    model = analytic_model()
    several = model.calibrate(functions, [0.1, 0.2], 0.1)
    single = [model.calibrate(functions, alpha, 0.1) for alpha in (0.1, 0.2)]
    assert list(several) == single
    model.calibrate(functions, [0.1, 0.2], 0.1)
    a = functions[0]["a"]
    assert model.predict(a, alpha=0.2).calibration == single[1]
    assert model.predict(a).calibration == single[0]
    with pytest.raises(ValueError, match=r"no calibration for alpha = 0.3.*\(0.1, 0.1\)"):
        model.predict(a, alpha=0.3)
    with pytest.raises(ValueError, match="2 values of alpha and 3 of delta"):
        model.calibrate(functions, [0.1, 0.2], [0.1, 0.2, 0.3])


def test_weights_of_the_samples():
    functions = noisy_functions(torch.Generator().manual_seed(2), 60, 30)
    for sample in functions:
        sample["weights"] = torch.arange(1.0, 31)
    cal = analytic_model().calibrate(functions, 0.1, 0.1, weights=True)
    assert cal.weighted
    with pytest.raises(ValueError, match="no field 'weights'"):
        analytic_model().calibrate(
            [{k: v for k, v in s.items() if k != "weights"} for s in functions], 0.1, 0.1,
            weights=True,
        )  # fmt: skip


def grid_functions(count, points=17, seed=0):
    """Smooth scalar functions on the square: u = a smoothed, plus a part a small FNO cannot see."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.linspace(0, 1, points)
    samples = []
    for _ in range(count):
        c = torch.randn(4, generator=generator)
        a = c[0] * torch.sin(3 * x)[:, None] + c[1] * torch.cos(2 * x)[None] + c[2]
        u = a**2 + 0.1 * c[3].abs() * torch.randn(points, points, generator=generator)
        samples.append({"a": a[None], "u": u[None]})
    return samples


def small(**more):
    torch.manual_seed(0)
    return FNO(1, 1, modes=(4, 4), width=8, layers=2, **more)


@pytest.fixture(scope="module")
def fitted():
    model = UQNO(small(), symmetries=square())
    model.fit(grid_functions(40), **QUICK)
    model.calibrate(grid_functions(60, seed=1), [0.1, 0.2], 0.1)
    return model


def test_a_trained_model_makes_bands_of_one_function_and_of_a_batch(fitted):
    functions = grid_functions(3, seed=2)
    one = fitted.predict(functions[0]["a"])
    assert isinstance(one, Band)
    assert one.center.shape == (1, 17, 17)
    assert (one.uncertainty > 0).all()
    several = fitted.predict(torch.stack([f["a"] for f in functions]))
    assert several.center.shape == (3, 1, 17, 17)
    np.testing.assert_allclose(several.center[0], one.center, atol=1e-5)
    np.testing.assert_allclose(several.uncertainty[0], one.uncertainty, rtol=1e-4)
    assert fitted.predict(functions[0]["a"].numpy()).center.shape == (1, 17, 17)
    assert fitted.predict(functions[0]).center.shape == (1, 17, 17)


def test_bands_at_points_and_at_another_resolution(fitted):
    a = grid_functions(1, seed=3)[0]["a"]
    grid = fitted.predict(a)
    x = np.linspace(0, 1, 17)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    scattered = fitted.predict(a, at=points)
    np.testing.assert_allclose(scattered.center[0], grid.center[0].ravel(), atol=1e-4)
    np.testing.assert_allclose(
        scattered.uncertainty, grid.uncertainty.ravel(), rtol=1e-3, atol=1e-5
    )
    finer = fitted.predict(a, at=33)
    assert finer.center.shape == (1, 33, 33)
    np.testing.assert_allclose(finer.center[0, ::2, ::2], grid.center[0], atol=1e-4)
    np.testing.assert_allclose(finer.uncertainty[::2, ::2], grid.uncertainty, rtol=1e-3, atol=1e-5)
    assert fitted.predict(a, at=(20, 30)).center.shape == (1, 20, 30)


def test_predictions_follow_the_symmetries(fitted):
    a = grid_functions(1, seed=4)[0]["a"]
    band = fitted.predict(a)
    for g in square():
        turned = fitted.predict(g.apply({"a": a[None]})["a"][0])
        back = g.undo(torch.from_numpy(turned.center)[None], False)[0].numpy()
        np.testing.assert_allclose(back, band.center, atol=1e-4)
        uncertainty = g.undo(torch.from_numpy(turned.uncertainty)[None, None], False)[0, 0].numpy()
        np.testing.assert_allclose(uncertainty, band.uncertainty, rtol=1e-3)


def test_the_papers_split_and_a_trained_foreign_base():
    functions = grid_functions(40)
    paper = UQNO(small()).fit(functions, crossfit=None, **QUICK)
    assert paper.calibrate(grid_functions(60, seed=1), 0.1, 0.1).scale > 0

    class Square(torch.nn.Module):
        def forward(self, a):
            return a**2

    foreign = UQNO(Square()).fit(functions, **QUICK)  # taken as trained
    foreign.calibrate(grid_functions(60, seed=1), 0.1, 0.1)
    a = functions[0]["a"]
    np.testing.assert_array_equal(foreign.predict(a).center, (a**2).numpy())
    with pytest.raises(ValueError, match="on the grid of a only"):
        foreign.predict(a, at=33)


def test_crossfit_never_shows_a_function_to_its_own_operator():
    """The residuals that E learns from are those of operators that have not seen the function."""
    seen_residuals = {}

    class Spy(ExactUncertainty):
        def fit(self, base, residuals, options):
            seen_residuals["all"] = residuals

    functions = grid_functions(20)
    model = UQNO(small(), Spy()).fit(functions, crossfit=2, epochs=60, progress=False,
                                     batch_size=4, validation=0.0)  # fmt: skip
    honest = seen_residuals["all"]
    assert len(honest) == 20
    own = residuals_of(model.base, functions)
    error = [
        float(
            np.mean(
                [(s["u"] - c).square().mean() for s, c in zip(functions, r.centers, strict=True)]
            )
        )
        for r in (honest, own)
    ]
    assert error[0] > error[1]


def test_features_of_the_users_own_reach_the_radius():
    calls = []

    def laplacian(batch, center):
        calls.append(center.shape)
        return center.diff(n=2, dim=-1, prepend=center[..., :1], append=center[..., -1:])

    model = UQNO(small(), features=[laplacian]).fit(grid_functions(20), **QUICK)
    model.calibrate(grid_functions(30, seed=1), 0.2, 0.2)
    assert model.uncertainty.operator.module.in_channels == 3
    assert calls


def test_the_disagreement_of_operators_is_a_feature():
    a = torch.rand(2, 1, 17, 17)
    twice, thrice = (Operator(lambda a, k=k: k * a, normalise=(), output=None) for k in (2, 3))
    found = Disagreement(twice)({"a": a}, 4 * a)
    torch.testing.assert_close(found, a)  # 2a and 4a lie a from their mean
    model = UQNO(small(), features=[Disagreement(twice, thrice)]).fit(grid_functions(20), **QUICK)
    assert model.calibrate(grid_functions(30, seed=1), 0.2, 0.2).scale > 0
    with pytest.raises(ValueError, match="0 operators"):
        Disagreement()


def test_a_leak_is_refused_by_index():
    functions = grid_functions(40)
    model = UQNO(small()).fit(functions, **QUICK)
    fresh = grid_functions(58, seed=1)
    with pytest.raises(ValueError, match=r"2 of 60 calibration functions.*\[58, 59\]"):
        model.calibrate([*fresh, functions[3], functions[30]], 0.1, 0.1)


def test_functions_of_an_earlier_fit_stay_seen(tmp_path):
    """The second fit trains E alone: the base is still that of the first functions."""
    first, second = grid_functions(20), grid_functions(20, seed=2)
    fresh = grid_functions(30, seed=1)
    model = UQNO(small()).fit(first, **QUICK).fit(second, **QUICK)
    model.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model")
    third = grid_functions(10, seed=3)
    again.fit(third, **QUICK)
    for one, functions in ((model, first), (model, second), (again, first), (again, third)):
        with pytest.raises(ValueError, match="2 of 32 calibration functions were used in training"):
            one.calibrate([*fresh, *functions[:2]], 0.2, 0.2)
    again.calibrate(fresh, 0.2, 0.2)


def test_functions_of_a_fit_that_failed_stay_seen():
    model = UQNO(small()).fit(grid_functions(20), **QUICK)
    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(Broken(grid_functions(20, seed=2), 30), **QUICK)
    model.fit(grid_functions(10, seed=3), **QUICK)
    with pytest.raises(ValueError, match="20 of 20 calibration functions"):
        model.calibrate(grid_functions(20, seed=2), 0.2, 0.2)


def test_the_order_of_steps_is_enforced():
    a = grid_functions(1)[0]["a"]
    model = UQNO(small())
    with pytest.raises(ValueError, match=r"not fitted: call model.fit"):
        model.predict(a)
    with pytest.raises(ValueError, match="not fitted"):
        model.calibrate(grid_functions(30), 0.1, 0.1)
    with pytest.raises(ValueError, match="not fitted"):
        model.save("nowhere")
    model.fit(grid_functions(20), **QUICK)
    with pytest.raises(ValueError, match=r"not calibrated: call model.calibrate"):
        model.predict(a)
    model.calibrate(grid_functions(30, seed=1), 0.2, 0.2)
    with pytest.raises(ValueError, match=r"expected \(channel, \*grid\)"):
        model.predict(a[0, 0])
    with pytest.raises(ValueError, match="floor = 2"):
        Quantile(floor=2)


def ellipsoids(gino, count, seed=0):
    """Bodies of different sizes with different numbers of points."""
    generator = torch.Generator().manual_seed(seed)
    samples = []
    for i in range(count):
        x = torch.nn.functional.normalize(torch.randn(60 + i % 5, 3, generator=generator))
        axes = 0.5 + 0.3 * torch.rand(3, generator=generator)
        u = (x[:, :1] * axes[0]).T + 0.05 * torch.randn(1, len(x), generator=generator)
        body = {"points": x * axes, "normals": x, "weights": torch.ones(len(x)), "u": u}
        samples.append(gino.prepare(body))
    return samples


def test_geometries_with_reflection_and_different_numbers_of_points(tmp_path):
    torch.manual_seed(0)
    gino = GINO(1, latent=(8, 8, 8), modes=(4, 4, 4), width=8, layers=2, neighbours=(4, 4))
    model = UQNO(gino, symmetries=reflection(gino.latent)).fit(ellipsoids(gino, 24), **QUICK)
    cal = model.calibrate(ellipsoids(gino, 40, seed=1), 0.2, 0.2, weights=True)
    assert (cal.points, cal.points_max) == (60, 64)
    body = ellipsoids(gino, 1, seed=2)[0]
    band = model.predict(body)
    assert band.center.shape == (1, 60)
    mirrored = model.predict(gino.latent.reflect(body))
    np.testing.assert_allclose(mirrored.center, band.center, atol=1e-4)
    np.testing.assert_allclose(mirrored.uncertainty, band.uncertainty, rtol=1e-3)
    model.save(tmp_path / "model")
    same(UQNO.load(tmp_path / "model").predict(body), band)
    bare = {name: body[name] for name in ("points", "normals", "weights")}
    np.testing.assert_allclose(model.predict(bare).center, band.center, atol=1e-5)
    triangles = torch.tensor([[0, 1, 2], [3, 4, 5]])
    surface = model.predict({**bare, "triangles": triangles})
    np.testing.assert_array_equal(surface.triangles, triangles)
    with pytest.raises(ValueError, match=r"lacks normals, each \(n, 3\); it has points"):
        model.predict({"points": body["points"]})
    with pytest.raises(ValueError, match="4 neighbours are asked for, of 3 points"):
        model.predict({name: field[:3] for name, field in bare.items()})
    with pytest.raises(ValueError, match="at= is for functions on a grid"):
        model.predict(body, at=33)
    with pytest.raises(ValueError, match="of geometries: predict from a sample"):
        model.predict(torch.ones(1, 8, 8))


@pytest.mark.parametrize("sampling", ["iid", "hoeffding"])
def test_random_points_that_the_operator_takes_as_its_input_are_refused(sampling):
    torch.manual_seed(0)
    gino = GINO(1, latent=(8, 8, 8), modes=(4, 4, 4), width=8, layers=2, neighbours=(4, 4))
    model = UQNO(gino, Constant()).fit(ellipsoids(gino, 24), **QUICK)
    bodies = ellipsoids(gino, 60, seed=1)
    with pytest.raises(
        ValueError,
        match=r"does not depend on where the others were drawn, and GINO takes the points of "
        r"function 0 as its input: use sampling='grid' with the mesh as the domain, or give the "
        "geometry as points and, drawn apart from it, queries to be scored at",
    ):
        model.calibrate(bodies, 0.3, 0.3, sampling)
    assert model.calibrate(bodies, 0.3, 0.3).points == 60
    # The geometry apart from the points that are scored: half of them each.
    apart = [
        {"points": b["points"][:30], "normals": b["normals"][:30], "queries": b["points"][30:],
         "u": b["u"][:, 30:]}
        for b in bodies
    ]  # fmt: skip
    cal = model.calibrate(apart, guarantee=guarantees.Fraction(0.3, 0.3, "iid"))
    assert (cal.points, cal.points_max) == (30, 34)
    with pytest.raises(ValueError, match="GINO takes the points of function 1 as its input"):
        model.calibrate([apart[0], *bodies], 0.3, 0.3, sampling)


def test_an_uncertainty_that_takes_the_points_is_refused_too():
    functions = noisy_functions(torch.Generator().manual_seed(1), 40, 30)
    model = analytic_model()
    model.uncertainty.of_points = Operator(lambda points: points)
    with pytest.raises(ValueError, match="and _Function takes the points of function 0"):
        model.calibrate(functions, 0.3, 0.3, "iid")
    assert model.calibrate(functions, 0.3, 0.3).points == 30


def test_a_geometry_seen_at_several_places_of_the_grid(tmp_path):
    torch.manual_seed(0)
    gino = GINO(1, latent=(8, 8, 8), modes=(4, 4, 4), width=8, layers=2, neighbours=(4, 4))
    looks = translations(gino.latent, 0, (0, 0.5, -0.75))
    model = UQNO(gino, symmetries=looks).fit(ellipsoids(gino, 24), **QUICK)
    bodies = ellipsoids(gino, 40, seed=1)
    cal = model.calibrate(bodies, 0.2, 0.2, weights=True)
    assert (cal.points, cal.points_max) == (60, 64)
    body = ellipsoids(gino, 1, seed=2)[0]
    band = model.predict(body)
    with torch.no_grad():
        operator = model.base.operator
        answers = [operator(operator.collate([g.apply(body)])) for g in looks]
    assert not torch.allclose(answers[0], answers[1])
    np.testing.assert_allclose(band.center, torch.stack(answers).mean(0)[0], atol=1e-5)
    model.save(tmp_path / "model")
    same(UQNO.load(tmp_path / "model").predict(body), band)
    # In a batch with longer bodies it is padded: no point of the padding is near anything.
    alone, padded = (
        next(iter(model.scored(some, batch_size=5)))[0] for some in (bodies[:1], bodies[:5])
    )
    np.testing.assert_allclose(padded, alone, atol=1e-5)


def test_a_geometry_is_answered_at_its_queries():
    gino = GINO(1, latent=(8, 8, 8), modes=(4, 4, 4), width=8, layers=2, neighbours=(4, 4))
    model = UQNO(gino, Constant()).fit(ellipsoids(gino, 24), **QUICK)
    model.calibrate(ellipsoids(gino, 10, seed=1), 0.2, 0.2)
    body = ellipsoids(gino, 1, seed=2)[0]
    at = body["points"][:7]
    band = model.predict({"points": body["points"], "normals": body["normals"], "queries": at})
    np.testing.assert_array_equal(band.coordinates, at)
    assert band.center.shape == (1, 7)


# --- what would break the guarantee unnoticed -----------------------------------------------


class Broken:
    """Functions of which one cannot be read any more."""

    def __init__(self, functions, reads):
        self.functions, self.reads = functions, reads

    def __len__(self):
        return len(self.functions)

    def __getitem__(self, i):
        self.reads -= 1
        if self.reads < 0:
            raise OSError("the disk is gone")
        return self.functions[i]


def test_a_fit_that_fails_leaves_no_calibration_of_other_weights():
    model = UQNO(small()).fit(grid_functions(20), **QUICK)
    model.calibrate(grid_functions(30, seed=1), 0.2, 0.2)
    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(Broken(grid_functions(20, seed=2), 30), **QUICK)
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(grid_functions(1)[0]["a"])


def test_a_fit_goes_on_with_its_own_functions_only(tmp_path):
    first, other = grid_functions(20), grid_functions(20, seed=1)
    UQNO(small()).fit(first, folder=tmp_path, **QUICK)
    with pytest.raises(ValueError, match="trained on other functions"):
        UQNO(small()).fit(other, folder=tmp_path, resume=True, **QUICK)
    with pytest.raises(ValueError, match="trained on other functions"):
        UQNO(small()).fit(other, folder=tmp_path, **QUICK)
    again = UQNO(small()).fit(first, folder=tmp_path, resume=True, **QUICK)
    with pytest.raises(ValueError, match="20 of 20 calibration functions were used in training"):
        again.calibrate(first, 0.2, 0.2)


def test_a_truth_of_another_shape_is_refused():
    model = UQNO(small()).fit(grid_functions(20), **QUICK)
    held = grid_functions(30, seed=1)
    for change in (lambda u: torch.cat((u, u)), lambda u: u[:, :1], lambda u: u[:, :3]):
        with pytest.raises(ValueError, match=r"u has shape .*, the prediction \(1, "):
            model.calibrate([{**f, "u": change(f["u"])} for f in held], 0.2, 0.2)


def test_each_function_of_a_batch_has_its_own_weights():
    model = UQNO(small()).fit(grid_functions(20), **QUICK)
    held = grid_functions(30, seed=1)
    weights = torch.rand(30, *held[0]["u"].shape[1:], generator=torch.Generator().manual_seed(0))
    weighted = [{**f, "weights": w} for f, w in zip(held, weights, strict=True)]
    model.calibrate(weighted, 0.2, 0.2, weights=True)
    two = {name: torch.stack([f[name] for f in weighted[:2]]) for name in weighted[0]}
    both = model.predict(two).coverage(two["u"])
    for i in (0, 1):
        assert model.predict(weighted[i]).coverage(weighted[i]["u"]) == pytest.approx(both[i])
    with pytest.raises(ValueError, match="calibrated by weights and has none"):
        model.predict(held[0]["a"]).coverage(held[0]["u"])


def test_levels_of_any_kind_of_number(fitted):
    held = grid_functions(30, seed=1)
    plain = fitted.calibrate(held, 0.25, 0.25)
    for level in (np.float32(0.25), Fraction(1, 4), np.float64(0.25)):
        assert fitted.calibrate(held, level, level) == plain
    with pytest.raises(ValueError, match="the calibration set is empty"):
        fitted.calibrate([], 0.2, 0.2)
    with pytest.raises(ValueError, match="`train` is empty"):
        UQNO(small()).fit([])
    fitted.calibrate(held, 0.2, 0.2)


def test_wrong_inputs_are_named(fitted):
    a = grid_functions(1)[0]["a"]
    for given, at, words in [
        (a, (5, 5, 5), "no resolution of 2 dimensions"),
        (a, (0, 5), "no resolution of 2 dimensions"),
        (a, np.zeros((3, 3)), r"expected \(points, 2\)"),
        (a, np.zeros((0, 2)), r"expected \(points, 2\)"),
        (a + 1j, None, "real and imaginary part"),
        (np.full(a.shape, "a"), None, "expected real numbers"),
        (a[None][:0], None, "at least one function"),
        ({"points": torch.rand(5, 2)}, None, "the sample needs the field a, it has points"),
        ({}, None, "the sample needs the field a, it has none"),
    ]:
        with pytest.raises(ValueError, match=words):
            fitted.predict(given, at)
    assert fitted.predict(a, np.int64(17)).points == (17, 17)
    big_endian = a.numpy().astype(">f4")
    np.testing.assert_array_equal(fitted.predict(big_endian).center, fitted.predict(a).center)


# --- files ----------------------------------------------------------------------------------


def same(one, other):
    np.testing.assert_array_equal(one.center, other.center)
    np.testing.assert_array_equal(one.uncertainty, other.uncertainty)
    assert one.calibration == other.calibration


def with_new_sums(folder):
    """Checksums as somebody would write them who changes a file on purpose."""
    files = sorted(f for f in folder.iterdir() if f.name != "SHA256SUMS")
    lines = [f"{storage.sha256_of(f)}  {f.name}\n" for f in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def test_saving_loses_nothing(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "model")
    before = (tmp_path / "model/model.json").read_text()
    replace = os.replace

    def fails(source, target):
        if Path(target) == tmp_path / "model" and ".old" not in str(source):
            raise OSError("no space left")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "exchange", lambda one, other: False)
        patch.setattr(os, "replace", fails)
        with pytest.raises(OSError, match="no space left"):
            fitted.save(tmp_path / "model")
    assert (tmp_path / "model/model.json").read_text() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]
    (tmp_path / "model/notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"also holds notes\.txt, which saving would remove"):
        fitted.save(tmp_path / "model")
    assert (tmp_path / "model/notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "change",
    [{"base": None}, {"uncertainty": {}}, {"calibrations": None}, {"seen": 3}],
)
def test_an_edited_model_is_named(fitted, tmp_path, change):
    fitted.save(tmp_path / "model")
    file = tmp_path / "model/model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with_new_sums(tmp_path / "model")
    with pytest.raises(ValueError, match=r"model cannot be rebuilt .*model\.json is damaged"):
        UQNO.load(tmp_path / "model")


def test_save_load_and_predict_in_a_fresh_process(fitted, tmp_path):
    a = grid_functions(1, seed=5)[0]["a"]
    fitted.save(tmp_path / "model")
    fitted.save(tmp_path / "model")  # an older one is replaced
    names = ["README.txt", "seen.safetensors", "SHA256SUMS", "base.safetensors", "model.json"]
    names += ["uncertainty.safetensors", "memory.safetensors"]
    names += [f"calibration-{k + 1}.json" for k in range(len(fitted.calibrations))]
    assert {f.name for f in (tmp_path / "model").iterdir()} == set(names)
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]
    np.save(tmp_path / "a.npy", a.numpy())
    code = f"""
import numpy as np, uqno
band = uqno.UQNO.load({str(tmp_path / "model")!r}).predict(np.load({str(tmp_path / "a.npy")!r}))
np.savez({str(tmp_path / "band.npz")!r}, center=band.center, deviation=band.uncertainty)
print(band.calibration.to_json())
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found, expected = np.load(tmp_path / "band.npz"), fitted.predict(a)
    np.testing.assert_allclose(found["center"], expected.center, atol=1e-6)
    np.testing.assert_allclose(found["deviation"], expected.uncertainty, rtol=1e-5)
    assert json.loads(done.stdout)["scale"] == expected.calibration.scale
    same(UQNO.load(tmp_path / "model").predict(a), expected)


def test_a_loaded_model_still_knows_what_it_was_trained_on(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model")
    with pytest.raises(ValueError, match="5 of 5 calibration functions"):
        again.calibrate(grid_functions(5), 0.1, 0.1)


def test_a_module_of_the_users_own_is_passed_to_load(tmp_path):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = torch.nn.Parameter(torch.ones(()))

        def forward(self, a):
            return self.factor * a**2

    base = Scaled()
    with torch.no_grad():
        base.factor.fill_(1.25)
    model = UQNO(base).fit(grid_functions(20), **QUICK)
    model.calibrate(grid_functions(30, seed=1), 0.2, 0.2)
    model.save(tmp_path / "model")
    a = grid_functions(1, seed=6)[0]["a"]
    same(UQNO.load(tmp_path / "model", base=Scaled()).predict(a), model.predict(a))
    with pytest.raises(ValueError, match=r"the base .* is a Scaled.*base=Scaled"):
        UQNO.load(tmp_path / "model")


def test_features_must_be_passed_to_load(tmp_path):
    model = UQNO(small(), features=[lambda batch, center: center]).fit(grid_functions(20), **QUICK)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="saved with 1 features, got 0"):
        UQNO.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / "model.json").unlink(), "has no model.json"),
        (lambda f: (f / "model.json").write_text("{"), "is damaged: not JSON"),
        (lambda f: (f / "model.json").write_text("{}"), "not a model of uqno"),
        (lambda f: (f / "base.safetensors").unlink(), "base.safetensors is missing"),
        (lambda f: (f / "uncertainty.safetensors").write_bytes(b"x"), "checksum is wrong"),
        (
            lambda f: (f / "model.json").write_text(
                (f / "model.json").read_text().replace('"version": 2', '"version": 3', 1)
            ),
            "format version 3, this uqno reads 2",
        ),
        (lambda f: (f / "SHA256SUMS").write_text("x"), "SHA256SUMS is damaged"),
        (lambda f: (f / "base-2.safetensors").write_text("x"), "base-2.safetensors is foreign"),
        (
            lambda f: (f / "model.json").write_text(
                (f / "model.json").read_text().replace('"seen"', '"unseen"', 1)
            ),
            "lacks seen",
        ),
    ],
)
def test_a_damaged_model_is_refused_by_name(damage, said, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    damage(tmp_path / "model")
    if said.startswith(("is damaged: not JSON", "not a model", "format", "lacks")):
        with pytest.raises(DamagedError, match=r"model\.json is damaged.*its checksum is wrong"):
            UQNO.load(tmp_path / "model")
        with_new_sums(tmp_path / "model")
    with pytest.raises(ValueError, match=said):
        UQNO.load(tmp_path / "model")


def test_saving_over_something_else_is_refused(fitted, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="something else than a model"):
        fitted.save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_an_operator_keeps_its_fields_through_save_and_load(tmp_path):
    base = Operator(small(), fields={"a": "permeability"}, normalise=("permeability",))
    functions = [{"permeability": s["a"], **s} for s in grid_functions(20)]
    model = UQNO(base).fit(functions, **QUICK)
    model.save(tmp_path / "model")
    assert UQNO.load(tmp_path / "model").base.operator.fields == {"a": "permeability"}


# --- command line ---------------------------------------------------------------------------


def command(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", "from uqno.cli.app import main; main()", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd,
    )  # fmt: skip


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    fitted.save(folder / "model")
    a = np.stack([f["a"].numpy() for f in grid_functions(2, seed=7)])
    np.savez(folder / "inputs.npz", a=a)
    np.savez(folder / "one.npz", a=a[0])
    xarray.Dataset({"a": (("function", "channel", "x", "y"), a)}).to_netcdf(folder / "inputs.nc")
    (folder / "points.csv").write_text("x,y\n0.1,0.2\n0.5,0.5\n0.9,0.3\n")
    (folder / "bad.csv").write_text("x,y\n0.1,here\n")
    return folder


@pytest.mark.parametrize("name", ["inputs.npz", "inputs.nc"])
def test_predict_on_the_command_line(name, saved, fitted):
    done = command("predict", "model", name, "--alpha", 0.2, "--out", "band.nc", cwd=saved)
    assert done.returncode == 0, done.stderr
    expected = fitted.predict(np.load(saved / "inputs.npz")["a"], alpha=0.2)
    with xarray.open_dataset(saved / "band.nc") as found:
        np.testing.assert_allclose(found["center"], expected.center[:, 0], atol=1e-5)
        np.testing.assert_allclose(found["uncertainty"], expected.uncertainty, rtol=1e-4)
    assert expected.guarantee in " ".join(done.stdout.split())


def test_predict_at_points_and_resolutions_on_the_command_line(saved, fitted):
    done = command("predict", "model", "one.npz", "--at", "points.csv", "--out", "p.npz", "--json",
                   cwd=saved)  # fmt: skip
    assert done.returncode == 0, done.stderr
    points = [[0.1, 0.2], [0.5, 0.5], [0.9, 0.3]]
    expected = fitted.predict(np.load(saved / "one.npz")["a"], at=np.array(points))
    np.testing.assert_allclose(np.load(saved / "p.npz")["center"].ravel(), expected.center[0],
                               atol=1e-5)  # fmt: skip
    assert json.loads(done.stdout)["functions"] == 1
    finer = command("predict", "model", "one.npz", "--at", "33", "--out", "f.vtr", cwd=saved)
    assert finer.returncode == 0, finer.stderr
    assert (saved / "f.vtr").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("model", "one.npz", "--out", "band.txt"), "must end in one of .nc"),
        (("nothing", "one.npz"), "nothing is not a model"),
        (("model", "nothing.npz"), "nothing.npz does not exist"),
        (("model", "one.npz", "--at", "bad.csv"), "line 1 is '0.1,here'"),
        (("model", "one.npz", "--at", "none.csv"), "none.csv does not exist"),
        (("model", "one.npz", "--alpha", 0.5), "no calibration for alpha = 0.5"),
    ],
)
def test_errors_of_predict_are_one_line(arguments, said, saved):
    failed = command("predict", *arguments, cwd=saved)
    assert failed.returncode == 2
    assert said in failed.stderr
    assert failed.stderr.count("\n") == 1


def test_many_scores_of_a_calibration_are_saved_beside_it(tmp_path, monkeypatch):
    from uqno.conformal import record as module

    monkeypatch.setattr(module, "MOST_SCORES_IN_JSON", 10)
    model = UQNO(lambda a: a, Constant())
    samples = [{"a": torch.randn(1, 8), "u": torch.randn(1, 8)} for _ in range(40)]
    model.fit(samples[:5])
    cal = model.calibrate(samples[5:], alpha=0.2, delta=0.2)
    model.save(tmp_path / "model")
    (beside,) = (tmp_path / "model").glob("calibration-1.scores-*.npy")
    again = UQNO.load(tmp_path / "model", base=lambda a: a)
    np.testing.assert_array_equal(again.calibrations[0].scores, cal.scores)
    beside.unlink()
    with pytest.raises(ValueError, match=r"calibration-1\.scores-[0-9a-f]{12}\.npy is missing"):
        UQNO.load(tmp_path / "model", base=lambda a: a)
    model.save(tmp_path / "model")
    text = (tmp_path / "model" / "calibration-1.json").read_text()
    (tmp_path / "model" / "calibration-1.json").write_text(text.replace("0.2", "0.3", 1))
    with pytest.raises(ValueError, match="checksum is wrong"):
        UQNO.load(tmp_path / "model", base=lambda a: a)


def test_leaked_functions_leave_the_calibration_as_it_was():
    samples = [{"a": torch.randn(1, 8), "u": torch.randn(1, 8)} for _ in range(40)]
    model = UQNO(lambda a: a, Constant())
    model.fit(samples[:5])
    before = model.calibrate(samples[5:], alpha=0.2, delta=0.2)
    with pytest.raises(ValueError, match=r"2 of 30 calibration functions .*indices \[0, 1\]"):
        model.calibrate(samples[3:33], alpha=0.2, delta=0.2)
    assert model.calibrations == (before,)


def test_calibration_reads_each_function_once():
    class Counting(list):
        reads = 0

        def __getitem__(self, i):
            type(self).reads += 1
            return super().__getitem__(i)

    samples = [{"a": torch.randn(1, 8), "u": torch.randn(1, 8)} for _ in range(60)]
    model = UQNO(lambda a: a, Constant())
    model.fit(samples[:5])
    model.calibrate(Counting(samples[5:]), alpha=[0.1, 0.2], delta=0.2)
    assert Counting.reads == 55


def test_a_guarantee_of_another_kind():
    from tests.extending.own_expected_share import ExpectedShare
    from tests.extending.own_known_shift import KnownShift

    samples = [{"a": torch.randn(1, 8), "u": torch.randn(1, 8)} for _ in range(60)]
    model = UQNO(lambda a: a, Constant())
    model.fit(samples[:5])
    shift = KnownShift(alpha=0.2, delta=0.2, ratios=(1.0,) * 55)
    both = model.calibrate(samples[5:], guarantee=[ExpectedShare(alpha=0.2), shift])
    assert [c.rule.name for c in both] == ["expected share, a sketch", "known shift, a sketch"]
    one = model.calibrate(samples[5:], guarantee=ExpectedShare(alpha=0.2))
    assert one == both[0]
    assert model.predict(samples[0]["a"]).guarantee == one.guarantee
