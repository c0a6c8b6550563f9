"""`--guarantee`: every guarantee of the registry, its levels, one line of what does not fit."""

import json

import pytest

import uqno
from tests.cli.test_app import run
from uqno import guarantees
from uqno.cli.guarantee import guarantee
from uqno.data.example import example, write_example


def test_help_and_list_name_them():
    told = run("calibrate", "--help", columns=100)
    assert "--guarantee" in told.stdout
    assert all(name in told.stdout for name in ("expected", "everywhere", "curve", "chosen"))
    listed = run("plan", "--guarantee", "list", columns=120)
    assert listed.returncode == 0
    kinds = guarantees.GUARANTEES.items()  # other tests define some more in this process
    own = sorted(name for name, kind in kinds if kind.__module__.startswith("uqno."))
    assert [line.split()[0] for line in listed.stdout.splitlines()] == own


def test_calibrate_and_plan_with_another_guarantee(tmp_path):
    write_example(tmp_path / "set.npz", functions=200, points=60)
    done = run("calibrate", "set.npz", "--guarantee", "expected", "--alpha", 0.2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = uqno.Calibration.from_json((tmp_path / "calibration.json").read_text())
    arrays = example(200, 60)
    error = arrays["truth"].astype(float) - arrays["prediction"]
    rule = guarantees.Expected(0.2)
    assert found == uqno.calibrate(error, arrays["uncertainty"], guarantee=rule)
    assert found.guarantee in " ".join(done.stdout.split())
    planned = run("plan", "--guarantee", "chosen", "--set", "alphas=[0.05,0.1]", "--json")
    content = json.loads(planned.stdout)
    assert content["ranks"]["function"] == 499
    assert content["alphas"] == [0.05, 0.1]


def test_what_is_usual_is_filled_in_where_it_is_asked_for():
    assert guarantee("fraction", None) == guarantees.Fraction(0.1, 0.02)
    assert guarantee("everywhere", None, delta=0.1) == guarantees.Everywhere(0.1)
    assert guarantee("expected", None, sampling="iid") == guarantees.Expected(0.1, "iid")
    assert guarantee("chosen", ["shape=half-normal"]).shape == guarantees.Shape.half_normal()
    assert guarantee("nothing", None) == guarantees.Nothing()


@pytest.mark.parametrize(
    ("name", "settings", "levels", "why"),
    [
        ("nope", None, {}, "guarantee 'nope' is not known, there are chosen, continuum, curve"),
        ("expected", None, {"delta": 0.1}, "'expected' has no delta: it has alpha, sampling"),
        ("nothing", None, {"alpha": 0.1}, "it has no settings"),
        ("curve", ["shape"], {}, "--set shape: expected NAME=VALUE"),
    ],
)
def test_what_does_not_fit(name, settings, levels, why):
    with pytest.raises(ValueError, match=why):
        guarantee(name, settings, **levels)
