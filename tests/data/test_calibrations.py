"""A calibration that takes the place of another one never shares a file with it."""

import json
import os
import time

import numpy as np
import pytest

from uqno import Calibration, calibrate
from uqno.conformal import record
from uqno.data import calibrations
from uqno.data.calibrations import read_calibration, scores_file, write_calibration


@pytest.fixture(autouse=True)
def many_are_more_than_ten(monkeypatch):
    monkeypatch.setattr(record, "MOST_SCORES_IN_JSON", 10)


def made(functions, seed=0):
    rng = np.random.default_rng(seed)
    return calibrate(rng.normal(size=(functions, 4)), np.ones((functions, 4)), 0.3, 0.3)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("before", [10, 30])
@pytest.mark.parametrize("after", [10, 30])
def test_whatever_was_there_before(before, after, tmp_path):
    path = tmp_path / "c.json"
    write_calibration(path, made(before))
    new = made(after, seed=1)
    write_calibration(path, new)
    assert read_calibration(path) == new
    np.testing.assert_array_equal(read_calibration(path).scores, new.scores)
    assert len(names(tmp_path)) == (1 if after == 10 else 2)


def test_who_is_stopped_between_the_two_files_leaves_the_older_one(tmp_path, monkeypatch):
    path, old, new = tmp_path / "c.json", made(30), made(30, seed=1)
    write_calibration(path, old)

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(calibrations, "write_text", stopped)
        with pytest.raises(KeyboardInterrupt):
            write_calibration(path, new)
    np.testing.assert_array_equal(read_calibration(path).scores, old.scores)
    write_calibration(path, new)
    np.testing.assert_array_equal(read_calibration(path).scores, new.scores)
    assert len(names(tmp_path)) == 2


def test_scores_that_nothing_belongs_to_are_swept_after_an_hour(tmp_path):
    path, others = tmp_path / "c.json", [tmp_path / f"c.scores-{k * 12}.npy" for k in "ab"]
    foreign = [tmp_path / name for name in ("c.scores-mine.npy", "cc.scores-aaaaaaaaaaaa.npy")]
    for file in (*others, *foreign):
        file.touch()
    for file in (others[0], *foreign):
        os.utime(file, (time.time() - 4000,) * 2)
    write_calibration(path, made(30))
    assert not others[0].exists()
    assert others[1].exists(), "its writer may be alive"
    assert all(file.exists() for file in foreign)


def test_the_same_calibration_at_another_time_has_the_same_file(tmp_path):
    text = json.loads(made(30).to_json())
    again = json.dumps({**text, "created": "another day"})
    assert scores_file(tmp_path / "c.json", json.dumps(text)) == scores_file(
        tmp_path / "c.json", again
    )
    other = json.dumps({**text, "scale": 2.0})
    assert scores_file(tmp_path / "c.json", other) != scores_file(tmp_path / "c.json", again)


def test_scores_as_uqno_0_1_named_them_are_read_and_replaced(tmp_path):
    path, old = tmp_path / "c.json", made(30)
    path.write_text(old.to_json())
    np.save(tmp_path / "c.scores.npy", old.scores)
    np.testing.assert_array_equal(read_calibration(path).scores, old.scores)
    write_calibration(path, made(10))
    assert names(tmp_path) == ["c.json"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"scores": null}', "[" * 100_000])
def test_what_is_no_calibration_is_refused_and_replaced(content, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"c\.json: not a "):
        read_calibration(path)
    write_calibration(path, made(30))
    assert isinstance(read_calibration(path), Calibration)
