"""UQNO on data as people have it: every form works or says the remedy."""

import numpy as np
import pytest
import torch
import xarray
from torch.utils.data import DataLoader, TensorDataset

from uqno import UQNO
from uqno.operators import FNO
from uqno.uncertainty import Constant

QUICK = {"epochs": 1, "progress": False, "batch_size": 2}


def functions(count, seed=0):
    """a and u = a² with noise, float64, (count, 9, 13)."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(count, 9, 13))
    return a, a**2 + 0.1 * rng.normal(size=a.shape)


def fno(**more):
    torch.manual_seed(0)
    return FNO(1, 1, modes=(4, 4), width=4, layers=1, **more)


def forms(count, seed):
    a, u = functions(count, seed)
    a1, u1 = a[:, None], u[:, None]
    both = TensorDataset(torch.tensor(a1), torch.tensor(u1))
    dims = ("sample", "y", "x")
    return {
        "NumPy": (a1, u1),
        "torch": (torch.tensor(a1), torch.tensor(u1)),
        "no channels": (a, u),
        "TensorDataset": both,
        "loader": DataLoader(both, batch_size=5),
        "dicts of NumPy": [{"a": x, "u": y} for x, y in zip(a1, u1, strict=True)],
        "tuples": list(zip(a1, u1, strict=True)),
        "xarray": xarray.Dataset({"a": (dims, a), "u": (dims, u)}),
    }


FORMS = list(forms(1, 0))


def result(train, held_out, new):
    model = UQNO(fno(), Constant()).fit(train, **QUICK)
    model.calibrate(held_out, 0.2, 0.2)
    return model.predict(new)


@pytest.fixture(scope="module")
def reference():
    parts = [forms(n, seed)["torch"] for n, seed in ((16, 0), (20, 1), (3, 2))]
    lists = [[{"a": x.float(), "u": y.float()} for x, y in zip(*p, strict=True)] for p in parts]
    return result(lists[0], lists[1], parts[2][0].float())


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_band(name, reference):
    band = result(forms(16, 0)[name], forms(20, 1)[name], forms(3, 2)[name])
    np.testing.assert_allclose(band.center, reference.center, atol=1e-6)
    np.testing.assert_allclose(band.uncertainty, reference.uncertainty, rtol=1e-6)
    assert band.calibration.scale == pytest.approx(reference.calibration.scale, rel=1e-6)


def test_names_of_variables():
    a, u = functions(20)
    dims = ("sample", "y", "x")
    data = xarray.Dataset({"k": (dims, a), "p": (dims, u, {"units": "Pa"})})
    model = UQNO(fno(), Constant()).fit(
        data[{"sample": slice(8)}], inputs="k", outputs="p", **QUICK
    )
    model.calibrate(data[{"sample": slice(8, 20)}], 0.3, 0.3, inputs="k", outputs="p")
    band = model.predict(data, inputs="k", outputs="p")
    assert (band.name, band.units, len(band)) == ("p", "Pa", 20)
    with pytest.raises(ValueError, match=r"no variable 'q': it has k \(sample: 20, y: 9, x: 13\)"):
        model.fit(data, inputs="q", outputs="p")
    with pytest.raises(ValueError, match=r"which variables of the Dataset are the inputs\? It has"):
        model.calibrate(data, 0.3, 0.3)


def test_a_loader_is_read_once_for_calibration_and_its_leaks_are_refused():
    a, u = functions(40)
    model = UQNO(lambda a: a**2, Constant()).fit((a[:8, None], u[:8, None]))
    seen = []

    class Counting(TensorDataset):
        def __getitem__(self, i):
            seen.append(i)
            return super().__getitem__(i)

    held_out = Counting(torch.tensor(a[8:, None]), torch.tensor(u[8:, None]))
    cal = model.calibrate(DataLoader(held_out, batch_size=4), [0.1, 0.2], 0.2)
    assert sorted(seen) == list(range(32))
    assert cal[0].functions == 32
    leaking = TensorDataset(torch.tensor(a[7:, None]), torch.tensor(u[7:, None]))
    with pytest.raises(ValueError, match=r"1 of 33 calibration functions .*indices \[0\]"):
        model.calibrate(DataLoader(leaking, batch_size=4), 0.2, 0.2)
    with pytest.raises(ValueError, match="calibration set"):
        model.calibrate(DataLoader(leaking, sampler=[]), 0.2, 0.2)


def test_float64_functions_with_a_float32_module():
    """A module of one's own, which would refuse another precision than its weights'."""
    a, u = functions(30)
    module = torch.nn.Conv2d(1, 1, 3, padding=1)
    model = UQNO(module, Constant()).fit((a[:10, None], u[:10, None]))
    model.calibrate((a[10:, None], u[10:, None]), 0.2, 0.2)
    assert model.predict(a[0, None]).center.dtype == np.float32
    assert model.predict({"a": a[0, None]}).center.dtype == np.float32
    double = UQNO(torch.nn.Conv2d(1, 1, 3, padding=1).double(), Constant())
    double.fit((a[:10, None], u[:10, None]))
    double.calibrate((a[10:, None], u[10:, None]), 0.2, 0.2)
    assert double.predict(a[0, None]).center.dtype == np.float64


def test_a_field_without_channels_is_one_function_or_several():
    a, u = functions(30)
    model = UQNO(fno(), Constant()).fit((a[:10], u[:10]), **QUICK)
    model.calibrate((a[10:], u[10:]), 0.2, 0.2)
    one, several = model.predict(a[0]), model.predict(a[:3])
    assert (one.center.shape, several.center.shape) == ((1, 9, 13), (3, 1, 9, 13))
    np.testing.assert_allclose(several.center[0], one.center, atol=1e-6)
    np.testing.assert_allclose(model.predict({"a": a[0]}).center, one.center)


def test_modes_of_the_default_uncertainty_follow_small_grids(tmp_path):
    """12 modes would need 13 points; a base of one's own on 9 × 7 points gets as many as fit."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(40, 1, 9, 7))
    u = a**2 + 0.1 * rng.normal(size=a.shape)
    model = UQNO(lambda a: a**2).fit((a[:10], u[:10]), **QUICK)
    model.calibrate((a[10:], u[10:]), 0.2, 0.2)
    band = model.predict(a[0])
    assert band.points == (9, 7)
    model.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model", base=lambda a: a**2)
    np.testing.assert_array_equal(again.predict(a[0]).uncertainty, band.uncertainty)


