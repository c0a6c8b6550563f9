"""What `mutmut run` left behind, as a table: mutants of each module, killed or not.

Exits with an error where fewer than 95 % were killed. A mutant that runs out of time is killed.

    python -m tests.conformal.mutants
"""

import json
import sys
from collections import Counter
from pathlib import Path

WANTED = 0.95
KILLED = {"killed", "timeout", "segfault"}
COLUMNS = ("killed", "timeout", "survived", "no tests", "not checked")


def main(folder: Path) -> int:
    from mutmut.stats import status_by_exit_code  # installed by `make mutants` alone

    total: Counter[str] = Counter()
    survivors = []
    print(f"{'module':32}{'mutants':>12}" + "".join(f"{column:>12}" for column in COLUMNS))
    for file in sorted(folder.rglob("*.py.meta")):
        codes = json.loads(file.read_text(encoding="utf8"))["exit_code_by_key"]
        status = {name: status_by_exit_code[code] for name, code in codes.items()}
        counts = Counter(status.values())
        survivors += [name for name, what in status.items() if what not in KILLED]
        total += counts
        if codes:
            print(line(str(file.relative_to(folder)).removesuffix(".meta"), counts))
    print(line("all", total))
    killed = sum(total[what] for what in KILLED) / max(1, total.total())
    print(f"{killed:.1%} killed, at least {WANTED:.0%} are wanted. Survivors (mutmut show NAME):")
    print("\n".join(f"  {name}" for name in survivors))
    return 0 if killed >= WANTED else 1


def line(name: str, counts: Counter[str]) -> str:
    return f"{name:32}{counts.total():12}" + "".join(f"{counts[column]:12}" for column in COLUMNS)


if __name__ == "__main__":
    sys.exit(main(Path("mutants/src/uqno/conformal")))
