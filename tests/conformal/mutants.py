"""What `mutmut run` left behind, as a table: mutants of each module, killed or not.

Exits with an error where fewer than 95 % were killed. A mutant that runs out of time is killed.
"""

import json
import sys
from collections import Counter
from pathlib import Path

WANTED = 0.95
# Exit codes of pytest as mutmut keeps them; whatever is not listed ran out of time or crashed.
KILLED, SURVIVED, UNTESTED, NOT_RUN = (1, 3), (0, 5), (33, 34), (None,)


def outcome(code: int | None) -> str:
    if code in NOT_RUN:
        return "not run"
    if code in KILLED:
        return "killed"
    return "survived" if code in (*SURVIVED, *UNTESTED) else "timeout"


def main(folder: Path) -> int:
    total: Counter[str] = Counter()
    survivors = []
    print(f"{'module':32}{'mutants':>9}{'killed':>9}{'timeout':>9}{'survived':>9}{'not run':>9}")
    for file in sorted(folder.rglob("*.py.meta")):
        codes = json.loads(file.read_text(encoding="utf8"))["exit_code_by_key"]
        counts = Counter(outcome(code) for code in codes.values())
        survivors += [name for name, code in codes.items() if outcome(code) == "survived"]
        total += counts
        if codes:
            print(line(str(file.relative_to(folder)).removesuffix(".meta"), counts))
    print(line("all", total))
    killed = (total["killed"] + total["timeout"]) / max(1, total.total())
    print(f"{killed:.1%} killed, at least {WANTED:.0%} are wanted. Survivors (mutmut show NAME):")
    print("\n".join(f"  {name}" for name in survivors))
    return 0 if killed >= WANTED else 1


def line(name: str, counts: Counter[str]) -> str:
    each = ("killed", "timeout", "survived", "not run")
    return f"{name:32}{counts.total():9}" + "".join(f"{counts[kind]:9}" for kind in each)


if __name__ == "__main__":
    sys.exit(main(Path("mutants/src/uqno/conformal")))
