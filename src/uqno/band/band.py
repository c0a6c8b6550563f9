"""The answer: Ĝ(a)(x) ± λ̂ · E(a)(x) with its coordinates and its guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqno.band import checks as band_checks
from uqno.band.checks import Coordinates
from uqno.band.novelty import Novelty
from uqno.conformal.functionals import Interval
from uqno.conformal.record import Calibration
from uqno.conformal.scores import coverage, ratios
from uqno.data.labels import Labels
from uqno.types import Floats, Reals, Share

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from uqno.band.residuals import Draws, ResidualLaw


@dataclass(frozen=True, eq=False, repr=False)
class Band:
    """{u : ‖u(x) − center(x)‖ ≤ scale · uncertainty(x)}, for one function or a batch of them.

    Args:
        center: Ĝ(a), (channel, *points) or (functions, channel, *points).
        uncertainty: E(a) ≥ 0 before scaling, (*points) or (functions, *points).
        calibration: the scale λ̂ and what it guarantees.
        coordinates: for a grid, one increasing or decreasing 1-D array for each dimension, in the
            order of the dimensions of `center`, called x, y and z in this order unless `labels`
            name them. For scattered points, (points, d), with the columns x, y, z; or (functions,
            points, d) for geometries that differ.
        triangles: (faces, 3) indices of points, for a surface.
        weights: the measure μ, (*points) for all functions or (functions, *points).
        name: of the quantity.
        units: of the quantity.
        component_names: one for each channel.
        scale: λ̂ where it is not that of the calibration: a number, or (functions,), as a
            guarantee may give each new function its own. None takes `calibration.scale`.
        labels: names and coordinates as the input had them, for files and figures.
        functionals: the intervals of quantities of interest, by name.
        novelty: whether the inputs are like those of calibration, where that is known.
        residuals: the law that `sample` draws by, where one was learned.

    Raises:
        ValueError: what does not fit, and what was expected.

    >>> from uqno import guarantees
    >>> cal = Calibration(2.0, guarantees.Fraction(0.1, 0.1), functions=99, points=3, points_max=3)
    >>> band = Band([[1.0, 2.0, 3.0]], [0.1, 0.1, 0.2], cal, ([0.0, 0.5, 1.0],))
    >>> band.upper, band.contains([[1.1, 2.3, 3.4]])
    (array([1.2, 2.2, 3.4]), array([ True, False,  True]))
    """

    center: Floats
    uncertainty: Floats
    calibration: Calibration
    coordinates: Coordinates
    triangles: NDArray[np.integer[Any]] | None = None
    weights: Reals | None = None
    name: str = "u"
    units: str = ""
    component_names: tuple[str, ...] | None = None
    scale: float | Reals | None = None
    labels: Labels | None = None
    functionals: Mapping[str, Interval] = field(default_factory=dict)
    novelty: Novelty | None = None
    residuals: ResidualLaw | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.calibration, Calibration):
            raise ValueError(
                f"calibration must be a uqno.Calibration, got {type(self.calibration).__name__}: "
                "pass the result of uqno.calibrate, or of Calibration.from_json"
            )
        band_checks.words(name=self.name, units=self.units)
        fields = band_checks.fields(
            self.center,
            self.uncertainty,
            self.coordinates,
            self.triangles,
            self.weights,
            self.component_names,
            self.scale,
        )
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # frozen for everyone else
        if self.scale is None:
            band_checks.scale_of(self.calibration.scale, ())
        if self.labels is not None:
            band_checks.labels_of(self.labels, self.coordinates, self.is_batch)

    # --- what it is -------------------------------------------------------------------------

    @property
    def is_grid(self) -> bool:
        """Whether the points are a grid rather than scattered."""
        return isinstance(self.coordinates, tuple)

    @property
    def points(self) -> tuple[int, ...]:
        """The shape of one function's points: (43, 43) on a grid, (3586,) on a surface."""
        return band_checks.points_of(self.coordinates)

    @property
    def is_batch(self) -> bool:
        """Whether it is the band of several functions, even of a batch of one."""
        return self.uncertainty.ndim > len(self.points)

    @property
    def channels(self) -> int:
        """Components of the function's values: 1 for a scalar function."""
        return int(self.center.shape[1 if self.is_batch else 0])

    @property
    def guarantee(self) -> str:
        """What is promised and what is not, to quote."""
        return self.calibration.guarantee

    @property
    def promise(self) -> str:
        """The guarantee in one line; `guarantee` is the whole of it."""
        return self.calibration.promise

    @property
    def levels(self) -> dict[str, Any]:
        """What the guarantee depends on, such as alpha and delta, by name."""
        return self.calibration.levels

    @property
    def applied_scale(self) -> float | Reals:
        """λ̂ as it is used: `scale`, or `calibration.scale` where that is None."""
        return float(self.calibration.scale) if self.scale is None else self.scale

    @property
    def radius(self) -> Floats:
        """scale · uncertainty, the shape and precision of `uncertainty`."""
        dtype = self.uncertainty.dtype
        radius: Floats = np.multiply(self.uncertainty, self._scale_at_points(), dtype=dtype)
        return radius

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
        scale = self.applied_scale
        if isinstance(scale, float):
            return scale * float(mean.mean())
        return float((scale * mean).mean())

    def at(self, **levels: Share) -> Band:
        """The band at levels chosen after looking, see `Calibration.at`: `band.at(alpha=0.05)`."""
        return replace(self, calibration=self.calibration.at(**levels), scale=None)

    def _scale_at_points(self) -> float | Reals:
        """`applied_scale` with axes of length 1 for the points, to multiply and to compare with."""
        scale = self.applied_scale
        return scale if isinstance(scale, float) else scale.reshape(-1, *(1 for _ in self.points))

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
        coordinates, weights, scale = self.coordinates, self.weights, self.scale
        if not isinstance(coordinates, tuple) and coordinates.ndim == 3:
            coordinates = coordinates[which]
        if weights is not None and weights.ndim == self.uncertainty.ndim:
            weights = weights[which]
        if scale is not None and not isinstance(scale, float):
            scale = scale[which]
        return replace(
            self,
            center=self.center[which],
            uncertainty=self.uncertainty[which],
            coordinates=coordinates,
            weights=weights,
            scale=scale,
            labels=None if self.labels is None else self.labels.of(which),
            functionals={name: one[which] for name, one in self.functionals.items()},
            novelty=None if self.novelty is None else self.novelty[which],
        )

    # --- against the truth ------------------------------------------------------------------

    def contains(self, u: Any) -> NDArray[np.bool_]:
        """‖u − center‖ / uncertainty ≤ scale, point by point.

        The ratio decides, as in the calibration; `lower` and `upper` may be rounded to its other
        side.

        Args:
            u: the truth, of the shape of `center`; a scalar function may leave out the channel.

        Returns:
            Whether the truth is in the band, of the shape of `uncertainty`.
        """
        ratio = ratios(self._residual(u), self.uncertainty).reshape(self.uncertainty.shape)
        inside: NDArray[np.bool_] = ratio <= self._scale_at_points()
        return inside

    def coverage(self, u: Any) -> float | Reals:
        """μ{x : u(x) in the band}, the covered share of each function.

        Args:
            u: the truth, of the shape of `center`; a scalar function may leave out the channel.

        Returns:
            A float for one function, (functions,) for a batch.

        Raises:
            ValueError: the calibration is by weights and the band has none.
        """
        if self.calibration.weighted and self.weights is None:
            raise ValueError(
                "the band was calibrated by weights and has none: give them with "
                "dataclasses.replace(band, weights=...), or predict from a sample that has them"
            )
        scale = self.applied_scale
        if not isinstance(scale, float):
            return np.array([self[i].coverage(v) for i, v in enumerate(self.truth(u))])
        residual, uncertainty = self._residual(u), self.uncertainty
        if not self.is_batch:
            residual, uncertainty = residual[np.newaxis], uncertainty[np.newaxis]
        share = coverage(residual, uncertainty, scale, self.weights)
        return share if self.is_batch else float(share[0])

    def error(self, u: Any) -> Reals:
        """‖u − center‖, point by point, of the shape of `uncertainty`."""
        residual = self._residual(u)
        if self.channels == 1:
            return np.abs(residual)
        return np.asarray(np.linalg.norm(residual, axis=-1))

    def truth(self, u: Any) -> Floats:
        """u in the shape of `center`; refused if it does not fit."""
        return band_checks.truth_of(u, self.center.shape, self.uncertainty.shape)

    def _residual(self, u: Any) -> Reals:
        """u − center in float64, (*points) or (*points, channel) for each function."""
        axis = 1 if self.is_batch else 0
        residual: Reals = np.subtract(self.truth(u), self.center, dtype=np.float64)
        return residual.squeeze(axis) if self.channels == 1 else np.moveaxis(residual, axis, -1)

    # --- for computations downstream ----------------------------------------------------------

    def sample(self, n: int, seed: int = 0) -> Draws:
        """Functions inside the band, correlated like residuals of training functions: no promise.

        Args:
            n: how many; seed: of the draw.

        Returns:
            `values`, (n, channel, *points), or (n, functions, channel, *points) of a batch, and
            `meaning`, which says what they are.

        Raises:
            ValueError: the band knows no residuals, as it was not made by a fitted model.
        """
        if self.residuals is None:
            raise ValueError(
                "the band knows no residuals to draw by: take one of model.predict, of a model "
                "fitted by this uqno, or give it a law with dataclasses.replace(band, residuals=…)"
            )
        return self.residuals.draw(self, n, seed)

    # --- for people and other programs ------------------------------------------------------

    def __repr__(self) -> str:
        how_many = f"{len(self)} functions, " if self.is_batch else ""
        values = "" if self.channels == 1 else f"{self.channels} components, "
        label = f"{self.name} [{self.units}]" if self.units else self.name
        r = self.radius
        return (
            f"Band of {label}: {how_many}{values}{self._where()}\n"
            f"  center  {self.center.min():.4g} … {self.center.max():.4g}\n"
            f"  radius  {r.min():.4g} … {r.max():.4g}, mean {self.bandwidth:.4g}\n"
            f"  {self.promise}"
            + (f"\n  {self.novelty.words}" if self.novelty and self.novelty.far.any() else "")
        )

    def _where(self) -> str:
        if isinstance(self.coordinates, tuple):
            return " × ".join(map(str, self.points)) + (
                " grid" if len(self.points) > 1 else " points"
            )
        if self.triangles is not None:
            return f"surface of {self.points[0]} points and {len(self.triangles)} triangles"
        return f"{self.points[0]} points in {self.coordinates.shape[-1]} dimensions"

    def write(self, path: str | Path) -> None:
        """Write the band into a file, in the format that the suffix of its name stands for.

        Args:
            path: ends in .nc, .npz, .vtr (a grid) or .vtp (a surface or points), or in the suffix
                of a `uqno.band.formats.BandFormat` that is defined elsewhere.

        Raises:
            ValueError: no format has this suffix, or the format cannot hold this band.
        """
        from uqno.band.formats import format_of

        format_of(path)().save(self, path)

    def to_xarray(self) -> xarray.Dataset:
        """center, radius, uncertainty, lower and upper (scalar functions) and weights as variables.

        Dimensions: (function, component, x, y, z) or (function, component, point), as far as they
        exist, with the names and coordinates of `labels` where there are any. CF attributes; the
        guarantee and what it rests on are attributes of the dataset.
        """
        from uqno.band.formats.netcdf import dataset

        return dataset(self)

    def to_netcdf(self, path: str | Path) -> None:
        """`to_xarray` as a NetCDF-4 file."""
        from uqno.band.formats.netcdf import NetCDF

        NetCDF().save(self, path)

    def to_npz(self, path: str | Path) -> None:
        """The variables of `to_xarray` as arrays, and `calibration`, the JSON of it, as text."""
        from uqno.band.formats.npz import Npz

        Npz().save(self, path)

    def to_vtk(self, path: str | Path) -> None:
        """One function for ParaView: .vtr of a grid, .vtp of a surface or points; needs pyvista."""
        from uqno.band.formats.vtk import Vtk

        Vtk().save(self, path)

    def plot(
        self,
        truth: Any = None,
        *,
        component: int | None = None,
        view: tuple[float, float] = (25.0, -55.0),
        up: str = "z",
    ) -> Figure:
        """A figure: the shaded band over a line; center and radius over a plane or surface.

        A batch is shown by its first three functions, a row each.

        Args:
            truth: of the shape of `center`; adds the error and what is covered.
            component: of a vector, to show instead of its length.
            view: elevation and azimuth in degrees, for surfaces.
            up: the vertical axis, for surfaces.
        """
        from uqno.band import plot

        return plot.figure(self, truth, component, view, up)
