"""neuraloperator's layout, written here and read back."""

import pickle

import pytest
import torch
from safetensors.torch import save_file

from tests.data.readers.darcy import assert_samples_are, coeff, sol
from uqno.data import read_neuraloperator
from uqno.data.readers.tensors import SAFE_TORCH

needs_pt = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < SAFE_TORCH,
    reason="this torch is not trusted with .pt files",
)


@needs_pt
@pytest.mark.parametrize("channel", [False, True])
def test_neuraloperator_files(tmp_path, channel):
    x, y = torch.from_numpy(coeff == 12), torch.from_numpy(sol).float()
    file = tmp_path / "darcy_train_9.pt"
    torch.save({"x": x[:, None] if channel else x, "y": y[:, None] if channel else y}, file)
    assert_samples_are(read_neuraloperator(file), (coeff == 12), sol)


@needs_pt
def test_a_pt_file_cannot_run_code_and_must_have_x_and_y(tmp_path):
    class Harm:
        def __reduce__(self):
            return (open, (str(tmp_path / "harm"), "w"))

    bad = tmp_path / "bad.pt"
    bad.write_bytes(pickle.dumps({"x": Harm(), "y": 0}))
    with pytest.raises(ValueError, match=r"bad\.pt is not a file of tensors alone"):
        read_neuraloperator(bad)
    assert not (tmp_path / "harm").exists()
    torch.save({"x": torch.zeros(2, 3, 3)}, bad)
    with pytest.raises(ValueError, match=r"tensors 'x' and 'y', found \['x'\]"):
        read_neuraloperator(bad)
    torch.save({"x": torch.zeros(2, 3, 3), "y": torch.zeros(2, 4, 4)}, bad)
    with pytest.raises(ValueError, match="one shape"):
        read_neuraloperator(bad)


@pytest.mark.parametrize("version", ["2.4.0", "2.9.0", "2.9.1+cu128"])
def test_an_old_torch_is_not_trusted_with_pt_files(version, tmp_path, monkeypatch):
    tensors = {"x": torch.from_numpy(coeff == 12), "y": torch.from_numpy(sol).float()}
    torch.save(tensors, tmp_path / "darcy.pt")
    save_file(tensors, tmp_path / "darcy.safetensors")
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.raises(ValueError, match=r"darcy\.pt: .*torch ≥ 2\.10, this is .*safetensors"):
        read_neuraloperator(tmp_path / "darcy.pt")
    assert_samples_are(read_neuraloperator(tmp_path / "darcy.safetensors"), (coeff == 12), sol)


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0+cpu", "3.0"])
def test_a_newer_torch_reads_pt_files(version, tmp_path, monkeypatch):
    torch.save({"x": torch.zeros(2, 3, 3), "y": torch.zeros(2, 3, 3)}, tmp_path / "darcy.pt")
    monkeypatch.setattr(torch, "__version__", version)
    assert len(read_neuraloperator(tmp_path / "darcy.pt")) == 2


def test_a_foreign_safetensors_file_is_named(tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"bad\.safetensors is not a \.safetensors file"):
        read_neuraloperator(tmp_path / "bad.safetensors")
