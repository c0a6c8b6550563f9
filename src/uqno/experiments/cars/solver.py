"""Flow around one car: write the case, run OpenFOAM's tools, check, sample at the vertices."""

import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from uqno.experiments.cars.case import Flow, frontal_area, write_case
from uqno.experiments.cars.patch import Patch, at_vertices, read_cells, read_patch
from uqno.experiments.cars.shapes import Shape, surface
from uqno.types import Reals

TOOLS = (
    ("blockMesh",),
    ("surfaceFeatureExtract",),
    ("snappyHexMesh", "-overwrite"),
    ("renumberMesh", "-overwrite"),
    ("simpleFoam",),
)
INSTALL = "install OpenFOAM with: apt-get install openfoam"
# Where a distribution may keep what the tools call WM_PROJECT_DIR.
HOMES = ("/usr/share/openfoam", "/usr/lib/openfoam/openfoam*", "/opt/openfoam*")
TIMEOUT = 3600.0  # seconds for one tool

# What a car must fulfil to be accepted.
STAGNATION = (0.9, 1.1)  # largest Cp
STEADY_WINDOW = 40  # last iterations in which the coefficients may move …
STEADY = {"drag": 0.02, "lift": 0.06}  # … at most so much, from lowest to highest


class CarFailed(Exception):
    """This car has no acceptable flow; its message says why. The next one may well have."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The flow around one car.

    Args:
        pressure: at the vertices, (3586,) in Pa.
        report: how it was computed, as JSON-able values.
    """

    pressure: Reals
    report: dict[str, Any]


@lru_cache(maxsize=1)
def find_openfoam() -> Path:
    """The folder that OpenFOAM's tools need to know; a missing program is named with its remedy."""
    missing = [tool for tool, *_ in TOOLS if shutil.which(tool) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} not found; {INSTALL}")
    named = [Path(os.environ[v]) for v in ("WM_PROJECT_DIR",) if v in os.environ]
    homes = [*named, *(home for pattern in HOMES for home in sorted(Path("/").glob(pattern[1:])))]
    for home in homes:
        if (home / "etc/controlDict").is_file():
            return home
    raise ValueError(
        f"OpenFOAM's etc/controlDict is in none of {', '.join(map(str, homes)) or HOMES}; set "
        f"WM_PROJECT_DIR to its parent's parent, or {INSTALL}"
    )


def solve(shape: Shape, settings: Flow, folder: Path, stop: Event | None = None) -> Solution:
    """Compute the mean pressure on a car.

    Args:
        shape: of the car.
        settings: of the flow.
        folder: empty or not there yet; the case stays in it.
        stop: once it is set, the work is given up.

    Raises:
        CarFailed: a tool fails, or the flow is not credible.
        InterruptedError: `stop` was set.
    """
    write_case(folder, shape, settings)
    seconds = {tool[0]: run_tool(tool, folder, stop) for tool in TOOLS}
    try:
        return _read(shape, settings, folder, seconds)
    except (ValueError, IndexError, FileNotFoundError) as why:
        raise CarFailed(f"what the tools wrote cannot be read: {why}") from why


def _read(shape: Shape, settings: Flow, folder: Path, seconds: dict[str, float]) -> Solution:
    """The flow that the tools have written, checked."""
    log = (folder / "log.simpleFoam").read_text(encoding="utf8", errors="replace")
    last = max((f for f in folder.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))
    converged = "SIMPLE solution converged" in log
    field = last / ("p" if converged else "pMean")
    patch, cells = read_patch(folder / "constant/polyMesh"), read_cells(field)
    pressure = settings.density * at_vertices(patch, cells[patch.cells], surface(shape))
    report = {
        "openfoam": version(log),
        "iterations": int(last.name),
        "converged": converged,
        "averaged": 1 if converged else settings.averaged,
        "residuals": residuals(log),
        "cells": len(cells),
        "faces": len(patch.cells),
        "seconds": {tool: round(taken, 2) for tool, taken in seconds.items()},
        **_coefficients(folder, shape),
        **_pressures(patch, settings.density * cells, pressure, settings),
    }
    check(pressure, report)
    return Solution(pressure, report)


