"""The monitor: what it counts, what it refuses, what it keeps when it is killed."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import uqno
from uqno import Band, Monitor
from uqno.conformal import guarantees
from uqno.monitor.martingale import Wealth, factors_of, p_value, smoothing
from uqno.monitor.page import html, write_page
from uqno.storage import DamagedError

POINTS = 30
X = (np.linspace(0, 1, POINTS),)


def errors(seed, number, rough=0.7, points=POINTS):
    rng = np.random.default_rng(seed)
    return np.exp(rough * rng.standard_normal((number, 1))) * rng.standard_normal((number, points))


def calibrated(number=200, **more):
    error = errors(0, number)
    return uqno.calibrate(error, np.ones_like(error), 0.1, 0.1, **more)


CAL = calibrated()


def band_of(cal=CAL, number=None, points=POINTS, **more):
    shape = () if number is None else (number,)
    x = (np.linspace(0, 1, points),)
    return Band(np.zeros((*shape, 1, points)), np.ones((*shape, points)), cal, x, **more)


def test_what_it_says_is_what_the_wealth_of_p_values_is():
    """By hand: scores of the new functions, their ranks among all, the bets."""
    new = errors(1, 40, rough=1.2)
    monitor, wealth = Monitor(CAL), Wealth(factors_of(0.5).size)
    seen = list(CAL.scores)
    for t, truth in enumerate(new):
        verdict = monitor.observe(band_of(), truth, id=t)
        score = np.sort(np.abs(truth))[26]
        larger, equal = np.sum(np.array(seen) > score), 1 + np.sum(np.array(seen) == score)
        seen.append(score)
        wealth.bet(factors_of(p_value(larger, equal, len(seen), smoothing(0, 0, t))))
    test = verdict.tests["errors"]
    assert np.log(test.wealth) == pytest.approx(float(wealth.log))
    assert (test.functions, test.threshold, len(test.history)) == (40, 100, 40)
    assert list(verdict.tests) == ["errors"]  # no confidence, no inputs


def test_a_shift_gives_an_alarm_that_stays():
    monitor = Monitor(CAL)
    for t, truth in enumerate(errors(2, 60)):
        verdict = monitor.observe(band_of(), 3 * truth, id=t)
    since = verdict.tests["errors"].since
    assert verdict.alarm
    assert monitor.alarm
    assert since < 40
    assert f"since function {since} of 60" in str(verdict)
    for t, truth in enumerate(errors(3, 200)):
        verdict = monitor.observe(band_of(), truth, id=f"later {t}")
    assert verdict.alarm
    assert verdict.tests["errors"].since == since


def test_a_repeated_id_is_not_counted_twice():
    monitor, truth = Monitor(CAL), errors(4, 3)
    assert monitor.observe(band_of(), truth[0], id="a").counted == 1
    assert monitor.observe(band_of(), truth[1], id="a").counted == 0
    assert monitor.observe(band_of(), truth[1], id=7).counted == 1
    assert monitor.observe(band_of(), truth[1], id="7").counted == 1  # text, not the number
    assert monitor.observe(band_of(), truth[2]).counted == 1
    assert monitor.observe(band_of(), truth[2]).counted == 0  # known by its values
    assert monitor.verdict().tests["errors"].functions == 4


def test_a_batch_is_its_functions_in_order():
    truth = errors(5, 6)
    together, apart = Monitor(CAL), Monitor(CAL)
    for i in range(6):
        one = apart.observe(band_of(), truth[i], id=i)
    all_of_them = together.observe(band_of(number=6), truth[:, None], id=range(6))
    assert all_of_them.counted == 6
    assert all_of_them.tests == one.tests
    assert together.observe(band_of(number=6), truth, id=range(6)).counted == 0
    assert Monitor(CAL).observe(band_of(number=6), truth).counted == 6


# --- which score ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [guarantees.Fraction(0.1, 0.1, "iid"), guarantees.Strata(0.1, 0.1),
     guarantees.Continuum(0.1, 0.1, 0.1, 0.2), guarantees.Fraction(0.2, 0.1, misses=5,
     sampling="iid")],
)  # fmt: skip
def test_the_score_is_that_of_the_rule(rule):
    """Functions of the calibration itself, observed, have the scores that it kept."""
    error = errors(6, 80)
    cal = uqno.calibrate(error, np.ones_like(error), guarantee=rule)
    monitor = Monitor(cal)
    for i, one in enumerate(error):
        monitor.observe(band_of(cal), one, id=i)
    np.testing.assert_allclose(np.sort(monitor.state.errors.scores), cal.scores)


def test_functions_of_different_resolution_and_of_a_stream():
    error = [errors(i, 1, points=m)[0] for i, m in enumerate([20, 30, 50] * 30)]
    streamed = uqno.conformal.FunctionStream((e, np.ones_like(e), None) for e in error)
    for design in ("grid", "iid"):
        listed = uqno.calibrate(error, [np.ones_like(e) for e in error], 0.2, 0.2, design)
        monitor = Monitor(listed)
        for i, one in enumerate(error):
            monitor.observe(band_of(listed, points=len(one)), one, id=i)
        np.testing.assert_allclose(np.sort(monitor.state.errors.scores), listed.scores)
    cal = uqno.calibrate(streamed, alpha=0.2, delta=0.2)
    assert Monitor(cal).observe(band_of(cal, points=20), error[0]).counted == 1


def test_weights_of_a_surface():
    weights = np.linspace(1, 2, POINTS)
    error = errors(7, 60)
    cal = uqno.calibrate(error, np.ones_like(error), 0.1, 0.1, weights=weights)
    monitor = Monitor(cal)
    monitor.observe(band_of(cal, number=60, weights=weights), error, id=range(60))
    np.testing.assert_allclose(np.sort(monitor.state.errors.scores), cal.scores)
    with pytest.raises(ValueError, match="the calibration is by weights and the band has none"):
        monitor.observe(band_of(cal), error[0])


def test_failures_are_tested_where_there_is_a_confidence():
    cal = calibrated(confidence=0.9)
    monitor = Monitor(cal)
    for i, truth in enumerate(errors(8, 300)):
        verdict = monitor.observe(band_of(cal), 2 * truth, id=i)
    assert verdict.failing
    assert "at most 0.01 + 0.1 over all time" in str(verdict.tests["failures"])
    failed = np.array(monitor.state.errors.failed)
    outside = np.array([band_of(cal).coverage(2 * e) < 0.9 for e in errors(8, 300)])
    np.testing.assert_array_equal(failed, outside)
    assert not Monitor(CAL).verdict().failing


# --- the file ------------------------------------------------------------------------------------


def test_it_goes_on_where_it_was(tmp_path):
    truth, file = errors(9, 50, rough=1.0), tmp_path / "state.json"
    whole = Monitor(CAL)
    for i, one in enumerate(truth):
        said = whole.observe(band_of(), one, id=i)
        again = Monitor(CAL, state=file).observe(band_of(), one, id=i)
    assert again.tests == said.tests
    assert Monitor(CAL, state=file).observe(band_of(), truth[3], id=3).counted == 0
    assert file.stat().st_size < 10_000


KILLED = """
import sys
import numpy as np
from tests.monitor.test_monitor import CAL, band_of, errors
from uqno import Monitor
monitor = Monitor(CAL, state=sys.argv[1])
for i, truth in enumerate(errors(10, 10_000)):
    monitor.observe(band_of(), truth, id=i)
    print(i, flush=True)
