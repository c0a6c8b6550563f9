"""NumPy's files that declare more than they hold, or would unpack to more than the budget."""

import io
import struct
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import torch  # noqa: F401  what it takes to be imported is not counted

from uqno.data import open as open_fields
from uqno.data.arrays import open_variables, read_arrays
from uqno.data.calibrations import read_calibration, write_calibration
from uqno.experiments.profiles import read_stamped
from uqno.memory import VARIABLE
from uqno.numpy_files import read_npy, read_npz

MANY = {
    "float": np.arange(6.0).reshape(2, 3), "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "text": np.array("word"), "none": np.empty((0, 4)), "truth": np.array([True, False]),
    "empty text": np.array(["", ""], dtype="U0"), "time": np.array([3], dtype="datetime64[s]"),
    "records": np.zeros(2, dtype=[("x", "f4"), ("y", "i8")]), "big": np.arange(3, dtype=">i2"),
}  # fmt: skip


def head(shape, descr="<f8", version=1, length=None):
    """The head of a .npy file."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n".encode()
    kind = "<H" if version == 1 else "<I"
    size = struct.pack(kind, len(text) if length is None else length)
    return b"\x93NUMPY" + bytes((version, 0)) + size + text


def archive(path, name, content, **options):
    with zipfile.ZipFile(path, "w", **options) as file:
        file.writestr(f"{name}.npy", content)
    return path


def peak_of(call):
    """The most bytes that Python held during a call that is refused, and the error."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            call()
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_as_numpy_reads_them(save, tmp_path):
    save(tmp_path / "x.npz", **MANY)
    read = read_npz(tmp_path / "x.npz")
    assert list(read) == list(MANY)
    for name, expected in MANY.items():
        assert (read[name].dtype, read[name].shape) == (expected.dtype, expected.shape)
        assert np.array_equal(read[name], expected)
    assert list(read_npz(tmp_path / "x.npz", ("text",))) == ["text"]
    for name, expected in MANY.items():
        np.save(tmp_path / "x.npy", expected)
        assert np.array_equal(read_npy(tmp_path / "x.npy"), expected), name


LIES = {
    "larger": head((10**12,)) + b"12345678",
    "overflow": head((2**40, 2**40)) + b"12345678",
    "shorter": head((1,)) + b"1" * 16,
    "negative": head((-1,)) + b"12345678",
    "objects": head((1,), "|O") + b"12345678",
    "head": head((1,), version=2, length=2**32 - 1) + b"12345678",
    "version": head((1,)).replace(b"Y\x01", b"Y\x07") + b"12345678",
    "text": b"word",
    "nothing": b"",
    "code": head((1,), "__import__('os')") + b"12345678",
    "deep": head(()).replace(b"()", b"(" * 5000),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_head_that_lies_is_refused_before_memory_is_taken(lie, tmp_path):
    (tmp_path / "x.npy").write_bytes(lie or b"\n")
    archive(tmp_path / "x.npz", "u", lie)
    for read, name in (
        (read_npy, "x.npy"), (read_npz, "x.npz"), (read_arrays, "x.npz"),
        (open_fields, "x.npy"), (open_fields, "x.npz"),
    ):  # fmt: skip
        peak, said = peak_of(lambda read=read, name=name: read(tmp_path / name))
        assert peak < 2**22, f"{read} took {peak} bytes"
        assert name in said


@pytest.fixture
def bomb(tmp_path):
    """A file of 100 KB that unpacks to 100 MB."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("u.npy", "w") as one:
        one.write(head((100, 125_000)))
        for _ in range(100):
            one.write(bytes(10**6))
    assert path.stat().st_size < 2**18
    return path


def test_an_archive_that_unpacks_to_more_than_the_budget_is_refused(bomb, monkeypatch):
    def first_function():
        with open_variables(bomb) as variables:
            variables["u"][0:1]

    monkeypatch.setenv(VARIABLE, "500 KB")
    for read in (
        lambda: read_npz(bomb), lambda: read_arrays(bomb), first_function,
        lambda: read_stamped(bomb, "x", 1, "make it again"),
        lambda: open_fields(bomb, inputs="u", outputs="u")[0],
    ):  # fmt: skip
        peak, said = peak_of(read)
        assert "the memory budget is 500 KB" in said
        assert peak < 2**22, said
    monkeypatch.setenv(VARIABLE, "50 MB")  # in parts it may be read
    with open_variables(bomb) as variables:
        assert not any(variables["u"][i : i + 1].any() for i in range(100))


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_compressions_that_numpy_does_not_write_are_refused(method, tmp_path):
    archive(tmp_path / "x.npz", "u", head((1,)) + b"12345678", compression=method)
    for read in (read_npz, read_arrays, open_fields):
        with pytest.raises(ValueError, match=r"compressed by method 1[24] of zip, expected 0 or 8"):
            read(tmp_path / "x.npz")


@pytest.mark.parametrize("at", [0, 20, 60, 150, 400, -60, -10])
def test_a_damaged_archive_is_refused(at, tmp_path):
    content = io.BytesIO()
    np.savez_compressed(content, u=np.random.default_rng(0).random(100))
    damaged = bytearray(content.getvalue())
    damaged[at] ^= 0xFF
    (tmp_path / "x.npz").write_bytes(damaged)
    read = {}
    with suppress(ValueError):
        read = read_npz(tmp_path / "x.npz")
    # Else a byte that says nothing of the content, such as a date.
    assert "u" not in read or np.array_equal(read["u"], np.random.default_rng(0).random(100))
    (tmp_path / "x.npz").write_bytes(content.getvalue()[:at])
    with pytest.raises(ValueError, match=r"x\.npz"):
        read_npz(tmp_path / "x.npz")


def test_a_name_that_is_not_there_is_named(tmp_path):
    np.savez(tmp_path / "x.npz", u=1)
    with pytest.raises(ValueError, match="w"):
        read_npz(tmp_path / "x.npz", ("w",))
    with pytest.raises(ValueError, match="not whole"):
        read_npz(tmp_path / "absent.npz")


def test_scores_beside_a_calibration_are_compared_with_the_budget(tmp_path, monkeypatch):
    from uqno import calibrate

    rng = np.random.default_rng(0)
    error = np.abs(rng.normal(size=(10_500, 5)))
    cal = calibrate(error, np.ones_like(error), alpha=0.2, delta=0.2, sampling="iid")
    write_calibration(tmp_path / "c.json", cal)
    assert read_calibration(tmp_path / "c.json") == cal
    monkeypatch.setenv(VARIABLE, "50 KB")
    with pytest.raises(ValueError, match=r"c\.scores-[0-9a-f]+\.npy declares .* budget is 50 KB"):
        read_calibration(tmp_path / "c.json")
    monkeypatch.delenv(VARIABLE)
    (beside,) = tmp_path.glob("c.scores-*.npy")
    beside.write_bytes(LIES["larger"])
    with pytest.raises(ValueError, match=r"declares the shape \(1000000000000,\)"):
        read_calibration(tmp_path / "c.json")
