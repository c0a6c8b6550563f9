"""Every chunk of a chunked array is read once, and nothing is kept of what has passed by."""

import weakref

import numpy as np
import pytest

import uqno
from uqno.conformal.stream import SLAB_BYTES, FunctionStream, Slabs, Stream


class Counting:
    """An array in chunks along the functions that counts how often each row is read."""

    def __init__(self, values, chunk):
        self.values, self.chunks = values, (chunk, *values.shape[1:])
        self.shape, self.dtype = values.shape, values.dtype
        self.reads = []

    def __getitem__(self, rows):
        self.reads.append((rows.start, rows.stop))
        return self.values[rows]


@pytest.mark.parametrize("chunk", [1, 7, 100, 200, 500])
def test_each_chunk_is_read_once_and_in_order(chunk):
    rng = np.random.default_rng(0)
    error, uncertainty = rng.normal(size=(200, 1000)), np.ones((200, 1000))
    e, E = Counting(error, chunk), Counting(uncertainty, 100)
    cal = uqno.calibrate(e, E, 0.1, 0.1)
    assert cal == uqno.calibrate(error, uncertainty, 0.1, 0.1)
    starts = list(range(0, 200, chunk))
    assert e.reads == [(i, min(i + chunk, 200)) for i in starts]
    assert E.reads == [(0, 100), (100, 200)]


def test_a_store_of_two_chunks_is_read_twice(tmp_path, monkeypatch):
    import zarr

    values = np.random.default_rng(0).normal(size=(200, 5000)).astype(np.float32)
    arrays = []
    for name, content in (("error", values), ("uncertainty", np.ones_like(values))):
        arrays.append(
            zarr.create_array(
                tmp_path / name, shape=values.shape, chunks=(100, 5000), dtype="float32"
            )
        )
        arrays[-1][:] = content
    reads = []
    read = zarr.Array.__getitem__
    monkeypatch.setattr(
        zarr.Array, "__getitem__", lambda self, rows: reads.append(self.path) or read(self, rows)
    )
    uqno.calibrate(*arrays, 0.1, 0.1)
    assert len(reads) == 4  # two of each


def test_a_slab_is_bounded():
    wide = np.lib.stride_tricks.as_strided(np.zeros(1), (1000, 10**6), (0, 0))
    slabs = Slabs(Counting(wide, 1000))
    assert slabs.step * 8 * 10**6 <= SLAB_BYTES
    assert Slabs(np.zeros((3, 4))).step is None


def test_dask_like_chunks():
    values = Counting(np.arange(20.0).reshape(10, 2), 4)
    values.chunks = ((4, 4, 2), (2,))
    slabs = Slabs(values)
    np.testing.assert_array_equal(slabs.take(0, 5), values.values[:5])
    np.testing.assert_array_equal(slabs.take(5, 10), values.values[5:])
    assert values.reads == [(0, 4), (4, 8), (8, 10)]


def test_a_stream_of_triples_forgets_what_has_passed_by():
    class Function(np.ndarray):
        pass

    alive = []

    def triples():
        for seed in range(12):
            rng = np.random.default_rng(seed)
            error = rng.normal(size=300).view(Function)
            alive.append(sum(ref() is not None for ref in refs))
            refs.append(weakref.ref(error))
            yield error, np.ones(300), None
            del error

    refs = []
    uqno.calibrate(FunctionStream(triples()), alpha=0.1, delta=0.1)
    assert max(alive) <= 1


def test_weights_of_a_stream_of_triples():
    rng = np.random.default_rng(0)
    error, uncertainty = rng.normal(size=(60, 30)), np.ones((60, 30))
    weights = rng.random((60, 30))
    triples = FunctionStream(zip(error, uncertainty, weights, strict=True), weighted=True)
    weighted = uqno.calibrate(error, uncertainty, 0.1, 0.1, weights=weights)
    assert uqno.calibrate(triples, alpha=0.1, delta=0.1) == weighted


def test_a_stream_says_what_it_knows():
    ragged = [np.ones(3), np.ones(5)]
    assert Stream(ragged, ragged).sizes == (3, 5)
    assert Stream(iter(ragged), ragged).number == 2
    assert Stream(iter(ragged), iter(ragged)).number is None
    assert Stream(iter(ragged), iter(ragged)).sizes is None
    assert not Stream(ragged, ragged).weighted
