"""Files of fields in every format and in published layouts, written here and read back."""

import pickle

import h5py
import numpy as np
import pytest
import scipy.io
import torch
import xarray
from safetensors.torch import save_file

from uqno.data import FunctionStore, as_samples
from uqno.data import open as open_fields
from uqno.data.readers.contract import READERS, Reader
from uqno.data.variables import Content, Variable

K = np.random.default_rng(0).normal(size=(6, 5, 7))
P = (K**2).astype(np.float32)
DIMS = ("sample", "y", "x")


def dataset():
    y = ("y", np.linspace(40, 0, 5), {"units": "m"})
    return xarray.Dataset(
        {"k": (DIMS, K), "p": (DIMS, P, {"units": "Pa"})},
        coords={"y": y, "x": np.arange(7.0)},
        attrs={"title": "wells"},
    )


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        file["k"], file["p"] = K, P
        file["group/more"] = K


def write_matlab73(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file["k"], file["p"] = K.T, P.T


WRITE = {
    "set.nc": lambda path: dataset().to_netcdf(path),
    "set.zarr": lambda path: dataset().to_zarr(path, consolidated=False),
    "set.h5": write_hdf5,
    "set.hdf5": lambda path: dataset().to_netcdf(path, engine="h5netcdf"),
    "set.npz": lambda path: np.savez(path, k=K, p=P),
    "packed.npz": lambda path: np.savez_compressed(path, k=K, p=P),
    "set.pt": lambda path: torch.save({"k": torch.tensor(K), "p": torch.tensor(P)}, path),
    "set.safetensors": lambda path: save_file({"k": torch.tensor(K), "p": torch.tensor(P)}, path),
    "v5.mat": lambda path: scipy.io.savemat(path, {"k": K, "p": P}),
    "v73.mat": write_matlab73,
}


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("name", WRITE)
def test_every_format_by_the_names_of_its_variables(name, tmp_path):
    WRITE[name](tmp_path / name)
    functions = open_fields(tmp_path / name, inputs="k", outputs="p")
    assert len(functions) == 6
    samples = as_samples(functions)
    for i in (4, 0, -1):
        np.testing.assert_array_equal(samples[i]["a"].squeeze(), K[i])
        np.testing.assert_array_equal(samples[i]["u"].squeeze(), P[i])
    with pytest.raises(IndexError):
        functions[6]
    with pytest.raises(ValueError, match=rf"{name} has no variable 'q': it has .*k \(.*6.*5.*7"):
        open_fields(tmp_path / name, inputs="q", outputs="p")
    with pytest.raises(
        ValueError, match=rf"which variables of .*{name} are the inputs\? It has .*k \("
    ):
        open_fields(tmp_path / name)


@pytest.mark.parametrize("name", ["set.nc", "set.hdf5"])
def test_labels_of_a_file(name, tmp_path):
    WRITE[name](tmp_path / name)
    functions = open_fields(tmp_path / name, "k", "p")
    assert functions.labels.points == ("y", "x")
    assert functions.labels.function == "sample"
    np.testing.assert_array_equal(functions.labels.coordinates["y"].values, [40, 30, 20, 10, 0])
    assert functions.labels.coordinates["y"].attributes == {"units": "m"}
    assert functions.labels.attributes["title"] == "wells"
    assert (functions.name, functions.units) == ("p", "Pa")


def test_inputs_and_outputs_in_two_files(tmp_path):
    np.save(tmp_path / "inputs.npy", K)
    np.savez(tmp_path / "outputs.npz", p=P)
    pair = (tmp_path / "inputs.npy", tmp_path / "outputs.npz")
    for functions in (open_fields(pair), as_samples(pair), as_samples(tuple(map(str, pair)))):
        np.testing.assert_array_equal(functions[3]["a"].squeeze(), K[3])
        np.testing.assert_array_equal(functions[3]["u"].squeeze(), P[3])
    np.savez(tmp_path / "outputs.npz", p=P[:4])
    with pytest.raises(ValueError, match="equally many functions, got 6 of inputs, 4 of p"):
        open_fields(pair)
    with pytest.raises(ValueError, match=r"3 files: expected one, or two \(inputs, outputs\)"):
        open_fields((*pair, pair[0]))


def test_several_variables_are_channels_and_both_orders_of_dimensions(tmp_path):
    turned = dataset().assign(q=(("x", "sample", "y"), P.transpose(2, 0, 1)))
    turned.to_netcdf(tmp_path / "set.nc")
    sample = open_fields(tmp_path / "set.nc", inputs=["k", "q"], outputs="p")[2]
    np.testing.assert_array_equal(sample["a"], np.stack([K[2], P[2]]))
    np.savez(tmp_path / "set.npz", k=K, q=P, p=P)
    sample = open_fields(tmp_path / "set.npz", inputs=["k", "q"], outputs="p")[2]
    np.testing.assert_array_equal(sample["a"], np.stack([K[2], P[2]]))


def test_names_of_published_pairs_need_not_be_said(tmp_path):
    for a, u in (("a", "u"), ("x", "y"), ("coeff", "sol")):
        np.savez(tmp_path / "set.npz", **{a: K, u: P})
        np.testing.assert_array_equal(open_fields(tmp_path / "set.npz")[1]["u"], P[1])


def test_steps_in_time(tmp_path):
    u = np.random.default_rng(0).normal(size=(6, 4, 5, 7)).astype(np.float32)
    axes = {"time": [0.0, 0.5, 1.0, 1.5]}
    xarray.Dataset({"u": (("run", "time", "y", "x"), u)}, coords=axes).to_netcdf(tmp_path / "t.nc")
    np.savez(tmp_path / "t.npz", u=u)
    for name in ("t.nc", "t.npz"):
        functions = as_samples(open_fields(tmp_path / name, inputs="u[:2]", outputs="u[-1]"))
        np.testing.assert_array_equal(functions[5]["a"], u[5, :2])
        np.testing.assert_array_equal(functions[5]["u"].squeeze(), u[5, 3])
        with pytest.raises(ValueError, match="has 4 steps in time, not step 4"):
            open_fields(tmp_path / name, inputs="u[0]", outputs="u[4]")
        with pytest.raises(ValueError, match=r"\[3:3\] of u .* is empty"):
            open_fields(tmp_path / name, inputs="u[3:3]", outputs="u[0]")
    first = open_fields(tmp_path / "t.nc", inputs="u[1]", outputs="u[-1]").labels
    assert first.coordinates["time"].values == 0.5
    by_time = open_fields(tmp_path / "t.nc", "u", "u", functions="time")
    assert len(by_time) == 4
    assert by_time[0]["a"].shape == (1, 6, 5, 7)
    dataset().to_netcdf(tmp_path / "k.nc")
    with pytest.raises(ValueError, match=r"has no time"):
        open_fields(tmp_path / "k.nc", inputs="k[0]", outputs="p")


def write_darcy(path):
    with h5py.File(path, "w") as file:
        file["nu"], file["tensor"] = K.astype("f4"), P[:, None]
        file["x-coordinate"], file["y-coordinate"] = np.linspace(0, 1, 5), np.linspace(0, 1, 7)
        file["t-coordinate"] = np.array([0.0, 1.0])
        file.attrs["beta"] = 1.0


def test_pdebench_darcy_says_itself_what_is_input_and_output(tmp_path):
    write_darcy(tmp_path / "2D_DarcyFlow_beta1.0_Train.hdf5")
    functions = open_fields(tmp_path / "2D_DarcyFlow_beta1.0_Train.hdf5")
    np.testing.assert_array_equal(functions[3]["a"][0], K[3].astype("f4"))
    np.testing.assert_array_equal(functions[3]["u"][0], P[3])
    assert functions.labels.points == ("x", "y")
    assert len(functions.labels.coordinates["y"].values) == 7


def test_pdebench_in_time(tmp_path):
    u = np.random.default_rng(1).normal(size=(6, 4, 9)).astype("f4")
    with h5py.File(tmp_path / "burgers.hdf5", "w") as file:
        file["tensor"], file["x-coordinate"] = u, np.linspace(0, 1, 9)
        file["t-coordinate"] = np.arange(5.0)  # one more than there are steps
    functions = open_fields(tmp_path / "burgers.hdf5", inputs="tensor[0]", outputs="tensor[-1]")
    np.testing.assert_array_equal(functions[2]["a"][0], u[2, 0])
    np.testing.assert_array_equal(functions[2]["u"][0], u[2, 3])
    assert functions.labels.coordinates["t"].values == 0
    flow = np.random.default_rng(2).normal(size=(3, 4, 5, 7)).astype("f4")
    with h5py.File(tmp_path / "cfd.hdf5", "w") as file:
        file["x-coordinate"], file["y-coordinate"] = np.linspace(0, 1, 5), np.linspace(0, 1, 7)
        for name in ("density", "pressure", "Vx", "Vy"):
            file[name] = flow
    both = open_fields(tmp_path / "cfd.hdf5", ["Vx[0]", "Vy[0]"], ["Vx[-1]", "Vy[-1]"])
    assert both[0]["a"].shape == (2, 5, 7)


def test_pdebench_with_a_group_for_each_sample(tmp_path):
    data = np.random.default_rng(1).normal(size=(3, 4, 5, 7, 2)).astype("f4")
    with h5py.File(tmp_path / "2D_diff-react_NA_NA.h5", "w") as file:
        for i, one in enumerate(data):
            file[f"{i:04d}/data"] = one
            for axis, n in (("t", 4), ("x", 5), ("y", 7)):
                file[f"{i:04d}/grid/{axis}"] = np.linspace(0, 1, n)
    functions = open_fields(tmp_path / "2D_diff-react_NA_NA.h5", "data[0]", "data[-1]")
    assert len(functions) == 3
    np.testing.assert_array_equal(functions[2]["a"], np.moveaxis(data[2, 0], -1, 0))
    np.testing.assert_array_equal(functions[2]["u"], np.moveaxis(data[2, -1], -1, 0))
    steps = open_fields(tmp_path / "2D_diff-react_NA_NA.h5", "data[:2]", "data[-1]")
    assert steps[0]["a"].shape == (4, 5, 7)


def write_well(path):
    rng = np.random.default_rng(3)
    density = rng.normal(size=(3, 4, 5, 7)).astype("f4")
    velocity = rng.normal(size=(3, 4, 5, 7, 2)).astype("f4")
    mask = rng.normal(size=(5, 7)).astype("f4")
    with h5py.File(path, "w") as file:
        file.attrs["n_spatial_dims"] = 2
        file.attrs["grid_type"] = "cartesian"
        dimensions = file.create_group("dimensions")
        dimensions.attrs["spatial_dims"] = ["x", "y"]
        for name, n in (("time", 4), ("x", 5), ("y", 7)):
            dimensions[name] = np.linspace(0, 1, n, dtype="f4")
        for group, name, values, varies in (
            ("t0_fields", "density", density, True),
            ("t0_fields", "mask", mask, False),
            ("t1_fields", "velocity", velocity, True),
        ):
            one = file.require_group(group).create_dataset(name, data=values)
            one.attrs["sample_varying"] = one.attrs["time_varying"] = varies
            one.attrs["dim_varying"] = [True, True]
        file.create_group("t2_fields")
    return density, velocity, mask


def test_the_well(tmp_path):
    density, velocity, mask = write_well(tmp_path / "flow.hdf5")
    functions = open_fields(
        tmp_path / "flow.hdf5", ["density[0]", "velocity[0]", "mask"], "velocity[-1]"
    )
    assert len(functions) == 3
    sample = functions[1]
    expected = np.stack([density[1, 0], velocity[1, 0, ..., 0], velocity[1, 0, ..., 1], mask])
    np.testing.assert_array_equal(sample["a"], expected)
    np.testing.assert_array_equal(sample["u"], np.moveaxis(velocity[1, -1], -1, 0))
    assert functions.labels.points == ("x", "y")


class Harm:
    def __reduce__(self):
        return (print, ("harm",))


def write_objects(path):
    np.savez(path, k=np.array([Harm()], dtype=object), p=P)


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("objects.npz", write_objects, "k holds Python objects, expected numbers"),
        ("objects.npy", lambda p: np.save(p, np.array([Harm()], dtype=object)), "no whole array"),
        ("harm.pt", lambda p: p.write_bytes(pickle.dumps(Harm())), "not a file of tensors alone"),
        ("text.nc", lambda p: p.write_text("text"), r"text\.nc cannot be opened"),
        ("text.h5", lambda p: p.write_text("text"), r"text\.h5 is no HDF5 file, or cut short"),
        ("text.mat", lambda p: p.write_text("text"), r"text\.mat is not a MATLAB file"),
        ("text.npz", lambda p: p.write_text("text"), "not a whole .npz file"),
        ("empty.nc", lambda p: p.write_text(""), r"empty\.nc is empty"),
        ("absent.nc", lambda p: None, r"absent\.nc does not exist"),
        (
            "set.txt",
            lambda p: p.write_text("1"),
            r"ends in one of (?=.*\.nc)(?=.*\.mat)(?=.*\.npz).*got '\.txt'",
        ),
        ("words.npz", lambda p: np.savez(p, k=np.array(["a"]), p=P), "k is of <U1, expected real"),
        ("waves.npz", lambda p: np.savez(p, k=K + 1j, p=P), "real and imaginary part as two"),
        ("number.nc", lambda p: xarray.Dataset({"k": 1.0, "p": 2.0}).to_netcdf(p), "single number"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_by_name(name, write, said, tmp_path, capsys):
    write(tmp_path / name)
    with pytest.raises(ValueError, match=said):
        open_fields(tmp_path / name, "k", "p")
    assert "harm" not in capsys.readouterr().out


def test_a_truncated_file_is_named(tmp_path):
    np.savez(tmp_path / "k.npz", k=K, p=P)
    whole = (tmp_path / "k.npz").read_bytes()
    (tmp_path / "k.npz").write_bytes(whole[:-400])
    with pytest.raises(ValueError, match=r"k\.npz"):
        open_fields(tmp_path / "k.npz", "k", "p")[0]


def test_grids_that_differ_are_refused(tmp_path):
    dataset().assign(w=(("sample", "z"), P[:, 0])).to_netcdf(tmp_path / "set.nc")
    with pytest.raises(ValueError, match=r"w .*is on the grid \(z\), the input on \(y, x\)"):
        open_fields(tmp_path / "set.nc", "k", "w")
    four = xarray.Dataset({"k": (("n", "t", "z", "y", "x"), np.zeros((1, 2, 3, 4, 5)))})
    four.to_netcdf(tmp_path / "four.nc")
    with pytest.raises(
        ValueError, match=r"grid of 4 dimensions \(t, z, y, x\), expected 3.*k\[0\]"
    ):
        open_fields(tmp_path / "four.nc", "k", "k")


def test_a_reader_of_ones_own_is_asked_first(tmp_path):
    class Text(Reader):
        suffixes = (".txt", ".h5")

        @classmethod
        def recognises(cls, path):
            return path.read_bytes()[:1] == b"1"

        def open(self, path):
            return Content(str(path), {"a": Variable("a", K), "u": Variable("u", P)})

    try:
        (tmp_path / "set.h5").write_text("1")
        assert len(open_fields(tmp_path / "set.h5")) == 6
        write_darcy(tmp_path / "darcy.h5")
        assert open_fields(tmp_path / "darcy.h5").labels is not None
    finally:
        READERS.remove(Text)


def test_a_store_of_this_library_at_its_finest_resolution_or_another(tmp_path):
    seeds = np.stack([np.zeros(5, int), np.arange(5)], axis=1)
    store = FunctionStore.create(tmp_path / "d.zarr", {}, seeds, (4, 7), chunk=5)
    with pytest.raises(ValueError, match=r"unfinished, it has 0 of 5 functions"):
        open_fields(tmp_path / "d.zarr")
    rng = np.random.default_rng(0)
    arrays = {n: tuple(rng.normal(size=(2, 5, n, n)).astype("f4")) for n in (4, 7)}
    store.write(0, arrays)
    functions = open_fields(tmp_path / "d.zarr")
    np.testing.assert_array_equal(functions[3]["a"][0], arrays[7][0][3])
    coarse = open_fields(tmp_path / "d.zarr", "4/inputs", "4/solutions")
    np.testing.assert_array_equal(coarse[3]["u"][0], arrays[4][1][3])
