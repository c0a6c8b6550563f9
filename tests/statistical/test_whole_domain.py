"""The whole domain from a grid, from strata and from some of the nodes: by simulation.

Each setting calibrates many sets of functions and looks at one new function a set, of which the
whole domain is known. The number of failures is Bin(sets, p) with p ≤ δ, tested at level 1e-4.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from uqno.conformal import calibrate_splits
from uqno.conformal.guarantees import Continuum, Strata, WithoutReplacement, drawn

LEVEL = 1e-4
SETS = 300
FINE = 16  # points of the continuum for each node

pytestmark = pytest.mark.statistical


def failures(rule, draw, n, rng):
    """Failures of one new function for each of `SETS` calibration sets.

    Args:
        rule: the guarantee.
        draw: (rng, functions) → what is observed, (error, uncertainty) each (functions, m), and the
            ratios on the whole domain, (functions, points).
    """
    (error, uncertainty), _ = draw(rng, SETS * n)
    splits = np.arange(SETS * n).reshape(SETS, n)
    scales = calibrate_splits(error, uncertainty, rule, splits)
    _, whole = draw(rng, SETS)
    covered = (whole <= scales[:, None]).mean(axis=1)
    return int((covered < 1 - float(rule.alpha) - 1e-12).sum())


def holds(failed, delta):
    return stats.binomtest(failed, SETS, float(delta), alternative="greater").pvalue > LEVEL


def amplitude(rng, number, law):
    """The scale of each function: lognormal, or with so heavy a tail that it has no mean."""
    if law == "heavy":
        return (1 - rng.random((number, 1))) ** -1.2
    if law == "ties":
        return rng.integers(1, 4, (number, 1)) * 1.0
    return np.exp(0.5 * rng.standard_normal((number, 1)))


# --- a grid of the continuum ---------------------------------------------------------------------


def waves(law, m, steep):
    """Errors A (1 + sin(2π (k x + φ))) under an A cut at 5, uncertainty 1 + sin(2πx)/2, on [0, 1).

    The nodes are the middles of m cells, all of which change by at most the returned bounds.
    """
    h = 1 / (2 * m)
    x = (np.arange(m * FINE) + 0.5) / (m * FINE)
    nodes = (np.arange(m) + 0.5) / m

    def draw(rng, number):
        A = np.minimum(amplitude(rng, number, law), 5)
        k, phase = rng.integers(1, steep + 1, (number, 1)), rng.random((number, 1))

        def error(at):
            return A * (1 + np.sin(2 * np.pi * (k * at + phase)))

        def uncertainty(at):
            return 1 + 0.5 * np.sin(2 * np.pi * at) + 0 * A

        whole = error(x) / uncertainty(x) if number <= SETS else None
        return (error(nodes), uncertainty(nodes)), whole

    return draw, 5 * 2 * np.pi * steep * h, np.pi * h


GRIDS = list(product(["heavy", "light", "ties"], [(20, 20), (60, 40)], [1, 3],
                     [(0.1, 0.1), (0.2, 0.3), (0.05, 0.05)]))  # fmt: skip


@pytest.mark.parametrize(("law", "size", "steep", "levels"), GRIDS)
def test_the_continuum_from_a_grid(law, size, steep, levels):
    n, m = size
    rng = np.random.default_rng([n, m, steep, len(law)])
    draw, a, b = waves(law, m, steep)
    rule = Continuum(*levels, a, b)
    if rule.ranks_for(n, m) is None:
        rule = Continuum(levels[0], 0.1, a, b)
    assert holds(failures(rule, draw, n, rng), rule.delta)


def spikes(rng, number, m=20):
    """An error that is A between the nodes and 0 at them, or 0 at all: what a grid cannot see."""
    A = rng.random((number, 1))
    x = (np.arange(m * FINE) + 0.5) / (m * FINE) * m % 1
    whole = A * (np.abs(x - 0.5) > 0.1)
    return (np.zeros((number, m)), np.ones((number, m))), whole


def test_bounds_are_needed_and_suffice_where_the_grid_sees_nothing():
    rng = np.random.default_rng(0)
    assert failures(Continuum(0.1, 0.1, 0.0, 0.0), spikes, 30, rng) == SETS
    assert failures(Continuum(0.1, 0.1, 1.0, 0.0), spikes, 30, rng) == 0


# --- one point a stratum -------------------------------------------------------------------------


def striped(law, m, spread):
    """Ratios A · |Z| of cells; a stratum holds FINE of them, or whole strata are alike."""

    def draw(rng, number):
        A = amplitude(rng, number, law)
        cells = m if spread == "whole strata" else m * FINE
        z = np.abs(rng.standard_normal((number, cells)))
        if spread == "smooth":
            z = np.sort(z, axis=1)
        whole = A * (np.repeat(z, FINE, axis=1) if cells == m else z)
        taken = np.arange(m) * FINE + rng.integers(0, FINE, (number, m))
        seen = np.take_along_axis(whole, taken, axis=1)
        return (seen, np.ones((number, m))), whole

    return draw


STRATA = list(product(["heavy", "light", "ties"], ["whole strata", "smooth", "rough"],
                      [(20, 20, 0.2, 0.2), (40, 30, 0.1, 0.1), (100, 25, 0.2, 0.05),
                       (30, 60, 0.1, 0.3)]))  # fmt: skip


@pytest.mark.parametrize(("law", "spread", "size"), STRATA)
def test_one_point_a_stratum(law, spread, size):
    n, m, alpha, delta = size
    rng = np.random.default_rng([n, m, len(law), len(spread)])
    assert holds(failures(Strata(alpha, delta), striped(law, m, spread), n, rng), delta)


# --- some of the nodes ---------------------------------------------------------------------------


def meshed(law, nodes, m, kind):
    """Ratios A · |Z| at all nodes: independent, in neighbouring blocks alike, or mostly zero."""

    def draw(rng, number):
        z = np.abs(rng.standard_normal((number, nodes)))
        if kind == "blocks":
            z = np.repeat(z[:, : nodes // 5], 5, axis=1)
        if kind == "sparse":
            z = z * (np.arange(nodes) % 7 == 0)
        whole = amplitude(rng, number, law) * z
        taken = rng.random((number, nodes)).argsort(axis=1)[:, :m]
        return (np.take_along_axis(whole, taken, axis=1), np.ones((number, m))), whole

    return draw


MESHES = list(product(["heavy", "light", "ties"], ["independent", "blocks", "sparse"],
                      [(20, 40, 20, 0.2, 0.2), (40, 100, 30, 0.1, 0.1), (60, 50, 49, 0.1, 0.05),
                       (30, 200, 40, 0.1, 0.3)]))  # fmt: skip


@pytest.mark.parametrize(("law", "kind", "size"), MESHES)
def test_nodes_without_replacement(law, kind, size):
    n, nodes, m, alpha, delta = size
    rng = np.random.default_rng([n, nodes, m, len(law), len(kind)])
    rule = WithoutReplacement(alpha, delta, nodes)
    assert holds(failures(rule, meshed(law, nodes, m, kind), n, rng), delta)


@pytest.mark.parametrize(("n", "nodes", "m", "k"), [(40, 30, 15, 14), (60, 100, 20, 19),
                                                    (100, 40, 30, 27)])  # fmt: skip
def test_the_rule_for_nodes_is_sharp(n, nodes, m, k):
    """All but just enough nodes have ratio 0, the rest one continuous value T of the function.

    The band fails exactly if T > λ̂, and P[T > λ̂] = ℓ / ((n + 1)(1 − β)): the law itself.
    """
    rule, sets = WithoutReplacement(0.1, 0.2, nodes), 40_000
    j = drawn.function_rank_of(rule, k, n, m)
    rng = np.random.default_rng([n, nodes])
    inside = rule.most_without
    seen = rng.hypergeometric(inside, nodes - inside, m, (sets, n))
    scores = rng.random((sets, n)) * (seen < k)
    lam = np.partition(scores, j - 1, axis=1)[:, j - 1]
    shown = float(rule.surely_shown(k, m))
    expected = (n + 1 - j) / ((n + 1) * shown)
    failed = int((rng.random(sets) > lam).sum())
    zero = (lam == 0).mean()  # where fewer than ℓ scores are above 0 the law is not reached
    assert zero < 0.02
    assert abs(failed / sets - expected) < 5 * np.sqrt(expected / sets) + zero
    assert expected <= 0.2 + 1e-6
