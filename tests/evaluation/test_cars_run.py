"""The comparison on cars, so small that it trains in seconds: the same record as Darcy's."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation.synthetic_cars import write_cars
from uqno.evaluation import experiment, results, runs, table
from uqno.evaluation.explorer import explorer, reopened, unpacked
from uqno.evaluation.methods import METHODS, trained
from uqno.evaluation.presets import METHODS as NAMES
from uqno.evaluation.presets import CarSettings
from uqno.evaluation.runs import Run, loaded

TINY = CarSettings(
    train=16,
    calibration=52,
    test=8,
    latent=(8, 6, 6),
    modes=(3, 2, 2),
    neighbours=(4, 4),
    width=4,
    layers=1,
    epochs=1,
    members=2,
    curve_alphas=(0.12,),
    splits=20,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Every method and the ablation."""
    folder = tmp_path_factory.mktemp("cars")
    made = Run(TINY, folder / "run", write_cars(folder / "cars.npz", 80))
    told = []
    record = experiment.run(
        TINY,
        made.folder,
        data=made.data,
        preset="tiny",
        command="uqno run cars",
        workers=2,
        progress=lambda *what: told.append(what),
    )
    return made, record, told


def test_every_method(finished):
    made, record, told = finished
    print(table.markdown(record))
