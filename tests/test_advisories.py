"""No pinned version and no lower bound has a hole that is on our list, and every pin has a hash.

The list, `tests/advisories.json`, is kept by hand, so that this works without a network;
CONTRIBUTING.md says how it is renewed.
"""

import json
import re
import tomllib
from datetime import date
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LIST = json.loads((ROOT / "tests" / "advisories.json").read_text(encoding="utf8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
HASHED = ("requirements.txt", "requirements-dev.txt")
ID = re.compile(r"CVE-\d{4}-\d{4,}|GHSA(-[23456789cfghjmpqrvwx]{4}){3}|PYSEC-\d{4}-\d+|no id")


def pins(text, everywhere=False):
    """{name: version} of the lines NAME==VERSION, or of those that hold on every platform."""
    lines = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+) *(;?)", text, re.MULTILINE)
    chosen = [(name, version) for name, version, limit in lines if not (everywhere and limit)]
    return {canonicalize_name(name): Version(version) for name, version in chosen}


def bounds(project):
    """{name: lower bound} of all requirements, those of building included."""
    groups = project["project"]["optional-dependencies"].values()
    lines = [*project["project"]["dependencies"], *(line for group in groups for line in group)]
    found = {}
    for requirement in map(Requirement, [*lines, *project["build-system"]["requires"]]):
        (lower,) = [s.version for s in requirement.specifier if s.operator == ">="]
        found[canonicalize_name(requirement.name)] = Version(lower)
    return found


def holes(versions, advisories=LIST["fixed"]):
    """The advisories that hold for some versions."""
    return [
        f"{name} {versions[name]}: {one['id']}, {one['what']}; fixed in {one['version']}"
        for one in advisories
        if (name := canonicalize_name(one["package"])) in versions
        and versions[name] < Version(one["version"])
    ]


PINNED = pins((ROOT / "constraints.txt").read_text(encoding="utf8"))


def test_no_pinned_version_has_a_known_hole():
    assert not holes(PINNED)
    unknown = {canonicalize_name(one["package"]) for one in LIST["fixed"]} - set(PINNED)
    assert not unknown, "not pinned any more: take them from the list"


def test_no_lower_bound_has_a_known_hole():
    assert not holes(bounds(PROJECT))


def test_a_version_with_a_hole_is_noticed():
    assert len(holes({"torch": Version("2.5.1")})) == 2
    assert len(holes({"torch": Version("2.9.1")})) == 1
    assert not holes({"torch": Version("2.10.0"), "other": Version("0")})


def test_the_list_is_as_it_should_be():
    date.fromisoformat(LIST["read"])
    for one in (*LIST["fixed"], *LIST["open"]):
        assert ID.fullmatch(one["id"]), one
        assert one["what"]
        Version(one["version"])


@pytest.mark.parametrize("one", LIST["open"], ids=lambda one: one["id"])
def test_a_hole_that_no_release_closes_has_a_reason_and_is_looked_at_with_every_new_version(one):
    assert one["why"]
    assert PINNED[canonicalize_name(one["package"])] == Version(one["version"]), (
        "another version is pinned: see whether it closes the hole, and move the entry to fixed"
    )


def test_every_requirement_is_pinned_at_or_above_its_lower_bound():
    wanted = bounds(PROJECT)
    assert set(wanted) <= set(PINNED)
    assert not {name for name, lower in wanted.items() if PINNED[name] < lower}


@pytest.mark.parametrize("file", HASHED)
def test_every_file_that_is_installed_has_a_hash(file):
    text = (ROOT / file).read_text(encoding="utf8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) > 20
    for line in lines:
        assert re.fullmatch(r"[a-z0-9._-]+==[^;]+?(;[^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+", line)


def test_hashes_are_those_of_the_pinned_versions():
    texts = [(ROOT / file).read_text(encoding="utf8") for file in HASHED]
    hashed = [pins(text) for text in texts]
    assert not set(hashed[0]) & set(hashed[1]), "in both files"
    without = PINNED.items() - (hashed[0] | hashed[1]).items()
    assert {name for name, _ in without} == {"torch"}, "run: make hashes"
    everywhere = pins(texts[0], everywhere=True) | pins(texts[1], everywhere=True)
    assert everywhere.items() <= PINNED.items(), "run: make hashes"


def test_torch_alone_is_taken_by_its_version():
    makefile = (ROOT / "Makefile").read_text(encoding="utf8")
    installs = [line for line in makefile.splitlines() if "$(PIP) install" in line]
    rest = [line for line in installs if "--require-hashes" not in line]
    assert len(installs) - len(rest) == 1
    assert [line.split()[-1] for line in rest] == ["torch", "."]
    assert "--no-deps --no-build-isolation" in rest[1]
