"""No sentence promises more than is proved: README, documents, page, tables and guarantees."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.simulated import record
from uqno import calibrate, guarantees, plan
from uqno.experiments import results, table
from uqno.report.page import html

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "results").rglob("*.md")),
    *sorted((ROOT / "src" / "uqno" / "report" / "template").glob("*.*")),
]
NEVER = (
    r"under the same guarantee",  # of bands by different ranks
    r"on every new function",
    r"for every new function",
)
# A share of new functions is promised with `confidence` alone: else it is a probability.
SHARE = r"(at least|≥) ?(\d[\d.,]* ?%|1 − δ) of (the |new |all )*functions"


def refused(text: str) -> list[str]:
    """The sentences of a text that promise too much."""
    flat = " ".join(text.split())
    found = [phrase for phrase in NEVER if re.search(phrase, flat, re.IGNORECASE)]
    for sentence in re.split(r"(?<=[.;:|])\s", flat):
        if re.search(SHARE, sentence, re.IGNORECASE) and "confidence" not in sentence:
            found.append(sentence)
    return found


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_documents_promise_what_is_proved(page):
    assert refused(page.read_text(encoding="utf8")) == []


def test_the_page_and_the_tables_promise_what_is_proved(tmp_path):
    results.write(tmp_path / "results.json", record())
    made = results.read(tmp_path / "results.json")
    assert refused(re.sub(r"<svg.*?</svg>", "", html(made, None, "run"), flags=re.S)) == []
    assert refused(table.markdown(made)) == []


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("sampling", ["grid", "iid", "hoeffding"])
def test_guarantees_promise_what_is_proved(sampling, confidence):
    rng = np.random.default_rng(0)
    error = rng.normal(size=(200, 400))
    more = {"alpha": 0.2, "delta": 0.2, "sampling": sampling, "confidence": confidence}
    cal = calibrate(error, np.ones_like(error), **more)
    assert refused(cal.guarantee) == []
    assert refused(cal.promise) == []
    assert refused(str(plan(functions=200, points=400, **more))) == []


@pytest.mark.parametrize(
    "rule",
    [
        guarantees.Expected(0.1),
        guarantees.Expected(0.1, sampling="iid"),
        guarantees.Everywhere(0.1),
        guarantees.Everywhere(0.1, confidence=0.9),
        guarantees.Curve(0.1),
        guarantees.Curve(0.1, confidence=0.9),
        guarantees.Chosen(delta=0.1),
        guarantees.Chosen(delta=0.1, alphas=(0.05, 0.1)),
        guarantees.Chosen(delta=0.1, shape="half-normal"),
    ],
    ids=lambda rule: rule.name,
)
def test_other_guarantees_promise_what_is_proved(rule):
    error = np.random.default_rng(0).normal(size=(200, 40))
    cal = calibrate(error, np.ones_like(error), guarantee=rule)
    assert refused(cal.guarantee) == []
    assert refused(cal.promise) == []
    for functions in (5, 200):
        assert refused(str(plan(functions=functions, points=40, guarantee=rule))) == []


@pytest.mark.parametrize(
    "text",
    [
        "Ours is narrower under the same guarantee.",
        "A band with a guarantee, on every new function.",
        "It contains 90 % of the points for at least 98 % of new functions.",
        "It covers the domain for at least 1 − δ of new functions.",
        "at least 90 % of the points of at least 98 % of the functions",
    ],
)
def test_the_phrases_are_noticed(text):
    assert refused(text)
    assert not refused("With confidence 90 %, for at least 98 % of new functions it holds.")
