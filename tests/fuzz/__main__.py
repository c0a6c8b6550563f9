"""`python -m tests.fuzz`: see `make fuzz`."""

import argparse
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")


def main() -> int:
    from tests.fuzz import kinds
    from tests.fuzz.harness import limits, run

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=float, default=1.0, help="Of each kind, as a share of all.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0, help="After which no case is begun.")
    parser.add_argument("--kind", choices=kinds.KINDS, help="One kind alone.")
    parser.add_argument("--first", type=int, help="One case alone, by its number.")
    asked = parser.parse_args()

    chosen = [asked.kind] if asked.kind else list(kinds.KINDS)
    failed = 0
    with kinds.workplace():
        for name in chosen:
            kind = kinds.KINDS[name]
            make = kind.prepare()
            cases = 1 if asked.first is not None else max(1, round(kind.cases * asked.cases))
            minutes = asked.minutes / len(chosen)
            with limits():
                tally = run(name, make, cases, asked.seed, minutes, asked.first or 0)
            failed += tally.outcomes["failed"]
            print("\n".join(tally.lines()), flush=True)
    print(f"{failed} failed" if failed else "none failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
