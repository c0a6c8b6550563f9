"""A command is recorded once, and run again on every disk that a fault leaves of it."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.commands import Command
from tests.faults.disk import (
    Disk,
    Recording,
    cuts,
    damages,
    different,
    is_aside,
    make,
    recorded,
    stops,
    without_fsync,
)


@dataclass
class Outcome:
    """What became of a command.

    Args:
        command: its name.
        operations: before each of which it was stopped.
        cases: moments and ways of losing, of each kind.
        disks: how many different ones they leave, each counted where it is met first.
        tried: of these.
        ends: "mended", "said" or "lost": how many.
        failures: what was lost, and where.
        said: the messages of those that say what to do.
    """

    command: str
    operations: int = 0
    cases: Counter[str] = field(default_factory=Counter)
    disks: Counter[str] = field(default_factory=Counter)
    tried: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        kinds = ", ".join(f"{self.disks[k]} by {n} {k}s" for k, n in self.cases.items())
        return (
            f"{self.command}: stopped before each of {self.operations} operations, "
            f"{self.disks.total()} different disks ({kinds}), {self.tried} tried: "
            f"{self.ends['mended']} mended by the same command, {self.ends['said']} say what to "
            f"do, {self.ends['lost']} lost ({self.seconds:.0f} CPU-s)"
        )


def drive(
    command: Command, root: Path, most: int | None = None, blind: bool = True, seed: int = 0
) -> Outcome:
    """Stop a command everywhere.

    Args:
        command: the command.
        root: an empty folder.
        most: at most so many disks, chosen at random; None for all.
        blind: whether asides that are swept count as equal, see `disk.key`.
        seed: of the choice.
    """
    began = time.process_time()
    outcome = Outcome(command.name)
    with command.set():
        with without_fsync():
            command.prepare(root)
        with recorded(root) as recording:
            command.run(root)
        whole = recording.looks[-1].tree()
        with without_fsync():
            expected = command.result(root)
            _check_recording(recording, outcome)
            outcome.operations = len(recording.looks) - 1
            cases = [*stops(recording), *cuts(recording)]
            disks = different(cases, blind)
            for files, gone in command.damaged:
                left = {p: c for p, c in whole.items() if not re.search(gone, p)}
                damaged = list(damages(left, files))
                cases += damaged
                disks += different(damaged, blind)
            outcome.cases.update(disk.kind for disk in cases)
            outcome.disks.update(disk.kind for disk in disks)
            for disk in _chosen(disks, most, seed):
                outcome.tried += 1
                _try(command, root, disk, whole, expected, outcome)
    outcome.seconds = time.process_time() - began
    return outcome


def _check_recording(recording: Recording, outcome: Outcome) -> None:
    """Files are opened for writing aside alone; at the end, everything is on the disk."""
    openly = [p for p in recording.written if not is_aside(p) and not p.endswith(".lock")]
    if openly:
        outcome.failures.append(f"written in place: {openly}")
    end = recording.looks[-1].tree()
    final = [d for d in cuts(recording) if " end," in d.why]
    for disk in final:
        lost = {p for p in {**end, **disk.tree} if end.get(p, 0) != disk.tree.get(p, 0)
                and not is_aside(p) and not p.endswith(".lock")}  # fmt: skip
        if lost:
            outcome.failures.append(f"not synced at the end: {sorted(lost)[:5]} ({disk.why})")
            break


def _chosen(disks: list[Disk], most: int | None, seed: int) -> Iterator[Disk]:
    if most is None or len(disks) <= most:
        return iter(disks)
    chosen = sorted(random.Random(seed).sample(range(len(disks)), most))
    return (disks[i] for i in chosen)


def _try(
    command: Command, root: Path, disk: Disk, whole: dict, expected: object, outcome: Outcome
) -> None:
    make(root, disk.tree)
    try:
        if disk.kind != "damage":
            command.stopped(root)
        command.run(root)
        found = command.result(root)
        assert found == expected, "another result"
        left = [str(p.relative_to(root)) for p in root.rglob("*")]
        if disk.kind != "damage":
            named = [p for p in left if ".damaged" in p]
            assert not named, f"taken for damaged: {named}"
        if disk.kind == "stop":
            there = {p: c for p, c in disk.tree.items() if whole.get(p, 0) == c}
            command.kept(there, {p: (root / p).read_bytes() for p in left if (root / p).is_file()})
    except Exception as why:
        if (
            command.may_say is not None
            and isinstance(why, ValueError | OSError)
            and re.search(command.may_say, str(why))
        ):
            outcome.ends["said"] += 1
            outcome.said.append(f"{disk.kind} {disk.why}: {why}")
            return
        outcome.ends["lost"] += 1
        outcome.failures.append(f"{disk.kind} {disk.why}: {type(why).__name__}: {why}"[:600])
    else:
        outcome.ends["mended"] += 1