def test_modes_that_a_grid_cannot_carry_are_refused_with_the_remedy():
    a, u = functions(10)
    with pytest.raises(ValueError, match=r"9 points in dimension 0, but modes=20 .* modes ≤ 8"):
        UQNO(FNO(1, 1, width=4, layers=1)).fit((a, u), **QUICK)


def test_mixed_resolutions_train_one_by_one_and_the_error_says_so():
    rng = np.random.default_rng(0)
    sizes = [(9, 13), (11, 11)] * 10
    pairs = [(x, x**2) for x in (rng.normal(size=(1, *size)) for size in sizes)]
    with pytest.raises(ValueError, match=r"mixed resolutions in one batch.*batch_size=1"):
        UQNO(fno(), Constant()).fit(pairs[:8], **QUICK)
    model = UQNO(fno()).fit(pairs[:8], **{**QUICK, "batch_size": 1})
    model.calibrate(pairs[8:], 0.3, 0.3)
    assert model.predict(pairs[1][0]).points == (11, 11)


def test_swapped_axes_are_refused_before_training():
    a, u = functions(10)
    with pytest.raises(ValueError, match=r"u of sample 0 has shape \(13, 9\).*swapped"):
        UQNO(fno()).fit((a, u.swapaxes(1, 2)), **QUICK)


def test_channels_last_are_refused_before_training_and_work_when_stated():
    from uqno.data import as_samples

    a, u = functions(20)
    last = np.stack([a, a], axis=-1), u[..., None]
    base = FNO(2, 1, modes=(4, 4), width=4, layers=1)
    with pytest.raises(ValueError, match=r"as_samples\(data, channels=\"last\"\)"):
        UQNO(base, Constant()).fit(last, **QUICK)
    UQNO(base, Constant()).fit(as_samples(last, channels="last"), **QUICK)


def test_predict_refuses_nothing_and_geometries_in_a_list():
    a, u = functions(20)
    model = UQNO(lambda a: a, Constant()).fit((a[:5, None], u[:5, None]))
    model.calibrate((a[5:, None], u[5:, None]), 0.3, 0.3)
    with pytest.raises(ValueError, match=r"0 functions to predict"):
        model.predict(DataLoader(TensorDataset(torch.rand(2, 1, 9, 13)), sampler=[]))
    assert len(model.predict([{"a": x} for x in a[:3, None]])) == 3
