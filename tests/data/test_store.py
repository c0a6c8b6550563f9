"""A store is read lazily and whole, or refused by name."""

import copy
import json
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import torch
import zarr

from uqno.data.samples import GridSamples, node_weights
from uqno.data.store import FunctionStore

rng = np.random.default_rng(0)
FUNCTIONS = {n: tuple(rng.random((2, 5, n, n)).astype(np.float32)) for n in (5, 9)}


def fresh_store(path):
    seeds = np.stack([np.zeros(5, int), np.arange(5)], axis=1)
    store = FunctionStore.create(path, {"any": "record"}, seeds, (5, 9), chunk=2)
    for chunk in range(3):
        p = store.positions(chunk)
        store.write(
            chunk,
            {n: (a[p.start : p.stop], u[p.start : p.stop]) for n, (a, u) in FUNCTIONS.items()},
        )
    return store


@pytest.fixture
def store(tmp_path):
    return fresh_store(tmp_path / "d.zarr")


def test_samples_follow_the_contract(store):
    data = store.samples(9)
    assert len(data) == 5
    for i, sample in enumerate(data):
        assert set(sample) == {"a", "u", "weights"}
        assert all(value.dtype == torch.float32 for value in sample.values())
        np.testing.assert_array_equal(sample["a"], FUNCTIONS[9][0][i][None])
        np.testing.assert_array_equal(sample["u"], FUNCTIONS[9][1][i][None])
        assert sample["weights"].shape == (9, 9)
    with pytest.raises(IndexError):
        data[5]
    torch.testing.assert_close(data[-1]["u"], data[4]["u"])


def test_subsets_memory_and_copies_keep_the_order(store):
    data = store.samples(5, [4, 0, 3])
    for same in (data, data.in_memory(), copy.deepcopy(data)):
        np.testing.assert_array_equal(same.arrays()[1], FUNCTIONS[5][1][[4, 0, 3]])
        torch.testing.assert_close(same.subset([2, 0])[0]["u"], data[2]["u"])
        assert len(same.subset([])) == len(same.subset([]).in_memory()) == 0
    data.in_memory()[0]["u"].zero_()
    assert data[0]["u"].abs().sum() > 0


def test_a_sample_is_the_callers_own(store):
    data = store.samples(5).in_memory()
    before = data[1]["u"].clone()
    for value in data[1].values():
        value.zero_()
    torch.testing.assert_close(data[1]["u"], before)
    assert data[1]["weights"].sum() > 0


@pytest.mark.parametrize("measure", ["points", "area"])
def test_weights_are_a_probability(measure):
    weights = node_weights((5, 9), measure)
    assert weights.shape == (5, 9)
    assert weights.sum() == pytest.approx(1)
    x, y = np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 1, 9), indexing="ij")
    if measure == "area":  # the trapezoid rule is exact for bilinear functions
        assert (weights * (1 + x) * (2 - y)).sum() == pytest.approx(1.5 * 1.5)
    else:
        assert np.ptp(weights) == 0


def test_anyone_can_read_it_with_zarr(store):
    group = zarr.open_group(store.path, mode="r")
    np.testing.assert_array_equal(group["9/solutions"][:], FUNCTIONS[9][1])
    assert group.attrs["recipe"] == {"any": "record"}


def test_a_lost_file_is_named(store):
    lost = store.path / "9" / "inputs" / "c" / "1" / "0" / "0"
    lost.unlink()
    with pytest.raises(ValueError, match=r"d\.zarr is cut short: .*9/inputs/c/1/0/0 is marked"):
        FunctionStore.open(store.path)


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_file_is_named_when_read(store, damage):
    file = store.path / "9" / "solutions" / "c" / "0" / "0" / "0"
    whole = file.read_bytes()
    middle = bytes([whole[40] ^ 1])
    file.write_bytes(whole[:-20] if damage == "cut" else whole[:40] + middle + whole[41:])
    data = FunctionStore.open(store.path).samples(9)
    with pytest.raises(ValueError, match=r"function 0 of .*d\.zarr/9/solutions.* cannot be read"):
        data[0]


def test_foreign_folders_are_refused_by_name(tmp_path, store):
    with pytest.raises(ValueError, match=r"absent is not a folder"):
        FunctionStore.open(tmp_path / "absent")
    (tmp_path / "plain").mkdir()
    with pytest.raises(ValueError, match=r"plain is not a zarr group"):
        FunctionStore.open(tmp_path / "plain")
    zarr.create_group(tmp_path / "other")
    with pytest.raises(ValueError, match=r"other is a zarr group but not a store of functions"):
        FunctionStore.open(tmp_path / "other")
    shutil.rmtree(store.path / "9" / "solutions")
    with pytest.raises(ValueError, match=r"d\.zarr is cut short: it has no array .*9/solutions"):
        FunctionStore.open(store.path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("format_version", 99, "format version 99"), ("recipe", None, "lacks .*recipe")],
)
def test_other_versions_are_refused(store, key, value, message):
    file = store.path / "zarr.json"
    metadata = json.loads(file.read_text())
    metadata["attributes"][key] = value
    if value is None:
        del metadata["attributes"][key]
    file.write_text(json.dumps(metadata))
    with pytest.raises(ValueError, match=message):
        FunctionStore.open(store.path)


