"""Groups, known shifts, quantities and joint promises, by simulation against their exact laws.

Without ties a score rule fails with probability exactly (n + 1 − j) / (n + 1), whatever the law of
the scores, so failures in independent draws are binomial: the bound is tested one-sided, and the
law two-sided. Under a shift the failure probability is at most δ, one-sided.
"""

import numpy as np
import pytest
from scipy import stats

from uqno import calibrate, guarantees
from uqno.conformal import calibrate_jointly

LEVEL = 1e-4
DRAWS = 250

pytestmark = pytest.mark.statistical


def at_most(failures, draws, delta):
    return stats.binomtest(int(failures), draws, delta, alternative="greater").pvalue > LEVEL


def exactly(failures, draws, p):
    return stats.binomtest(int(failures), draws, p).pvalue > LEVEL


def normal(rng, n, m):
    return rng.standard_normal((n, m)) * np.exp(0.7 * rng.standard_normal((n, 1)))


def heavy(rng, n, m):
    return rng.standard_cauchy((n, m))


def walks(rng, n, m):
    """Correlated along the grid, with heavy-tailed scales."""
    walk = np.cumsum(rng.standard_normal((n, m)), axis=1) / np.sqrt(m)
    return walk * rng.standard_t(2, size=(n, 1))


def ties(rng, n, m):
    return 0.1 * rng.binomial(3, rng.beta(1, 3, size=(n, 1)), size=(n, m))


LAWS = (normal, heavy, walks, ties)


def failed(cal, error, alpha):
    return cal.coverage([error], [np.ones(error.size)])[0] < 1 - alpha - 1e-12


# --- groups ------------------------------------------------------------------------------------

GROUPS = [  # law, functions of each group, points, alpha, delta
    (law, sizes, m, alpha, delta)
    for law in LAWS
    for sizes, m, alpha, delta in (
        ((9, 30), 10, 0.1, 0.1),
        ((19, 25), 20, 0.2, 0.05),
        ((40, 12, 15), 15, 0.2, 0.2),
        ((60, 11), 5, 0.25, 0.1),
        ((25, 99), 12, 0.1, 0.04),
        ((15, 16), 30, 0.05, 0.15),
        ((33, 70), 8, 0.3, 0.03),
        ((12, 50), 1, 0.5, 0.1),
    )
]


@pytest.mark.parametrize(("law", "sizes", "m", "alpha", "delta"), GROUPS)
def test_the_promise_holds_in_every_group(law, sizes, m, alpha, delta):
    """Group g has errors 10^g as large; each has as many failures as its own law says."""
    rng = np.random.default_rng([m, *sizes])
    names = [f"group {g}" for g in range(len(sizes))]
    labels = [name for name, n in zip(names, sizes, strict=True) for _ in range(n)]
    failures = dict.fromkeys(names, 0)
    for _ in range(DRAWS):
        errors = [10.0**g * law(rng, n + 1, m) for g, n in enumerate(sizes)]
        made = calibrate(
            np.concatenate([e[:-1] for e in errors]), np.ones((sum(sizes), m)), alpha, delta,
            groups=labels,
        )  # fmt: skip
        for name, e in zip(names, errors, strict=True):
            failures[name] += failed(made[name], e[-1], alpha)
    for name, n in zip(names, sizes, strict=True):
        assert at_most(failures[name], DRAWS, delta), f"{failures[name]} of {DRAWS} in {name}"
        if law is not ties:
            j = made[name].ranks.function
            assert exactly(failures[name], DRAWS, (n + 1 - j) / (n + 1))


def test_without_groups_a_rare_group_is_missed():
    """What groups are for: one λ̂ for all leaves out a tenth of functions that are harder."""
    rng = np.random.default_rng(0)
    failures = 0
    for _ in range(200):
        error = normal(rng, 101, 10) * np.where(np.arange(101) % 10 == 0, 30.0, 1.0)[:, None]
        failures += failed(calibrate(error[:100], np.ones((100, 10)), 0.1, 0.1), error[100], 0.1)
    assert failures > 0.4 * 200


@pytest.mark.parametrize(("n", "delta"), [(60, 0.2), (90, 0.1)])
def test_a_function_in_several_groups_is_safe_in_each(n, delta):
    """Classes that overlap, errors five times as large where they do: the largest λ̂ is taken."""
    rng = np.random.default_rng(n)
    trials, failures = {"a": 0, "b": 0}, {"a": 0, "b": 0}
    for _ in range(DRAWS):
        inside = rng.random((2, n + 1)) < 0.6
        error = normal(rng, n + 1, 8) * np.where(inside.all(axis=0), 5.0, 1.0)[:, None]
        marks = dict(zip("ab", inside[:, :n], strict=True))
        made = calibrate(error[:n], np.ones((n, 8)), 0.2, delta, groups=marks)
        own = [name for name, x in zip("ab", inside[:, n], strict=True) if x]
        for name in own:
            trials[name] += 1
            failures[name] += failed(made[own], error[n], 0.2)
    for name, number in trials.items():
        assert at_most(failures[name], number, delta), f"{failures[name]} of {number} in {name}"


# --- known shift ----------------------------------------------

