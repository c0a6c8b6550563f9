"""Values that are not finite are counted, in arrays and in tensors."""

import numpy as np
import pytest
import torch

from uqno.data.checks import check_finite

KINDS = {
    "float32 array": lambda x: np.array(x, dtype=np.float32),
    "float64 array": np.array,
    "float32 tensor": lambda x: torch.tensor(x, dtype=torch.float32),
    "float64 tensor": lambda x: torch.tensor(x, dtype=torch.float64),
    "complex tensor": lambda x: torch.tensor(x, dtype=torch.complex64),
}
kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


@kinds
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_values_are_counted(make, bad):
    with pytest.raises(ValueError, match=r"^u of sample 3 has 2 of 4 .*: leave it out$"):
        check_finite("u", "sample 3", make([[1.0, bad], [bad, 0.0]]), "leave it out")
    with pytest.raises(ValueError, match="has 2 of 2 entries"):  # their sum is NaN
        check_finite("u", "sample 3", make([bad, -bad]))


@kinds
def test_large_values_are_finite_though_their_sum_is_not(make):
    check_finite("u", "sample 0", make([3e38] * 9))


def test_whole_numbers_are_finite_and_nothing_is_too():
    for values in (np.arange(3), np.array([True]), torch.arange(3), torch.tensor([True])):
        check_finite("u", "sample 0", values)
    check_finite("u", "sample 0", np.empty(0))
    check_finite("u", "sample 0", torch.empty(0))
