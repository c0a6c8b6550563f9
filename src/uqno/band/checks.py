"""Every check of what a band is made of: expected X, got Y, do Z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from uqno.conformal import checks
from uqno.data.labels import Labels, is_monotone
from uqno.types import Floats, Reals

Coordinates: TypeAlias = tuple[Floats, ...] | Floats


def fields(
    center: Any,
    uncertainty: Any,
    coordinates: Any,
    triangles: Any,
    weights: Any,
    component_names: Any,
    scale: Any,
) -> dict[str, Any]:
    """The fields of a band as arrays that fit together, by name.

    Args:
        center: (channel, *points) or (functions, channel, *points).
        uncertainty: (*points) or (functions, *points), at least 0.
        coordinates: the axes of a grid, or points (n, d) or (functions, n, d).
        triangles: (faces, 3) indices of points, or None.
        weights: (*points) or of the shape of the uncertainty, or None.
        component_names: one for each channel, or None.
        scale: a number, or one for each function, or None.

    Raises:
        ValueError: what does not fit, and what was expected.
    """
    where = coordinates_of(coordinates)
    points = points_of(where)
    checked: dict[str, Any] = {
        "center": checks.real("center", "the band", center),
        "uncertainty": checks.real("uncertainty", "the band", uncertainty),
        "coordinates": where,
    }
    shape = checked["uncertainty"].shape
    shapes(checked["center"].shape, shape, where)
    values("center", checked["center"])
    values("uncertainty", checked["uncertainty"], least=0)
    if triangles is not None:
        checked["triangles"] = triangles_of(triangles, where)
    if weights is not None:
        checked["weights"] = weights_of(weights, shape, points)
    if component_names is not None:
        channels = checked["center"].shape[-1 - len(points)]
        checked["component_names"] = names_of(component_names, channels)
    if scale is not None:
        checked["scale"] = scale_of(scale, shape[: len(shape) - len(points)])
    return checked


def coordinates_of(given: Any) -> Coordinates:
    """The axes of a grid where a tuple or list is given, else points.

    Args:
        given: one to three arrays (n,), or an array (n, d) or (functions, n, d), d ≤ 3.

    Raises:
        ValueError: it is none of these, or not finite, or an axis does not increase.
    """
    if isinstance(given, tuple | list):
        if not 1 <= len(given) <= 3:
            raise ValueError(f"coordinates of {len(given)} dimensions: expected a grid of 1 to 3")
        return tuple(axis_of(j, x) for j, x in enumerate(given))
    points = checks.real("coordinates", "the band", given)
    if points.ndim not in (2, 3) or not 1 <= points.shape[-1] <= 3:
        raise ValueError(
            f"coordinates have shape {points.shape}: expected a tuple of one to three 1-D arrays "
            "for a grid, or an array (points, d) or (functions, points, d), d = 1, 2 or 3, for "
            "scattered points; a line of points is the grid (x,)"
        )
    values("coordinates", points)
    return points


def axis_of(j: int, given: Any) -> Floats:
    """Axis j of a grid: increasing or decreasing, (n,)."""
    x = checks.real(f"coordinates[{j}]", "the band", given)
    if x.ndim != 1:
        raise ValueError(
            f"coordinates[{j}] have shape {x.shape}: expected one 1-D array a dimension of the "
            "grid; pass a curved grid as scattered points (points, d)"
        )
    values(f"coordinates[{j}]", x)
    if not is_monotone(x):
        raise ValueError(
            f"coordinates[{j}] of the grid must increase, or decrease; sort grid and values"
        )
    return x


def points_of(coordinates: Coordinates) -> tuple[int, ...]:
    """The shape of one function's points."""
    if isinstance(coordinates, tuple):
        return tuple(len(x) for x in coordinates)
    return (coordinates.shape[-2],)


def shapes(center: tuple[int, ...], uncertainty: tuple[int, ...], coordinates: Coordinates) -> None:
    """Refuse shapes of center and uncertainty that do not fit the coordinates.

    Args:
        center: the shape of the center.
        uncertainty: the shape of the uncertainty.
        coordinates: the axes of a grid, or points.

    Raises:
        ValueError: the shapes do not fit.
    """
    points = points_of(coordinates)
    if uncertainty != points and uncertainty[1:] != points:
        listed = ", ".join(map(str, points))
        raise ValueError(
            f"uncertainty has shape {uncertainty}, the coordinates describe points of shape "
            f"{points}: expected {points} for one function, (functions, {listed}) for a batch"
        )
    batch = uncertainty[: len(uncertainty) - len(points)]
    channels = center[len(batch) : len(center) - len(points)]
    if center != (*batch, *channels, *points) or len(channels) != 1:
        named = ", ".join([*map(str, batch), "channel", *map(str, points)])
        raise ValueError(
            f"center has shape {center}, uncertainty {uncertainty}: expected ({named}) for center; "
            "a scalar function has one channel"
        )
    if 0 in center:
        raise ValueError(f"center has shape {center}: expected at least one function and point")
    own = not isinstance(coordinates, tuple) and coordinates.ndim == 3
    if own and batch != (len(coordinates),):
        raise ValueError(
            f"coordinates of {len(coordinates)} geometries were given for uncertainty of shape "
            f"{uncertainty}: expected one geometry a function, or (points, d) for all functions"
        )


