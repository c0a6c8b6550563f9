"""λ̂ belongs to one model: changed weights, other calibrations and other bases are refused."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.uncertainty import problems
from uqno import UQNO
from uqno.model import tie
from uqno.operators import FNO, Operator
from uqno.uncertainty import Constant, Disagreement, MeanField

OTHERS = "are others than when it was calibrated"
A = problems.functions(1, seed=6)[0]["a"]


def calibrated(seed=0, **more):
    torch.manual_seed(seed)
    model = UQNO(FNO(1, 1, modes=(4, 4), width=6, layers=2), **more)
    model.fit(problems.functions(8), seed=seed, **problems.QUICK)
    model.calibrate(problems.functions(20, seed=5), 0.2, 0.2)
    return model


@pytest.fixture(scope="module")
def whole():
    return calibrated()


@pytest.fixture
def model(whole):
    return copy.deepcopy(whole)


def in_place(tensor):
    with torch.no_grad():
        tensor.mul_(1.001)


def by_data(tensor):
    tensor.data.mul_(1.001)  # torch counts no version of it


def new_data(tensor):
    tensor.data = tensor.data * 1.001


@pytest.mark.parametrize("change", [in_place, by_data, new_data])
@pytest.mark.parametrize("part", ["base", "uncertainty"])
def test_changed_weights_are_refused(model, change, part, tmp_path):
    model.predict(A)
    module = model.base.operator if part == "base" else model.uncertainty
    change(max(module.parameters(), key=torch.numel))
    with pytest.raises(ValueError, match=OTHERS):
        model.predict(A)
    with pytest.raises(ValueError, match=OTHERS):
        model.save(tmp_path / "model")
    model.calibrate(problems.functions(20, seed=5), 0.2, 0.2)
    model.predict(A)


def test_one_changed_value_is_refused_by_load_and_calibration(model):
    digest = tie.digest(model.base, model.uncertainty)
    assert digest == model.calibrations[0].model
    parameter = max(model.base.operator.parameters(), key=torch.numel)
    parameter.data.view(-1)[3] += 1
    assert tie.digest(model.base, model.uncertainty) != digest


def test_another_models_calibration_is_refused(model):
    other = calibrated(seed=1)
    assert other.calibrations[0].model != model.calibrations[0].model
    model.calibrations = other.calibrations
    with pytest.raises(ValueError, match=OTHERS):
        model.predict(A)
    model.calibrations = (
        replace(other.calibrations[0], model=""),
    )  # of arrays: nothing to compare
    model.predict(A)


def test_a_changed_configuration_is_refused(model):
    model.predict(A)
    model.uncertainty.power = 0.5
    with pytest.raises(ValueError, match=OTHERS):
        model.predict(A)
    model.uncertainty.power = 0.8
    model.predict(A)
    model.base = replace(model.base, operator=calibrated(seed=1).base.operator)
    with pytest.raises(ValueError, match=OTHERS):
        model.predict(A)


def test_of_an_unchanged_model_nothing_is_hashed_again(model, monkeypatch):
    model.predict(A)
    monkeypatch.setattr(tie, "digest", lambda *_: pytest.fail("hashed again"))
    for _ in range(3):
        model.predict(A)


def test_a_saved_model_is_tied_too(model, tmp_path):
    model.save(tmp_path / "model")
    assert not (tmp_path / "model" / "probe.safetensors").exists()
    again = UQNO.load(tmp_path / "model")
    assert again.calibrations[0].model == model.calibrations[0].model
    in_place(next(again.base.operator.parameters()))
    with pytest.raises(ValueError, match=OTHERS):
        again.predict(A)


# --- devices, precision, compilation ---------------------------------------------------------


def test_another_device_keeps_the_tie(model):
    before = model.predict(A)
    model.base.operator.to("cpu")
    for parameter in model.base.operator.parameters():
        parameter.data = parameter.data.clone()  # as on another device: the values elsewhere
    np.testing.assert_array_equal(model.predict(A).center, before.center)


@pytest.mark.parametrize("kind", ["half", "bfloat16", "double"])
def test_another_precision_needs_another_calibration(model, kind):
    getattr(model.base.operator, kind)()
    with pytest.raises(ValueError, match=f"their type or the configuration .* {OTHERS}"):
        model.predict(A)
    model.base.operator.float()
    if kind == "double":  # nothing was rounded: the same weights again
        model.predict(A)
    else:
        with pytest.raises(ValueError, match=OTHERS):
            model.predict(A)


@pytest.mark.parametrize("kind", ["half", "bfloat16", "double"])
def test_another_precision_of_the_uncertainty_needs_another_calibration(model, kind):
    getattr(model.uncertainty, kind)()
    with pytest.raises(ValueError, match=f"their type or the configuration .* {OTHERS}"):
        model.predict(A)


@pytest.mark.filterwarnings("ignore")  # of torch.compile
def test_a_module_that_is_compiled_in_place_keeps_the_tie(model):
    before = model.predict(A)
    model.base.operator.module.compile(backend="eager")
    after = model.predict(A)
    np.testing.assert_allclose(after.center, before.center, atol=1e-6)
    assert tie.digest(model.base, model.uncertainty) == model.calibrations[0].model


@pytest.mark.filterwarnings("ignore")  # of torch.compile
def test_a_compiled_module_keeps_the_tie(model):
    before = model.predict(A)
    model.base.operator.module = torch.compile(model.base.operator.module, backend="eager")
    after = model.predict(A)
    np.testing.assert_allclose(after.center, before.center, atol=1e-6)
    in_place(next(model.base.operator.parameters()))
    with pytest.raises(ValueError, match=OTHERS):
        model.predict(A)


# --- what has no weights ---------------------------------------------------------------------


def squared(a):
    return a**2


def of_callable(base=squared, **more):
    model = UQNO(base, Constant(), **more).fit(problems.functions(8))
    model.calibrate(problems.functions(20, seed=5), 0.2, 0.2)
    return model


def test_a_callable_is_known_by_its_answers(tmp_path):
    model = of_callable()
    model.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model", base=lambda a: a * a)
    np.testing.assert_array_equal(again.predict(A).center, model.predict(A).center)
    UQNO.load(tmp_path / "model", base=lambda a: a**2 * (1 + 0.9e-4))  # rounding elsewhere
    for other in (lambda a: a**2 * (1 + 1.1e-4), lambda a: -a, lambda a: a[..., :5]):
        with pytest.raises(ValueError, match="prediction of stored function 0 differs"):
            UQNO.load(tmp_path / "model", base=other)
    model.base = replace(model.base, operator=Operator(lambda a: a, normalise=(), output=None))
    with pytest.raises(ValueError, match="prediction of stored function 0 differs"):
        model.predict(A)


def test_a_module_of_the_users_own_with_other_code_is_noticed(tmp_path):
    class Scaled(torch.nn.Module):
        def __init__(self, power=2):
            super().__init__()
            self.factor, self.power = torch.nn.Parameter(torch.tensor(1.25)), power

        def forward(self, a):
            return self.factor * a**self.power

    of_callable(Scaled()).save(tmp_path / "model")
    UQNO.load(tmp_path / "model", base=Scaled())
    with pytest.raises(ValueError, match="prediction of stored function 0 differs"):
        UQNO.load(tmp_path / "model", base=Scaled(power=3))


def test_other_features_are_noticed(tmp_path):
    def feature(factor):
        return lambda batch, center: factor * center.abs()

    model = UQNO(problems.fno(dropout=0.0), features=[feature(1.0)])
    model.fit(problems.functions(8), **problems.QUICK)
    model.calibrate(problems.functions(20, seed=5), 0.2, 0.2)
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "probe.safetensors").exists()
    band = UQNO.load(tmp_path / "model", features=[feature(1.0)]).predict(A)
    np.testing.assert_array_equal(band.uncertainty, model.predict(A).uncertainty)
    with pytest.raises(ValueError, match="uncertainty of stored function 0 differs"):
        UQNO.load(tmp_path / "model", features=[feature(30.0)])


def test_weights_of_a_feature_are_part_of_the_model():
    other = Operator(problems.fno(dropout=0.0), normalise=(), output=None)
    model = UQNO(squared, MeanField(), features=[Disagreement(other)])
    model.fit(problems.functions(8))
    model.calibrate(problems.functions(20, seed=5), 0.2, 0.2)
    model.predict(A)
    in_place(next(other.parameters()))
    with pytest.raises(ValueError, match=OTHERS):
        model.predict(A)


def test_a_base_that_answers_differently_when_asked_twice_is_refused():
    held = problems.functions(20, seed=5)
    forgotten = problems.fno(dropout=0.3).train()
    for base in (lambda a: F.dropout(a**2, 0.1), lambda a: forgotten(a)):  # not seen as a module
        model = UQNO(base, Constant()).fit(problems.functions(8))
        with pytest.raises(ValueError, match=r"prediction .* asked twice.*such as dropout"):
            model.calibrate(held, 0.2, 0.2)
        assert model.calibrations == ()
