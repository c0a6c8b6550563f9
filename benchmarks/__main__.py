"""Run every benchmark, each in a process of its own, then print one table."""

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

from benchmarks.common import RESULTS, number

NOT_BENCHMARKS = {"__main__", "common"}


def main() -> int:
    folder = Path(__file__).parent
    names = [m.name for m in pkgutil.iter_modules([str(folder)]) if m.name not in NOT_BENCHMARKS]
    failed = []
    for name in names:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode:
            failed.append(name)
    print(f"\n{'benchmark':64} {'ours':>10} {'theirs':>10} {'ratio':>7}  bar")
    for name in names:
        file = RESULTS / f"{name}.json"
        for r in json.loads(file.read_text()) if file.exists() else []:
            mark = "" if r["holds"] else "  FAILS"
            ours, theirs, ratio = (number(r[key]) for key in ("ours", "theirs", "ratio"))
            print(f"{r['name'][:64]:64} {ours:>10} {theirs:>10} {ratio:>7}  {r['bar']}{mark}")
    if failed:
        print("did not finish:", ", ".join(failed), file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
