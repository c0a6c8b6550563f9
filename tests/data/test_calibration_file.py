"""Calibration files of every kind give the calibration of their arrays; damaged ones are named."""

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner
from zarr.storage import LocalStore

import uqno.data.arrays
from uqno import Calibration, calibrate
from uqno.cli.app import app
from uqno.data.calibration_file import open_calibration
from uqno.data.calibrations import read_calibration, write_calibration


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((60, 5, 7)).astype(np.float32)
    return {
        "prediction": truth + rng.standard_normal(truth.shape).astype(np.float32),
        "truth": truth,
        "uncertainty": rng.uniform(0.5, 2, truth.shape).astype(np.float32),
    }


def write(path, arrays, compressed=False, chunks=None):
    if path.suffix == ".npz":
        (np.savez_compressed if compressed else np.savez)(path, **arrays)
        return path
    dims = ("function", "y", "x", "component")
    names = {
        n: dims[: a.ndim] if a.shape[0] == 60 else dims[1 : 1 + a.ndim] for n, a in arrays.items()
    }
    dataset = xarray.Dataset({n: (names[n], a) for n, a in arrays.items()})
    if path.suffix == ".zarr":
        encoding = (
            {n: {"chunks": (chunks, *a.shape[1:])} for n, a in arrays.items()} if chunks else {}
        )
        dataset.to_zarr(path, encoding=encoding, consolidated=False)
    else:
        dataset.to_netcdf(path)
    return path


def from_file(path, **more):
    with open_calibration(path) as data:
        return calibrate(data.error, data.uncertainty, 0.1, 0.1, weights=data.weights, **more)


def from_arrays(arrays, **more):
    error = arrays["truth"].astype(float) - arrays["prediction"]
    return calibrate(error, arrays["uncertainty"], 0.1, 0.1, weights=arrays.get("weights"), **more)


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".zarr"])
@pytest.mark.parametrize("slab", [1, 200, 2**24])
def test_every_format_streams_to_the_same_calibration(suffix, slab, arrays, tmp_path, monkeypatch):
    monkeypatch.setattr(uqno.data.arrays, "SLAB_BYTES", slab)
    path = write(tmp_path / f"set{suffix}", arrays, compressed=True, chunks=7)
    assert from_file(path) == from_arrays(arrays)


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".zarr"])
def test_vectors_and_weights(suffix, arrays, tmp_path):
    rng = np.random.default_rng(1)
    vectors = {
        "prediction": rng.standard_normal((60, 5, 7, 2)),
        "truth": rng.standard_normal((60, 5, 7, 2)),
        "uncertainty": arrays["uncertainty"],
    }
    for name, weights in (("all", rng.uniform(size=(5, 7))), ("own", rng.uniform(size=(60, 5, 7)))):
        content = {**vectors, "weights": weights}
        assert from_file(write(tmp_path / f"{name}{suffix}", content)) == from_arrays(content)


def test_progress_counts_functions(arrays, tmp_path, monkeypatch):
    monkeypatch.setattr(uqno.data.arrays, "SLAB_BYTES", 500)
    seen = []
    path = write(tmp_path / "set.npz", arrays)
    with open_calibration(path, lambda *numbers: seen.append(numbers)) as data:
        calibrate(data.error, data.uncertainty, 0.1, 0.1)
    assert seen[-1] == (60, 60)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_file_larger_than_what_is_held(arrays, tmp_path, monkeypatch):
    """At most two slabs of each variable are in memory at once."""
    monkeypatch.setattr(uqno.data.arrays, "SLAB_BYTES", 4 * 35 * 4)
    with open_calibration(write(tmp_path / "set.npz", arrays)) as data:
        for i in range(60):
            data.uncertainty[i : i + 1]
            assert len(data.uncertainty._buffer) <= 8


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("none.npz", None, "does not exist"),
        ("empty.npz", lambda p: p.touch(), "is empty"),
        ("text.npz", lambda p: p.write_text("hello"), "truncated or foreign"),
        ("text.nc", lambda p: p.write_text("hello"), "cannot be opened"),
        ("folder.zarr", lambda p: p.mkdir(), "cannot be opened"),
        ("table.csv", lambda p: p.write_text("1,2"), "expected a .npz"),
        ("some.npz", lambda p: np.savez(p, truth=np.ones((3, 4))), "lacks prediction, uncertainty"),
    ],
)
def test_files_that_cannot_be_read(name, make, said, tmp_path):
    path = tmp_path / name
    if make is not None:
        make(path)
    with pytest.raises(ValueError, match=said), open_calibration(path):
        pass


