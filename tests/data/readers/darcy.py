"""A small Darcy set, and what its samples must be."""

import numpy as np
import pytest
import torch

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
