"""Tensors, MATLAB, meshes and texts of others: what they name and how large they say they are."""

import io
import pickle
import struct
import zipfile
import zlib

import numpy as np
import pytest
import scipy.io
import torch
from safetensors.torch import save_file

from uqno.data import open as open_fields
from uqno.data.readers.csv import read_points
from uqno.data.readers.fno_release import read_fno_release
from uqno.data.readers.neuraloperator import read_neuraloperator
from uqno.data.readers.ply import read_ply
from uqno.data.readers.shapenet import read_shapenet
from uqno.data.readers.tensors import load_tensors
from uqno.memory import VARIABLE


def rewritten(path, content=None, **options):
    """A .pt file with another pickle, or compressed."""
    with zipfile.ZipFile(path) as archive:
        entries = {e.filename: archive.read(e) for e in archive.infolist()}
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, old in entries.items():
            new = content if content is not None and name.endswith("data.pkl") else old
            archive.writestr(name, new)


@pytest.fixture
def tensors(tmp_path):
    held = {"x": torch.rand(3, 8, 8), "y": torch.rand(3, 8, 8).half().double()}
    torch.save(held, tmp_path / "x.pt")
    return tmp_path / "x.pt"


def test_tensors_of_every_kind_are_read(tmp_path):
    kinds = (torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)
    held = {str(kind): torch.ones(2, 3).to(kind) for kind in kinds}
    held |= {"parameter": torch.nn.Parameter(torch.ones(2)), "part": torch.arange(9)[::2]}
    torch.save(held, tmp_path / "x.pt")
    torch.save(torch.nn.Linear(2, 3).state_dict(), tmp_path / "state.pth")
    read = load_tensors(tmp_path / "x.pt")
    assert all(torch.equal(read[name], value) for name, value in held.items())
    assert set(load_tensors(tmp_path / "state.pth")) == {"weight", "bias"}


