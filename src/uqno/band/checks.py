"""Every check of what a band is made of: expected X, got Y, do Z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from uqno.conformal import checks
from uqno.types import Floats, Reals

Coordinates: TypeAlias = tuple[Floats, ...] | Floats


def fields(
    center: Any, uncertainty: Any, coordinates: Any, triangles: Any, weights: Any, names: Any
) -> dict[str, Any]:
    """The fields of a band as arrays that fit together, by name."""
    where = coordinates_of(coordinates)
    points = points_of(where)
    found: dict[str, Any] = {
        "center": checks.real("center", "the band", center),
        "uncertainty": checks.real("uncertainty", "the band", uncertainty),
        "coordinates": where,
    }
    shapes(found["center"].shape, found["uncertainty"].shape, where)
    values("center", found["center"])
    values("uncertainty", found["uncertainty"], least=0)
    if triangles is not None:
        found["triangles"] = triangles_of(triangles, where)
    if weights is not None:
        found["weights"] = weights_of(weights, found["uncertainty"].shape, points)
    if names is not None:
        found["component_names"] = names_of(names, found["center"].shape[-1 - len(points)])
    return found


def coordinates_of(given: Any) -> Coordinates:
    """A grid's axes where a tuple or list is given, else points."""
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
    x = checks.real(f"coordinates[{j}]", "the band", given)
    if x.ndim != 1:
        raise ValueError(
            f"coordinates[{j}] have shape {x.shape}: expected one 1-D array a dimension of the "
            "grid; pass a curved grid as scattered points (points, d)"
        )
    values(f"coordinates[{j}]", x)
    if not (np.diff(x) > 0).all():
        raise ValueError(f"coordinates[{j}] of the grid must increase; sort grid and values")
    return x


def points_of(coordinates: Coordinates) -> tuple[int, ...]:
    if isinstance(coordinates, tuple):
        return tuple(len(x) for x in coordinates)
    return (coordinates.shape[-2],)


def shapes(center: tuple[int, ...], uncertainty: tuple[int, ...], coordinates: Coordinates) -> None:
    points = points_of(coordinates)
    if uncertainty != points and uncertainty[1:] != points:
        told = ", ".join(map(str, points))
        raise ValueError(
            f"uncertainty has shape {uncertainty}, the coordinates describe points of shape {points}: "
            f"expected {points} for one function, (functions, {told}) for a batch"
        )
    batch = uncertainty[: len(uncertainty) - len(points)]
    channels = center[len(batch) : len(center) - len(points)]
    if center != (*batch, *channels, *points) or len(channels) != 1:
        named = ", ".join([*map(str, batch), "channel", *map(str, points)])
        raise ValueError(
            f"center has shape {center}, uncertainty {uncertainty}: expected ({named}) for center; a scalar "
            "function has one channel"
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
    """Finite and not below `least`, or an error with the first bad value and its place."""
    bad = ~np.isfinite(array) | (array < least)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        remedy = {
            "center": "the prediction must be finite: look at the input and the model",
            "uncertainty": "E must be finite and ≥ 0: use a positive function of the network's output, "
            "such as softplus",
            "weights": "weights are areas or shares, finite and ≥ 0",
        }.get(name, "coordinates must be finite")
        raise ValueError(
            f"{name} is {array[place]} at {list(place)} ({np.count_nonzero(bad)} such of "
            f"{bad.size}); {remedy}"
        )


def triangles_of(given: Any, coordinates: Coordinates) -> NDArray[np.integer[Any]]:
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
    weights: Reals = np.asarray(checks.real("weights", "the band", given), dtype=np.float64)
    if weights.shape not in (points, uncertainty):
        raise ValueError(
            f"weights have shape {weights.shape}, expected {points} for all functions or {uncertainty}"
        )
    values("weights", weights, least=0)
    if not weights.reshape(-1, int(np.prod(points))).any(axis=1).all():
        raise ValueError("the weights of a function sum to zero: at least one point must count")
    return weights


def names_of(given: Sequence[str], channels: int) -> tuple[str, ...]:
    names = tuple(map(str, given))
    if isinstance(given, str) or len(names) != channels:
        raise ValueError(f"component_names = {given!r}, expected {channels} names, one a channel")
    return names
