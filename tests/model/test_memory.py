"""What a model keeps of its functions: novelty of inputs, law of residuals, in files too."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from tests.model.analytic import ExactUncertainty, double, noisy_functions
from uqno import UQNO, Monitor
from uqno.band.novelty import Novelty
from uqno.model.memory import Memory
from uqno.model.novelty import InputDistance, descriptor
from uqno.operators import Operator


def smooth_functions(seed, count, points=33, factor=1.0, waves=3):
    """u = 2a + noise, a of a few waves."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.linspace(0, 1, points)
    made = []
    for _ in range(count):
        c = torch.randn(waves, generator=generator)
        a = sum(c[k] * torch.sin((k + 1) * torch.pi * x) for k in range(waves))[None] * factor
        made.append({"a": a, "u": 2 * a + (1 + x) * torch.randn(1, points, generator=generator)})
    return made


def calibrated(functions=smooth_functions, train=80, held_out=150):
    model = UQNO(double(), ExactUncertainty(), trained=True).fit(functions(1, train))
    model.calibrate(functions(2, held_out), 0.1, 0.1)
    return model


@pytest.fixture(scope="module")
def model():
    return calibrated()


def test_inputs_of_the_same_kind_are_rarely_novel(model):
    new = torch.stack([f["a"] for f in smooth_functions(3, 400)])
    novelty = model.predict(new).novelty
    assert novelty.functions == 150
    assert novelty.p_value.shape == (400,)
    assert stats.binomtest(int((novelty.p_value <= 0.1).sum()), 400, 0.1 + 0.05,
                           alternative="greater").pvalue > 1e-4  # fmt: skip
    assert 0.3 < np.mean(novelty.p_value) < 0.7


@pytest.mark.parametrize(
    "change",
    [lambda a: 5 * a, lambda a: a + 20, lambda a: a + 3 * torch.randn(a.shape), lambda a: 0 * a],
)
def test_inputs_of_another_kind_are_novel(model, change):
    a = smooth_functions(4, 1)[0]["a"]
    band = model.predict(change(a))
    assert band.novelty.p_value == pytest.approx(1 / 151)
    assert "the input is unlike the 150 calibration inputs (p = 0.0066)" in repr(band)
    assert "unlike" not in repr(model.predict(a))


@pytest.mark.statistical
def test_p_values_are_at_most_uniform():
    """Training inputs fixed; calibration inputs and the new one exchangeable."""
    rng = np.random.default_rng(0)
    distance = InputDistance.of([{"a": x} for x in rng.standard_normal((40, 1, 8))])
    low = 0
    for _ in range(300):
        scores = [distance.score({"a": x}) for x in rng.standard_normal((20, 1, 8))]
        known = replace(distance, calibrated=np.sort(scores[:19]))
        low += known.novelty([{"a": rng.standard_normal((1, 8))}]).p_value[0] <= 0.1
    assert stats.binomtest(low, 300, 0.1, alternative="greater").pvalue > 1e-4


def test_a_batch_one_function_and_words(model):
    new = torch.stack([f["a"] for f in smooth_functions(5, 3)])
    new[1] *= 30
    band = model.predict(new)
    np.testing.assert_array_equal(band.novelty.far, [False, True, False])
    assert "1 of 3 inputs are unlike" in band.novelty.words
    assert band[1].novelty.far.all()
    assert band[1:].novelty.p_value.shape == (2,)
    assert band[0].novelty.words.startswith("inputs like the 150 calibration inputs")
    none_is_farther = Novelty(np.array([9.0]), np.array([1 / 21]), 20)
    assert none_is_farther.far.all()


def test_it_is_saved_with_the_model(tmp_path, model):
    model.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model", double(), ExactUncertainty())
    a = smooth_functions(6, 1)[0]["a"]
    one, other = model.predict(a), again.predict(a)
    assert one.novelty.p_value == other.novelty.p_value
    np.testing.assert_allclose(one.sample(3).values, other.sample(3).values)
    watching = Monitor(model, state=tmp_path / "state.json")
    watching.observe(one, smooth_functions(6, 1)[0]["u"], id=1)
    resumed = Monitor(again, state=tmp_path / "state.json")
    assert resumed.verdict().tests == watching.verdict().tests
    (tmp_path / "model" / "memory.safetensors").unlink()
    with pytest.raises(ValueError, match=r"memory\.safetensors is missing"):
        UQNO.load(tmp_path / "model", double(), ExactUncertainty())


def test_an_empty_memory_is_saved_too(tmp_path):
    Memory().write(tmp_path / "memory.safetensors")
    read = Memory.read(tmp_path / "memory.safetensors")
    assert read == Memory()
    functions = iter([])
    assert list(read.watch(functions)) == []


