"""The fuzzer in short; `make fuzz` runs all of it."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import uqno
from tests.fuzz import api, harness, naive, values

HERE = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["calibrations", "arguments", "commands", "files"])
def test_a_few_cases_of_every_kind(kind):
    share = {"calibrations": "0.02", "arguments": "0.06", "commands": "0.03", "files": "0.05"}
    command = [sys.executable, "-m", "tests.fuzz", "--kind", kind, "--cases", share[kind]]
    command += ["--seed", "11", "--minutes", "10"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kind}: " in done.stdout


def outcome(call):
    tally = harness.run("test", lambda rng: ("one", call), [0], seed=0, minutes=1)
    (found,) = tally.outcomes
    return found


def raises(why):
    def call():
        raise why

    return call


def test_what_counts_as_a_failure():
    """The fuzzer can fail: it knows what is documented from what is not."""
    assert outcome(lambda: 1) == "accepted"
    for why in (ValueError("no"), uqno.InfeasibleError("no"), FileNotFoundError("no")):
        assert outcome(raises(why)) == "refused"
    unknown = TypeError("f() got an unexpected keyword argument 'x'")
    assert outcome(raises(unknown)) == "refused"
    for why in (TypeError("no"), KeyError("no"), RecursionError("no"), MemoryError(),
                AttributeError("no"), UnicodeEncodeError("ascii", "α", 0, 1, "no"),
                RuntimeWarning("no"), SystemExit(0)):  # fmt: skip
        assert outcome(raises(why)) == "failed"


def test_a_wrong_scale_is_noticed():
    given = api.functions_40()
    functions = [(e, E, None) for e, E in zip(*given.values(), strict=True)]
    asked = {"alpha": Fraction(1, 5), "delta": Fraction(1, 10), "sampling": "grid"}
    asked["confidence"] = None
    naive.check(api.a_calibration(), functions, asked)
    wrong = uqno.calibrate(given["error"], given["uncertainty"] * 1.001, 0.2, 0.1)
    with pytest.raises(harness.WrongAnswerError, match="the reference says"):
        naive.check(wrong, functions, asked)


def test_cases_are_repeated_by_seed_and_number():
    def words(seed, number):
        rng = np.random.default_rng([seed, *b"arguments", number])
        return api.abused(rng)[0]

    names = [words(3, i) for i in range(50)]
    assert names == [words(3, i) for i in range(50)]
    assert len(set(names)) > 10
    assert len(values.VALUES) > 100
