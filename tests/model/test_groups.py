"""Groups, shifts and quantities of interest through UQNO: calibrate, predict, save, load."""

import json

import numpy as np
import pytest
import torch

import uqno
from tests.model.analytic import ExactUncertainty, double, noisy_functions
from tests.model.test_uqno import ellipsoids
from uqno import UQNO, Functional
from uqno.conformal import EstimatedShift, GroupedCalibration, estimate_shift
from uqno.conformal.checks import InfeasibleError
from uqno.geometry import pressure_force
from uqno.operators import GINO

POINTS = 20


def functions(seed, count, channels=1):
    return noisy_functions(torch.Generator().manual_seed(seed), count, POINTS, channels)


def model(functionals=None, train=60):
    made = UQNO(double(), ExactUncertainty(), trained=True)
    return made.fit(functions(1, train), functionals=functionals)


def sign(sample):
    assert "u" not in sample
    return "up" if sample["a"].mean() > 0 else "down"


def mean(field, sample):
    assert isinstance(field, np.ndarray)
    assert "u" not in sample
    return field.mean()


def ends(field, sample):
    return field[0, [0, -1]]


# --- groups ---------------------------------------------------------------------------------------


def test_a_callable_and_labels_give_each_group_its_scale():
    held = functions(2, 120)
    labels = [sign({"a": s["a"].numpy()}) for s in held]
    one, other = model(), model()
    by_callable = one.calibrate(held, 0.1, 0.1, groups=sign)
    by_labels = other.calibrate(held, 0.1, 0.1, groups=labels)
    assert isinstance(by_callable, GroupedCalibration)
    assert {g: c.scale for g, c in by_callable.items()} == {
        g: c.scale for g, c in by_labels.items()
    }
    for group in ("up", "down"):
        alone = model().calibrate(
            [s for s, label in zip(held, labels, strict=True) if label == group], 0.1, 0.1
        )
        assert by_labels[group].scale == alone.scale
    a = functions(3, 1)[0]["a"]
    group = sign({"a": a.numpy()})
    assert one.predict(a).calibration == by_callable[group]
    assert other.predict(a, group="up").calibration == by_labels["up"]
    largest = max(by_labels.values(), key=lambda c: c.scale)
    assert other.predict(a, group={"up", "down"}).calibration == largest
    assert other.calibration(group="down") == by_labels["down"]
    batch = torch.stack([a, a])
    assert other.predict(batch, group=["up", "up"]).calibration == by_labels["up"]
    with pytest.raises(ValueError, match="scales of 2 groups"):
        other.predict(batch, group=["up", "down"])
    with pytest.raises(ValueError, match="group None is not among the calibrated ones"):
        other.predict(a)
    with pytest.raises(ValueError, match="'van' is not among"):
        other.predict(a, group="van")
    with pytest.raises(ValueError, match="tell of 3 functions, and there are 2"):
        other.predict(batch, group=["up", "up", "up"])


def test_groups_are_saved_and_loaded(tmp_path):
    one = model()
    made = one.calibrate(functions(2, 120), [0.1, 0.2], 0.1, groups=sign)
    assert [c.alpha for c in one.calibrations] == [0.1, 0.1, 0.2, 0.2]
    one.save(tmp_path / "m")
    again = UQNO.load(tmp_path / "m", base=lambda a: 2 * a, uncertainty=ExactUncertainty())
    assert again.calibrations == one.calibrations
    assert again.calibration(alpha=0.2, group="up") == made[1]["up"]
    a = functions(3, 1)[0]["a"]
    with pytest.raises(ValueError, match="group None"):
        again.predict(a)
    np.testing.assert_array_equal(
        again.predict(a, group=sign({"a": a.numpy()})).radius, one.predict(a).radius
    )


def test_small_groups_are_named_with_what_they_need():
    with pytest.raises(InfeasibleError, match=r"'rare' has 4 functions and needs 9.*larger delta"):
        model().calibrate(functions(2, 60), 0.1, 0.1, groups=["rare"] * 4 + ["usual"] * 56)
    with pytest.raises(ValueError, match="tell of 61 functions, and there are 60"):
        model().calibrate(functions(2, 60), 0.1, 0.1, groups=["usual"] * 61)
    made = model()
    made.calibrate(functions(2, 60), 0.1, 0.1)
    with pytest.raises(ValueError, match="calibrated for all functions together"):
        made.predict(functions(3, 1)[0]["a"], group="van")