SHIFTS = [  # law, n, points, alpha, delta, how strong the shift is
    (law, n, m, alpha, delta, strength)
    for law in LAWS
    for n, m, alpha, delta, strength in (
        (40, 10, 0.1, 0.1, 0.5),
        (60, 5, 0.2, 0.1, 1.0),
        (100, 8, 0.25, 0.05, 0.7),
        (30, 20, 0.1, 0.2, -1.0),
        (80, 1, 0.5, 0.1, 1.5),
        (50, 12, 0.2, 0.15, 0.0),
        (150, 4, 0.3, 0.03, 0.8),
        (25, 6, 0.2, 0.3, 2.0),
    )
]


@pytest.mark.parametrize(("law", "n", "m", "alpha", "delta", "strength"), SHIFTS)
def test_known_likelihood_ratios_keep_the_promise(law, n, m, alpha, delta, strength):
    """x ~ N(0, 1) in calibration and N(strength, 1) after; errors grow as exp(x)."""
    rng = np.random.default_rng([n, m])
    failures = infinite = 0
    for _ in range(DRAWS):
        x = rng.standard_normal(n + 1)
        x[n] += strength
        ratio = np.exp(strength * x - strength**2 / 2)
        error = law(rng, n + 1, m) * np.exp(x)[:, None]
        try:
            cal = calibrate(error[:n], np.ones((n, m)), alpha, delta, shift=ratio[:n])
        except ValueError:  # no finite scale for anyone
            infinite += 1
            continue
        scale = cal.scale_for({"likelihood_ratio": ratio[n]})
        infinite += np.isinf(scale)
        failures += (np.abs(error[n]) <= scale).mean() < 1 - alpha - 1e-12
    assert at_most(failures, DRAWS, delta), f"{failures} of {DRAWS}"
    assert infinite < 0.8 * DRAWS
    if strength == 0 and law is not ties:
        assert exactly(failures, DRAWS, np.floor((n + 1) * delta) / (n + 1))


def test_without_ratios_a_shift_breaks_the_promise():
    rng = np.random.default_rng(2)
    failures = 0
    for _ in range(200):
        x = rng.standard_normal(61)
        x[60] += 1.5
        error = normal(rng, 61, 10) * np.exp(x)[:, None]
        failures += failed(calibrate(error[:60], np.ones((60, 10)), 0.1, 0.1), error[60], 0.1)
    assert not at_most(failures, 200, 0.1)


# --- quantities, and several promises at once ----------------------------------------------

QUANTITIES = [  # law, n, numbers, delta
    (law, n, d, delta)
    for law in LAWS
    for n, d, delta in (
        (9, 1, 0.1), (20, 1, 0.1), (49, 3, 0.02), (60, 2, 0.05), (30, 5, 0.2), (99, 1, 0.03),
        (15, 4, 0.3), (120, 2, 0.01),
    )
]  # fmt: skip


@pytest.mark.parametrize(("law", "n", "d", "delta"), QUANTITIES)
def test_intervals_of_quantities(law, n, d, delta):
    rng = np.random.default_rng([n, d])
    rule, failures = guarantees.Quantity(delta, "drag"), 0
    for _ in range(DRAWS):
        error, R = law(rng, n + 1, d), rng.uniform(0.5, 2, (n + 1, d))
        cal = calibrate(error[:n], R[:n], guarantee=rule)
        failures += (np.abs(error[n]) / R[n]).max() > cal.scale
    assert at_most(failures, DRAWS, delta), f"{failures} of {DRAWS}"
    if law is not ties:
        assert exactly(failures, DRAWS, (n + 1 - cal.ranks.function) / (n + 1))


JOINT = [  # law, n, points of each variable, alpha, delta
    (law, n, points, alpha, delta)
    for law in LAWS
    for n, points, alpha, delta in (
        (30, (10, 10), 0.1, 0.1), (50, (5, 20), 0.2, 0.05), (99, (1, 8, 15), 0.25, 0.03),
        (20, (12, 12), 0.3, 0.2), (40, (30, 1), 0.1, 0.15), (12, (4, 4, 4), 0.25, 0.1),
        (80, (6, 9), 0.4, 0.02), (60, (25, 3), 0.2, 0.3),
    )
]  # fmt: skip


@pytest.mark.parametrize(("law", "n", "points", "alpha", "delta"), JOINT)
def test_joint_promises_hold_at_once(law, n, points, alpha, delta):
    """Variables of very different size, which depend on each other through the function."""
    rng = np.random.default_rng([n, *points])
    names = [f"v{v}" for v in range(len(points))]
    sizes = {name: 3.0**v for v, name in enumerate(names)}
    rule, failures = guarantees.Fraction(alpha, delta), 0
    for _ in range(DRAWS):
        shared = np.exp(rng.standard_normal((n + 1, 1)))
        errors = [3.0**v * shared * law(rng, n + 1, m) for v, m in enumerate(points)]
        parts = {
            name: (e[:n], np.ones((n, e.shape[1]))) for name, e in zip(names, errors, strict=True)
        }
        made = calibrate_jointly(parts, sizes, rule)
        failures += any(failed(made[x], e[n], alpha) for x, e in zip(names, errors, strict=True))
    assert at_most(failures, DRAWS, delta), f"{failures} of {DRAWS}"
    if law is not ties:
        j = made["v0"].ranks.function
        assert exactly(failures, DRAWS, (n + 1 - j) / (n + 1))
