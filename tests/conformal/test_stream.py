"""Every chunk of a chunked array is read once, and nothing is kept of what has passed by."""

import weakref

import numpy as np
import pytest

import uqno
from uqno.conformal.stream import SLAB_BYTES, FunctionStream, Slabs, Stream, is_array


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


# --- chunks ----------------------------------------------------------------------------------


def firsts(stream):
    return [(chunk.first, len(chunk.error)) for chunk in stream.chunks()]


def test_small_functions_go_together():
    ones = np.ones((70_000, 2))
    assert firsts(Stream(ones, ones)) == [(0, 32768), (32768, 32768), (65536, 4464)]
    assert firsts(Stream(ones[:, :1], ones[:, :1])) == [(0, 65536), (65536, 4464)]
    large = np.ones((3, 40_000))
    assert firsts(Stream(large, large)) == [(0, 1), (1, 1), (2, 1)]
    halves = np.ones((3, 2**15))
    assert firsts(Stream(halves, halves)) == [(0, 2), (2, 1)]
    assert firsts(Stream(list(ones[:3]), list(ones[:3]))) == [(0, 1), (1, 1), (2, 1)]


def test_a_chunk_is_flat_and_of_norms():
    error = np.array([[[[3.0, 4], [0, 1]]], [[[5, 12], [8, 6]]]])  # (2, 1, 2, 2): vectors on a grid
    (chunk,) = Stream(error, np.ones((2, 1, 2))).chunks()
    np.testing.assert_array_equal(chunk.error, [[5, 1], [13, 10]])
    assert chunk.error.dtype == np.float64
    assert chunk.uncertainty.shape == (2, 2)
    assert chunk.weights is None
    (signed,) = Stream(-np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)).chunks()
    np.testing.assert_array_equal(signed.error, -np.ones((2, 3)))
    assert signed.error.dtype == np.float32
    (norms,) = Stream(-np.ones((2, 3, 1)), np.ones((2, 3))).chunks()
    np.testing.assert_array_equal(norms.error, np.ones((2, 3)))
    single = np.array([[[0.1, 0.3]]], np.float32)
    (chunk,) = Stream(single, np.ones((1, 1), np.float32)).chunks()
    assert chunk.error.item() == np.hypot(*single.ravel().astype(np.float64))


def test_the_function_of_a_bad_vector_is_named():
    error = np.ones((3, 40_000, 2))
    error[2, 7, 1] = np.nan
    with pytest.raises(ValueError, match="error of function 2 is nan at point 15"):
        uqno.calibrate(error, np.ones((3, 40_000)), 0.5, 0.5)
    many = np.ones((40, 3, 2))
    many[31, 1, 0] = np.inf
    with pytest.raises(ValueError, match="error of function 31 is inf at point 2"):
        uqno.calibrate(many, np.ones((40, 3)), 0.5, 0.5)


def test_weights_of_a_chunk():
    ones, weights = np.ones((3, 2)), np.array([[1.0, 2], [3, 4], [5, 6]])
    for given in (weights, list(weights), iter(weights)):
        (chunk,) = Stream(ones, ones, given).chunks()
        np.testing.assert_array_equal(chunk.weights, weights)
    for given in (weights[0], weights[0].tolist(), [1, 2]):
        (chunk,) = Stream(ones, ones, given).chunks()
        np.testing.assert_array_equal(chunk.weights, [[1, 2]] * 3)
    for errors in (list, iter):
        for given in (weights, iter(weights)):
            chunks = list(Stream(errors(ones), errors(ones), given).chunks())
            np.testing.assert_array_equal([c.weights[0] for c in chunks], weights)
    (chunk,) = Stream(ones[:, :1], ones[:, :1], [2.0]).chunks()
    np.testing.assert_array_equal(chunk.weights, [[2]] * 3)
    with pytest.raises(ValueError, match="got 1 of weights, 0 of uncertainty"):
        list(Stream(iter([]), iter([]), iter(weights[:1])).chunks())