# --- shift ----------------------------------------------------------------------------------------


def test_a_shift_gives_each_function_its_scale(tmp_path):
    held = functions(2, 60)

    def ratio(sample):
        return float(np.exp(sample["a"].mean()))

    one = model()
    made = one.calibrate(held, 0.1, 0.1, shift=ratio)
    other = model()
    values = [ratio({"a": s["a"].numpy()}) for s in held]
    assert other.calibrate(held, 0.1, 0.1, shift=values) == made
    new = torch.stack([s["a"] for s in functions(4, 6)])
    band = one.predict(new)
    own = [made.scale_for({"likelihood_ratio": ratio({"a": a.numpy()})}) for a in new]
    np.testing.assert_array_equal(np.broadcast_to(band.applied_scale, 6), own)
    told = other.predict(new, likelihood_ratio=[ratio({"a": a.numpy()}) for a in new])
    np.testing.assert_array_equal(told.radius, band.radius)
    assert other.predict(new[0], likelihood_ratio=0.0).applied_scale == min(
        made.scale_for({"likelihood_ratio": 0.0}), made.scale
    )
    with pytest.raises(ValueError, match="no field likelihood_ratio"):
        other.predict(new)
    with pytest.raises(InfeasibleError, match=r"no finite scale carries .*functions \[0\] of 1"):
        other.predict(new[0], likelihood_ratio=1e9)
    with pytest.raises(ValueError, match="expected as many functions"):
        other.predict(new, likelihood_ratio=[1.0])
    one.save(tmp_path / "m")
    again = UQNO.load(tmp_path / "m", base=lambda a: 2 * a, uncertainty=ExactUncertainty())
    np.testing.assert_array_equal(
        again.predict(new[0], likelihood_ratio=2.0).radius,
        one.predict(new[0], likelihood_ratio=2.0).radius,
    )
    plain = model()
    plain.calibrate(held, 0.1, 0.1)
    with pytest.raises(ValueError, match="calibrated without a shift"):
        plain.predict(new, likelihood_ratio=1.0)
    with pytest.raises(ValueError, match=r"likelihood_ratio = nan must be one finite number"):
        model().calibrate(held, 0.1, 0.1, shift=lambda sample: np.nan)
    with pytest.raises(ValueError, match="groups= divide them"):
        model().calibrate(held, 0.1, 0.1, shift=ratio, groups=sign)


def test_an_estimated_shift_promises_nothing_at_finite_n():
    def feature(sample):
        return [sample["a"].mean()]

    old, new = ([feature(s) for s in functions(seed, 100)] for seed in (5, 6))
    shift = estimate_shift(np.array(old), np.array(new) + 0.1, features=feature)
    assert isinstance(shift, EstimatedShift)
    made = model().calibrate(functions(2, 60), 0.1, 0.1, shift=shift)
    assert made.rule.estimated
    assert "for a finite number of functions nothing is promised" in made.guarantee
    with pytest.raises(ValueError, match="are among those that the classifier has learned from"):
        model().calibrate(functions(5, 60), 0.1, 0.1, shift=shift)


# --- quantities -----------------------------------------------------------------------------------


