"""`python -m tests.fuzz`: see `make fuzz`. Each kind runs in its own process, which may die."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("--cases", type=float, default=1.0, help="Of each kind, as a share of all.")
    add("--seed", type=int, default=0)
    add("--minutes", type=float, default=30.0, help="After which no case is begun.")
    add("--kind", help="One kind alone: calibrations, arguments, commands or files.")
    add("--first", type=int, help="One case alone, by its number.")
    add("--begin", type=int, default=0, help=argparse.SUPPRESS)
    add("--at", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def run_here(asked: argparse.Namespace) -> int:
    """The cases of one kind, in this process; how many failed."""
    from tests.fuzz import kinds
    from tests.fuzz.harness import limits, run

    if asked.kind not in kinds.KINDS:
        sys.exit(f"--kind {asked.kind}: expected one of {', '.join(kinds.KINDS)}")
    kind = kinds.KINDS[asked.kind]
    last = max(1, round(kind.cases * asked.cases))
    cases = range(asked.begin, last) if asked.first is None else range(asked.first, asked.first + 1)
    with kinds.workplace():
        make = kind.prepare()
        with limits():
            tally = run(asked.kind, make, cases, asked.seed, asked.minutes, asked.at)
    print("\n".join(tally.lines()), flush=True)
    return tally.outcomes["failed"]


def run_apart(asked: argparse.Namespace, kind: str, minutes: float) -> int:
    """The same in a process of its own; where it dies, the next goes on behind that case."""
    failed, begin = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "at"
        for _ in range(20):
            words = ["--cases", asked.cases, "--seed", asked.seed, "--minutes", minutes]
            words += ["--kind", kind, "--begin", begin, "--at", at]
            command = [sys.executable, "-m", "tests.fuzz", *map(str, words)]
            code = subprocess.run(command, check=False).returncode
            if code in (0, 1):
                return failed + code
            number = at.read_text() if at.exists() else "none"
            print(f"{kind}: FAILED, the process died ({code}) at --first {number}", flush=True)
            failed += 1
            if number == "none":
                break
            begin = int(number) + 1
    return failed


def main() -> int:
    asked = parsed()
    if asked.kind is not None:
        return 1 if run_here(asked) else 0
    from tests.fuzz.kinds import KINDS

    share = asked.minutes / len(KINDS)
    failed = sum(run_apart(asked, kind, share) for kind in KINDS)
    print("some failed" if failed else "none failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
