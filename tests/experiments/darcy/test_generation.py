"""The same set whatever the order, the chunks, the workers and the accidents."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from uqno.data import store
from uqno.data.store import FunctionStore
from uqno.experiments.darcy.fields import gaussian_fields
from uqno.experiments.darcy.generation import Recipe, generate

SMALL = Recipe(seed=4, resolution=43, keep=(22, 43), modes=32)
COUNT = 20


def contents(store):
    return {r: store.samples(r).arrays() for r in store.resolutions}


def assert_same(store, reference):
    for resolution, arrays in contents(store).items():
        for ours, theirs in zip(arrays, reference[resolution], strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The uninterrupted set."""
    return contents(generate(tmp_path_factory.mktemp("reference") / "d.zarr", SMALL, COUNT))


def test_the_set_is_what_the_recipe_says(tmp_path):
    store = generate(tmp_path / "d.zarr", SMALL, 5, chunk=2)
    a, u = store.samples(43).arrays()
    field = gaussian_fields(4, range(5), 43, modes=32, mean_free=True)
    np.testing.assert_array_equal(a, np.where(field >= 0, 12, 3))
    coarse = store.samples(22).arrays()
    np.testing.assert_array_equal(coarse[0], a[:, ::2, ::2])
    np.testing.assert_array_equal(coarse[1], u[:, ::2, ::2])
    np.testing.assert_array_equal(store.group["seeds"][:], [[4, i] for i in range(5)])
    np.testing.assert_allclose(store.group["22/coordinates"][:], np.arange(22) / 21, rtol=1e-14)
    assert Recipe.from_record(store.recipe) == SMALL
    assert store.recipe["version"] == 1


def test_lognormal_coefficients_vary_continuously():
    recipe = Recipe(coefficient="lognormal", resolution=21, keep=(21,), modes=32)
    a, u = recipe.functions([3])[21]
    field = gaussian_fields(0, [3], 21, modes=32, mean_free=True)
    np.testing.assert_allclose(a, np.exp(3 * field), rtol=1e-12)
    assert np.all(u[:, 1:-1, 1:-1] > 0)


def test_a_coarse_recipe_has_the_same_coefficients():
    fine, coarse = Recipe(), Recipe(resolution=43, keep=(43,))
    np.testing.assert_array_equal(fine.coefficients([11])[:, ::10, ::10], coarse.coefficients([11]))


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_chunks_do_not_matter(tmp_path, reference, chunk):
    assert_same(generate(tmp_path / "d.zarr", SMALL, COUNT, chunk=chunk), reference)


def test_two_machines_make_halves(tmp_path, reference):
    """Each makes a part of the same store; copying one over the other gives the whole."""
    first = generate(tmp_path / "one.zarr", SMALL, COUNT, part=range(8, 20), chunk=4)
    assert first.available().tolist() == list(range(8, 20))
    with pytest.raises(ValueError, match=r"one\.zarr is unfinished: 8 of the 20"):
        first.samples(43)
    assert len(first.samples(43, range(8, 20))) == 12
    generate(tmp_path / "two.zarr", SMALL, COUNT, part=range(0, 8), chunk=4)
    shutil.copytree(tmp_path / "two.zarr", tmp_path / "one.zarr", dirs_exist_ok=True)
    assert_same(FunctionStore.open(tmp_path / "one.zarr"), reference)


def test_progress_counts_functions_and_a_second_run_makes_nothing(tmp_path, monkeypatch):
    seen = []
    generate(tmp_path / "d.zarr", SMALL, 5, chunk=2, progress=lambda *p: seen.append(p))
    assert seen == [(0, 5), (2, 5), (4, 5), (5, 5)]
    monkeypatch.setattr(Recipe, "functions", None)
    generate(tmp_path / "d.zarr", SMALL, 5, chunk=2, progress=lambda *p: seen.append(p))
    assert seen[4:] == [(5, 5)]


CHILD = """
import sys
from uqno.experiments.darcy.generation import Recipe, generate
if __name__ == "__main__":
    recipe = Recipe(seed=4, resolution=43, keep=(22, 43), modes=32)
    show = lambda done, total: print(done, flush=True)
    generate(sys.argv[1], recipe, 20, chunk=1, workers=2, progress=show)
"""


