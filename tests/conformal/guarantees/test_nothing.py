"""A band as the method gives it promises nothing, and says so."""

import numpy as np

from uqno import Calibration, calibrate, plan
from uqno.conformal.guarantees import Nothing

ERROR = np.random.default_rng(0).normal(size=(20, 30))


def test_the_scale_is_one_whatever_the_functions_say():
    cal = calibrate(ERROR, np.ones_like(ERROR), guarantee=Nothing())
    assert cal.scale == 1.0
    assert cal.levels == {}
    assert Calibration.from_json(cal.to_json()) == cal


def test_it_says_that_nothing_is_promised():
    cal = calibrate(ERROR, np.ones_like(ERROR), guarantee=Nothing())
    assert cal.guarantee == (
        "Nothing is promised: the band is the uncertainty as the method gives it."
    )
    assert cal.promise == "nothing is promised"
    planned = plan(functions=2, points=1, guarantee=Nothing())
    assert planned.feasible
    assert str(planned) == "Nothing is promised, whatever the functions."


def test_it_takes_functions_of_one_point_and_weights():
    cal = calibrate(ERROR[:, :1], np.ones((20, 1)), guarantee=Nothing())
    np.testing.assert_array_equal(cal.scores, np.sort(np.abs(ERROR[:, 0])))
    weighted = calibrate(ERROR, np.ones_like(ERROR), weights=np.ones(30), guarantee=Nothing())
    assert weighted.weighted
    assert not cal.weighted
