"""Histograms of a set of cars show every car once."""

import numpy as np
import pytest

from uqno.experiments.cars import histograms

RNG = np.random.default_rng(0)
REPORTS = [
    {
        "body": ("van", "saloon", "coupé")[i % 3],
        "drag": 0.2 + 0.01 * RNG.standard_normal(),
        "lift": -0.1 * i / 50,
        "stagnation_cp": 0.96,
        "base_cp": -0.2 + 0.001 * i,
    }
    for i in range(50)
]


def test_ranges_are_lowest_median_and_highest():
    found = histograms.ranges(REPORTS)
    assert found["base pressure, Cp"] == pytest.approx((-0.2, -0.1755, -0.151))
    assert found["stagnation pressure, Cp"] == (0.96, 0.96, 0.96)


def test_every_car_is_in_every_panel_and_every_body_in_the_legend():
    figure = histograms.histograms(REPORTS)
    for axes in figure.axes:
        bars = [bar for stack in axes.containers for bar in stack]
        assert sum(bar.get_height() for bar in bars) == 50
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["coupé", "saloon", "van"]


def test_saved_as_the_name_says(tmp_path):
    histograms.save(REPORTS, tmp_path / "a.png")
    histograms.save(REPORTS, tmp_path / "a.svg")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "base pressure" in (tmp_path / "a.svg").read_text()