def run_tool(command: tuple[str, ...], folder: Path, stop: Event | None = None) -> float:
    """Run one of OpenFOAM's tools on a case.

    Args:
        command: the tool and its arguments.
        folder: of the case; what the tool prints is written there.
        stop: once it is set, the tool is stopped.

    Returns:
        The seconds that it took.

    Raises:
        CarFailed: the tool failed or took too long.
        InterruptedError: it was stopped.
    """
    environment = {
        **os.environ,
        "WM_PROJECT_DIR": str(find_openfoam()),
        "PWD": str(folder.resolve()),  # the tools trust it more than where they are
        "OMP_NUM_THREADS": "1",
    }
    log, begin = folder / f"log.{command[0]}", time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*_dies_with_us(), *command],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            code = _wait(process, stop, begin + TIMEOUT)
        finally:
            process.kill()
            process.wait()
    if code in (-signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL):
        raise InterruptedError(
            f"{command[0]} was stopped by signal {-code}, nothing is known about the car; run "
            "again, it goes on"
        )
    if code:
        raise CarFailed(f"{command[0]} failed with code {code}: {_reason(log)}")
    return time.monotonic() - begin


@lru_cache(maxsize=1)
def _dies_with_us() -> tuple[str, ...]:
    """What to put before a command so that it ends when this process is killed; Linux has it."""
    program = shutil.which("setpriv")
    return (program, "--pdeathsig", "KILL") if program else ()


def _wait(process: "subprocess.Popen[bytes]", stop: Event | None, deadline: float) -> int:
    while True:
        try:
            return process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            if stop is not None and stop.is_set():
                raise InterruptedError("asked to stop") from None
            if time.monotonic() > deadline:
                raise CarFailed(f"a tool ran for more than {TIMEOUT:g} s") from None


def _reason(log: Path) -> str:
    """OpenFOAM's own words, or the end of its log."""
    lines = log.read_text(encoding="utf8", errors="replace").splitlines()
    fatal = [i for i, line in enumerate(lines) if "FOAM FATAL" in line]
    said = lines[fatal[0] : fatal[0] + 6] if fatal else lines[-3:]
    return " ".join(" ".join(said).split())[:400]


def version(log: str) -> str:
    """Which OpenFOAM wrote the log, such as 1912.200626."""
    build = re.search(r"^Build\s*:\s*(.+)$", log, re.M)
    numbers = re.findall(r"\d+", build[1]) if build else []
    return ".".join(numbers) or (build[1].strip() if build else "unknown")


def residuals(log: str) -> dict[str, float]:
    """The initial residuals of the last iteration by field."""
    pairs = re.findall(r"Solving for (\w+), Initial residual = ([^,]+),", log)
    return {field: float(value) for field, value in pairs}


def _coefficients(folder: Path, shape: Shape) -> dict[str, Any]:
    """Drag and lift by the frontal area: their mean and their movement at the end."""
    rows = np.loadtxt(folder / "postProcessing/forces/0/coefficient.dat", ndmin=2)[:, [1, 3]]
    # The case reports half a car on 1 m².
    rows = rows[-STEADY_WINDOW:] * 2 / frontal_area(surface(shape))
    mean, moved = rows.mean(axis=0), np.ptp(rows, axis=0)
    return {
        **{name: float(value) for name, value in zip(STEADY, mean, strict=True)},
        "moved": {name: float(value) for name, value in zip(STEADY, moved, strict=True)},
    }


def _pressures(patch: Patch, cells: Reals, pressure: Reals, settings: Flow) -> dict[str, Any]:
    """Stagnation, lowest and base Cp of the faces, the largest and the lowest of the vertices."""
    cp = cells[patch.cells] / settings.dynamic_pressure
    size = np.linalg.norm(patch.area_vectors, axis=1)
    base = patch.area_vectors[:, 0] > 0.8 * size  # faces that look backwards
    weight = size * base
    return {
        "stagnation_cp": float(cp.max()),
        "lowest_cp": float(cp.min()),
        "base_cp": float((cp * weight).sum() / weight.sum()) if base.any() else float("nan"),
        "vertex_cp": [
            float(v / settings.dynamic_pressure) for v in (pressure.max(), pressure.min())
        ],
    }


def check(pressure: Reals, report: dict[str, Any]) -> None:
    """Refuse a flow that is not finite, has no stagnation point, or whose forces still move."""
    if not np.isfinite(pressure).all():
        raise CarFailed(f"{int((~np.isfinite(pressure)).sum())} pressures are not finite")
    low, high = STAGNATION
    if not low <= report["stagnation_cp"] <= high:
        raise CarFailed(
            f"stagnation Cp is {report['stagnation_cp']:.3f}, outside {low:g} to {high:g}"
        )
    for name, bound in STEADY.items():
        if not report["moved"][name] <= bound:
            raise CarFailed(
                f"{name} moves by {report['moved'][name]:.3g} in the last {STEADY_WINDOW} "
                f"iterations, more than {bound:g}: not steady"
            )