def test_a_model_without_memory_makes_bands(model):
    functions = smooth_functions(7, 1)
    older = calibrated()
    older.memory = Memory()
    band = older.predict(functions[0]["a"])
    assert (band.novelty, band.residuals) == (None, None)
    assert Monitor(older).verdict().tests.keys() == {"errors"}


def test_draws_are_in_the_coordinates_of_the_labels(model):
    band = model.predict(smooth_functions(8, 1)[0]["a"])
    draws = band.sample(5)
    assert all(band.contains(one).all() for one in draws.values)
    np.testing.assert_array_equal(band.residuals.unit, [1.0])
    fine = model.predict(noisy_functions(torch.Generator().manual_seed(0), 1, 50)[0]["a"])
    assert fine.sample(1).values.shape == (1, 1, 50)


def test_inputs_alone_give_an_alarm(model):
    monitor = Monitor(model)
    for i, f in enumerate(smooth_functions(9, 40, factor=3)):
        verdict = monitor.observe(model.predict(f["a"]), id=i)
    assert verdict.alarm
    assert verdict.tests["errors"].functions == 0
    assert verdict.tests["inputs"].threshold == 200  # η is shared with the errors
    later = monitor.observe(model.predict(f["a"]), f["u"], id=39)
    assert later.counted == 1
    assert later.tests["inputs"].functions == 40
    assert later.tests["errors"].functions == 1


# --- geometries ----------------------------------------------------------------------------------


def bodies(seed, count, points=60):
    """Point clouds on ellipsoids of random axes about (4, 1.5, 1.2), with u = x + noise."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(count):
        axes = torch.tensor([4.0, 1.5, 1.2]) * (1 + 0.1 * torch.randn(3, generator=generator))
        normals = torch.randn(points, 3, generator=generator)
        normals = normals / normals.norm(dim=1, keepdim=True)
        x = normals * axes
        u = x[:, :1].T + 0.1 * torch.randn(1, points, generator=generator)
        made.append({"points": x, "normals": normals, "u": u})
    return made


class OnPoints(torch.nn.Module):
    """Ĝ of a geometry: the first coordinate of its points."""

    def forward(self, points, normals):
        return points[..., :1].transpose(1, 2)


class UnitUncertainty(ExactUncertainty):
    name = "unit"

    def predict(self, base, batch):
        from uqno.uncertainty.contract import Prediction

        center, _ = base.view(batch)
        return Prediction(center, torch.ones_like(center[:, 0]))


def test_a_car_scaled_to_the_unit_box_is_novel():
    operator = Operator(OnPoints(), normalise=(), output=None)
    model = UQNO(operator, UnitUncertainty(), trained=True).fit(bodies(0, 80))
    model.calibrate(bodies(1, 120), 0.1, 0.1)
    body = {n: x for n, x in bodies(2, 1)[0].items() if n != "u"}
    band = model.predict(body)
    assert not band.novelty.far.any()
    assert band.contains(band.sample(1).values[0]).all()
    x = body["points"]
    span = x.max(0).values - x.min(0).values
    unit = {**body, "points": (x - x.min(0).values) / span}
    assert model.predict(unit).novelty.far.all()
    metres_to_feet = {**body, "points": 3.28 * x}
    assert model.predict(metres_to_feet).novelty.far.all()


def test_descriptors():
    assert descriptor({"points": np.ones((3, 3))}, ("points", "normals")) is None
    assert descriptor({}, ()) is None
    scalars = descriptor({"a": np.array([2.0, 3.0])}, ("a",))
    assert scalars[0] == 2.0
    distance = InputDistance.of([{"a": x} for x in np.random.default_rng(0).random((9, 2, 8, 8))])
    assert distance.score({"a": np.ones((1, 8, 8))}) == np.inf  # other channels
    assert distance.score({"points": np.ones((4, 2))}) == np.inf
    assert distance.score({"a": np.full((2, 8, 8), np.nan)}) == np.inf
    assert np.isfinite(distance.score({"a": np.ones((2, 31, 17))}))
    mixed = [{"a": np.ones((1, 4))}, {"a": np.ones((2, 4))}]
    assert InputDistance.of(mixed) is None
    assert InputDistance.of([{"other": np.ones(3)}]) is None
    assert distance.novelty([{"a": np.ones((2, 8, 8))}]) is None  # before calibration


def test_the_octaves_of_a_wave_lie_where_it_is():
    x = np.linspace(0, 1, 64, endpoint=False)
    one, six = (descriptor({"a": np.sin(2 * np.pi * k * x)[None]}, ("a",)) for k in (1, 6))
    assert int(np.argmax(one[-5:])) == 0
    assert int(np.argmax(six[-5:])) == 2
