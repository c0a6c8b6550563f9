"""Files of others: what zarr, HDF5 and NetCDF declare is on a list of ours before it is decoded."""

import ast
import json
import os
import pickle
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
import zarr

from uqno.data import open as open_fields
from uqno.data.arrays import open_variables
from uqno.data.containers import HDF5_FILTERS, check_hdf5, check_zarr, open_zarr_group
from uqno.data.store import FunctionStore
from uqno.memory import VARIABLE

SOURCE = Path(__file__).parent.parent.parent / "src" / "uqno"
# An array of zarr 2 as it should be.
ARRAY = {
    "zarr_format": 2, "shape": [4, 3], "chunks": [2, 3], "dtype": "<f8", "order": "C",
    "compressor": {"id": "zlib", "level": 1}, "filters": None, "fill_value": 0.0,
}  # fmt: skip
# The same of zarr 3.
ARRAY_3 = {
    "zarr_format": 3, "node_type": "array", "shape": [4, 3], "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default"}, "fill_value": 0.0, "attributes": {},
    "codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 0}},
    ],
}  # fmt: skip


def shards(**changed):
    """The codecs of an array in shards."""
    inside = {"chunk_shape": [1, 3], "codecs": ["bytes"], "index_codecs": ["bytes", "crc32c"]}
    return [{"name": "sharding_indexed", "configuration": {**inside, **changed}}]


class Harm:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def group_2(path, nested="", **changed):
    """A store of zarr 2 with one array."""
    folder = path / nested / "a"
    folder.mkdir(parents=True)
    for place in (path, path / nested):
        (place / ".zgroup").write_text('{"zarr_format": 2}')
    (folder / ".zarray").write_text(json.dumps({**ARRAY, **changed}))
    (folder / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["a", "b"]}')
    return path


def group_3(path, **changed):
    """A store of zarr 3 with one array."""
    (path / "a").mkdir(parents=True)
    (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    (path / "a" / "zarr.json").write_text(json.dumps({**ARRAY_3, **changed}))
    return path


@pytest.fixture
def crafted(tmp_path, monkeypatch):
    """A store that runs a command where its first coordinate is read, and numcodecs lets it."""
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True)
    filters = [{"id": "vlen-utf8"}, {"id": "pickle"}]
    changed = {"shape": [1], "chunks": [1], "dtype": "|O", "compressor": None, "fill_value": None}
    path = group_2(tmp_path / "crafted.zarr", filters=filters, **changed)
    (path / "a" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["a"]}')
    (path / "a" / "0").write_bytes(pickle.dumps(Harm(tmp_path / "harm")))
    return path


def read_variables(path):
    with open_variables(path):
        pass


def test_the_crafted_store_does_run_a_command_where_nothing_is_checked(crafted):
    with suppress(Exception):
        xarray.open_zarr(crafted, chunks=None, consolidated=False)
    assert (crafted.parent / "harm").exists()


@pytest.mark.parametrize("read", [open_fields, read_variables, FunctionStore.open, open_zarr_group])
def test_no_reader_lets_a_store_run_a_command(crafted, read):
    with pytest.raises(ValueError, match=r"has the codec 'vlen-utf8'.*known are"):
        read(crafted)
    (crafted / "a" / ".zarray").write_text(
        (crafted / "a" / ".zarray").read_text().replace("vlen-utf8", "crc32")
    )
    with pytest.raises(ValueError, match=r"has the codec 'pickle'"):
        read(crafted)
    assert not (crafted.parent / "harm").exists()


CODECS_OF_OBJECTS = ("pickle", "json2", "msgpack2", "vlen-utf8", "vlen-array", "categorize", "own")


