"""Every disk of every command: `python -m tests.faults [--most DISKS] [name of a command]`."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults.commands import every
from tests.faults.drive import drive

parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
parser.add_argument("--most", type=int, help="disks of each command; all by default")
parser.add_argument("--seed", type=int, default=0, help="of their choice")
parser.add_argument("--blind", action="store_true", help="asides that are swept count as equal")
parser.add_argument("words", nargs="*", help="the name of one command; all by default")
asked = parser.parse_args()
lost = False
for command in every():
    if " ".join(asked.words) not in (command.name, ""):
        continue
    with tempfile.TemporaryDirectory() as folder:
        outcome = drive(command, Path(folder), asked.most, asked.blind, asked.seed)
    print(outcome, flush=True)
    for line in outcome.failures:
        print("   LOST", line, flush=True)
    for line in outcome.said:
        print("   said", line, flush=True)
    lost = lost or bool(outcome.failures)
sys.exit(lost)
