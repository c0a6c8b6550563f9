"""Every disk of every command: `python -m tests.faults [words of a name]`."""

import sys
import tempfile
from pathlib import Path

from tests.faults.commands import every
from tests.faults.drive import drive

lost = False
for command in every():
    if sys.argv[1:] and not all(word in command.name for word in sys.argv[1:]):
        continue
    with tempfile.TemporaryDirectory() as folder:
        outcome = drive(command, Path(folder), blind=True)
    print(outcome, flush=True)
    for line in outcome.failures:
        print("   LOST", line)
    for line in outcome.said:
        print("   said", line)
    lost = lost or bool(outcome.failures)
sys.exit(lost)