def test_weights_of_an_object_array_of_functions():
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.ones(3), np.ones(4)]
    stream = Stream(ragged, ragged, [np.arange(3.0), np.arange(4.0)])
    assert (stream.number, stream.sizes) == (2, None)
    assert [len(c.weights[0]) for c in stream.chunks()] == [3, 4]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.array(2.0), "one number a point, got array"),
        (3, "one number a point, got 3"),
        (object(), "one number a point, got <object"),
        ([], "weights are empty"),
        (np.ones(3), "weights of function 0 have 3 points, expected 4"),
        (["a", "b"], "weights of function 0 has dtype"),
        (iter([np.ones(4)] * 9), "weights ends after 9 functions and the others go on"),
        (iter([np.ones(4)] * 12), "got 12 of weights, 10 of uncertainty"),
        ([np.ones(4)] * 6 + [-np.ones(4)] * 4, "weights of function 6 is -1.0 at point 0"),
        (np.full(4, 1e308), "weights of function 0 have an infinite sum"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_weights_that_do_not_fit(weights, said, streamed):
    if hasattr(weights, "__next__"):
        weights = [np.ones(4)] * (9 if "after 9" in said else 12)
        weights = iter(weights)
    ones = np.ones((10, 4))
    given = (list(ones), list(ones)) if streamed else (ones, ones)
    with pytest.raises(ValueError, match=said):
        list(Stream(*given, weights).chunks())


def test_which_functions_a_message_names():
    ones, complex_ones = np.ones((3, 2)), np.ones((3, 2), complex)
    with pytest.raises(ValueError, match="error of functions 0 to 2 has dtype complex128"):
        list(Stream(complex_ones, ones).chunks())
    with pytest.raises(ValueError, match="uncertainty of functions 0 to 2 has dtype complex128"):
        list(Stream(ones, complex_ones).chunks())
    with pytest.raises(ValueError, match="error of function 1 has dtype complex128"):
        list(Stream([ones[0], complex_ones[0]], [ones[0]] * 2).chunks())
    with pytest.raises(ValueError, match="uncertainty of function 1 has dtype complex128"):
        list(Stream([ones[0]] * 2, [ones[0], complex_ones[0]]).chunks())
    with pytest.raises(ValueError, match="each function has shape"):
        Stream(ones, np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"error of function 1 has shape \(2,\), uncertainty"):
        list(Stream([ones[0]] * 2, [ones[0], np.ones(5)]).chunks())
    with pytest.raises(ValueError, match="3 of error, 2 of uncertainty"):
        Stream(ones, ones[:2])
    with pytest.raises(ValueError, match="2 of error, 3 of uncertainty"):
        Stream(list(ones)[:2], list(ones))
    with pytest.raises(ValueError, match="uncertainty must hold functions, got int"):
        Stream(ones, 3)


def test_numbers_and_sizes_that_are_known():
    grid = np.ones((5, 3, 4))
    assert Stream(grid, grid).sizes == (12,) * 5
    assert Stream(grid, grid).number == 5
    assert Stream(list(grid), grid).sizes == (12,) * 5
    assert Stream(grid, list(grid)).sizes == (12,) * 5
    assert Stream(grid, iter(grid)).sizes is None
    assert Stream(grid, iter(grid)).number == 5
    assert Stream(grid, grid, np.ones((3, 4))).weighted
    chunked = Counting(grid, 2)  # has a shape, but no len()
    assert Stream(chunked, chunked).number == 5
    del chunked.dtype
    assert is_array(chunked)
    empty = FunctionStream([])
    assert (empty.number, empty.sizes, empty.weighted) == (None, None, False)


# --- slabs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 10, 11])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 10])
def test_slabs_hand_on_every_row_once(chunk, rows):
    values = Counting(np.arange(20.0).reshape(10, 2), chunk)
    slabs = Slabs(values)
    parts = [slabs.take(i, min(i + rows, 10)) for i in range(0, 10, rows)]
    np.testing.assert_array_equal(np.concatenate(parts), values.values)
    assert [len(p) for p in parts] == [min(rows, 10 - i) for i in range(0, 10, rows)]
    assert values.reads == [(i, min(i + chunk, 10)) for i in range(0, 10, chunk)]


def test_a_slab_within_the_one_that_is_held_is_a_view():
    slabs = Slabs(Counting(np.arange(20.0).reshape(10, 2), 5))
    assert np.shares_memory(slabs.take(0, 2), slabs.held)
    assert np.shares_memory(slabs.take(2, 5), slabs.held)


def test_how_many_rows_are_read_at_once():
    row = SLAB_BYTES // 4
    for length, rows in ((row // 8, 4), (row // 8 + 1, 3), (row, 1), (5 * row, 1)):
        wide = np.lib.stride_tricks.as_strided(np.zeros(1), (9, length), (0, 0))
        assert Slabs(Counting(wide, 9)).step == rows
    single = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (9, row // 8), (0, 0))
    assert Slabs(Counting(single, 9)).step == 8
    assert Slabs(Counting(np.zeros((9, 0)), 9)).step == 9
    bytes_ = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (SLAB_BYTES, 1), (0, 0))
    assert Slabs(Counting(bytes_, SLAB_BYTES)).step == SLAB_BYTES
    dask_like = Counting(np.zeros((9, 2)), 1)
    dask_like.chunks = ((2, 5, 2), (2,))
    assert Slabs(dask_like).step == 5
    dask_like.chunks = ()
    assert Slabs(dask_like).step is None
