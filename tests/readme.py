"""The tables of the README, made by the commands that stand above them.

A table is what lies between `<!-- COMMAND -->` and `<!-- end -->`, where COMMAND is `uqno table
FOLDER --markdown`. `python -m tests.readme` writes all of them anew, and a test says whether they
are what the command prints.
"""

import re
from pathlib import Path

from uqno.experiments import seeds

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- uqno table (\S+) --markdown -->\n).*?(<!-- end -->)", re.S)


def printed(folder: str) -> str:
    """What `uqno table FOLDER --markdown` prints."""
    return seeds.markdown(seeds.read_runs([ROOT / folder]))


def refreshed(text: str) -> str:
    """The README with every table made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{printed(found[2])}\n{found[3]}", text)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf8")), encoding="utf8")