def values(name: str, array: Floats, least: float = -np.inf) -> None:
    """Refuse values that are not finite, or too small.

    Args:
        name: what they are called in the message.
        array: of any shape.
        least: the smallest value that is accepted.

    Raises:
        ValueError: it names the first bad value and its place.
    """
    bad = ~np.isfinite(array) | (array < least)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        remedy = {
            "center": "the prediction must be finite: look at the input and the model",
            "uncertainty": "E must be finite and ≥ 0: use a positive function of the network's "
            "output, such as softplus",
            "weights": "weights are areas or shares, finite and ≥ 0",
            "scale": "λ̂ must be finite and ≥ 0: calibrate at levels that are feasible",
        }.get(name, "coordinates must be finite")
        raise ValueError(
            f"{name} is {array[place]} at {list(place)} ({np.count_nonzero(bad)} such of "
            f"{bad.size}); {remedy}"
        )


def triangles_of(given: Any, coordinates: Coordinates) -> NDArray[np.integer[Any]]:
    """Triangles as (faces, 3) indices of the points.

    Args:
        given: whole numbers, counted from 0.
        coordinates: points (n, d) or (functions, n, d), with d = 2 or 3.

    Raises:
        ValueError: it is no such array, or the points are those of a grid or a line.
    """
    checks.real("triangles", "the band", given)
    faces = np.asarray(given)
    if isinstance(coordinates, tuple) or coordinates.shape[-1] == 1:
        raise ValueError(
            "triangles go with scattered points (points, d), d = 2 or 3: leave them out on a grid "
            "or a line"
        )
    if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
        raise ValueError(
            f"triangles have shape {faces.shape} and dtype {faces.dtype}: expected (faces, 3) "
            "whole numbers; split other polygons into triangles"
        )
    points = coordinates.shape[-2]
    if faces.size and not (faces.min() >= 0 and faces.max() < points):
        raise ValueError(
            f"triangles name points {faces.min()} … {faces.max()}, expected 0 … {points - 1}: "
            "count from 0"
        )
    return faces


def weights_of(given: Any, uncertainty: tuple[int, ...], points: tuple[int, ...]) -> Reals:
    """The weights by which coverage is measured, in double precision.

    Args:
        given: of the shape of the points or of the uncertainty, at least 0.
        uncertainty: the shape of the uncertainty.
        points: the shape of one function's points.

    Raises:
        ValueError: the shape is another, or all weights of a function are 0.
    """
    weights: Reals = np.asarray(checks.real("weights", "the band", given), dtype=np.float64)
    if weights.shape not in (points, uncertainty):
        raise ValueError(
            f"weights have shape {weights.shape}, expected {points} for all functions or "
            f"{uncertainty}"
        )
    values("weights", weights, least=0)
    if not weights.reshape(-1, int(np.prod(points))).any(axis=1).all():
        raise ValueError("the weights of a function sum to zero: at least one point must count")
    return weights


def names_of(given: Sequence[str], channels: int) -> tuple[str, ...]:
    """One name for each channel."""
    names = given if isinstance(given, tuple | list) else ()
    if len(names) != channels or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"component_names = {checks.shown(given)}, expected {channels} names, one a channel"
        )
    return tuple(names)


def scale_of(given: Any, batch: tuple[int, ...]) -> float | Reals:
    """λ̂ for all functions, or an array with one for each function of a batch.

    Args:
        given: a number, or an array of the shape `batch`.
        batch: (functions,), or () for the band of one function.
    """
    scale: Reals = np.asarray(checks.real("scale", "the band", given), dtype=np.float64)
    if scale.shape not in ((), batch):
        own = f", or of shape {batch}, one for each function" if batch else ""
        raise ValueError(f"scale has shape {scale.shape}: expected a single number{own}")
    values("scale", np.atleast_1d(scale), least=0)
    return scale if scale.ndim else float(scale)


def words(**given: Any) -> None:
    """Refuse a name or a unit that is no text."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} = {checks.shown(value)} must be text")


def labels_of(labels: Labels, coordinates: Coordinates, batch: bool) -> None:
    """Refuse labels of other dimensions than those of the band."""
    if not isinstance(labels, Labels):
        raise ValueError(f"labels = {checks.shown(labels)} must be a uqno.data.labels.Labels")
    d = len(coordinates) if isinstance(coordinates, tuple) else coordinates.shape[-1]
    if len(labels.points) != d:
        raise ValueError(
            f"labels name the dimensions {labels.points}, expected {d} names, one for each"
        )
    if batch is (labels.function is None):
        wanted = "the dimension that counts the functions" if batch else "None for one function"
        raise ValueError(f"labels.function is {labels.function!r}, expected {wanted}")


def truth_of(given: Any, center: tuple[int, ...], uncertainty: tuple[int, ...]) -> Floats:
    """A truth in the shape of the center.

    Args:
        given: of the shape of the center; a scalar function may leave out the channel.
        center: the shape of the center.
        uncertainty: the shape of the uncertainty.

    Raises:
        ValueError: the shape is another.
    """
    truth = checks.real("u", "the truth", given)
    scalar = np.prod(center) == np.prod(uncertainty) and truth.shape == uncertainty
    if truth.shape != center and not scalar:
        raise ValueError(
            f"u has shape {truth.shape}, the band's center {center}: expected the same; evaluate u "
            "at the band's points, or predict at the points of u"
        )
    return truth.reshape(center)