def test_objects_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a file was unpickled",))

    bad = np.array([Trap()] * 3, dtype=object)
    np.savez(tmp_path / "bad.npz", prediction=bad, truth=bad, uncertainty=bad)
    with (
        pytest.raises(ValueError, match="holds Python objects"),
        open_calibration(tmp_path / "bad.npz"),
    ):
        pass


def test_truncated_and_damaged_archives(arrays, tmp_path):
    whole = write(tmp_path / "whole.npz", arrays, compressed=True).read_bytes()
    cut = tmp_path / "cut.npz"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="truncated or foreign"), open_calibration(cut):
        pass
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    cut.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"cannot be read|not a readable|truncated"):
        from_file(cut)


def test_shapes_that_do_not_fit(arrays, tmp_path):
    for change, said in [
        ({"truth": arrays["truth"][:50]}, "expected equal"),
        ({"uncertainty": arrays["uncertainty"][:, :4]}, "uncertainty has shape"),
        ({"weights": np.ones(3)}, "weights have shape"),
        ({"truth": arrays["truth"].astype(complex)}, "expected real numbers"),
        ({"truth": arrays["truth"].astype(str)}, "expected real numbers"),
        ({"uncertainty": np.array(1.0)}, "uncertainty is a single number"),
    ]:
        path = write(tmp_path / "set.npz", {**arrays, **change})
        with pytest.raises(ValueError, match=said), open_calibration(path):
            pass


def test_fortran_order_is_read_whole_up_to_a_size(arrays, tmp_path, monkeypatch):
    turned = {name: np.asfortranarray(a) for name, a in arrays.items()}
    path = write(tmp_path / "set.npz", turned)
    assert from_file(path) == from_arrays(arrays)
    monkeypatch.setattr(uqno.data.arrays, "LARGEST_FORTRAN", 100)
    with pytest.raises(ValueError, match="Fortran order"), open_calibration(path):
        pass


def test_other_variables_are_left_alone(arrays, tmp_path):
    path = write(tmp_path / "set.npz", {**arrays, "notes": np.array([{"by": "me"}], object)})
    assert from_file(path) == from_arrays(arrays)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize(
    ("truth", "uncertainty", "said"),
    [
        (("function", "x", "y"), ("function", "y", "x"), "same in the same order"),
        (("f", "y", "x"), ("function", "y", "x"), "same in the same order"),
        (("function", "component", "x"), ("function", "component", "x"), "component must be"),
        (("y", "x", "function"), ("y", "x", "function"), "function must be the first"),
    ],
)
def test_names_of_dimensions_are_heeded(suffix, truth, uncertainty, said, tmp_path):
    """Shapes alone would let a transposed truth pass, with a wrong number."""
    ones = np.ones((6, 6, 6))
    dataset = xarray.Dataset(
        {"prediction": (truth, ones), "truth": (truth, ones), "uncertainty": (uncertainty, ones)}
    )
    path = tmp_path / f"set{suffix}"
    if suffix == ".zarr":
        dataset.to_zarr(path, consolidated=False)
    else:
        dataset.to_netcdf(path)
    with pytest.raises(ValueError, match=said), open_calibration(path):
        pass


@pytest.mark.parametrize("place", [0.0, 0.02, 0.3, 0.6])
def test_every_damage_is_a_value_error(place, arrays, tmp_path):
    whole = write(tmp_path / "whole.npz", arrays, compressed=True).read_bytes()
    damaged = bytearray(whole)
    start = int(place * len(whole))
    damaged[start : start + 8] = b"\xff\x00\xff\x13XXXX"
    path = tmp_path / "damaged.npz"
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"damaged.npz"):
        from_file(path)


