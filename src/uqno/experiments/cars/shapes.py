"""A parametric car body: a pure function of its parameters, which are one of (seed, index).

x runs from the nose (0) to the tail (length), y to the left, z upwards from the ground. The body
is the image of a box, see `grid`. At each x the section is a superellipse with tumblehome,

    |Y|^n + |Z|^n = 1,   z = c(x) + h(x) Z,   y = w(x) g(z) Y,

between a bottom and a top profile: polylines whose corners, but for the roof's rear edge, are
rounded by softplus,
z(x) = z₀ + m₀ x + Σ_k Δm_k s_k log(1 + e^((x − x_k)/s_k)). Height and width close towards nose
and tail as f(d) = (1 − (1 − d/r)²)^(1/p) of the distance d to the end; the tail's curve is cut off
before it is steep, and a slightly domed base closes it. Sections are graphs over z and x increases
from one to the next, so that the surface cannot meet itself.

The flow leaves the body at the two sharp edges, as on real cars. About round ones it stays attached
on one mesh and separates on the next, and no label repeats.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from math import pi, tan

import numpy as np

from uqno.experiments.cars import lattice
from uqno.experiments.cars.bodies import draw_parameters
from uqno.geometry.surface import Surface
from uqno.types import Reals

VERTICES = 3586
TRIANGLES = 7168
# A box that contains every car with some air around; y is symmetric, to mirror cars in it.
DOMAIN = ((-0.4, 5.5), (-1.3, 1.3), (0.0, 2.3))

# Numbers that every car shares: lengths in metres, shares of the car's length.
FRONT_TAPER_ENDS, REAR_TAPER_BEGINS = 0.42, 0.55
CHIN_LENGTH, CHIN_SLOPE = 0.55, 0.16
DIFFUSER_LENGTH = 0.75
SILL_HEIGHT, SILL_SLOPE = 0.18, 0.12  # above the underbody; the sides lean in below it
BELT_ROUNDING = 0.05
DECK_SLOPE = 0.04
ROOF_EDGE = 1e-4  # rounding of the roof's rear edge: sharp
TAIL_REACH = 0.4  # share of its closing curve that the tail follows before it is cut off
BASE_DOME = 0.03  # by how much the base bulges backwards from its edge
TABLE = 6000  # positions along the car at which its meridian is tabulated
SHARP = 0.2  # turning in radians, from one of these positions to the next, that is an edge


@dataclass(frozen=True)
class Shape:
    """The parameters of a car. Lengths in metres, angles in degrees, the others are shares."""

    length: float
    width: float
    height: float
    ride_height: float
    hood_height: float  # of the height, at the foot of the windscreen
    hood_length: float  # of the length
    hood_drop: float  # of the hood height, from the windscreen to the nose
    windscreen: float  # angle to the horizontal
    roof_length: float  # of the length
    roof_camber: float  # slope at its front and, downwards, at its rear
    rear_angle: float  # of the rear window
    boot_height: float  # of the height
    edge_radius: float  # of the corners of the top profile
    taper_front: float  # of the width, seen from above
    taper_rear: float
    tumblehome: float  # angle of the side windows to the vertical
    belt_height: float  # of the height, where tumblehome begins
    shoulder: float  # by how much the windows stand back from the doors
    roundness: float  # n of the sections' superellipse
    nose_radius: float  # depth over which the height closes
    nose_height: float  # of the hood height
    nose_plan: float  # depth over which the width closes
    nose_power: float  # p: the larger, the blunter
    tail_radius: float  # as of the nose; both curves end at the base's sharp edge
    tail_plan: float
    tail_power: float
    diffuser: float  # angle

    @staticmethod
    def from_vector(values: Sequence[float] | Reals) -> "Shape":
        """The inverse of `vector`."""
        if len(values) != len(fields(Shape)):
            raise ValueError(
                f"a car has the {len(fields(Shape))} parameters {', '.join(names())}, "
                f"got {len(values)} numbers"
            )
        return Shape(*(float(value) for value in values))

    def vector(self) -> Reals:
        """The parameters as an array, in the order of `names()`."""
        return np.array(astuple(self))

    @property
    def roof_end(self) -> float:
        """x of the sharp edge between roof and rear window."""
        return self.top_knots[3][0]

    @cached_property
    def top_knots(self) -> tuple[tuple[float, float], ...]:
        """(x, slope after x) of the top profile: windscreen, roof, its middle, rear, boot."""
        roof, foot = self.height, self.hood_height * self.height
        screen, rear, camber = (
            tan(a * pi / 180) for a in (self.windscreen, self.rear_angle, self.roof_camber)
        )
        x1 = self.hood_length * self.length
        x2 = x1 + (roof - foot) / screen
        x4 = x2 + self.roof_length * self.length
        x5 = x4 + (roof - self.boot_height * self.height) / rear
        middle = 0.5 * (x2 + x4)
        return ((x1, screen), (x2, camber), (middle, -camber), (x4, -rear), (x5, -DECK_SLOPE))


def names() -> tuple[str, ...]:
    """The names of the parameters, in order."""
    return tuple(field.name for field in fields(Shape))


def draw(seed: int, index: int) -> Shape:
    """Car `index` of the set `seed`.

    >>> draw(0, 7) == draw(0, 7), draw(0, 7) == draw(0, 8)
    (True, False)
    """
    return Shape(**draw_parameters(seed, index))


def surface(shape: Shape, refine: int = 1) -> Surface:
    """The body with 3584 refine² + 2 vertices; `lattice.coarse(refine)` are those of refine = 1.

    >>> body = surface(draw(0, 0))
    >>> body.points.shape, body.triangles.shape
    ((3586, 3), (7168, 3))
    """
    along, p, q = lattice.box_points(refine).T
    depth = np.maximum(np.abs(p), np.abs(q))  # 1 on the sides, less on the two ends
    meridian = _Meridian(shape)
    x, h, w, c = meridian.at(along, depth)
    n = shape.roundness
    # The ring through the point is a square around the axis: its shadow on the superellipse.
    # At the middle of an end, where depth is 0, any direction will do: h and w are 0.
    p, q = (np.divide(v, depth, out=np.ones_like(v), where=depth > 0) for v in (p, q))
    r = (np.abs(p) ** n + np.abs(q) ** n) ** (-1 / n)
    z = c + h * q * r
    y = w * p * r * _leaning(shape, x, z)
    return Surface(np.stack([x, y, z], axis=1), lattice.triangles(refine))


def _softplus(t: Reals, s: float) -> Reals:
    """s log(1 + e^(t/s)): 0 far below 0, t far above, rounded over a few s."""
    smooth: Reals = s * np.logaddexp(0.0, t / s)
    return smooth


def top_profile(shape: Shape, x: Reals) -> Reals:
    """Height of the roof line over x, before it closes at the ends; its largest is `height`."""
    foot = shape.hood_height * shape.height
    slope = shape.hood_drop * foot / (shape.hood_length * shape.length)
    z = foot * (1 - shape.hood_drop) + slope * x
    for knot, after in shape.top_knots:
        steepest = max(abs(slope), abs(after))
        s = shape.edge_radius / (1 + steepest**2) ** 0.5
        if knot == shape.roof_end:
            s = ROOF_EDGE
        if abs(after) == abs(slope):  # the camber turns over the whole roof, not in a corner
            s = 0.15 * shape.roof_length * shape.length
        z = z + (after - slope) * _softplus(x - knot, s)
        slope = after
    scaled: Reals = z * (shape.height / z.max())
    return scaled


def bottom_profile(shape: Shape, x: Reals) -> Reals:
    """Height of the underbody over x: flat, a chin in front, a diffuser behind."""
    chin = CHIN_SLOPE * _softplus(CHIN_LENGTH - x, 0.08)
    begins = shape.length - DIFFUSER_LENGTH
    diffuser = tan(shape.diffuser * pi / 180) * _softplus(x - begins, 0.08)
    bottom: Reals = shape.ride_height + chin + diffuser
    return bottom


def half_width(shape: Shape, x: Reals) -> Reals:
    """Half of the width over x at its widest height, before it closes at the ends."""
    share = x / shape.length
    front = np.maximum(0, 1 - share / FRONT_TAPER_ENDS) ** 2
    rear = np.maximum(0, (share - REAR_TAPER_BEGINS) / (1 - REAR_TAPER_BEGINS)) ** 2
    half: Reals = 0.5 * shape.width * (1 - shape.taper_front * front - shape.taper_rear * rear)
    return half


def _leaning(shape: Shape, x: Reals, z: Reals) -> Reals:
    """g(z) ≤ 1: the sides lean in above the belt and below the sill."""
    belt = shape.belt_height * shape.height
    above = tan(shape.tumblehome * pi / 180) * _softplus(z - belt, BELT_ROUNDING)
    above += shape.shoulder * 0.5 * (1 + np.tanh((z - belt) / BELT_ROUNDING))
    sill = shape.ride_height + SILL_HEIGHT
    below = SILL_SLOPE * _softplus(sill - z, BELT_ROUNDING)
    lean: Reals = 1 - (above + below) / (0.5 * shape.width)
    return lean


def _closing(d: Reals, r: float, power: float, reach: float = 1.0) -> Reals:
    """f(d) = (1 − t²)^(1/p), t = reach · (1 − d/r): from 0 (reach = 1) or more to 1 at d = r."""
    t = reach * (1 - np.clip(d / r, 0.0, 1.0))
    f: Reals = (1 - t**2) ** (1 / power)
    return f


class _Meridian:
    """x, half height, half width and centre along the car, over a measure that spreads vertices.

    The measure is the arc length of the profiles and the plan view, and turns where they bend:
    vertices crowd where the flow changes quickly.
    """

    def __init__(self, shape: Shape) -> None:
        length = shape.length
        # Both ends in fourth powers, as f(d) is as steep as d^(1/p) there.
        t = np.linspace(0, 1, TABLE)
        near, far = t**4, (1 - t) ** 4
        self.x = x = length * near / (near + far)
        front, rear = x, length * far / (near + far)
        top, bottom = top_profile(shape, x), bottom_profile(shape, x)
        f_nose = _closing(front, shape.nose_radius, shape.nose_power)
        base = np.sqrt(np.minimum(rear / BASE_DOME, 1.0))
        to_edge = rear - BASE_DOME
        f_tail = _closing(to_edge, shape.tail_radius, shape.tail_power, TAIL_REACH) * base
        nose = shape.nose_height * shape.hood_height * shape.height
        tail = 0.5 * (top[-1] + bottom[-1])
        pole = np.where(front < rear, nose, tail)
        f = f_nose * f_tail
        top, bottom = pole + (top - pole) * f, pole + (bottom - pole) * f
        self.h, self.c = 0.5 * (top - bottom), 0.5 * (top + bottom)
        plan_nose = _closing(front, shape.nose_plan, shape.nose_power)
        plan_tail = _closing(to_edge, shape.tail_plan, shape.tail_power, TAIL_REACH) * base
        self.w = half_width(shape, x) * plan_nose * plan_tail
        self.measure = _measure(x, (top, bottom, self.w))
        # The two ends of the box are the nose within a share of its curve, and the base.
        self.rim = (
            float(np.interp(0.80, f_nose[: TABLE // 2], self.measure[: TABLE // 2])),
            float(np.interp(length - BASE_DOME, x, self.measure)),
        )
        self.roof_end = float(np.interp(shape.roof_end, x, self.measure))

    def at(self, along: Reals, depth: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """x, h, w, c at box coordinates: along in [−1, 1], depth in (0, 1], 1 but at the ends."""
        first, last = self.rim
        # The nearest line of vertices moves to the roof's edge, unless the base's edge is as near.
        cells = lattice.CELLS[0]
        line = round(cells * (self.roof_end - first) / (last - first))
        share, measure = ([line / cells], [self.roof_end]) if line < cells else ([], [])
        m = np.interp(0.5 * (along + 1), [0.0, *share, 1.0], [first, *measure, last])
        m = np.where(depth < 1, np.where(along < 0, first * depth, self._from_tail(depth)), m)
        x = np.interp(m, self.measure, self.x)
        h, w, c = (np.interp(m, self.measure, v) for v in (self.h, self.w, self.c))
        return x, h, w, c

    def _from_tail(self, depth: Reals) -> Reals:
        end = self.measure[-1]
        m: Reals = end - (end - self.rim[1]) * depth
        return m


def _measure(x: Reals, curves: tuple[Reals, ...]) -> Reals:
    """∫ |d(x, curves)| + 0.1 m · |turning|, (TABLE,); but a sharp edge is one line of vertices."""
    steps = [np.diff(curve) for curve in curves]
    dx = np.diff(x)
    length = np.sqrt(dx**2 + sum(step**2 for step in steps) / len(steps))
    angles = [np.unwrap(np.arctan2(step, dx)) for step in steps]
    turning = sum(np.abs(np.diff(angle, prepend=angle[:1])) for angle in angles) / len(steps)
    turning = np.where(turning > SHARP, 0.0, turning)
    return np.concatenate([[0.0], np.cumsum(length + 0.1 * turning)])