def children(pid):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at processes through /proc")
def test_killed_with_two_workers_then_resumed_is_the_uninterrupted_set(tmp_path, reference):
    script, path = tmp_path / "child.py", tmp_path / "d.zarr"
    script.write_text(CHILD)
    with subprocess.Popen(
        [sys.executable, script, path], stdout=subprocess.PIPE, text=True
    ) as process:
        while int(process.stdout.readline()) < 3:
            pass
        workers = children(process.pid)
        process.send_signal(signal.SIGKILL)
    assert len(workers) >= 2
    deadline = time.monotonic() + 20
    while any(is_alive(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(is_alive(worker) for worker in workers), "workers outlive a killed parent"
    before = len(FunctionStore.open(path).available())
    assert 3 <= before <= COUNT
    assert_same(generate(path, SMALL, COUNT), reference)


def test_workers_that_are_killed_leave_the_uninterrupted_set(tmp_path, reference):
    """kill -9 of both, twice: they are replaced, and nobody has to call again."""
    counts = []

    def kill(done, total):
        counts.append(done)
        if len(counts) in (2, 6):
            for worker in multiprocessing.active_children():
                worker.kill()

    made = generate(tmp_path / "d.zarr", SMALL, COUNT, chunk=1, workers=2, progress=kill)
    assert counts == list(range(COUNT + 1))
    assert_same(made, reference)


def test_a_chunk_without_its_mark_is_made_again_whatever_its_files_hold(tmp_path, reference):
    path = tmp_path / "d.zarr"
    generate(path, SMALL, COUNT, chunk=4)
    (path / "done" / "c" / "2").unlink()
    (path / "43" / "solutions" / "c" / "2" / "0" / "0").write_bytes(b"half")
    shutil.rmtree(path / "22" / "inputs" / "c" / "2")
    assert FunctionStore.open(path).available().tolist() == [*range(8), *range(12, 20)]
    assert_same(generate(path, SMALL, COUNT, chunk=4), reference)


def test_stopped_between_two_arrays_leaves_no_mark(tmp_path, monkeypatch, reference):
    path = tmp_path / "d.zarr"
    write = store.write_bytes

    def stops(file, content):
        if file.match("43/solutions/c/0/0/0"):
            raise KeyboardInterrupt
        write(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_bytes", stops)
        with pytest.raises(KeyboardInterrupt):
            generate(path, SMALL, COUNT, chunk=4)
    assert (path / "43" / "inputs" / "c" / "0").exists()
    assert len(FunctionStore.open(path).available()) == 0
    assert_same(generate(path, SMALL, COUNT, chunk=4), reference)


def test_chunks_that_came_back_damaged_are_made_again_by_the_same_command(tmp_path, reference):
    path = tmp_path / "d.zarr"
    generate(path, SMALL, COUNT, chunk=4)
    (path / "43" / "solutions" / "c" / "2" / "0" / "0").write_bytes(b"")
    (path / "done" / "c" / "0").write_bytes(b"")
    shutil.rmtree(path / "22" / "inputs" / "c" / "1")
    assert_same(generate(path, SMALL, COUNT, chunk=4), reference)
    assert sorted(p.name for p in path.rglob("*.damaged")) == ["0.damaged", "0.damaged"]


def test_another_recipe_or_count_is_refused_by_name(tmp_path):
    path = tmp_path / "d.zarr"
    generate(path, SMALL, 2)
    with pytest.raises(ValueError, match=r"d\.zarr holds .*'seed': \(4, 5\)"):
        generate(path, Recipe(seed=5, resolution=43, keep=(22, 43), modes=32), 2)
    with pytest.raises(ValueError, match=r"'count': \(2, 3\)"):
        generate(path, SMALL, 3)
    with pytest.raises(ValueError, match="recipe version 0"):
        Recipe.from_record({**SMALL.record(), "version": 0})


def test_bad_requests_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"resolution 40 .* keep some of \[3, 4, 7, 8, 15, 22, 43"):
        Recipe(resolution=43, keep=(40,))
    with pytest.raises(ValueError, match="different resolutions"):
        Recipe(resolution=43, keep=(43, 43))
    with pytest.raises(ValueError, match="one of lognormal, two-valued"):
        Recipe(coefficient="constant")
    with pytest.raises(ValueError, match="at least 1"):
        generate(tmp_path / "d.zarr", SMALL, 0)
    for part in (range(1, 4), range(0, 3), range(0, 12), range(4, 4)):
        with pytest.raises(ValueError, match="multiples of the chunk of 2"):
            generate(tmp_path / "d.zarr", SMALL, 10, part=part, chunk=2)
