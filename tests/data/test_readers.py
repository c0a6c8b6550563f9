"""Published layouts, written here and read back."""

import pickle

import h5py
import numpy as np
import pytest
import scipy.io
import torch

from uqno.data.readers import read_fno_release, read_neuraloperator

rng = np.random.default_rng(0)
coeff = rng.choice([3.0, 12.0], size=(4, 9, 9))
sol = rng.standard_normal((4, 9, 9))


def assert_samples_are(data, inputs, solutions):
    assert len(data) == len(inputs)
    for i, sample in enumerate(data):
        np.testing.assert_array_equal(sample["a"].numpy(), inputs[i : i + 1].astype(np.float32))
        np.testing.assert_array_equal(sample["u"].numpy(), solutions[i : i + 1].astype(np.float32))
        assert sample["a"].dtype == sample["u"].dtype == torch.float32
        assert sample["weights"].sum().item() == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("channel", [False, True])
def test_neuraloperator_files(tmp_path, channel):
    x, y = torch.from_numpy(coeff == 12), torch.from_numpy(sol).float()
    file = tmp_path / "darcy_train_9.pt"
    torch.save({"x": x[:, None] if channel else x, "y": y[:, None] if channel else y}, file)
    assert_samples_are(read_neuraloperator(file), (coeff == 12), sol)


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


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_mat_files_of_both_formats(tmp_path, stride):
    old, new = tmp_path / "v5.mat", tmp_path / "v73.mat"
    scipy.io.savemat(old, {"coeff": coeff, "sol": sol, "Kcoeff": coeff})
    with h5py.File(new, "w", userblock_size=512) as file:  # as MATLAB does
        file["coeff"], file["sol"] = coeff.T, sol.T
    for file in (old, new):
        data = read_fno_release(file, stride=stride)
        assert_samples_are(data, coeff[:, ::stride, ::stride], sol[:, ::stride, ::stride])


def test_foreign_mat_files_are_refused_by_name(tmp_path):
    file = tmp_path / "other.mat"
    scipy.io.savemat(file, {"coeff": coeff})
    with pytest.raises(ValueError, match=r"other\.mat has no variable 'sol'"):
        read_fno_release(file)
    file.write_text("not MATLAB")
    with pytest.raises(ValueError, match=r"other\.mat is not a MATLAB file"):
        read_fno_release(file)
    with pytest.raises(FileNotFoundError, match="absent"):
        read_fno_release(tmp_path / "absent.mat")
    with pytest.raises(ValueError, match="stride"):
        read_fno_release(file, stride=0)
