"""One λ̂ for each group of functions: a promise within every class, not on average over them.

A group is a class of inputs: a body type, a range of Reynolds numbers, a resolution. Within group g
the functions of the calibration set and a new one are exchangeable too, so a guarantee that is
found from the n_g functions of the group alone holds in it. A function in several groups is given
the largest of their scales, whose band contains the bands of all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from uqno.conformal.checks import InfeasibleError
from uqno.conformal.guarantees.contract import Collector, Evidence, Facts, Guarantee
from uqno.conformal.membership import Names, by_group, memberships, names_of, one_each, rows_of
from uqno.conformal.planning import plan_for
from uqno.conformal.record import Calibration
from uqno.conformal.scores import Functions, coverage
from uqno.conformal.selection import behind
from uqno.types import Integers, Reals

FORMAT: Final = "uqno.calibration by group"
VERSION: Final = 1

# --- what is kept of the functions of each group --------------------------------------------------


class Remembered:
    """A few functions whose answers are kept, as several groups ask for the same ones."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.known: dict[Any, Reals] = {}

    def scores(self, ranks: int | Integers) -> Reals:
        key = np.asarray(ranks).tobytes()
        if key not in self.known:
            self.known[key] = self.functions.scores(ranks)
        return self.known[key]

    def weighted_scores(self, shares: Sequence[Fraction]) -> Reals:
        key = tuple(shares)
        if key not in self.known:
            self.known[key] = self.functions.weighted_scores(shares)
        return self.known[key]

    def all_ratios(self) -> Reals:
        if "all" not in self.known:
            self.known["all"] = self.functions.all_ratios()
        return self.known["all"]


class Some:
    """Some of a few functions, as a guarantee sees them.

    Args:
        functions: all of them; remembered: their answers; rows: which of them.
    """

    def __init__(self, functions: Functions, remembered: Remembered, rows: Integers) -> None:
        self.functions, self.remembered, self.rows = functions, remembered, rows

    @property
    def points(self) -> int:
        return self.functions.points

    def __len__(self) -> int:
        return len(self.rows)

    def names(self) -> Iterator[str]:
        every = list(self.functions.names())
        return (every[i] for i in self.rows)

    def expect(self, ranks: Integers) -> None:
        self.functions.expect(ranks)

    def scores(self, ranks: int | Integers) -> Reals:
        return self.remembered.scores(ranks)[self.rows]

    def weighted_scores(self, shares: Sequence[Fraction]) -> Reals:
        return self.remembered.weighted_scores(shares)[self.rows]

    def all_ratios(self) -> Reals:
        return self.remembered.all_ratios()[self.rows]

    def subsample(self, points: int, seed: int) -> Some:
        return self._of(self.functions.subsample(points, seed))

    def every(self, step: int) -> Some:
        return self._of(self.functions.every(step))

    def widened(self, error: float, uncertainty: float) -> Some:
        return self._of(self.functions.widened(error, uncertainty))

    def _of(self, functions: Functions) -> Some:
        """The same rows of other functions."""
        return Some(functions, Remembered(functions), self.rows)

    def shares(self) -> Reals | None:
        every = self.functions.shares()
        return None if every is None else every[self.rows]

    def largest(self, ranks: Integers, sizes: Reals) -> Reals:
        return np.asarray((self.scores(ranks) / sizes).max(axis=1))

    def window(self, low: float, high: float) -> tuple[int, Reals]:
        r, least, most = self.all_ratios(), behind(low), behind(high)
        above = r > most
        return int(np.count_nonzero(above)), r[(r > least) & ~above]


class GroupCollector(Collector):
    """Shows the functions of each group to a collector of that group.

    Args:
        rule: the guarantee of every group.
        facts: of all functions.
        members: the groups of each function; where functions stream by, a list that grows with
            them.
        grows: whether it does. Otherwise what is infeasible is refused before functions are read.

    Raises:
        InfeasibleError: some groups are too small; it names them all, and what they need.
    """

    def __init__(
        self, rule: Guarantee, facts: Facts, members: Sequence[Names], grows: bool = False
    ) -> None:
        self.rule, self.facts, self.members, self.grows = rule, facts, members, grows
        self.collectors: dict[str, Collector] = {}
        self.rows: dict[str, Integers] = {}
        self.asked: dict[int, Integers | None] = {}
        self.seen = 0
        if grows:
            return
        if facts.number is not None:
            one_each(members, facts.number)
        self.rows = rows_of(members)
        sizes = facts.sizes
        refused = {}
        for name, rows in sorted(self.rows.items()):
            own = None if sizes is None else tuple(sizes[i] for i in rows.tolist())
            try:
                self.collectors[name] = rule.collector(Facts(len(rows), own, facts.weighted))
            except InfeasibleError:
                refused[name] = len(rows)
        refuse_small(rule, refused, min(sizes, default=1) if sizes else 1)

    def ranks(self, points: int) -> Integers | None:
        if points not in self.asked or self.grows:
            each = [collector.ranks(points) for collector in self.collectors.values()]
            known = [k for k in each if k is not None]
            self.asked[points] = np.unique(np.concatenate(known)) if known else None
        return self.asked[points]

    def add(self, functions: Functions) -> None:
        last = self.seen + len(functions)
        if last > len(self.members):
            one_each(self.members, last)  # says how many there are
        remembered = Remembered(functions)
        for name, index in self._next(last).items():
            if name not in self.collectors:
                self.collectors[name] = self.rule.collector(Facts(None, None, self.facts.weighted))
            self.collectors[name].add(Some(functions, remembered, index))
        self.seen = last

    def _next(self, last: int) -> dict[str, Integers]:
        """Which of the functions from the last one seen up to `last` are in each group."""
        if self.grows:
            return rows_of(self.members[self.seen : last])
        cuts = {n: np.searchsorted(rows, [self.seen, last]) for n, rows in self.rows.items()}
        return {n: self.rows[n][a:b] - self.seen for n, (a, b) in cuts.items() if a < b}

    def evidence(self) -> Evidence:
        raise NotImplementedError("of each group: evidences")

    def evidences(self) -> dict[str, Evidence]:
        """What was kept, by group.

        Raises:
            ValueError: there are more labels than functions, or no function is in a group.
        """
        one_each(self.members, self.seen)
        if not self.collectors:
            raise ValueError(
                f"none of the {self.seen} functions is in a group: label some, or leave groups out"
            )
        return {name: one.evidence() for name, one in sorted(self.collectors.items())}


