"""Against MAPIE and crepes where they cover the case, functions of one point: to the last digit."""

import warnings

import numpy as np
import pytest

import uqno

N = 437
RNG = np.random.default_rng(5)
TRUTH = RNG.standard_normal(N)
GROUPS = RNG.integers(0, 3, N)
PREDICTION = TRUTH + RNG.standard_normal(N) * (1 + GROUPS)
E = RNG.uniform(0.5, 2, N)


class Fixed:
    """A fitted regressor, as MAPIE wants one: it answers what it is told."""

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]

    def __sklearn_is_fitted__(self):
        return True


def of_ours(delta, mask):
    error, ones = (TRUTH - PREDICTION)[mask, None], np.ones((mask.sum(), 1))
    return uqno.calibrate(error, ones, alpha=0.5, delta=delta)


@pytest.mark.parametrize("delta", [0.02, 0.05, 0.1, 0.2, 0.37])
def test_groups_agree_with_mapie(delta):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mapie.regression import SplitConformalRegressor
    made = uqno.calibrate((TRUTH - PREDICTION)[:, None], np.ones((N, 1)), 0.5, delta, groups=GROUPS)
    for g in range(3):
        mask = g == GROUPS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = SplitConformalRegressor(
                estimator=Fixed(), confidence_level=1 - delta, prefit=True
            )
            theirs.conformalize(PREDICTION[mask, None], TRUTH[mask])
            _, interval = theirs.predict_interval(np.zeros((1, 1)))
        assert made[str(g)].scale == float(interval[0, 1, 0])
        assert made[str(g)].scale == of_ours(delta, mask).scale


@pytest.mark.parametrize("delta", [0.02, 0.05, 0.1, 0.2, 0.37])
def test_groups_and_uncertainties_agree_with_crepes(delta):
    """Mondrian conformal regressors, normalised by difficulty; where (n_g + 1) δ is no whole
    number, as theirs rounds otherwise there."""
    from crepes import ConformalRegressor

    made = uqno.calibrate((TRUTH - PREDICTION)[:, None], E[:, None], 0.5, delta, groups=GROUPS)
    theirs = ConformalRegressor().fit(TRUTH - PREDICTION, sigmas=E, bins=GROUPS)
    compared = 0
    for g in range(3):
        n = (g == GROUPS).sum()
        if float((n + 1) * delta).is_integer():
            continue
        interval = theirs.predict_int(
            np.zeros(1), sigmas=np.ones(1), bins=np.array([g]), confidence=1 - delta
        )
        assert made[str(g)].scale == interval[0, 1]
        compared += 1
    assert compared


@pytest.mark.parametrize("confidence", [None])
def test_a_quantity_is_crepes_of_one_number(confidence):
    from crepes import ConformalRegressor

    rule = uqno.guarantees.Quantity(0.1, "drag", confidence)
    made = uqno.calibrate((TRUTH - PREDICTION)[:, None], E[:, None], guarantee=rule)
    theirs = ConformalRegressor().fit(TRUTH - PREDICTION, sigmas=E)
    assert made.scale == theirs.predict_int(np.zeros(1), sigmas=np.ones(1), confidence=0.9)[0, 1]
