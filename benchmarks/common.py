"""What every benchmark needs: interleaved timings, peak memory, one result file."""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def interleaved(
    contestants: Mapping[str, Callable[[], object]], repeats: int = 7
) -> dict[str, float]:
    """Median seconds of each contestant; they take turns, so that noise hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        run()  # warm caches and lazy set-up outside the clock
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def in_a_process(benchmark: str, *arguments: object) -> dict[str, float]:
    """What `benchmark` prints as JSON when it is run with arguments, in a process of its own."""
    command = [sys.executable, "-m", benchmark, *map(str, arguments)]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return found


def peak_memory() -> float:
    """The most that this process ever held, in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def row(
    name: str, ours: float, theirs: float, unit: str, bar: str, holds: bool, **more: object
) -> dict[str, object]:
    """One line of the table: `ratio` is theirs / ours, so above 1 means ours is smaller."""
    ratio = theirs / ours
    return dict(
        name=name, ours=ours, theirs=theirs, unit=unit, ratio=ratio, bar=bar, holds=holds, **more
    )


def record(name: str, rows: list[dict[str, object]]) -> None:
    """Print the rows and write them to benchmarks/results/NAME.json."""
    for r in rows:
        r.setdefault("machine", machine())
        print(describe(r))
    RESULTS.mkdir(exist_ok=True)
    aside = RESULTS / f".{name}.json"
    aside.write_text(json.dumps(rows, indent=1) + "\n")
    aside.replace(RESULTS / f"{name}.json")


def describe(r: Mapping[str, object]) -> str:
    verdict = "holds" if r["holds"] else "FAILS"
    return (
        f"{r['name']}: ours {number(r['ours'])}, theirs {number(r['theirs'])} {r['unit']}, "
        f"ratio {number(r['ratio'])} (bar: {r['bar']}; {verdict})"
    )


def number(x: object) -> str:
    """A few digits; a dash where the other side has no answer at all."""
    return f"{x:.4g}" if isinstance(x, float | int) else "–"
