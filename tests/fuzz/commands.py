"""Cases of the command line: in this process, and some in one of their own.

A command ends with 0, or with 2 and one line on standard error; never with a fault.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from tests.fuzz import files
from tests.fuzz.harness import Case
from tests.fuzz.mutation import mutated, mutated_json

Rng = np.random.Generator
WORDS = (
    "", "-1", "0", "1", "2", "0.1", "0.5", "nan", "inf", "1e400", "1e-400", "9" * 400, "10**12",
    "1000000000000", "1000000000001", "x", "α", "\udc80", "a b", "[red]", "[/]", "--", "--help",
    "..", ".", "/", "/dev/null", "/proc/self/mem", "nothing.npz", "a,b", ",", "43,,85", "u[0]",
    "u[", "u[::0]", "u[9999999999999999999]", "k=v", "epochs=", "=3", "epochs=1e400", "seed=-1",
    "methods=x", "alphas=", "true", "None", "{}", "%s", "$HOME", "x" * 5000,
)  # fmt: skip
FILES = ("seeds/a.npz", "seeds/held.npz", "seeds/held.nc", "seeds/held.zarr", "seeds/store.zarr",
         "seeds/model", "seeds/points.csv", "seeds/calibration.json", "seeds/run", "damaged.npz",
         "seeds/a.h5", "seeds/a.mat", "seeds/a.pt", "seeds", "spoiled")  # fmt: skip
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("plan", "--alpha", "0.1", "--delta", "0.02", "--functions", "500", "--points", "1849",
     "--sampling", "iid", "--confidence", "0.9"),
    ("plan", "--functions", "1000000000000", "--points", "1000000000000", "--json"),
    ("calibrate", "seeds/held.npz", "--alpha", "0.2", "--delta", "0.1", "--out", "out/c.json"),
    ("calibrate", "seeds/held.nc", "--delta", "0.1", "--sampling", "grid", "--json", "--out",
     "out/d.json"),
    ("inspect", "seeds/a.nc", "--inputs", "a", "--outputs", "u", "--functions", "function"),
    ("inspect", "seeds/store.zarr", "--json", "--alpha", "0.1", "--delta", "0.1"),
    ("inspect", "damaged.npz"),
    ("predict", "seeds/model", "seeds/one.npz", "--at", "5", "--alpha", "0.2", "--out",
     "out/band.nc"),
    ("predict", "seeds/model", "seeds/one.npz", "--inputs", "a", "--json", "--out", "out/b.npz"),
    ("table", "seeds/run", "--markdown"),
    ("table", "spoiled"),
    ("run", "darcy", "--settings", "--preset", "quick", "--set", "epochs=3", "--set", "seed=1"),
    ("run", "cars", "--settings", "--set", "latent=8,6,6", "--set", "width=4"),
    ("data", "example", "--functions", "20", "--points", "10", "--seed", "1", "--out",
     "out/e.npz"),
    ("data", "darcy", "--keep", "20", "--resolution", "43", "--out", "out/x.zarr"),
    ("data", "cars", "--figure", "a.pdf"),
    ("report", "nothing"),
    ("--version",),
    ("--help",),
)  # fmt: skip
# Words that would begin work of hours, or replace what the fuzzer reads.
NEVER_ALONE = ("data darcy", "data cars")


def prepare() -> None:
    """Files to read, and all that commands import."""
    files.prepare()
    np.savez("seeds/one.npz", a=np.ones((2, 1, 9, 9)), u=np.ones((2, 1, 9, 9)))
    Path("out").mkdir(exist_ok=True)
    for command in COMMANDS:
        if command[0] != "inspect" or command[1] != "damaged.npz":
            run_here(list(command))


def run_here(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in this process."""
    from uqno.cli.app import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True) for _ in range(2))
    before, code = sys.argv, 0
    sys.argv = ["uqno", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as why:
        code = why.code if isinstance(why.code, int) else 0
    finally:
        sys.argv = before
    said = [stream.buffer.getvalue().decode("ascii") for stream in (out, err)]
    return code, said[0], said[1]


def run_apart(arguments: list[str], encoding: str) -> tuple[int, str, str]:
    """The same of a process of its own, whose standard streams have some encoding."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LANG": "C", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", "from uqno.cli.app import main; main()",
         *(a.replace("\x00", "") for a in arguments)],
        capture_output=True, env=environment, timeout=100,
    )  # fmt: skip
    return done.returncode, *(x.decode(encoding, "replace") for x in (done.stdout, done.stderr))


def command(rng: Rng) -> Case:
    """A command with some of its words replaced."""
    words = list(COMMANDS[rng.integers(len(COMMANDS))])
    name = " ".join(words[: 2 if words[0] in ("run", "data") else 1])
    fixed = 2 if words[0] in ("run", "data") else 1
    keep = 0 if name in NEVER_ALONE else 1
    for _ in range(rng.integers(keep, 4) if keep else 1):
        if len(words) <= fixed:
            break
        place = int(rng.integers(fixed, len(words)))
        choice = FILES if rng.random() < 0.25 else WORDS
        chance = rng.random()
        if name in NEVER_ALONE:
            words[place] = str(rng.choice(["x", "-1", "", "nan"]))
        elif chance < 0.75 and words[place - 1] != "--out" and words[place] != "--settings":
            words[place] = choice[rng.integers(len(choice))]
        elif chance < 0.85 and words[place] != "--settings" and words[place - 1] != "--out":
            words.insert(place, choice[rng.integers(len(choice))])
    apart = rng.random() < 0.02
    encoding = str(rng.choice(["ascii", "cp1252", "utf8", "latin1"]))

    def call() -> object:
        _spoil(rng)
        code, out, err = run_apart(words, encoding) if apart else run_here(words)
        lines = err.splitlines()
        if code == 2 and len(lines) == 1 and err.startswith("uqno: "):
            raise ValueError(err)
        if code == 0 and not any("Traceback" in line for line in lines):
            if "--json" in words and "--help" not in words and out.startswith("{"):
                json.loads(out)
            return code
        raise AssertionError(f"exit code {code} of {words}: {err[-300:]}")

    return f"{name}{' in a process' * apart}", call


def _spoil(rng: Rng) -> None:
    """A damaged archive and a damaged run, for commands to find."""
    content = Path("seeds/held.npz").read_bytes()
    Path("damaged.npz").write_bytes(mutated(rng, content))
    Path("spoiled").mkdir(exist_ok=True)
    Path("spoiled/results.json").write_bytes(
        mutated_json(rng, Path("seeds/run/results.json").read_bytes())
    )


Make = Callable[[Rng], Case]
