"""The answer: Ĝ(a)(x) ± λ̂ · E(a)(x) with its coordinates and its guarantee."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqno.band import checks as band_checks
from uqno.band.checks import Coordinates
from uqno.conformal import checks, words
from uqno.conformal.calibration import Calibration
from uqno.conformal.scores import coverage, ratios
from uqno.types import Floats, Reals

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Band:
    """{u : ‖u(x) − center(x)‖ ≤ scale · uncertainty(x)}, for one function or a batch of them.

    >>> from uqno.conformal.ranks import Ranks
    >>> cal = Calibration(2.0, Ranks(3, 90), 99, 3, 3, alpha=0.1, delta=0.1, sampling="grid")
    >>> band = Band([[1.0, 2.0, 3.0]], [0.1, 0.1, 0.2], cal, ([0.0, 0.5, 1.0],))
    >>> band.upper, band.contains([[1.1, 2.3, 3.4]])
    (array([1.2, 2.2, 3.4]), array([ True, False,  True]))
    """

    center: Floats
    """Ĝ(a), (channel, *points) or (functions, channel, *points)."""
    uncertainty: Floats
    """E(a) ≥ 0 before scaling, (*points) or (functions, *points)."""
    calibration: Calibration
    coordinates: Coordinates
    """Of a grid: one increasing 1-D array a dimension, in the order of the dimensions of `center`,
    called x, y and z in this order. Of scattered points: (points, d), the columns are x, y, z; or
    (functions, points, d) for geometries that differ."""
    triangles: NDArray[np.integer[Any]] | None = None
    """(faces, 3) indices of points, for a surface."""
    weights: Reals | None = None
    """The measure μ, (*points) for all functions or (functions, *points)."""
    name: str = "u"
    units: str = ""
    component_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.calibration, Calibration):
            raise ValueError(
                f"calibration must be a uqno.Calibration, got {type(self.calibration).__name__}: "
                "pass the result of uqno.calibrate, or of Calibration.from_json"
            )
        fields = band_checks.fields(
            self.center,
            self.uncertainty,
            self.coordinates,
            self.triangles,
            self.weights,
            self.component_names,
        )
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # frozen for everyone else

    # --- what it is -------------------------------------------------------------------------

    @property
    def is_grid(self) -> bool:
        return isinstance(self.coordinates, tuple)

    @property
    def points(self) -> tuple[int, ...]:
        """The shape of one function's points: (43, 43) on a grid, (3586,) on a surface."""
        return band_checks.points_of(self.coordinates)

    @property
    def is_batch(self) -> bool:
        return self.uncertainty.ndim > len(self.points)

    @property
    def channels(self) -> int:
        return int(self.center.shape[1 if self.is_batch else 0])

    @property
    def guarantee(self) -> str:
        """What is promised and what is not, to quote."""
        return self.calibration.guarantee

    @property
    def radius(self) -> Floats:
        """scale · uncertainty, the shape of `uncertainty`."""
        found: Floats = self.uncertainty * self.calibration.scale
        return found

    @property
    def lower(self) -> Floats:
        """center − radius of a scalar function, the shape of `uncertainty`."""
        return self._scalar("lower") - self.radius

    @property
    def upper(self) -> Floats:
        """center + radius of a scalar function, the shape of `uncertainty`."""
        return self._scalar("upper") + self.radius

    @property
    def bandwidth(self) -> float:
        """The mean of `radius` over the points, by the weights where there are any, and then over
        the functions."""
        of_function = self.uncertainty.reshape(len(self) if self.is_batch else 1, -1)
        if self.weights is None:
            mean = of_function.mean(axis=1, dtype=np.float64)
        else:
            w = np.broadcast_to(self.weights, self.uncertainty.shape).reshape(of_function.shape)
            mean = np.einsum("fp,fp->f", of_function, w, dtype=np.float64) / w.sum(axis=1)
        return self.calibration.scale * float(mean.mean())

    def _scalar(self, wanted: str) -> Floats:
        if self.channels > 1:
            raise ValueError(
                f"{wanted} is for scalar functions, this one has {self.channels} components: the "
                "band is a ball of radius `radius` around `center` at every point; `contains` "
                "tells what lies in it"
            )
        return self.center[:, 0] if self.is_batch else self.center[0]

    # --- functions of a batch ---------------------------------------------------------------

    def __len__(self) -> int:
        if not self.is_batch:
            raise TypeError("the band of one function has no length; `points` is its shape")
        return len(self.uncertainty)

    def __getitem__(self, which: int | slice) -> Band:
        """The band of one function of a batch, or of a slice of them."""
        if not self.is_batch:
            raise TypeError("the band of one function has no parts; `center` and `radius` have")
        if not isinstance(which, slice) and not -len(self) <= which < len(self):
            raise IndexError(f"function {which} is not among the {len(self)} functions of the band")
        coordinates, weights = self.coordinates, self.weights
        if not isinstance(coordinates, tuple) and coordinates.ndim == 3:
            coordinates = coordinates[which]
        if weights is not None and weights.ndim == self.uncertainty.ndim:
            weights = weights[which]
        return replace(
            self,
            center=self.center[which],
            uncertainty=self.uncertainty[which],
            coordinates=coordinates,
            weights=weights,
        )

    # --- against the truth ------------------------------------------------------------------

    def contains(self, u: Any) -> NDArray[np.bool_]:
        """‖u − center‖ / uncertainty ≤ scale, point by point, the shape of `uncertainty`.

        u: the shape of `center`; a scalar function may leave out the channel. The ratio decides,
        as in the calibration; `lower` and `upper` may be rounded to its other side.
        """
        inside: NDArray[np.bool_] = (
            ratios(self._error(u), self.uncertainty) <= self.calibration.scale
        )
        return inside.reshape(self.uncertainty.shape)

    def coverage(self, u: Any) -> float | Reals:
        """μ{x : u(x) in the band}, a share: a float for one function, (functions,) for a batch."""
        if self.calibration.weighted and self.weights is None:
            raise ValueError(
                "the band was calibrated by weights and has none: give them with "
                "dataclasses.replace(band, weights=...), or predict from a sample that has them"
            )
        error, uncertainty = self._error(u), self.uncertainty
        if not self.is_batch:
            error, uncertainty = error[np.newaxis], uncertainty[np.newaxis]
        share = coverage(error, uncertainty, self.calibration.scale, self.weights)
        return share if self.is_batch else float(share[0])

    def _truth(self, u: Any) -> Floats:
        """u in the shape of `center`."""
        truth = checks.real("u", "the truth", u)
        scalar = self.channels == 1 and truth.shape == self.uncertainty.shape
        if truth.shape != self.center.shape and not scalar:
            raise ValueError(
                f"u has shape {truth.shape}, the band's center {self.center.shape}: expected the "
                "same; evaluate u at the band's points, or predict at the points of u"
            )
        return truth.reshape(self.center.shape)

    def _error(self, u: Any) -> Reals:
        """u − center in float64, components last: (*points) or (*points, channel), a function."""
        axis = 1 if self.is_batch else 0
        difference: Reals = np.subtract(self._truth(u), self.center, dtype=np.float64)
        return difference.squeeze(axis) if self.channels == 1 else np.moveaxis(difference, axis, -1)

    # --- for people and other programs ------------------------------------------------------

    @property
    def promise(self) -> str:
        """The guarantee in one line; `guarantee` is the whole of it."""
        c = self.calibration
        what = "weighted" if c.weighted else c.sampling
        part = f"covers ≥ {words.rest(c.alpha)} of {words.DOMAIN[what]}"
        if c.confidence is None:
            return f"{part} with probability ≥ {words.rest(c.delta)}"
        return (
            f"{part} for ≥ {words.rest(c.delta)} of new functions, "
            f"confidence {words.percent(c.confidence)}"
        )

    def __repr__(self) -> str:
        how_many = f"{len(self)} functions, " if self.is_batch else ""
        values = "" if self.channels == 1 else f"{self.channels} components, "
        label = f"{self.name} [{self.units}]" if self.units else self.name
        r = self.radius
        return (
            f"Band of {label}: {how_many}{values}{self._where()}\n"
            f"  prediction  {self.center.min():.4g} … {self.center.max():.4g}\n"
            f"  radius      {r.min():.4g} … {r.max():.4g}, mean {self.bandwidth:.4g}\n"
            f"  {self.promise}"
        )

    def _where(self) -> str:
        if isinstance(self.coordinates, tuple):
            return " × ".join(map(str, self.points)) + (
                " grid" if len(self.points) > 1 else " points"
            )
        if self.triangles is not None:
            return f"surface of {self.points[0]} points and {len(self.triangles)} triangles"
        return f"{self.points[0]} points in {self.coordinates.shape[-1]} dimensions"

    def to_xarray(self) -> xarray.Dataset:
        """prediction, radius, lower, upper (scalar functions), uncertainty and weights as variables.

        Dimensions: (function, component, x, y, z) or (function, component, point), as far as they
        exist. CF attributes; the guarantee and what it rests on are attributes of the dataset.
        """
        from uqno.band import export

        return export.dataset(self)

    def to_netcdf(self, path: str | Path) -> None:
        """`to_xarray` as a NetCDF-4 file."""
        from uqno.band import export

        export.write_netcdf(self, path)

    def to_npz(self, path: str | Path) -> None:
        """The variables of `to_xarray` as arrays, and `calibration`, the JSON of it, as text."""
        from uqno.band import export

        export.write_npz(self, path)

    def to_vtk(self, path: str | Path) -> None:
        """One function for ParaView: .vtr of a grid, .vtp of a surface or points; needs pyvista."""
        from uqno.band import export

        export.write_vtk(self, path)

    def plot(
        self,
        truth: Any = None,
        *,
        component: int | None = None,
        view: tuple[float, float] = (25.0, -55.0),
        up: str = "z",
    ) -> Figure:
        """A figure: the shaded band over a line; prediction and radius over a plane or surface.

        truth: the shape of `center`; adds what is covered. Of a batch, the first three functions,
        a row each. component: of a vector, instead of its length. view, up: elevation and azimuth
        in degrees and the vertical axis, for surfaces.
        """
        from uqno.band import plot

        return plot.figure(self, truth, component, view, up)
