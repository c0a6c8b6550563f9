"""The memory budget: sizes as people write them, and an error that names size and remedy."""

import os
import subprocess
import sys

import pytest

from uqno import memory
from uqno.memory import VARIABLE, budget, check_memory, in_words, parsed, set_budget


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")  # so that what a test sets is undone
    del os.environ[VARIABLE]


@pytest.mark.parametrize(("text", "size"), [
    ("1", 1), ("512", 512), ("2 KB", 2000), ("2KiB", 2048), (" 1.5 gb ", 1_500_000_000),
    ("8GiB", 8 * 2**30), ("3 TB", 3 * 10**12), ("7 B", 7),
])  # fmt: skip
def test_sizes_are_read_as_people_write_them(text, size):
    assert parsed(text) == size


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1e9", "GiB", "8 gigs", "nan", "inf", "٣", "0.1 B"]
)
def test_what_is_no_size_is_refused(text, monkeypatch):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match=r"UQNO_MEMORY_BUDGET is .*expected at least 1 byte"):
        budget()


def test_the_budget_is_half_of_the_memory_by_default():
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 1 <= budget() <= total // 2


def test_a_container_may_use_less(tmp_path, monkeypatch):
    for name, text in (("max", "max\n"), ("limit", "1000000\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(memory, "LIMITS", [tmp_path / n for n in ("max", "limit", "absent")])
    memory._machine_memory.cache_clear()
    assert budget() == 500_000
    memory._machine_memory.cache_clear()


def test_the_budget_is_that_of_processes_started_afterwards():
    set_budget("3 MB")
    code = "from uqno.memory import budget; print(budget())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "3000000\n"
    set_budget(17)
    assert budget() == 17
    with pytest.raises(ValueError, match="expected at least 1 byte"):
        set_budget("much")
    assert budget() == 17
    set_budget(None)
    assert VARIABLE not in os.environ


def test_the_error_names_size_budget_and_remedy():
    set_budget(1000)
    check_memory("it", 1000)
    with pytest.raises(
        ValueError,
        match=r"^it declares 1\.1 KB, the .* budget is 1 KB: split it, or raise .*UQNO_M",
    ):
        check_memory("it", 1100, "split it")
    with pytest.raises(ValueError, match="negative size -1"):
        check_memory("it", -1)


def test_sizes_beyond_any_number_of_a_float_are_named():
    assert in_words(10**400).endswith(" TB")
    assert [in_words(n) for n in (0, 999, 1000, 10**9)] == ["0 bytes", "999 bytes", "1 KB", "1 GB"]