"""


def test_a_state_survives_a_kill(tmp_path):
    """What was said to be counted is there after kill −9, and the file is whole."""
    file, root = tmp_path / "state.json", Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(file)], stdout=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
    )  # fmt: skip
    with process:
        said = [int(process.stdout.readline()) for _ in range(25)][-1]
        process.send_signal(signal.SIGKILL)
    monitor = Monitor(CAL, state=file)
    counted = monitor.verdict().tests["errors"].functions
    assert counted >= said + 1
    reference = Monitor(CAL)
    for i, truth in enumerate(errors(10, 10_000)[:counted]):
        reference.observe(band_of(), truth, id=i)
    assert monitor.verdict().tests == reference.verdict().tests


def written(tmp_path):
    file = tmp_path / "state.json"
    Monitor(CAL, state=file).observe(band_of(number=5), errors(11, 5))
    return file, json.loads(file.read_text())


def test_a_newer_state_is_refused(tmp_path):
    file, content = written(tmp_path)
    file.write_text(json.dumps({**content, "version": 2}))
    with pytest.raises(ValueError, match=r"version 2, this uqno reads 1: use the newer uqno"):
        Monitor(CAL, state=file)
    file.write_text(json.dumps({**content, "version": True}))
    with pytest.raises(ValueError, match=r"version True, this uqno reads 1: begin again"):
        Monitor(CAL, state=file)


@pytest.mark.parametrize(
    "change", [{"seed": 5}, {"errors": {"ids": [], "scores": [], "failed": []}}, {"checksum": 0}]
)
def test_a_damaged_state_is_refused(tmp_path, change):
    file, content = written(tmp_path)
    file.write_text(json.dumps({**content, **change}))
    with pytest.raises(DamagedError, match=r"damaged, its checksum is wrong: begin again with"):
        Monitor(CAL, state=file)
    file.write_text(json.dumps(content)[:-20])
    with pytest.raises(DamagedError, match=r"state.json is damaged"):
        Monitor(CAL, state=file)
    file.write_text("{}")
    with pytest.raises(ValueError, match="not the state of a monitor, its format is None"):
        Monitor(CAL, state=file)


@pytest.mark.parametrize(
    "errors_of",
    [None, {"ids": ["a"], "scores": [], "failed": []}, {"ids": "a", "scores": [1], "failed": [1]},
     {"ids": ["a"], "scores": [-1.0], "failed": [True]},
     {"ids": ["a", "a"], "scores": [1, 1], "failed": [True, True]}],
)  # fmt: skip
def test_a_forged_state_is_checked_field_by_field(tmp_path, errors_of):
    from uqno.monitor.state import checksum

    file, content = written(tmp_path)
    forged = {n: x for n, x in content.items() if n != "checksum"} | {"errors": errors_of}
    file.write_text(json.dumps({**forged, "checksum": checksum(forged)}))
    with pytest.raises(DamagedError, match="is no whole state"):
        Monitor(CAL, state=file)


def test_a_state_of_another_calibration_or_level_is_refused(tmp_path):
    file, _ = written(tmp_path)
    with pytest.raises(ValueError, match=r"state of a monitor of another calibration .* own file"):
        Monitor(calibrated(150), state=file)
    with pytest.raises(ValueError, match=r"begun with false_alarm = 0.01, got 0.05"):
        Monitor(CAL, 0.05, file)


def test_two_processes_do_not_lose_each_others_functions(tmp_path):
    file, truth = tmp_path / "state.json", errors(12, 4)
    one, other = Monitor(CAL, state=file), Monitor(CAL, state=file)
    one.observe(band_of(), truth[0])
    with pytest.raises(ValueError, match="was written by another process"):
        other.observe(band_of(), truth[1])
    Monitor(CAL, state=file).observe(band_of(), truth[1])
    assert Monitor(CAL, state=file).verdict().tests["errors"].functions == 2


def test_infinite_scores_are_kept(tmp_path):
    file = tmp_path / "state.json"
    zero = Band(np.zeros((1, POINTS)), np.zeros(POINTS), CAL, X)
    Monitor(CAL, state=file).observe(zero, np.ones(POINTS))
    assert Monitor(CAL, state=file).state.errors.scores == [np.inf]


# --- bad input -----------------------------------------------------------------------------------


def test_bands_of_another_model_are_refused():
    monitor, truth = Monitor(CAL), errors(13, 1)[0]
    with pytest.raises(
        ValueError, match=r"another model or calibration \(model none, scale .* own"
    ):
        monitor.observe(band_of(calibrated(150)), truth)
    with pytest.raises(ValueError, match=r"\(model 0123456789ab, scale"):
        monitor.observe(band_of(replace(CAL, model="0123456789abcdef")), truth)
    with pytest.raises(ValueError, match=r"observe takes a uqno.Band, got ndarray"):
        monitor.observe(truth, truth)


def test_truths_that_do_not_fit_are_refused_and_nothing_is_counted():
    monitor, truth = Monitor(CAL), errors(14, 3)
    truth[1, 4] = np.nan
    with pytest.raises(ValueError, match=r"truth is nan at \[0, 4\] \(1 such of 30\).*leave out"):
        monitor.observe(band_of(number=3), truth)
    with pytest.raises(ValueError, match=r"u has shape \(29,\)"):
        monitor.observe(band_of(), truth[0, 1:])
    with pytest.raises(ValueError, match="neither a truth nor a novelty"):
        monitor.observe(band_of())
    with pytest.raises(ValueError, match=r"id = 1\.5 must be text or a whole number"):
        monitor.observe(band_of(), truth[0], id=1.5)
    for names in ("abc", [1, 2], 7):
        with pytest.raises(ValueError, match="for a batch of 3 functions: give a sequence of 3"):
            monitor.observe(band_of(number=3), truth, id=names)
    assert monitor.verdict().tests["errors"].functions == 0


def test_what_cannot_be_monitored():
    with pytest.raises(ValueError, match="model is a str: give a calibrated"):
        Monitor("model")
    with pytest.raises(ValueError, match="calibration of 200 functions has no scores"):
        Monitor(replace(CAL, scores=None))
    with pytest.raises(ValueError, match="false_alarm = 0 must lie strictly between 0 and 1"):
        Monitor(CAL, 0)
    with pytest.raises(ValueError, match=r"seed = -1 must be a whole number"):
        Monitor(CAL, seed=-1)
    iid = uqno.calibrate(errors(0, 200), np.ones((200, POINTS)), 0.1, 0.1, "iid")
    with pytest.raises(
        ValueError, match="has 10 points and those of calibration had 30: predict at as many"
    ):
        Monitor(iid).observe(band_of(iid, points=10), np.ones(10))


# --- the page ------------------------------------------------------------------------------------


def test_the_page_is_one_file_and_escaped(tmp_path):
    monitor = Monitor(CAL)
    quiet = html(monitor.verdict(), CAL.guarantee, "<b>model</b>")
    assert "No alarm." in quiet
    assert "<b>model" not in quiet
    assert "&lt;b&gt;model&lt;/b&gt;: monitoring" in quiet
    for i, truth in enumerate(errors(15, 60)):
        verdict = monitor.observe(band_of(), 4 * truth, id=i)
    write_page(tmp_path / "page.html", verdict, CAL.guarantee)
    page = (tmp_path / "page.html").read_text(encoding="utf8")
    assert "Alarm: the promise may not stand" in page
    assert page.count("<polyline") == 1
    assert "alarm at 100" in page
    for foreign in ("http://", "https://", "<script", "src="):
        assert foreign not in page


def test_a_long_curve_is_thinned_and_keeps_its_peaks():
    verdict = Monitor(CAL).verdict()
    test = verdict.tests["errors"]
    history = np.zeros(9000)
    history[4321] = 20.0
    long = replace(test, functions=9000, history=tuple(history))
    page = html(replace(verdict, tests={"errors": long}), CAL.guarantee)
    points = page.split('points="')[1].split('"')[0].split()
    heights = [float(p.split(",")[1]) for p in points]
    assert 1500 < len(points) <= 2001
    assert min(heights) < sorted(heights)[1]