@pytest.mark.parametrize(("content", "said"), [
    (b"\x80\x02c__builtin__\nbytearray\nJ\x00\x00\x00\x40\x85R.", "names __builtin__.bytearray"),
    (b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.", "names os.system"),
    (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "names what STACK_GLOBAL finds"),
    (b"\x80\x02(ios\nsystem\n.", "names what INST finds"),
    (b"\x80", "not a file of tensors alone"),
])  # fmt: skip
def test_a_pickle_that_names_more_than_tensors_is_not_loaded(tensors, content, said):
    rewritten(tensors, content)
    for read in (load_tensors, open_fields, read_neuraloperator):
        with pytest.raises(ValueError, match=said):
            read(tensors)


def test_an_archive_that_torch_would_not_write_is_refused(tensors, monkeypatch):
    monkeypatch.setenv(VARIABLE, "2 KB")
    with pytest.raises(ValueError, match=r"declares .* the memory budget is 2 KB"):
        load_tensors(tensors)
    monkeypatch.delenv(VARIABLE)
    load_tensors(tensors)
    rewritten(tensors, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="is compressed, which torch does not do"):
        load_tensors(tensors)
    torch.save(torch.ones(3), tensors, _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match=r"no archive as torch has written since 1\.6"):
        load_tensors(tensors)


def test_a_tensor_of_one_number_that_declares_any_shape_is_refused(tmp_path):
    large = torch.ones(1).as_strided((10**6, 10**3, 10**3), (0, 0, 0))
    torch.save({"x": large, "y": large}, tmp_path / "x.pt")
    assert (tmp_path / "x.pt").stat().st_size < 10_000
    for read in (open_fields, read_neuraloperator):
        with pytest.raises(ValueError, match="declares 4 TB, the memory budget is"):
            read(tmp_path / "x.pt")
    torch.save({"x": 1, "y": 2}, tmp_path / "x.pt")
    with pytest.raises(ValueError, match="x is a int, expected a tensor"):
        read_neuraloperator(tmp_path / "x.pt")


def test_safetensors_larger_than_the_budget_or_than_the_file_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    save_file({"x": torch.zeros(1000)}, path)
    monkeypatch.setenv(VARIABLE, "1 KB")
    with pytest.raises(ValueError, match=r"declares 4\.\d+ KB, the memory budget is 1 KB"):
        load_tensors(path)
    monkeypatch.delenv(VARIABLE)
    content = path.read_bytes().replace(b"[1000]", b"[1" + b"0" * 11 + b"]")
    path.write_bytes(struct.pack("<Q", struct.unpack("<Q", content[:8])[0] + 8) + content[8:])
    with pytest.raises(ValueError, match=r"is not a \.safetensors file"):
        load_tensors(path)


# --- MATLAB --------------------------------------------------------------------------------------


def mat(path, **arrays):
    content = io.BytesIO()
    scipy.io.savemat(content, arrays, do_compression=True)
    path.write_bytes(content.getvalue())
    return path


def element(path, change):
    """Change the first array of a compressed file once it is decompressed."""
    content = path.read_bytes()
    length = struct.unpack("<I", content[132:136])[0]
    plain = bytearray(zlib.decompress(content[136 : 136 + length]))
    packed = zlib.compress(bytes(change(plain)))
    tag = struct.pack("<II", 15, len(packed))
    path.write_bytes(content[:128] + tag + packed + content[136 + length :])


def test_arrays_of_matlab_are_read_and_other_variables_left_alone(tmp_path):
    fields = {"coeff": np.ones((2, 8, 8)), "sol": np.zeros((2, 8, 8), dtype=np.float32)}
    cells = np.array([[1, "x"]], dtype=object)
    read_fno_release(mat(tmp_path / "x.mat", **fields, cells=cells, words="text"))
    content = io.BytesIO()
    scipy.io.savemat(content, {"coeff": np.ones((2, 3))}, format="4")
    (tmp_path / "four.mat").write_bytes(content.getvalue())
    with pytest.raises(ValueError, match="sol"):
        read_fno_release(tmp_path / "four.mat")


def test_arrays_of_matlab_are_compared_with_the_budget(tmp_path, monkeypatch):
    path = mat(tmp_path / "x.mat", coeff=np.zeros((4, 500, 500)), sol=np.zeros((4, 8, 8)))
    assert path.stat().st_size < 50_000
    monkeypatch.setenv(VARIABLE, "1 MB")
    with pytest.raises(ValueError, match="declares 16 MB, the memory budget is 1 MB"):
        read_fno_release(path)


def test_an_array_of_matlab_that_decompresses_to_more_than_it_declares_is_refused(
    tmp_path, monkeypatch
):
    path = mat(tmp_path / "x.mat", coeff=np.zeros((1, 8, 8)), sol=np.zeros((1, 8, 8)))
    element(path, lambda plain: plain + bytes(10**7))
    with pytest.raises(ValueError, match=r"decompresses to 100.* bytes, and declares"):
        read_fno_release(path)
    monkeypatch.setenv(VARIABLE, "5 MB")
    with pytest.raises(ValueError, match=r"declares .* MB, the memory budget is 5 MB"):
        read_fno_release(path)


def test_an_array_of_matlab_that_declares_any_shape_is_refused(tmp_path):
    path = mat(tmp_path / "x.mat", coeff=np.zeros((1, 8, 8)), sol=np.zeros((1, 8, 8)))

    def larger(plain):
        at = plain.index(struct.pack("<III", 1, 8, 8))
        plain[at : at + 12] = struct.pack("<III", 2**20, 2**20, 2**10)
        return plain

    element(path, larger)
    with pytest.raises(ValueError, match=r"x\.mat .* has 512 bytes for the dimensions"):
        read_fno_release(path)


# --- meshes and texts ----------------------------------------------------------------------------


def test_meshes_and_texts_are_compared_with_the_budget(tmp_path, monkeypatch):
    head = "ply\nformat {}\nelement vertex 1000000000000\nproperty float x\nend_header\n"
    for kind in ("ascii 1.0", "binary_little_endian 1.0"):
        (tmp_path / "x.ply").write_text(head.format(kind))
        with pytest.raises(ValueError, match="ends"):
            read_ply(tmp_path / "x.ply")
    (tmp_path / "x.csv").write_text("1,2\n" * 100)
    monkeypatch.setenv(VARIABLE, "1 KB")
    for read, name in ((read_ply, "x.ply"), (read_points, "x.csv")):
        with pytest.raises(ValueError, match=rf"{name} declares .* the memory budget is 1 KB"):
            read(tmp_path / name)


def test_pressures_that_lie_about_their_shape_or_are_pickled_are_refused(tmp_path):
    (tmp_path / "train.txt").write_text("a")
    (tmp_path / "test.txt").write_text("b")
    (tmp_path / "data" / "a").mkdir(parents=True)
    corners = "0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n"
    axes = "".join(f"property float {axis}\n" for axis in "xyz")
    face = "element face 4\nproperty list uchar int vertex_indices\nend_header\n"
    mesh = f"ply\nformat ascii 1.0\nelement vertex 4\n{axes}{face}{corners}"
    (tmp_path / "data/a/tri_mesh.ply").write_text(mesh)
    for content, said in (
        (np.array([{}], dtype=object).dumps(), "no array of NumPy"),
        (pickle.dumps(1), "no array of NumPy"),
        (b"\x93NUMPY\x01\x00\x44\x00{'descr': '<f8', 'fortran_order': False, 'shape': "
         b"(1000000000000,)}\n", "declares the shape"),
    ):  # fmt: skip
        (tmp_path / "data/a/press.npy").write_bytes(content)
        with pytest.raises(ValueError, match=rf"press\.npy.*{said}"):
            read_shapenet(tmp_path)
