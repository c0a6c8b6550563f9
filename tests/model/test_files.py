"""A saved model is whole or refused; saving over it never leaves none; shares are exact."""

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.uncertainty import problems
from uqno import UQNO, Calibration, storage
from uqno.data.calibrations import read_calibration, write_calibration
from uqno.model import files
from uqno.model.files import check
from uqno.storage import DamagedError
from uqno.uncertainty import Constant, Quantile


def samples(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [{"a": torch.randn(1, 8, generator=generator),
             "u": torch.randn(1, 8, generator=generator)} for _ in range(count)]  # fmt: skip


def simple(alpha=0.2, delta=0.2):
    model = UQNO(lambda a: a, Constant()).fit(samples(5))
    model.calibrate(samples(40, seed=1), alpha, delta)
    return model


def load(folder):
    return UQNO.load(folder, base=lambda a: a)


@pytest.fixture(scope="module")
def trained():
    model = UQNO(problems.fno(dropout=0.0), members=2)
    model.fit(problems.functions(8), **problems.QUICK)
    model.calibrate(problems.functions(20, seed=5), [0.2, 0.3], 0.2)
    return model


def test_a_flipped_bit_in_any_file_is_refused(trained, tmp_path):
    folder = tmp_path / "model"
    trained.save(folder)
    UQNO.load(folder)
    names = sorted(f.name for f in folder.iterdir())
    assert len(names) == 10
    choice = random.Random(0)
    for name in names:
        file = folder / name
        whole = file.read_bytes()
        for _ in range(40):
            place, bit = choice.randrange(len(whole)), choice.randrange(8)
            flipped = bytes([whole[place] ^ (1 << bit)])
            file.write_bytes(whole[:place] + flipped + whole[place + 1 :])
            with pytest.raises(DamagedError, match="model"):
                UQNO.load(folder)
        file.write_bytes(whole)
    UQNO.load(folder)


def test_every_bit_of_a_stored_scale_is_covered(trained, tmp_path):
    """No flip in the scale passes the sums of a folder, and none loads another scale on its own."""
    folder = tmp_path / "model"
    trained.save(folder)
    file = folder / "calibration-1.json"
    whole = file.read_bytes()
    first = whole.index(b'"scale": ') + len(b'"scale": ')
    last = whole.index(b",", first)
    assert float(whole[first:last]) == trained.calibrations[0].scale
    flips = 0
    for place in range(first, last):
        for bit in range(8):
            flipped = bytes([whole[place] ^ (1 << bit)])
            file.write_bytes(whole[:place] + flipped + whole[place + 1 :])
            with pytest.raises(DamagedError, match=r"calibration-1\.json is damaged"):
                check(folder)
            with suppress(ValueError):  # 17 digits may be flipped to others of the same number
                assert read_calibration(file).scale == trained.calibrations[0].scale
            flips += 1
    assert flips >= 100
    file.write_bytes(whole)
    assert read_calibration(file) == UQNO.load(folder).calibrations[0]


def test_every_file_is_in_the_checksums_that_sha256sum_reads(trained, tmp_path):
    trained.save(tmp_path / "model")
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(command, cwd=tmp_path / "model", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK") == 9
    (tmp_path / "model" / "README.txt").unlink()
    with pytest.raises(DamagedError, match=r"README\.txt is missing"):
        files.check(tmp_path / "model")
    (tmp_path / "model" / "SHA256SUMS").unlink()
    with pytest.raises(DamagedError, match="SHA256SUMS is missing"):
        files.check(tmp_path / "model")


def test_a_model_of_the_first_version_still_loads(tmp_path):
    model = simple()
    model.save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    (tmp_path / "model" / "SHA256SUMS").unlink()
    sums = {f.name: storage.sha256_of(f) for f in file.parent.iterdir()
            if f.name not in ("model.json", "README.txt")}  # fmt: skip
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 1, "sha256": sums}))
    assert load(tmp_path / "model").calibrations == model.calibrations
    (tmp_path / "model" / "base.safetensors").write_bytes(b"x")
    with pytest.raises(DamagedError, match="checksum is wrong"):
        load(tmp_path / "model")


