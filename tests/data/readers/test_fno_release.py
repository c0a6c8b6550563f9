"""The layout of the FNO paper's release, written here and read back."""

import h5py
import pytest
import scipy.io

from tests.data.readers.darcy import assert_samples_are, coeff, sol
from uqno.data import read_fno_release


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
