"""The Beta-binomial law of failures: against counting by hand, and against simulated ranks."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from uqno.conformal.agreement import agreement, verdict


def exact(total, calibration, rank):
    """P[exactly f failures], f = 0 … T: f of the new functions lie above the j-th of n."""
    n, j = calibration, rank
    every = comb(n + total, n)
    return [
        Fraction(comb(j - 1 + total - f, total - f) * comb(n - j + f, f), every)
        for f in range(total + 1)
    ]


@pytest.mark.parametrize(("total", "n", "j"), [(5, 3, 2), (12, 9, 9), (7, 20, 1), (1, 1, 1)])
def test_the_law_is_that_of_ranks(total, n, j):
    law = exact(total, n, j)
    assert sum(law) == 1
    mean = sum(f * p for f, p in enumerate(law))
    for failures in range(total + 1):
        found = agreement(failures, total, n, j)
        assert found.p_value == pytest.approx(float(sum(law[failures:])), rel=1e-9)
        assert found.expected == pytest.approx(float(mean))
        assert found.functions == total
        assert found.failures == failures
        assert found.percentage == pytest.approx(1 - failures / total)
        low, high = found.usual
        assert float(sum(law[: low + 1])) >= 0.025 > float(sum(law[:low])) - 1e-12
        assert float(sum(law[: high + 1])) >= 0.975 - 1e-12 > float(sum(law[:high])) - 1e-9


def test_simulated_scores_have_p_values_that_are_not_too_small():
    rng = np.random.default_rng(0)
    scores = rng.exponential(size=(4000, 150))
    scale = np.sort(scores[:, :50], axis=1)[:, 44]
    failures = (scores[:, 50:] > scale[:, None]).sum(axis=1)
    p = np.array([agreement(int(f), 100, 50, 45).p_value for f in failures])
    for level in (0.01, 0.05, 0.2):
        share = (p <= level).mean()
        assert share <= level + 4 * np.sqrt(level / len(p))
        assert share >= level / 3


@pytest.mark.parametrize(
    ("failures", "verdict"), [(0, "yes"), (20, "yes"), (36, "doubtful"), (45, "no"), (1000, "no")]
)
def test_the_verdict_can_say_no(failures, verdict):
    assert agreement(failures, 1000, 500, 491).verdict == verdict


def test_the_verdict_changes_exactly_at_its_levels():
    p = {f: agreement(f, 1000, 500, 491).p_value for f in range(100)}
    for failures, value in p.items():
        said = agreement(failures, 1000, 500, 491).verdict
        assert said == ("no" if value < 0.01 else "doubtful" if value < 0.05 else "yes")
    assert {agreement(f, 1000, 500, 491).verdict for f in p} == {"yes", "doubtful", "no"}
    assert (verdict(0.05), verdict(0.01), verdict(0.0)) == ("yes", "doubtful", "no")


def test_an_impossible_count_is_refused():
    with pytest.raises(ValueError, match="failures = 11 must be at most functions = 10"):
        agreement(11, 10, 5, 5)
    with pytest.raises(ValueError, match="rank = 6 at most calibration = 5"):
        agreement(1, 10, 5, 6)
    with pytest.raises(ValueError, match="failures"):
        agreement(-1, 10, 5, 5)
    with pytest.raises(ValueError, match="functions"):
        agreement(0, 0, 5, 5)
    with pytest.raises(ValueError, match="calibration"):
        agreement(0, 1, 0, 5)
    with pytest.raises(ValueError, match="rank"):
        agreement(0, 1, 5, 0)
    assert agreement(0, 1, 1, 1).p_value == 1