@pytest.mark.parametrize("changed", [
    *({"filters": [{"id": name}]} for name in CODECS_OF_OBJECTS),
    {"compressor": {"id": "lzma"}}, {"compressor": {"id": ["zlib"]}}, {"compressor": "pickle"},
    {"compressor": {}}, {"filters": {"id": "pickle"}}, {"filters": "pickle"},
    {"filters": [{"id": "delta", "dtype": "|O"}]}, {"dtype": "|O"}, {"dtype": [["x", "<f8"]]},
    {"dtype": "|V8"}, {"dtype": None},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("nested", ["", "group/below"])
def test_what_zarr_2_declares_is_on_the_list(tmp_path, changed, nested):
    check_zarr(group_2(tmp_path / "good.zarr", nested))
    with pytest.raises(ValueError, match=r"a has the (codec|data type) .*not read from files of"):
        check_zarr(group_2(tmp_path / "bad.zarr", nested, **changed))


@pytest.mark.parametrize("changed", [
    {"codecs": ["bytes", "numcodecs.pickle"]}, {"codecs": ["vlen-utf8"]}, {"codecs": ["my.own"]},
    {"codecs": [{"name": ["bytes"]}]}, {"codecs": "bytes"}, {"codecs": None},
    {"codecs": shards(codecs=["numcodecs.pickle"])}, {"codecs": shards(index_codecs=["own"])},
    {"codecs": shards(codecs=shards(codecs=["own"], chunk_shape=[1, 1]))},
    {"data_type": "string"}, {"data_type": {"name": "structured"}}, {"data_type": 3},
    {"storage_transformers": [{"name": "own"}]}, {"chunk_grid": {"name": "own"}},
], ids=str)  # fmt: skip
def test_what_zarr_3_declares_is_on_the_list(tmp_path, changed):
    check_zarr(group_3(tmp_path / "good.zarr"))
    check_zarr(group_3(tmp_path / "shards.zarr", codecs=shards()))
    with pytest.raises(ValueError, match=r"a has the .*not read from files of others"):
        check_zarr(group_3(tmp_path / "bad.zarr", **changed))


@pytest.mark.parametrize("changed", [
    {"shape": [-1, 3]}, {"shape": None}, {"chunks": [True, 3]}, {"chunks": [2]}, {"chunks": "2"},
], ids=str)  # fmt: skip
def test_sizes_that_are_none_are_refused(tmp_path, changed):
    with pytest.raises(ValueError, match="is damaged"):
        check_zarr(group_2(tmp_path / "x.zarr", **changed))


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00", "[" * 100_000, '{"metadata": 3}'])
@pytest.mark.parametrize("name", [".zarray", "zarr.json", ".zmetadata"])
def test_metadata_that_is_damaged_is_refused_by_name(tmp_path, name, text):
    path = group_2(tmp_path / "x.zarr")
    (path / "a" / name).write_text(text)
    with pytest.raises(ValueError, match=r"x\.zarr"):
        check_zarr(path)


def test_consolidated_metadata_is_neither_used_nor_trusted(tmp_path):
    path = group_2(tmp_path / "two.zarr")
    array = {**ARRAY, "filters": [{"id": "pickle"}]}
    (path / ".zmetadata").write_text(json.dumps({"metadata": {"a/.zarray": array}}))
    with pytest.raises(ValueError, match="codec 'pickle'"):
        check_zarr(path)
    path = group_3(tmp_path / "three.zarr")
    node = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    inside = {"kind": "inline", "metadata": {"a": {**ARRAY_3, "shape": [7, 3]}}}
    (path / "zarr.json").write_text(json.dumps({**node, "consolidated_metadata": inside}))
    assert open_zarr_group(path)["a"].shape == (4, 3)
    inside["metadata"]["a"]["codecs"] = ["own"]
    (path / "zarr.json").write_text(json.dumps({**node, "consolidated_metadata": inside}))
    with pytest.raises(ValueError, match="codec 'own'"):
        check_zarr(path)


def test_links_out_of_a_store_are_refused(tmp_path):
    path = group_2(tmp_path / "x.zarr")
    (path / "a" / "1.0").write_bytes(b"")
    (path / "a" / "1.1").symlink_to(path / "a" / "1.0")
    check_zarr(path)
    (path / "a" / "0.0").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match=r"0\.0 is a link that leads out of .*put a copy"):
        open_fields(path)
    (path / "a" / "0.0").unlink()
    os.mkfifo(path / "a" / "0.0")
    with pytest.raises(ValueError, match="is no regular file"):
        open_fields(path)


def test_a_chunk_of_zarr_larger_than_the_budget_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1 MB")
    with pytest.raises(ValueError, match=r"chunk of shape \[1000, 3\] declares .*24 GB.* is 1 MB"):
        check_zarr(
            group_2(tmp_path / "t.zarr", shape=[1000, 3], chunks=[1000, 3], dtype="|S8000000")
        )
    large = {"shape": [10**6, 3], "chunk_grid": {**ARRAY_3["chunk_grid"]}}
    large["chunk_grid"]["configuration"] = {"chunk_shape": [10**6, 3]}
    with pytest.raises(ValueError, match="budget is 1 MB: store smaller chunks"):
        check_zarr(group_3(tmp_path / "3.zarr", **large))
    check_zarr(group_3(tmp_path / "s.zarr", **large, codecs=shards(chunk_shape=[100, 3])))
    with pytest.raises(ValueError, match=r"16 MB.*store smaller chunks"):  # of its index
        check_zarr(group_3(tmp_path / "i.zarr", **large, codecs=shards()))


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
@pytest.mark.parametrize("version", [2, 3])
def test_what_xarray_writes_is_read(tmp_path, version):
    ones = np.arange(12.0).reshape(4, 3)
    names = np.array(["a", "bc", "d"])
    times = np.arange(4).astype("datetime64[ns]")
    made = {"k": (("time", "x"), ones), "p": (("time", "x"), ones > 3)}
    data = xarray.Dataset(made, {"time": times, "x": names})
    data.to_zarr(tmp_path / "x.zarr", zarr_format=version, consolidated=version == 2)
    with open_variables(tmp_path / "x.zarr") as variables:
        assert np.array_equal(variables["k"][:4], ones)


# --- HDF5 ----------------------------------------------------------------------------------------


def field(path, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("deep/er/u", data=np.zeros((4, 3)), **options)
    return path


@pytest.mark.parametrize("options", [
    {}, {"compression": "gzip"}, {"compression": "lzf"}, {"shuffle": True}, {"fletcher32": True},
], ids=str)  # fmt: skip
def test_filters_on_the_list_are_read(tmp_path, options):
    check_hdf5(field(tmp_path / "x.h5", **options))


def with_plugin(path, code=32001):
    """A data set whose filter is a plugin that is not there."""
    space, recipe = h5py.h5s.create_simple((4, 3)), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    recipe.set_chunk((2, 3))
    recipe.set_filter(code, h5py.h5z.FLAG_OPTIONAL, ())
    with h5py.File(path, "w") as file:
        h5py.h5d.create(file.id, b"u", h5py.h5t.IEEE_F64LE, space, recipe)


def external(path):
    (path.parent / "secret").write_bytes(b"1" * 96)
    field(path, external=[(path.parent / "secret", 0, 96)])


def virtual(path):
    field(path.with_name("other.h5"))
    layout = h5py.VirtualLayout((4, 3), "f8")
    layout[:] = h5py.VirtualSource(path.with_name("other.h5"), "deep/er/u", (4, 3))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("u", layout)


def external_link(path):
    field(path.with_name("other.h5"))
    with h5py.File(path, "w") as file:
        file.create_group("g")["u"] = h5py.ExternalLink(path.with_name("other.h5"), "deep/er/u")


@pytest.mark.parametrize(("write", "said"), [
    (lambda path: field(path, scaleoffset=3), r"er/u has the filter '6 .*known are .*deflate"),
    (with_plugin, r"x\.(nc|h5|mat): /u has the filter '32001"),
    (external, r"er/u lies in other files: copy"),
    (virtual, r": /u lies in other files"),
    (external_link, r": /g/u is a link into another file: copy"),
], ids=["scaleoffset", "plugin", "external", "virtual", "link"])  # fmt: skip
@pytest.mark.parametrize("name", ["x.h5", "x.nc", "x.mat"])
def test_what_hdf5_declares_is_on_the_list(tmp_path, write, said, name):
    write(tmp_path / name)
    with pytest.raises(ValueError, match=said):
        open_fields(tmp_path / name)
    if not name.endswith("mat"):
        with pytest.raises(ValueError, match=said), open_variables(tmp_path / name):
            pass


def test_groups_that_contain_themselves_and_links_within_a_file_are_walked_once(tmp_path):
    with h5py.File(field(tmp_path / "x.h5"), "r+") as file:
        file["deep/er/again"] = file["deep"]
        file["soft"] = h5py.SoftLink("/deep/er/u")
        file["nowhere"] = h5py.SoftLink("/absent")
    check_hdf5(tmp_path / "x.h5")


def test_a_file_that_has_changed_is_looked_at_again(tmp_path):
    check_hdf5(field(tmp_path / "x.h5"))
    with_plugin(tmp_path / "x.h5")
    with pytest.raises(ValueError, match="filter"):
        check_hdf5(tmp_path / "x.h5")


def test_sizes_that_hdf5_declares_are_compared_with_the_budget(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "x.h5", "w") as file:  # declared, and never written
        file.create_dataset("a", (10, 10**6), "f8", chunks=(1, 1000))
        file.create_dataset("u", (10, 10**6), "f8", chunks=(1, 1000))
    samples = open_fields(tmp_path / "x.h5")
    assert len(samples) == 10
    monkeypatch.setenv(VARIABLE, "1 MB")
    with pytest.raises(ValueError, match=r"one function of a declares 8 MB, the .* is 1 MB"):
        samples[0]
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file.create_dataset("u", (10, 10**6), "f8", chunks=(1, 10**6))
    with pytest.raises(ValueError, match=r"chunk of shape \(1, 1000000\) declares 8 MB"):
        check_hdf5(tmp_path / "y.h5")
    with h5py.File(tmp_path / "z.h5", "w") as file:
        file.create_dataset("x", (10**12,), "f8", chunks=(1000,)).make_scale("x")
    with pytest.raises(ValueError, match=r"x declares 8 TB"):
        open_fields(tmp_path / "z.h5")


def test_coordinates_of_netcdf_are_compared_with_the_budget(tmp_path, monkeypatch):
    data = xarray.Dataset({"k": (("n", "x"), np.zeros((2, 1000)))}, {"x": np.zeros(1000)})
    data.to_netcdf(tmp_path / "four.nc", engine="h5netcdf")
    data.to_netcdf(tmp_path / "three.nc", engine="scipy", format="NETCDF3_64BIT")
    data.to_zarr(tmp_path / "x.zarr", consolidated=False)
    for name in ("four.nc", "three.nc", "x.zarr"):
        monkeypatch.delenv(VARIABLE, raising=False)
        open_fields(tmp_path / name, inputs="k", truth=False)
        monkeypatch.setenv(VARIABLE, "7 KB")
        with pytest.raises(ValueError, match=r"coordinates declares 8 KB, .* is 7 KB|16 KB"):
            open_fields(tmp_path / name)


def test_the_filters_on_the_list_have_their_numbers():
    numbers = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
    assert set(HDF5_FILTERS) == numbers | {h5py.h5z.FILTER_LZF}


# --- all readers ---------------------------------------------------------------------------------

OPENING = {
    "File", "open_dataset", "open_zarr", "open_group", "open_array", "open_mfdataset",
    "open_datatree", "open_consolidated", "open_dataarray", "load_dataset", "netcdf_file",
}  # fmt: skip


def openings(file):
    """(name, line) of every call that opens zarr, HDF5 or NetCDF."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        name = getattr(node, "attr", None) or getattr(node, "id", None)
        if name in OPENING and isinstance(node, ast.Attribute | ast.Name):
            found.append((name, node.lineno))
    return found


def test_no_other_module_opens_such_files(tmp_path):
    elsewhere = {
        f"{file.relative_to(SOURCE)}:{line} {name}"
        for file in SOURCE.rglob("*.py")
        for name, line in openings(file)
        if file.name != "containers.py"
    }
    assert not elsewhere, "open them by uqno.data.containers"
    assert {name for name, _ in openings(SOURCE / "data" / "containers.py")} >= {
        "File",
        "open_zarr",
    }
    (tmp_path / "x.py").write_text("import h5py\nf = h5py.File(path)\n")
    assert openings(tmp_path / "x.py") == [("File", 2)]


def test_a_store_whose_attributes_do_not_fit_its_arrays_is_refused(tmp_path):
    path = tmp_path / "d.zarr"
    FunctionStore.create(path, {}, np.zeros((5, 2), dtype=int), (4,), 2)
    for changed, said in (
        ({"count": 10**12}, r"declares 8 TB"),
        ({"count": 6}, r"4/inputs has shape \(5, 4, 4\), its attributes say \(6, 4, 4\)"),
        ({"chunk": 10**12}, r"declares 8 TB"),
        ({"chunk": 0}, r"chunk=0 .*at least 1"),
        ({"count": "5"}, r"count='5'"),
        ({"resolutions": [4, 10**7]}, r"declares 800 TB"),
        ({"resolutions": [True]}, r"resolutions=\[True\]"),
        ({"resolutions": 4}, r"resolutions=4"),
    ):
        group = zarr.open_group(path, mode="r+")
        before = dict(group.attrs)
        group.attrs.update(changed)
        with pytest.raises(ValueError, match=said):
            FunctionStore.open(path)
        group.attrs.update(before)
    FunctionStore.open(path)