# --- shares, and reading back ----------------------------------------------------------------


def test_shares_are_saved_exactly(tmp_path):
    third, seventh = Fraction(1, 3), Fraction(1, 7)
    model = simple([0.2, third], [0.2, seventh])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.calibrations == model.calibrations
    assert (again.calibrations[1].rule.alpha, again.calibrations[1].rule.delta) == (third, seventh)
    a = samples(1, seed=2)[0]["a"]
    for level in (third, 1 / 3):
        band = again.predict(a, alpha=level, delta=seventh)
        assert band.calibration == model.calibrations[1]
    write_calibration(tmp_path / "c.json", model.calibrations[1])
    text = (tmp_path / "c.json").read_text()
    assert Calibration.from_json(text).rule.alpha == third


def test_the_level_of_the_quantile_is_any_kind_of_number(tmp_path):
    model = UQNO(problems.fno(dropout=0.0), Quantile(level=Fraction(1, 3)))
    model.fit(problems.functions(8), **problems.QUICK)
    model.save(tmp_path / "model")
    assert UQNO.load(tmp_path / "model").uncertainty.loss.alpha == 1 / 3


def test_what_does_not_read_back_does_not_take_its_place(tmp_path, monkeypatch):
    model = simple()
    model.save(tmp_path / "model")
    before = (tmp_path / "model" / "SHA256SUMS").read_bytes()
    to_json = Calibration.to_json
    with monkeypatch.context() as patch:
        patch.setattr(Calibration, "to_json", lambda self: to_json(self).replace("0.2", "0.25"))
        with pytest.raises(ValueError, match="reads back as"):
            model.save(tmp_path / "model")
        with pytest.raises(ValueError, match="reads back as"):
            write_calibration(tmp_path / "c.json", model.calibrations[0])
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_calibration", lambda *_: None)
        with pytest.raises(ValueError, match=r"calibration-1\.json cannot be read"):
            model.save(tmp_path / "model")
    assert (tmp_path / "model" / "SHA256SUMS").read_bytes() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


# --- saving over a model ---------------------------------------------------------------------

KILLED = """
import os, signal, sys
from tests.model.test_files import simple
from uqno import storage

def killed(*names):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2] == "between renames":
    storage.exchange = lambda one, other: False
    storage._place_folder = killed
else:
    storage._replace_folder = killed
simple(0.3).save(sys.argv[1])
"""


@pytest.mark.parametrize("moment", ["between renames", "before"])
@pytest.mark.parametrize("then", ["load", "save", "check"])
def test_a_kill_leaves_the_old_model(moment, then, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "BETWEEN_RENAMES", 0.01)
    model, folder = simple(), tmp_path / "model"
    model.save(folder)
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), moment])
    assert done.returncode == -signal.SIGKILL
    assert folder.exists() == (moment == "before")
    if then == "save":
        model.save(folder)
        assert os.listdir(tmp_path) == ["model"]
    elif then == "check":
        files.check(folder)
    assert load(folder).calibrations == model.calibrations


def test_a_reader_sees_one_whole_model_while_others_save(tmp_path):
    folder = tmp_path / "model"
    levels = (0.2, 0.3)
    simple(levels[0]).save(folder)
    code = "import sys\nfrom tests.model.test_files import simple\n"
    code += "models = [simple(0.2), simple(0.3)]\n"
    code += "for i in range(12): models[i % 2].save(sys.argv[1])\n"
    writer = subprocess.Popen([sys.executable, "-c", code, str(folder)])
    seen = set()
    while writer.poll() is None:
        seen.add(load(folder).calibrations[0].alpha)
    assert writer.returncode == 0
    assert seen <= set(levels)
    np.testing.assert_equal(sorted(os.listdir(tmp_path)), ["model"])