def test_bad_requests_are_named(store, tmp_path):
    with pytest.raises(ValueError, match=r"resolutions \(5, 9\), not 7"):
        store.samples(7)
    with pytest.raises(ValueError, match="0 to 4"):
        store.samples(9, [5])
    with pytest.raises(ValueError, match="measure must be one of"):
        store.samples(9, measure="mass")
    with pytest.raises(FileExistsError, match=r"d\.zarr already exists"):
        fresh_store(tmp_path / "d.zarr")
    (store.path / "done" / "c" / "2").unlink()
    with pytest.raises(ValueError, match="chunk 2 at 5 needs"):
        store.write(2, FUNCTIONS)
    with pytest.raises(ValueError, match="one shape"):
        GridSamples(np.zeros((2, 3, 3)), np.zeros((2, 3, 4)), (0,))
    assert [p.name for p in tmp_path.iterdir()] == ["d.zarr"], "nothing is left aside"


# --- several writers, and what a disk lost ---------------------------------------------------


def test_files_are_those_that_zarr_itself_writes(store, tmp_path):
    shutil.copytree(store.path, tmp_path / "other.zarr")
    shutil.rmtree(tmp_path / "other.zarr" / "9" / "solutions" / "c")
    zarr.open_group(tmp_path / "other.zarr", mode="r+")["9/solutions"][:] = FUNCTIONS[9][1]
    for chunk in range(3):
        place = f"9/solutions/c/{chunk}/0/0"
        assert (store.path / place).read_bytes() == (tmp_path / "other.zarr" / place).read_bytes()


def part(chunk):
    return {n: (a[2 * chunk : 2 * chunk + 2], u[2 * chunk : 2 * chunk + 2])
            for n, (a, u) in FUNCTIONS.items()}  # fmt: skip


def test_a_slow_writer_does_not_undo_a_fast_one(store, monkeypatch):
    """It looked before the fast one was done: whatever it does now, the chunk stays whole."""
    monkeypatch.setattr(FunctionStore, "done", lambda self: np.zeros(3, bool))
    seen = []

    def whole(path, content):
        again = {p: p.exists() for p in store.path.rglob("c/1/0/0")}
        seen.append(all(again.values()) and len(again) == 4)
        raise OSError("killed here")

    monkeypatch.setattr("uqno.data.store.write_bytes", whole)
    with pytest.raises(OSError, match="killed here"):
        store.write(1, part(1))
    monkeypatch.undo()
    assert seen == [True]
    np.testing.assert_array_equal(FunctionStore.open(store.path).samples(9).arrays()[1],
                                  FUNCTIONS[9][1])  # fmt: skip


def _write_and_repair(path, rounds):
    for _ in range(rounds):
        store = FunctionStore.repaired(path)
        for chunk in range(3):
            mark = store.path / "done" / "c" / str(chunk)
            mark.unlink(missing_ok=True)  # so that all of them write all the time
            store.write(chunk, part(chunk))


def test_several_writers_of_one_chunk(store):
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(_write_and_repair, store.path, 5) for _ in range(3)]:
            done.result()
    assert FunctionStore.repaired(store.path).done().all()
    for n in (5, 9):
        for found, expected in zip(store.samples(n).arrays(), FUNCTIONS[n], strict=True):
            np.testing.assert_array_equal(found, expected)
    assert not list(store.path.rglob("*.damaged*")), "nothing whole was taken for damaged"


@pytest.mark.parametrize("damage", ["empty", "cut", "flip", "zeros", "lost"])
@pytest.mark.parametrize("place", ["9/solutions/c/1/0/0", "done/c/1"])
def test_what_came_back_damaged_is_set_aside_and_made_again(store, place, damage):
    file = store.path / place
    whole = file.read_bytes()
    flipped = bytes([whole[len(whole) // 3] ^ 2]) if len(whole) > 1 else b"\x09"
    content = {
        "empty": b"", "cut": whole[: len(whole) // 2], "zeros": bytes(len(whole)), "lost": None,
        "flip": whole[: len(whole) // 3] + flipped + whole[len(whole) // 3 + 1 :],
    }[damage]  # fmt: skip
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    again = FunctionStore.repaired(store.path)
    assert again.done().tolist() == [True, False, True]
    named = [p.name for p in store.path.rglob("*.damaged")]
    assert named == ([] if damage == "lost" else [file.name + ".damaged"])
    again.write(1, part(1))
    np.testing.assert_array_equal(FunctionStore.open(store.path).samples(9).arrays()[1],
                                  FUNCTIONS[9][1])  # fmt: skip


def test_a_damaged_mark_is_named_when_the_store_is_opened(store):
    (store.path / "done" / "c" / "0").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a mark in .*done is damaged .*run the generation again"):
        FunctionStore.open(store.path)