def test_intervals_of_quantities(tmp_path):
    wanted = {"mean": mean, "ends": ends}
    one = model(wanted)
    held = functions(2, 150)
    made = one.calibrate(held, 0.1, 0.1)
    assert isinstance(made, uqno.Calibration)
    assert [c.rule.quantity for c in one.intervals] == ["mean", "ends"]
    new = functions(7, 400)
    band = one.predict(torch.stack([s["a"] for s in new]))
    drag = band.functionals["mean"]
    assert drag.center.shape == (400,)
    assert band.functionals["ends"].center.shape == (400, 2)
    np.testing.assert_allclose(drag.center, [2 * s["a"].mean() for s in new], rtol=1e-5, atol=1e-6)
    inside = drag.contains([float(s["u"].mean()) for s in new])
    assert 0.8 < inside.mean() < 0.98
    assert "contains the true mean" in drag.guarantee
    single = one.predict(new[3]["a"]).functionals["ends"]
    np.testing.assert_allclose(single.upper, band[3].functionals["ends"].upper, rtol=1e-5)
    assert single.contains(ends(new[3]["u"].numpy(), {})).shape == (2,)
    assert one.predict(new[3]["a"], at=None).functionals.keys() == wanted.keys()
    one.save(tmp_path / "m")
    options = {"base": lambda a: 2 * a, "uncertainty": ExactUncertainty()}
    without = UQNO.load(tmp_path / "m", **options)
    assert without.intervals == one.intervals
    assert without.predict(new[3]["a"]).functionals == {}
    again = UQNO.load(tmp_path / "m", **options, functionals=wanted)
    np.testing.assert_array_equal(
        again.predict(new[3]["a"]).functionals["ends"].lower, single.lower
    )
    with pytest.raises(ValueError, match=r"functional 'mean' gives .* and gave .* at calibration"):
        UQNO.load(tmp_path / "m", **options, functionals={"mean": lambda f, s: f.max()})
    with pytest.raises(ValueError, match="lift were not calibrated, there are ends, mean"):
        UQNO.load(tmp_path / "m", **options, functionals={"lift": mean})
    content = json.loads((tmp_path / "m" / "model.json").read_text())
    assert set(content["quantities"]["learned"]) == set(wanted)


def test_a_truth_of_its_own_may_be_off_by_a_constant():
    """A solver's own drag is not the sum over the pressures: the difference is in the interval."""

    def with_drag(samples):
        return [{**s, "drag": s["u"].mean() + 5.0} for s in samples]

    def blind(field, sample):
        assert "drag" not in sample
        return field.mean()

    one = UQNO(double(), ExactUncertainty(), trained=True)
    one.fit(with_drag(functions(1, 60)), functionals={"drag": Functional(blind, truth="drag")})
    one.calibrate(with_drag(functions(2, 100)), 0.1, 0.1)
    new = with_drag(functions(8, 200))
    intervals = [one.predict(s["a"]).functionals["drag"] for s in new]
    inside = [i.contains(float(s["drag"])) for i, s in zip(intervals, new, strict=True)]
    assert 0.8 < np.mean(inside) < 0.99
    assert np.mean([i.upper - i.lower for i in intervals]) < 2.5  # without the offset, above 10
    with pytest.raises(ValueError, match=r"is the field 'drag', and a sample has only a, u"):
        one.calibrate(functions(2, 100), 0.1, 0.1)


def test_a_quantity_that_fit_did_not_see_has_one_width():
    one = model()
    one.calibrate(functions(2, 100), 0.1, 0.1, functionals={"mean": mean})
    (cal,) = one.intervals
    widths = [i.upper - i.lower for i in (one.predict(s["a"]).functionals["mean"]
                                          for s in functions(3, 4))]  # fmt: skip
    np.testing.assert_allclose(widths, 2 * cal.scale)
    one.calibrate(functions(2, 100), 0.1, 0.1, functionals={})
    assert one.intervals == ()


def test_the_band_and_quantities_at_once():
    wanted = {"mean": mean, "ends": ends}
    one = model(wanted)
    held = functions(2, 200)
    apart = one.calibrate(held, 0.2, 0.1)
    alone = {c.rule.quantity: c.scale for c in one.intervals}
    together = one.calibrate(held, 0.2, 0.1, joint=True)
    assert together.jointly == ("the band", "mean", "ends")
    assert together.scale >= apart.scale
    assert all(c.scale >= alone[c.rule.quantity] for c in one.intervals)
    assert "the band, mean and ends all at once" in together.guarantee
    new = functions(9, 400)
    band = one.predict(torch.stack([s["a"] for s in new]))
    u = np.stack([s["u"].numpy() for s in new])
    hold = (band.coverage(u) >= 0.8) & band.functionals["mean"].contains(u[:, 0].mean(axis=1))
    hold &= band.functionals["ends"].contains(u[:, 0][:, [0, -1]]).all(axis=1)
    assert 0.84 < hold.mean() < 0.98
    with pytest.raises(ValueError, match="for one alpha and delta"):
        one.calibrate(held, [0.1, 0.2], 0.1, joint=True)