def test_missing_values_are_named(arrays, tmp_path):
    gap = arrays["truth"].copy()
    gap[2, 1, 1] = np.nan
    path = write(tmp_path / "set.nc", {**arrays, "truth": gap})
    with pytest.raises(ValueError, match="error of function 2 is nan at point 8"):
        from_file(path)


def test_reading_backwards_is_refused(arrays, tmp_path, monkeypatch):
    monkeypatch.setattr(uqno.data.arrays, "SLAB_BYTES", 1)
    with open_calibration(write(tmp_path / "set.npz", arrays)) as data:
        data.uncertainty[0:2]
        data.uncertainty[20:22]
        with pytest.raises(ValueError, match="once and in order"):
            data.uncertainty[0:1]


@pytest.mark.parametrize(
    ("chunk", "slab"),
    [
        (100, 1),  # less than a function
        (100, 130 * 35 * 4),  # no multiple of the chunk
        (100, 2**24),  # more than the whole
        (60, 130 * 35 * 4),  # the last chunk is not full
    ],
)
def test_every_chunk_is_read_once(chunk, slab, tmp_path, monkeypatch):
    """A store of two chunks along the functions is read twice, not once for each function."""
    monkeypatch.setattr(uqno.data.arrays, "SLAB_BYTES", slab)
    rng = np.random.default_rng(0)
    shape = (200, 5, 7)
    content = {
        name: rng.uniform(0.5, 2, shape).astype(np.float32)
        for name in ("prediction", "truth", "uncertainty", "weights")
    }
    dims = ("function", "y", "x")
    encoding = {name: {"chunks": (chunk, 5, 7)} for name in content}
    dataset = xarray.Dataset({name: (dims, values) for name, values in content.items()})
    dataset.to_zarr(tmp_path / "set.zarr", encoding=encoding, consolidated=False)
    read, get = [], LocalStore.get

    async def counted(store, key, *arguments, **named):
        if "/c/" in key:
            read.append(key)
        return await get(store, key, *arguments, **named)

    monkeypatch.setattr(LocalStore, "get", counted)
    result = CliRunner().invoke(
        app, ["calibrate", str(tmp_path / "set.zarr"), "--out", str(tmp_path / "c.json")]
    )
    assert result.exit_code == 0, result.output
    chunks = -(-200 // chunk)
    assert sorted(read) == sorted(f"{name}/c/{i}/0/0" for name in content for i in range(chunks))
    calibration = Calibration.from_json((tmp_path / "c.json").read_text())
    error = content["truth"].astype(float) - content["prediction"]
    assert calibration == calibrate(
        error, content["uncertainty"], 0.1, 0.02, weights=content["weights"]
    )


def test_repeated_functions_of_a_file(arrays, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    twice = {name: np.concatenate([a, a[:1]]) for name, a in arrays.items()}
    write(tmp_path / "set.npz", twice)
    levels = ["calibrate", "set.npz", "--alpha", "0.2", "--delta", "0.2"]
    refused = CliRunner().invoke(app, levels)
    assert isinstance(refused.exception, ValueError)
    assert "60 repeats 0" in str(refused.exception)
    assert not (tmp_path / "calibration.json").exists()
    allowed = CliRunner().invoke(app, [*levels, "--repeated", "allow"])
    assert allowed.exit_code == 0
    assert "1 of the 61 repeat another" in " ".join(allowed.stdout.split())
    assert read_calibration(tmp_path / "calibration.json").circumstances.repeated == 1


def test_a_flipped_bit_in_a_calibration_is_refused(arrays, tmp_path):
    """Of all bits of the file none changes what is read; in the spaces a few change nothing."""
    error = arrays["truth"] - arrays["prediction"]
    cal = calibrate(error, arrays["uncertainty"], 0.2, 0.2)
    file = tmp_path / "calibration.json"
    write_calibration(file, cal)
    whole = file.read_bytes()
    refused = 0
    for place in range(0, len(whole), 7):
        for bit in range(8):
            flipped = bytes([whole[place] ^ (1 << bit)])
            file.write_bytes(whole[:place] + flipped + whole[place + 1 :])
            try:
                read = read_calibration(file)
            except ValueError:
                refused += 1
            else:
                assert read == cal
                assert read.to_json() == cal.to_json()
    assert refused > len(whole)
