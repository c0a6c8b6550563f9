"""Disjoint index sets for the four uses of a function: base, residual, calibration, test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqno.conformal import checks

ROLES = ("base", "residual", "calibration", "test")
# All of them are permuted in memory.
MOST_FUNCTIONS = 10**8


@dataclass(frozen=True)
class Split:
    """Which functions fit the base operator, fit E, calibrate and test; no function serves twice.

    The guarantee rests on calibration and test functions that no training has seen, so overlap
    is refused here, where every split passes.

    Args:
        functions: how many there are to choose from.
        seed: of the permutation that the split was taken from.
        base: functions that fit the base operator.
        residual: functions that fit E.
        calibration: functions that calibrate.
        test: functions that test.
    """

    functions: int
    seed: int
    base: tuple[int, ...]
    residual: tuple[int, ...]
    calibration: tuple[int, ...]
    test: tuple[int, ...]

    def __post_init__(self) -> None:
        used = [i for role in ROLES for i in getattr(self, role)]
        if len(set(used)) != len(used):
            twice = sorted(i for i in set(used) if used.count(i) > 1)
            raise ValueError(f"functions {twice[:10]} have two roles: a split must be disjoint")
        if used and not (min(used) >= 0 and max(used) < self.functions):
            raise ValueError(
                f"indices must lie in 0 to {self.functions - 1}, got {min(used)} to {max(used)}"
            )

    def record(self) -> dict[str, Any]:
        """The split as JSON-able values; `Split.from_record` reads it back."""
        roles = {role: list(getattr(self, role)) for role in ROLES}
        return {"functions": self.functions, "seed": self.seed, **roles}

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> Split:
        """The split that `record` describes, checked again."""
        missing = {"functions", "seed", *ROLES} - set(record)
        if missing:
            raise ValueError(f"the record of a split lacks {sorted(missing)}")
        functions, seed = (checks.count(n, record[n], least=0) for n in ("functions", "seed"))
        roles = {}
        for role in ROLES:
            indices = checks.elements(role, record[role], "a list of the indices of functions")
            roles[role] = tuple(checks.count(f"an index in {role}", i, least=0) for i in indices)
        return Split(functions, seed, **roles)


def split_functions(
    functions: int, *, base: int, residual: int, calibration: int, test: int, seed: int = 0
) -> Split:
    """A random split: the first `base` of a permutation of 0 … functions − 1, and so on.

    Args:
        functions: how many there are to choose from.
        base: how many fit the base operator.
        residual: how many fit E.
        calibration: how many calibrate.
        test: how many test.
        seed: of the permutation.

    Raises:
        ValueError: there are fewer functions than asked for.

    >>> split = split_functions(10, base=4, residual=2, calibration=2, test=2, seed=1)
    >>> sorted(split.base + split.residual + split.calibration + split.test)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    given = zip(ROLES, (base, residual, calibration, test), strict=True)
    sizes = tuple(checks.count(role, size, least=0) for role, size in given)
    seed = checks.count("seed", seed, least=0)
    if checks.count("functions", functions, least=0) > MOST_FUNCTIONS:
        raise ValueError(f"functions = {functions} must be at most {MOST_FUNCTIONS} to be split")
    if sum(sizes) > functions:
        raise ValueError(
            f"{' + '.join(f'{size} {role}' for size, role in zip(sizes, ROLES, strict=True))} = "
            f"{sum(sizes)} functions do not fit into {functions}: make more functions or ask for "
            f"{sum(sizes) - functions} fewer"
        )
    order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(functions)
    ends = np.cumsum((0, *sizes))
    parts = {
        role: tuple(int(i) for i in order[ends[k] : ends[k + 1]]) for k, role in enumerate(ROLES)
    }
    return Split(functions, seed, **parts)
