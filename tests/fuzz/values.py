"""Values that no argument was meant for."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np


class Refuses:
    """An object that cannot be turned into anything."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("no array")


class Long:
    """Claims more functions than it has."""

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, i: int) -> Any:
        raise IndexError(i)


def deep(levels: int = 3000) -> list[Any]:
    """A list in a list in a list …"""
    inner: list[Any] = []
    for _ in range(levels):
        inner = [inner]
    return inner


def _masked() -> Any:
    return np.ma.masked_array(np.ones((40, 12)), mask=np.eye(40, 12, dtype=bool))


def _tensor() -> Any:
    import torch

    return torch.ones(40, 12, requires_grad=True)


def _half() -> Any:
    import torch

    return torch.ones(40, 12, dtype=torch.bfloat16)


VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: True, lambda: False, lambda: "x", lambda: "", lambda: "0.1",
    lambda: "1/3", lambda: "1/0", lambda: "\ud800", lambda: "a\x00b", lambda: "x" * 10**5,
    lambda: "1e-99999999", lambda: "1e99999999", lambda: "0." + "1" * 10**4, lambda: b"0.1",
    lambda: bytearray(b"ab"), object, Refuses, Long, lambda: 1j, lambda: 10**400,
    lambda: -(10**400), lambda: 10**5000, lambda: 10**12, lambda: 10**12 + 1, lambda: 2**63,
    lambda: 2**64, lambda: -1, lambda: 0, lambda: 1, lambda: 2, lambda: 3, lambda: 0.5,
    lambda: 0.999999999999, lambda: 1.0, lambda: float("nan"), lambda: float("inf"),
    lambda: -float("inf"), lambda: -0.0, lambda: 1e308, lambda: 1e-320, lambda: 1e-12,
    lambda: Fraction(1, 3), lambda: Fraction(1, 10**400), lambda: 1 - Fraction(1, 10**400),
    lambda: Fraction(10**400, 3), lambda: Decimal("0.1"), lambda: Decimal("NaN"),
    lambda: Decimal("sNaN"), lambda: Decimal("Infinity"), lambda: Decimal("1e-99999"),
    lambda: [], lambda: (), lambda: {}, set, lambda: [[]], lambda: [0.1], lambda: [None],
    lambda: ["a", "u"], lambda: {"a": 1}, lambda: {1: 2}, lambda: [[1.0, 2.0], [3.0]], deep,
    lambda: range(5), lambda: iter([]), lambda: iter([1, 2, 3]), lambda: (x for x in [None] * 50),
    lambda: lambda *a: None, lambda: int, lambda: Path("nothing"), lambda: np.array([]),
    lambda: np.zeros((0, 3)), lambda: np.zeros((40, 0)), lambda: np.array(0.1),
    lambda: np.array(None, dtype=object), lambda: np.array(["a", "b"]),
    lambda: np.array([[1.0, None]] * 40, dtype=object), lambda: np.float16(0.1),
    lambda: np.float32(0.1), lambda: np.int8(3), lambda: np.uint64(2**64 - 1),
    lambda: np.longdouble(0.1), lambda: np.datetime64("NaT"), lambda: np.ma.masked, _masked,
    lambda: np.ones(3, dtype=[("x", float)]), lambda: np.ones((40, 12)) * 1j,
    lambda: np.full((40, 12), np.nan), lambda: np.full((40, 12), np.inf),
    lambda: np.full((40, 12), -1.0), lambda: np.full((40, 12), 1e308),
    lambda: np.full((40, 12), 1e-320), lambda: np.ones((40, 12), dtype=">f8"),
    lambda: np.ones((40, 12), dtype=bool), lambda: np.ones((40, 12), dtype=np.longdouble),
    lambda: np.ones((40, 12, 2)), lambda: np.ones((40, 11)), lambda: np.ones((2, 1)),
    lambda: np.ones((1, 12)), lambda: np.ones(12), lambda: np.zeros((40, 12)),
    lambda: np.broadcast_to(np.float64(1), (40, 12)), lambda: np.ones((40, 12))[:, ::-1],
    lambda: [np.ones(3), np.ones(0)], lambda: [np.ones(3), "x"], lambda: [1, 2], lambda: ["x"] * 40,
    _tensor, _half,
)  # fmt: skip


def hostile(rng: np.random.Generator) -> Any:
    """One of them."""
    return VALUES[rng.integers(len(VALUES))]()


def spoiled(rng: np.random.Generator, arguments: dict[str, Any], most: int = 2) -> dict[str, Any]:
    """The arguments with some of them replaced, now and then one left out or one too many."""
    spoiled = dict(arguments)
    for _ in range(rng.integers(1, most + 1)):
        name = str(rng.choice(sorted(spoiled))) if spoiled else "nothing"
        spoiled[name] = hostile(rng)
    chance = rng.random()
    if chance < 0.02:
        spoiled["nothing"] = 1
    elif chance < 0.04 and spoiled:
        spoiled.pop(str(rng.choice(sorted(spoiled))))
    return spoiled