def test_groups_have_intervals_of_their_own():
    one = model({"mean": mean})
    made = one.calibrate(functions(2, 150), 0.1, 0.1, groups=sign, joint=True)
    assert [c.group for c in one.intervals] == ["down", "up"]
    a = functions(3, 1)[0]["a"]
    interval = one.predict(a).functionals["mean"]
    assert interval.calibration.group == sign({"a": a.numpy()})
    assert made["up"].jointly == ("the band", "mean")
    one.calibrate(functions(2, 150), 0.1, 0.1, shift=lambda s: 1.0)
    plain = model({"mean": mean})
    plain.calibrate(functions(2, 150), 0.1, 0.1)
    one_is, other_is = (m.predict(a).functionals["mean"].upper for m in (one, plain))
    assert one_is == other_is
    with pytest.raises(InfeasibleError, match="no finite"):
        one.predict(a, likelihood_ratio=1e9)


@pytest.mark.parametrize(
    ("functional", "message"),
    [
        (lambda f, s: np.nan, r"gives \[nan\], expected finite numbers"),
        (lambda f, s: f, r"gives an array of shape \(1, 20\)"),
        (lambda f, s: "high", "gives no numbers"),
        (lambda f, s: np.empty(0), r"shape \(0,\)"),
        (7, "is a int, expected a callable"),
    ],
)
def test_functionals_that_give_no_number(functional, message):
    with pytest.raises(ValueError, match=message):
        model().calibrate(functions(2, 60), 0.1, 0.1, functionals={"drag": functional})
    with pytest.raises(ValueError, match=message):
        model({"drag": functional})


def test_functionals_that_change_their_shape():
    def jumpy(field, sample):
        return np.ones(1 + (field.mean() > 0))

    with pytest.raises(ValueError, match="numbers"):
        model({"drag": jumpy}).calibrate(functions(2, 60), 0.1, 0.1)
    with pytest.raises(ValueError, match="must have a text as its name"):
        model({"the band": mean})
    seen = model({"drag": mean})
    with pytest.raises(ValueError, match="gives 2 numbers, and gave 1 in fit"):
        seen.calibrate(functions(2, 60), 0.1, 0.1, functionals={"drag": ends})
    with pytest.raises(ValueError, match="need a delta"):
        seen.calibrate(functions(2, 60), guarantee=uqno.guarantees.Nothing())


def test_drag_and_groups_of_geometries(tmp_path):
    """What a callable sees of a geometry in prediction is what it saw in calibration."""
    torch.manual_seed(0)
    gino = GINO(1, latent=(8, 8, 8), modes=(4, 4, 4), width=8, layers=2, neighbours=(4, 4))

    def bodies(count, seed):
        made = ellipsoids(gino, count, seed=seed)
        return [{**body, "cd": force(body["u"].numpy(), body) + 1.0} for body in made]

    def force(field, sample):
        x = pressure_force(field[0], sample["normals"], np.ones(field.shape[1]))[0] / len(field[0])
        return torch.tensor(x)

    def drag(field, sample):
        assert not {"u", "cd"} & set(sample)
        return float(force(field, sample))

    def size(sample):
        return "long" if np.abs(sample["points"][:, 0]).max() > 0.6 else "short"

    wanted = {"drag": Functional(drag, truth="cd")}
    options = {"epochs": 2, "progress": False, "batch_size": 8}
    one = UQNO(gino).fit(bodies(24, 0), functionals=wanted, **options)
    one.calibrate(bodies(60, 1), 0.2, 0.2, weights=True, groups=size)
    body = bodies(1, 2)[0]
    band = one.predict({n: x for n, x in body.items() if n not in ("u", "cd")})
    assert band.calibration.group == size({"points": body["points"].numpy()})
    interval = band.functionals["drag"]
    predicted = force(band.center, {"normals": body["normals"].numpy()})
    assert 0.5 < interval.center - float(predicted) < 1.5  # the offset of the solver's own
    one.save(tmp_path / "m")
    again = UQNO.load(tmp_path / "m", functionals=wanted)
    group = size({"points": body["points"].numpy()})
    told = again.predict({n: body[n] for n in body if n not in ("u", "cd")}, group=group)
    np.testing.assert_allclose(told.functionals["drag"].lower, interval.lower, rtol=1e-5)
