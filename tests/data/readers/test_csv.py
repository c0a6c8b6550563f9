"""Points in CSV files."""

import numpy as np
import pytest

from uqno.data.readers.csv import read_points


def test_points_from_csv(tmp_path):
    path = tmp_path / "points.csv"
    for text in ("x,y\n0.1,0.2\n0.3,0.4\n", "0.1,0.2\n\n0.3,0.4"):
        path.write_text(text)
        np.testing.assert_array_equal(read_points(path), [[0.1, 0.2], [0.3, 0.4]])
    for text in ("", "x,y\n", "0.1,0.2\n0.3", "0.1,0.2\n0.1,inf"):
        path.write_text(text)
        with pytest.raises(ValueError, match="expected equally many numbers"):
            read_points(path)
