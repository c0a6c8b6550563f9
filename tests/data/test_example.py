"""The example."""

import numpy as np
import pytest

from uqno.data.example import example, write_example


def test_the_example_is_a_function_of_its_seed(tmp_path):
    write_example(tmp_path / "a.npz", functions=60, points=20, seed=3)
    written, expected = np.load(tmp_path / "a.npz"), example(60, 20, 3)
    for name, values in expected.items():
        np.testing.assert_array_equal(written[name], values)
    with pytest.raises(ValueError, match="must end in"):
        write_example(tmp_path / "a.txt")
