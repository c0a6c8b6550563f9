"""Tests run in parallel processes: one thread each, and random numbers that no order changes."""

import os
import sys

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def same_random_numbers():
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


def pytest_collection_modifyitems(config, items):
    measured = config.pluginmanager.hasplugin("_cov")
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        if measured and item.get_closest_marker("statistical"):
            item.add_marker(pytest.mark.no_cover)  # the same lines a million times


def pytest_terminal_summary(terminalreporter):
    """What the tests of faults counted (tests/faults)."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in getattr(report, "user_properties", ()):
            if name == "count" and report.when == "call":
                terminalreporter.write_line(value)