def refuse_small(rule: Guarantee, functions: Mapping[str, int], points: int) -> None:
    """Refuse groups that cannot carry a guarantee, all at once.

    Args:
        rule: the guarantee; functions: n_g of these groups; points: m.

    Raises:
        InfeasibleError: there are such groups; it says what each of them needs.
    """
    if not functions:
        return
    said = []
    for name, n in functions.items():
        least = plan_for(rule, n, points).smallest["functions"]
        needs = f"needs {max(2, int(least))}" if least else "cannot do with any number of them"
        said.append(f"{name!r} has {n} functions and {needs}")
    raise InfeasibleError(
        f"groups too small for the guarantee: {'; '.join(said)}. Add functions to them, join them "
        "with groups alike, label their functions None, or ask for a larger delta"
    )


def solve_groups(
    rule: Guarantee,
    calibration_of: Callable[[Guarantee, Evidence], Calibration],
    evidences: Mapping[str, Evidence],
) -> GroupedCalibration:
    """The calibration of each group, or one error that names all groups that are too small.

    Args:
        rule: the guarantee of every group; evidences: by group.
        calibration_of: finds the scale from the evidence of one group.
    """
    small = {
        name: evidence
        for name, evidence in evidences.items()
        if len(evidence) < 2 or not rule.feasible(len(evidence), int(evidence.sizes.min()))
    }
    points = min((int(evidence.sizes.min()) for evidence in small.values()), default=1)
    refuse_small(rule, {name: len(evidence) for name, evidence in small.items()}, points)
    calibrations = {}
    for name, evidence in evidences.items():
        try:
            calibrations[name] = replace(calibration_of(rule, evidence), group=name)
        except InfeasibleError as why:
            raise InfeasibleError(f"group {name!r}: {why}") from None
    return GroupedCalibration(calibrations)


# --- the answer -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GroupedCalibration(Mapping[str, Calibration]):
    """The calibration of each group, by its name: `calibration["van"].scale`.

    Args:
        calibrations: by name; each says in `group` which one it is of.
    """

    calibrations: Mapping[str, Calibration]

    def __getitem__(self, group: Any) -> Calibration:
        return largest_of(tuple(self.calibrations.values()), names_of(group))

    def __iter__(self) -> Iterator[str]:
        return iter(self.calibrations)

    def __len__(self) -> int:
        return len(self.calibrations)

    def scales(self, groups: Any) -> Reals:
        """λ̂ of each function, (n,), given its groups; the largest of several."""
        return np.array([self[names].scale for names in memberships(groups)])

    def coverage(
        self, error: Any, uncertainty: Any, groups: Any, weights: Any = None
    ) -> dict[str, Reals]:
        """The covered shares of the functions of each group, each with its own λ̂.

        Args:
            error, uncertainty, weights: as in `uqno.calibrate`, of other functions.
            groups: of these functions.
        """
        members = memberships(groups)
        covered = coverage(error, uncertainty, self.scales(members), weights)
        return by_group(covered, members)

    def to_json(self, scores: bool = True) -> str:
        """The calibrations as text, which `from_json` reads."""
        listed = [json.loads(one.to_json(scores)) for one in self.values()]
        content = {"format": FORMAT, "version": VERSION, "groups": listed}
        return json.dumps(content, indent=2)

    @classmethod
    def from_json(cls, text: str) -> GroupedCalibration:
        """What `to_json` wrote; anything else is refused by name."""
        try:
            content = json.loads(text)
        except (ValueError, TypeError, RecursionError) as why:
            raise ValueError(f"not a calibration by group: no JSON ({why})") from None
        stamp = content if isinstance(content, dict) else {}
        if stamp.get("format") != FORMAT or stamp.get("version") != VERSION:
            raise ValueError(
                f"not a calibration by group: expected JSON with format = {FORMAT!r} and version "
                f"= {VERSION}, got {stamp.get('format')!r} and {stamp.get('version')!r}"
            )
        listed = content.get("groups")
        if not isinstance(listed, list) or not listed:
            raise ValueError("a calibration by group must hold a list of groups")
        read = [Calibration.from_json(json.dumps(one)) for one in listed]
        names = [one.group for one in read]
        if "" in names or len(set(names)) < len(names):
            raise ValueError(f"groups must have names that differ, got {names}")
        return cls(dict(zip(names, read, strict=True)))


def largest_of(calibrations: Sequence[Calibration], groups: Names) -> Calibration:
    """The calibration with the largest λ̂ among those of the groups that a function is in.

    Raises:
        ValueError: one of the groups was not calibrated, or there is none.
    """
    known = {one.group: one for one in calibrations}
    absent = [name for name in groups if name not in known]
    if absent or not groups:
        raise ValueError(
            f"group {', '.join(map(repr, absent)) or None} is not among the calibrated ones, "
            f"{', '.join(map(repr, known))}: nothing is promised for it; calibrate with functions "
            "of it, or name the group it belongs to"
        )
    return max((known[name] for name in groups), key=lambda one: one.scale)
