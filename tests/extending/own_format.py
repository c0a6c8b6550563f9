"""An export format of one's own: CSV, a line for each point of each function.

    function, x, y, center, radius, uncertainty, lower, upper
    0, 0.0, 0.25, 1.32, 0.05, 0.02, 1.27, 1.37

Importing this file is enough: `Band.write("band.csv")` and `uqno predict --out band.csv` find it.
"""

import numpy as np

from uqno.band.formats import BandFormat
from uqno.band.formats.content import axes, variables


class Csv(BandFormat):
    """Scalar functions as a table: their number, coordinates and the variables of every band."""

    suffixes = (".csv",)

    def check(self, band, path):
        super().check(band, path)
        if band.channels > 1:
            raise ValueError(f"a CSV file holds scalar functions, not {band.channels} components")

    def write(self, band, path):
        fields = variables(band)
        dims, shape = fields["radius"].dims, band.radius.shape
        columns = {name: _over(dims, shape, x) for name, x in {**axes(band), **fields}.items()}
        if band.is_batch:
            numbers = np.indices(shape)[0]
            columns = {"function": numbers.ravel(), **columns}
        lines = [", ".join(columns)]
        lines += [", ".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        path.write_text("\n".join(lines) + "\n", encoding="utf8")


def _over(dims, shape, variable):
    """The values of a variable at every point of every function, in one column."""
    sizes = [n if dim in variable.dims else 1 for dim, n in zip(dims, shape, strict=True)]
    return np.broadcast_to(variable.values.reshape(sizes), shape).ravel().tolist()
