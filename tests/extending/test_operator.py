"""An operator from outside the package: trained, saved, loaded, the kind of the uncertainty too."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import uqno
from tests.extending import own_operator
from tests.extending.own_operator import Neighbourhoods


def functions(seed, count, side=12):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 1, side, side, generator=generator)
    return [{"a": a, "u": a.cumsum(-1) / side} for a in inputs]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = uqno.UQNO(Neighbourhoods(1, 1))
    made.fit(functions(0, 24), epochs=1, batch_size=4)
    made.calibrate(functions(1, 40), alpha=0.1, delta=0.1)
    return made


def test_the_file_is_short():
    assert len(inspect.getsource(own_operator).splitlines()) <= 80


def test_it_is_the_kind_of_the_uncertainty_too(model):
    network = model.uncertainty.operator.module
    assert type(network) is Neighbourhoods
    assert network.config == {"in_channels": 2, "out_channels": 1, "windows": 3, "width": 16}


def test_it_is_saved_and_loaded_without_being_passed_in(model, tmp_path):
    model.save(tmp_path / "model")
    again = uqno.UQNO.load(tmp_path / "model")
    a = functions(2, 1)[0]["a"]
    np.testing.assert_array_equal(again.predict(a).center, model.predict(a).center)
    np.testing.assert_array_equal(again.predict(a).radius, model.predict(a).radius)


def test_a_process_that_has_not_imported_it_is_told_what_to_do(model, tmp_path):
    model.save(tmp_path / "model")
    code = f"import uqno; uqno.UQNO.load({str(tmp_path / 'model')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.returncode
    assert "Neighbourhoods" in done.stderr
    assert "own_operator" in done.stderr or "base=" in done.stderr
    root = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {root!r}); import tests.extending.own_operator; {code}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")
