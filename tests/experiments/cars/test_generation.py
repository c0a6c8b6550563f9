"""The same cars whatever the workers and the accidents; failures are recorded and replaced."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.cars import fake
from tests.experiments.cars.synthetic_cars import write_cars
from uqno import storage
from uqno.experiments.cars import generation, shipped, solver
from uqno.experiments.cars.case import Flow
from uqno.experiments.cars.generation import Folder, generate_cars, plan

ROOT = Path(__file__).parents[3]


@pytest.fixture
def faked(monkeypatch):
    fake.install(monkeypatch.setattr)


def contents(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


def test_plan_takes_the_first_that_may_succeed():
    assert plan({}, 3) == ([], [0, 1, 2])
    assert plan({0: True, 1: False, 3: True}, 3) == ([0, 3], [2])
    assert plan({0: True, 1: False, 2: True, 5: True}, 2) == ([0, 2], [])


def test_failed_cars_are_recorded_and_replaced(tmp_path, faked):
    seen = []
    folder = generate_cars(tmp_path / "c", 4, seed=3, progress=lambda *p: seen.append(p))
    assert folder.accepted(4) == [0, 2, 3, 5]
    assert folder.refused(5) == {1: "car 1 diverged", 4: "car 4 diverged"}
    assert folder.refused(3) == {1: "car 1 diverged"}
    assert (seen[0], seen[-1]) == ((0, 4), (4, 4))
    car = folder.read(2)
    np.testing.assert_array_equal(car.pressure, fake.pressure_of(3, 2))
    assert car.report["body"] in generation.bodies.BODIES
    assert not (tmp_path / "c/cases").exists()
    assert not list((tmp_path / "c").rglob("*.part"))


def test_workers_do_not_matter(tmp_path, faked):
    for workers in (1, 3):
        generate_cars(tmp_path / str(workers), 5, seed=3, workers=workers)
    one, three = (contents(tmp_path / str(workers)) for workers in (1, 3))
    # Three workers may be at index 8 when index 6 makes it unneeded; never the reverse.
    assert one.items() <= three.items()
    chosen = [Folder.open(tmp_path / str(workers)).accepted(5) for workers in (1, 3)]
    assert chosen[0] == chosen[1]


def test_a_second_call_makes_nothing_and_a_larger_one_adds(tmp_path, faked, monkeypatch):
    generate_cars(tmp_path / "c", 2, seed=3)
    before = contents(tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(solver, "solve", None)
        generate_cars(tmp_path / "c", 2, seed=3)
    assert contents(tmp_path / "c") == before
    generate_cars(tmp_path / "c", 3, seed=3)
    assert before.items() < contents(tmp_path / "c").items()


CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
sys.path[:0] = [sys.argv[2]]
from tests.experiments.cars import fake
from tests.experiments.cars.synthetic_cars import write_cars
from uqno.experiments.cars.generation import generate_cars
fake.install(pause=0.2)
show = lambda done, total: print(done, flush=True)
generate_cars(sys.argv[1], 6, seed=3, workers=2, progress=show)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_then_resumed_is_the_uninterrupted_set(tmp_path, monkeypatch, how):
    path, command = tmp_path / "c", [sys.executable, "-c", CHILD]
    with subprocess.Popen(
        [*command, str(path), str(ROOT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        while int(process.stdout.readline()) < 2:
            pass
        process.send_signal(how)
        begin = time.monotonic()
        process.wait()
    assert time.monotonic() - begin < 20
    left = Folder.open(path)
    assert 2 <= sum(left.decided().values()) < 6
    with pytest.raises(ValueError, match=r"c is unfinished: .* are missing.*it goes on"):
        left.accepted(6)
    fake.install(monkeypatch.setattr)
    generate_cars(path, 6, seed=3)
    generate_cars(tmp_path / "whole", 6, seed=3)
    for name, content in contents(tmp_path / "whole").items():
        assert (path / name).read_bytes() == content, name


def test_an_error_that_is_not_the_cars_stops_the_run(tmp_path, faked, monkeypatch):
    def stopped(*arguments):
        raise InterruptedError("simpleFoam was stopped by signal 9")

    with monkeypatch.context() as patch:
        patch.setattr(solver, "solve", stopped)
        with pytest.raises(InterruptedError):
            generate_cars(tmp_path / "c", 2, seed=3, workers=2)
    assert Folder.open(tmp_path / "c").decided() == {}


def test_if_all_fail_the_reason_is_told(tmp_path, faked, monkeypatch):
    def fails(*arguments):
        raise solver.CarFailed("no mesh")

    monkeypatch.setattr(solver, "solve", fails)
    with pytest.raises(ValueError, match=r"none of the first 8 cars .* car 0: no mesh"):
        generate_cars(tmp_path / "c", 20, seed=3)


def test_other_cars_in_the_folder_are_refused(tmp_path, faked):
    generate_cars(tmp_path / "c", 1, seed=3)
    with pytest.raises(ValueError, match="holds cars of seed 3"):
        generate_cars(tmp_path / "c", 1, seed=4)
    with pytest.raises(ValueError, match="another folder"):
        generate_cars(tmp_path / "c", 1, seed=3, settings=Flow(cell=0.5))
    told = json.loads((tmp_path / "c/set.json").read_text())
    (tmp_path / "c/set.json").write_text(json.dumps({**told, "version": 0}))
    with pytest.raises(ValueError, match="recipe version 0"):
        generate_cars(tmp_path / "c", 1, seed=3)
    with pytest.raises(ValueError, match=r"no set\.json"):
        Folder.open(tmp_path)
    with pytest.raises(ValueError, match="at least 1, got 0 and 1"):
        generate_cars(tmp_path / "d", 0)


def test_one_generation_at_a_time(tmp_path, faked):
    generate_cars(tmp_path / "c", 1, seed=3)
    with (
        storage.alone(tmp_path / "c", "the making of cars"),
        pytest.raises(ValueError, match="another process has the making of cars"),
    ):
        generate_cars(tmp_path / "c", 2, seed=3)


def test_packed_and_loaded(tmp_path, faked):
    generate_cars(tmp_path / "c", 4, seed=3)
    cars = shipped.pack(tmp_path / "c", tmp_path / "cars.npz", 4)
    assert cars.indices.tolist() == [0, 2, 3, 5]
    assert (len(cars), cars.seed) == (4, 3)
    assert cars.dynamic_pressure == pytest.approx(245)
    for i, index in enumerate(cars.indices):
        exact = fake.pressure_of(3, int(index))
        # Half precision of Cp: 11 bits.
        np.testing.assert_allclose(cars.pressure[i], exact, rtol=2**-11, atol=1e-3)
        assert cars.shape(i) == generation.shapes.draw(3, int(index))
    assert cars.provenance["software"]["openfoam"] == "fake"
    assert cars.provenance["settings"] == Flow().record()
    assert cars.provenance["refused"] == {"1": "car 1 diverged", "4": "car 4 diverged"}
    assert cars.provenance["reports"]["5"]["iterations"] == 7
    assert (tmp_path / "cars.npz").stat().st_size < 4 * 10_000
    with pytest.raises(ValueError, match="unfinished: 1 of 5"):
        shipped.pack(tmp_path / "c", tmp_path / "more.npz", 5)


def test_a_missing_or_foreign_file_is_told_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path / "cars.npz")
    with pytest.raises(ValueError, match="does not exist; make it with: uqno data cars --cars 611"):
        shipped.load()
    np.savez(tmp_path / "cars.npz", pressure=np.zeros(3))
    with pytest.raises(ValueError, match="lacks format, names"):
        shipped.load()


def test_a_damaged_car_is_named(tmp_path, faked):
    folder = generate_cars(tmp_path / "c", 1, seed=3)
    np.savez(tmp_path / "c/cars/000000.npz", nothing=np.zeros(1))
    with pytest.raises(ValueError, match=r"000000\.npz is no whole car \(it lacks .*remove it"):
        folder.read(0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "Expecting value"),
        ("[]", r"it holds \[\]"),
        ('{"version": 1}', "'seed'"),
        ('{"version": 1, "seed": 3, "settings": {"colour": 1}}', "colour"),
    ],
)
def test_a_damaged_set_is_named(tmp_path, content, reason):
    (tmp_path / "set.json").write_text(content)
    with pytest.raises(ValueError, match=rf"set\.json is damaged.*{reason}"):
        Folder.open(tmp_path)


def test_a_damaged_refusal_is_named_and_other_files_are_left_alone(tmp_path, faked):
    folder = generate_cars(tmp_path / "c", 2, seed=3)
    (tmp_path / "c/refused/notes.json").write_text("mine")
    assert folder.refused(2) == {1: "car 1 diverged"}
    (tmp_path / "c/refused/000001.json").write_text("")
    with pytest.raises(ValueError, match=r"000001\.json is damaged .*remove it"):
        folder.refused(2)


def test_a_finished_folder_needs_no_solver(tmp_path, faked, monkeypatch):
    generate_cars(tmp_path / "c", 2, seed=3)
    monkeypatch.setattr(solver, "find_openfoam", lambda: pytest.fail("looked for OpenFOAM"))
    assert generate_cars(tmp_path / "c", 2, seed=3).accepted(2) == [0, 2]


def test_a_full_disk_is_not_the_cars_fault(tmp_path, faked, monkeypatch):
    monkeypatch.setattr(generation, "SPARE_BYTES", 2**62)
    with pytest.raises(OSError, match=r"is full, so car 1 failed: .*free some space"):
        generate_cars(tmp_path / "c", 2, seed=3)
    monkeypatch.undo()
    assert not list((tmp_path / "c").glob("refused/*"))


def test_what_is_wrong_in_a_file_of_cars_is_named(tmp_path):
    file = write_cars(tmp_path / "cars.npz", 2)
    with np.load(file) as archive:
        whole = dict(archive)
    for change, reason in [
        ({"dynamic_pressure": np.array(240.0)}, "lacks dynamic_pressure"),
        ({"dynamic_pressure": np.array([])}, "dynamic_pressure must be one number"),
        ({"provenance": np.frombuffer(b"{", np.uint8)}, "provenance cannot be read"),
        ({"parameters": np.zeros((2, 27), np.float32)}, "length, .* must be positive"),
    ]:
        np.savez(file, **{**whole, **change})
        with pytest.raises(ValueError, match=rf"cars\.npz.*{reason}"):
            shipped.load(file)
