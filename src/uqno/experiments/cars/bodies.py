"""Body types: the ranges from which the parameters of a car are drawn."""

from math import pi, tan

import numpy as np

Range = tuple[float, float]

# What all types share; a type overrides what makes it itself.
COMMON: dict[str, Range] = {
    "length": (4.0, 4.6),
    "width": (1.70, 1.92),
    "height": (1.40, 1.52),
    "ride_height": (0.14, 0.20),
    "hood_height": (0.60, 0.68),
    "hood_length": (0.20, 0.26),
    "hood_drop": (0.08, 0.19),
    "windscreen": (28, 36),
    "roof_camber": (1.0, 4.0),
    "rear_angle": (24, 34),
    "boot_height": (0.64, 0.72),
    "boot_length": (0.3, 0.6),  # of the deck behind the rear window; below 0: cut off by the tail
    "edge_radius": (0.03, 0.09),
    "taper_front": (0.05, 0.16),
    "taper_rear": (0.04, 0.14),
    "tumblehome": (14, 26),
    "belt_height": (0.60, 0.66),
    "shoulder": (0.02, 0.07),
    "roundness": (3.6, 6.0),
    "nose_radius": (0.14, 0.42),
    "nose_height": (0.46, 0.60),
    "nose_plan": (0.30, 0.70),
    "nose_power": (2.2, 3.2),
    "tail_radius": (0.15, 0.35),
    "tail_plan": (0.20, 0.45),
    "tail_power": (3.0, 4.5),
    "diffuser": (0, 12),
}
BODIES: dict[str, dict[str, Range]] = {
    "hatchback": {
        "length": (3.75, 4.4),
        "width": (1.66, 1.80),
        "height": (1.42, 1.56),
        "hood_length": (0.19, 0.25),
        "windscreen": (27, 36),
        "rear_angle": (50, 66),
        "boot_height": (0.56, 0.64),
        "boot_length": (-0.16, 0.04),
    },
    "saloon": {
        "length": (4.4, 5.05),
        "hood_length": (0.23, 0.28),
        "rear_angle": (22, 32),
        "boot_length": (0.35, 0.70),
        "boot_height": (0.66, 0.74),
    },
    "coupé": {
        "length": (4.1, 4.75),
        "width": (1.78, 1.95),
        "height": (1.24, 1.36),
        "ride_height": (0.12, 0.16),
        "hood_length": (0.26, 0.32),
        "windscreen": (25, 31),
        "rear_angle": (13, 22),
        "boot_height": (0.66, 0.74),
        "boot_length": (-0.15, 0.3),
        "tumblehome": (20, 30),
    },
    "estate": {
        "length": (4.4, 5.0),
        "height": (1.43, 1.56),
        "hood_length": (0.22, 0.27),
        "rear_angle": (58, 72),
        "boot_height": (0.54, 0.62),
        "boot_length": (-0.14, 0.0),
        "roof_camber": (0.5, 2.5),
    },
    "off-roader": {
        "length": (4.1, 4.9),
        "width": (1.80, 1.98),
        "height": (1.60, 1.78),
        "ride_height": (0.20, 0.26),
        "hood_height": (0.60, 0.66),
        "hood_length": (0.20, 0.25),
        "hood_drop": (0.05, 0.13),
        "windscreen": (32, 44),
        "rear_angle": (60, 74),
        "boot_height": (0.56, 0.62),
        "boot_length": (-0.14, 0.0),
        "tumblehome": (10, 20),
        "roundness": (4.4, 6.5),
    },
    "van": {
        "length": (4.3, 5.1),
        "width": (1.80, 1.98),
        "height": (1.72, 1.95),
        "ride_height": (0.16, 0.24),
        "hood_height": (0.54, 0.61),
        "hood_length": (0.13, 0.19),
        "hood_drop": (0.12, 0.22),
        "windscreen": (36, 48),
        "rear_angle": (64, 78),
        "boot_height": (0.50, 0.58),
        "boot_length": (-0.15, -0.05),
        "roof_camber": (0.5, 2.0),
        "tumblehome": (5, 11),
        "belt_height": (0.55, 0.60),
        "shoulder": (0.0, 0.04),
        "roundness": (5.0, 7.5),
    },
}

SHORTEST_ROOF = 0.12  # of the length


def draw_parameters(seed: int, index: int) -> dict[str, float]:
    """The parameters of a car by name: a body type, then each uniform in its range.

    They are rounded to single precision, as which they are stored.
    """
    random = _random(seed, index)
    ranges = {**COMMON, **BODIES[tuple(BODIES)[random.integers(len(BODIES))]]}
    drawn = {name: float(random.uniform(*ranges[name])) for name in COMMON}
    drawn["roof_length"] = _roof_length(drawn)
    del drawn["boot_length"]
    return {name: float(np.float32(value)) for name, value in drawn.items()}


def body(seed: int, index: int) -> str:
    """The type of a car."""
    return tuple(BODIES)[_random(seed, index).integers(len(BODIES))]


def _random(seed: int, index: int) -> np.random.Generator:
    if seed < 0 or index < 0:
        raise ValueError(f"seed and index must be at least 0, got {seed} and {index}")
    source = np.random.SeedSequence(entropy=seed, spawn_key=(index,))
    return np.random.Generator(np.random.PCG64(source))


def _roof_length(p: dict[str, float]) -> float:
    """What hood, windscreen, rear window and boot leave of the length, as a share of it.

    Where they leave little, the boot yields: no car without a roof.
    """
    screen = p["height"] * (1 - p["hood_height"]) / tan(p["windscreen"] * pi / 180)
    rear = p["height"] * (1 - p["boot_height"]) / tan(p["rear_angle"] * pi / 180)
    left = (1 - p["hood_length"]) * p["length"] - screen - rear - p["boot_length"]
    return max(left / p["length"], SHORTEST_ROOF)
